"""A lock on the folder of a run: one process writes to it, and a crash leaves no lock behind.

The lock is the kernel's (`flock` on a file of its own), which lets go of it when the process is gone, however that
came. In the file stands who holds it and the round that it is in: what can be said of a run that died.
"""

import errno
import json
import os
import platform
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, TypeGuard

from prism_mesa.errors import DataError, printable, shortened

LOCK: Final = ".lock"
"""The file's name. A run that has written down how it ended takes it away; a run that died leaves it."""
_BYTES: Final = 512
"""Of what stands in it, however much that is: one write takes the place of what stood there."""
_EVERY_S: Final = 1.0
_TRIES: Final = 10
_PAUSE_S: Final = 0.02
_MOST: Final = 2**31
_LONGEST_NAME: Final = 100
_NO_LOCKS_HERE: Final = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
_PLAIN: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""No link is followed, and nobody waits at a pipe. Programs that are started do not get the file: Python sees to it."""


@dataclass(frozen=True)
class Holder:
    """Who writes to a run's folder, or wrote to it when the run died.

    Attributes:
        pid: The process.
        host: Its machine.
        since: When it began (UTC).
        round: The round that it is or was in, from 0: so many are complete. It is written at most once a second, so it
            may be that much behind. None: not the first is complete.
        locks: Whether the kernel holds the lock. Where the file system has none (some network file systems), only
            this text says that somebody writes.
    """

    pid: int
    host: str
    since: str
    round: int | None = None
    locks: bool = True

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"


class RunLock:
    """The lock on a folder while it is held (see `lock_run`).

    Attributes:
        ended: Whether the folder says how its run ended, or nothing has been written to it: then the file is taken away
            with the lock. Else it stays, and says how far the run came.
    """

    def __init__(self, file: Path, number: int, holder: Holder) -> None:
        self._file, self._number, self._holder = file, number, holder
        self.ended = os.fstat(number).st_size == 0  # else a run died there
        self._next = 0.0
        self._write(holder)
        _held_here.add(self)

    def note_round(self, round_: int) -> None:
        """Write down the round that the run is in now, if that was last done a second ago or more."""
        self._holder, now = replace(self._holder, round=round_), time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY_S
            self._write(self._holder)

    def _write(self, holder: Holder) -> None:
        if self._number >= 0:
            text = json.dumps(asdict(holder)).encode()
            with suppress(OSError):  # only how far a run came would not be known
                os.pwrite(self._number, text.ljust(_BYTES - 1) + b"\n", 0)

    def release(self) -> None:
        """Let go of it; of a run that has ended take the file away."""
        if self._number >= 0 and self.ended:
            with suppress(OSError):  # the folder may be gone
                self._file.unlink()
        else:
            self._write(self._holder)
        self.forget()

    def forget(self) -> None:
        """Close the file, which lets go of the lock unless another process has the file open as well."""
        _held_here.discard(self)
        number, self._number = self._number, -1
        if number >= 0:
            os.close(number)


_held_here: Final[set[RunLock]] = set()


def _forget_all() -> None:
    """Forget the locks of the process that this one was forked from: it would hold them when that one is gone."""
    for lock in tuple(_held_here):
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


@contextmanager
def lock_run(folder: Path, *, round_: int | None = None) -> Iterator[RunLock]:
    """Hold a run's folder while the block writes to it.

    Args:
        folder: The folder.
        round_: The round that the run goes on from, if it goes on; None: as the file has it, of a run that died.

    Raises:
        DataError: If another process, or this one, writes to it already, or it cannot be written to.
    """
    lock = _taken(folder, round_)
    try:
        yield lock
    finally:
        lock.release()


def held(folder: Path, name: str = LOCK) -> bool:
    """Return whether a process writes to a run's folder now; `name` is that of the file that it locks."""
    try:
        number = _opened(folder / name, os.O_RDONLY)
    except OSError:
        return False
    try:
        free = take(number, shared=True)
        return free is False or _says_so(number, kernel_locks=bool(free))
    finally:
        os.close(number)


def last_holder(folder: Path) -> Holder | None:
    """Return who writes to a run's folder, or wrote to it when the run died; None if nobody is known."""
    try:
        number = _opened(folder / LOCK, os.O_RDONLY)
    except OSError:
        return None
    try:
        return _read(number)
    finally:
        os.close(number)


def require_free(folder: Path) -> None:
    """Make sure that nobody writes to a run's folder now.

    Raises:
        DataError: If somebody does.
    """
    if held(folder):
        raise _busy(folder, last_holder(folder))


def take(number: int, *, shared: bool = False) -> bool | None:
    """Try to lock an open file; whoever only looks whether it is locked holds it for a moment, so wait a little.

    Returns:
        Whether it is locked now; None where the file system, or the machine, has no such locks.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    for again in range(_TRIES if not shared else 1):
        time.sleep(_PAUSE_S if again else 0)
        try:
            fcntl.flock(number, how)
        except OSError as error:
            if error.errno in _NO_LOCKS_HERE:
                return None
            if not isinstance(error, BlockingIOError | PermissionError):
                raise
        else:
            return True
    return False


def _taken(folder: Path, round_: int | None) -> RunLock:
    file = folder / LOCK
    now = datetime.now(UTC).isoformat(timespec="seconds")
    while True:
        try:
            number = _opened(file, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise DataError(f"{file}: cannot be opened to be written: {error.strerror}") from None
        try:
            taken = take(number)
            if taken is False or _says_so(number, kernel_locks=bool(taken)):
                raise _busy(folder, _read(number))
            if _is_at(file, number):
                before = _read(number)
                known = before.round if before is not None and round_ is None else round_
                return RunLock(file, number, Holder(os.getpid(), platform.node(), now, known, bool(taken)))
        except OSError as error:
            os.close(number)
            raise DataError(f"{file}: cannot be locked: {error.strerror}") from None
        except BaseException:
            os.close(number)
            raise
        os.close(number)  # whoever held it has taken it away meanwhile: there is a new one, or none


def _busy(folder: Path, holder: Holder | None) -> DataError:
    who = "another process" if holder is None else str(holder)
    told = f"{folder}: {who} writes to this run now: wait until it has ended, or end it"
    gone = f"; if it is gone, remove {folder / LOCK} (this file system has no locks)"
    return DataError(told + (gone if holder is not None and not holder.locks else ""))


def _opened(file: Path, how: int) -> int:
    """Open the file of a lock.

    Raises:
        OSError: If it cannot be opened, is a link, or no plain file.
    """
    number = os.open(file, how | _PLAIN, 0o666)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "is no plain file")
    return number


def _is_at(file: Path, number: int) -> bool:
    """Return whether an open file is still the one of that name."""
    try:
        return os.path.samestat(os.stat(file, follow_symlinks=False), os.fstat(number))
    except FileNotFoundError:
        return False


def _says_so(number: int, *, kernel_locks: bool) -> bool:
    """Return whether the text alone says that somebody writes, and nothing is known that speaks against it.

    Args:
        number: The open file.
        kernel_locks: Whether the kernel says that nobody holds it, which settles it where whoever wrote had locks too.
    """
    holder = _read(number)
    if holder is None or (kernel_locks and holder.locks):
        return False
    if holder.host != platform.node() or sys.platform == "win32":  # nobody here can know
        return True
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return holder.pid != os.getpid() or bool(_held_here)  # a process in a container has the number of the one before


def _read(number: int) -> Holder | None:
    """Return what stands in the file, which may come from anybody; None if it says nothing."""
    try:
        values: Any = json.loads(os.pread(number, _BYTES, 0))
        pid, host, since, round_ = (values[name] for name in ("pid", "host", "since", "round"))
        locks = values["locks"] is not False
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not (_is_number(pid) and pid and isinstance(host, str) and isinstance(since, str)):
        return None
    host, since = (printable(shortened(text, _LONGEST_NAME)) for text in (host, since))
    return Holder(pid, host, since, round_ if _is_number(round_) else None, locks)


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST
