"""The lock on a run's folder: one process writes to it, and a crash leaves no lock behind.

The kernel holds the lock (`flock` on a file of its own) and releases it with the process. The file names the process
and the run's round, so that they are known of a run that died.
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
"""The file's name. A run removes it once its manifest says how it ended; a run that died leaves it."""
_BYTES: Final = 512
"""Size of the file, so that one write replaces all of it."""
_EVERY_S: Final = 1.0
_TRIES: Final = 10
_PAUSE_S: Final = 0.02
_NO_LOCKS_HERE: Final = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
_PLAIN: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Follow no link, and do not wait at a pipe."""


@dataclass(frozen=True)
class Holder:
    """The process that writes to a run's folder, or did so when the run died.

    Attributes:
        pid: Its number.
        host: Machine.
        since: Start time (UTC).
        round: The round that it is or was in, from 0, at most a second behind; None before the first is complete.
        locks: Whether the kernel holds the lock; False on file systems without locks, where only this text says so.
    """

    pid: int
    host: str
    since: str
    round: int | None = None
    locks: bool = True

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}"


class RunLock:
    """The lock on a folder while this process holds it (see `lock_run`).

    Attributes:
        ended: Whether the manifest says how the run ended, or nothing was written yet: then `release` removes the file.
    """

    def __init__(self, file: Path, number: int, holder: Holder) -> None:
        self._file, self._number, self._holder = file, number, holder
        self.ended = os.fstat(number).st_size == 0  # otherwise a run died there
        self._next = 0.0
        self._write(holder)
        _locks_here.add(self)

    def note_round(self, round_: int) -> None:
        """Write down the run's round, at most once a second."""
        self._holder, now = replace(self._holder, round=round_), time.monotonic()
        if now >= self._next:
            self._next = now + _EVERY_S
            self._write(self._holder)

    def _write(self, holder: Holder) -> None:
        if self._number >= 0:
            text = json.dumps(asdict(holder)).encode()
            with suppress(OSError):  # the round is for information only
                os.pwrite(self._number, text.ljust(_BYTES - 1) + b"\n", 0)

    def release(self) -> None:
        """Release the lock, and remove the file if the run has ended."""
        if self._number >= 0 and self.ended:
            with suppress(OSError):  # the folder may have been deleted
                self._file.unlink()
        else:
            self._write(self._holder)
        self.forget()

    def forget(self) -> None:
        """Close the file; this releases the lock unless a parent process has the file open too."""
        _locks_here.discard(self)
        number, self._number = self._number, -1
        if number >= 0:
            os.close(number)


_locks_here: Final[set[RunLock]] = set()


def _forget_all() -> None:
    """Forget the parent's locks after a fork: the child would hold them when the parent is gone."""
    for lock in tuple(_locks_here):
        lock.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_all)


@contextmanager
def lock_run(folder: Path) -> Iterator[RunLock]:
    """Lock a run's folder while the block writes to it; raises DataError if a process does already, or none can."""
    lock = _lock(folder)
    try:
        yield lock
    finally:
        lock.release()


def is_locked(folder: Path, name: str = LOCK) -> bool:
    """Return whether a process writes to a folder now; `name` is the file that it locks."""
    try:
        with _opened(folder / name, os.O_RDONLY) as number:
            is_free = try_lock(number, shared=True)
            return is_free is False or _claims_lock(number, kernel_locks=bool(is_free))
    except OSError:
        return False


def last_holder(folder: Path) -> Holder | None:
    """Return the process that writes to a run's folder, or did when the run died; None if it is not known."""
    try:
        with _opened(folder / LOCK, os.O_RDONLY) as number:
            return _read(number)
    except OSError:
        return None


def require_free(folder: Path) -> None:
    """Check that no process writes to a run's folder now; raises DataError if one does."""
    if is_locked(folder):
        raise _busy(folder, last_holder(folder))


def try_lock(number: int, *, shared: bool = False) -> bool | None:
    """Try for a moment to lock an open file, and return whether it is locked now; None where there are no locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    how = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    for attempt in range(1 if shared else _TRIES):
        time.sleep(_PAUSE_S if attempt else 0)
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


def _lock(folder: Path) -> RunLock:
    file = folder / LOCK
    now = datetime.now(UTC).isoformat(timespec="seconds")
    while True:
        try:
            number = _open(file, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise DataError(f"{file}: cannot be opened to be written: {error.strerror}") from None
        try:
            is_ours = try_lock(number)
            before = _read(number)
            if is_ours is False or _claims_lock(number, kernel_locks=bool(is_ours)):
                raise _busy(folder, before)
            if _is_at(file, number):
                round_ = None if before is None else before.round
                return RunLock(file, number, Holder(os.getpid(), platform.node(), now, round_, bool(is_ours)))
        except OSError as error:
            os.close(number)
            raise DataError(f"{file}: cannot be locked: {error.strerror}") from None
        except BaseException:
            os.close(number)
            raise
        os.close(number)  # its holder has removed it meanwhile: lock the next one


def _busy(folder: Path, holder: Holder | None) -> DataError:
    message = f"{folder}: {holder or 'another process'} writes to this run now: wait until it has ended, or end it"
    gone = f"; if it is gone, remove {folder / LOCK} (this file system has no locks)"
    return DataError(message + (gone if holder is not None and not holder.locks else ""))


def _open(file: Path, how: int) -> int:
    """Open a lock file; raises OSError if it is a link, or no plain file."""
    number = os.open(file, how | _PLAIN, 0o666)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(errno.EINVAL, "is no plain file")
    return number


@contextmanager
def _opened(file: Path, how: int) -> Iterator[int]:
    number = _open(file, how)
    try:
        yield number
    finally:
        os.close(number)


def _is_at(file: Path, number: int) -> bool:
    """Return whether an open file still has that name."""
    try:
        return os.path.samestat(os.stat(file, follow_symlinks=False), os.fstat(number))
    except FileNotFoundError:
        return False


def _claims_lock(number: int, *, kernel_locks: bool) -> bool:
    """Return whether the text alone says that a process writes, and nothing speaks against it.

    `kernel_locks`: the kernel says that no process holds the lock, which settles it if the writer had locks too.
    """
    holder = _read(number)
    if holder is None or (kernel_locks and holder.locks):
        return False
    if holder.host != platform.node() or sys.platform == "win32":  # this machine cannot know
        return True
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return holder.pid != os.getpid() or bool(_locks_here)  # a container may reuse the number of the process before


def _read(number: int) -> Holder | None:
    """Return the holder that the file names; None if it names none (the file may come from anybody)."""
    try:
        values: Any = json.loads(os.pread(number, _BYTES, 0))
        pid, host, since, round_ = (values[name] for name in ("pid", "host", "since", "round"))
        locks = values["locks"] is not False
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not (_is_number(pid) and pid and isinstance(host, str) and isinstance(since, str)):
        return None
    host, since = (printable(shortened(text, 100)) for text in (host, since))
    return Holder(pid, host, since, round_ if _is_number(round_) else None, locks)


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
