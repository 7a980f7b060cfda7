"""The lock on a run's folder, so that only one process writes to the folder; a crash leaves no lock behind.

The kernel holds the lock (`flock` on a lock file) and releases it when the process ends. The file names the process
and the round, which therefore remain known after a run has died.
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

from prism_mesa.errors import DataError, printable, shorten

LOCK: Final = ".lock"
"""The lock file. A run removes it at its end; a run that died leaves it."""
_BYTES: Final = 512
"""Fixed size of the file, so that one write replaces its content."""
_NOTE_INTERVAL_S: Final = 1.0
_TRIES: Final = 10
_PAUSE_S: Final = 0.02
_NO_LOCK_ERRORS: Final = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL}
_SAFE_FLAGS: Final = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
"""Do not follow links or wait for pipes."""


@dataclass(frozen=True)
class Holder:
    """The process that writes to a run's folder, or the last one if the run died.

    Attributes:
        since: The start time (UTC).
        round: The current or last round, from 0, at most a second old; None before the first is complete.
        locks: Whether the file system has locks, so that the kernel holds the lock.
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
        has_ended: Whether the run has ended or not begun, so that `release` removes the file.
    """

    def __init__(self, file: Path, descriptor: int, holder: Holder) -> None:
        self._file, self._descriptor, self._holder = file, descriptor, holder
        self.has_ended = os.fstat(descriptor).st_size == 0  # otherwise a run died in this folder
        self._next_note_s = 0.0
        self._write(holder)
        _held_locks.add(self)

    def note_round(self, round_: int) -> None:
        """Write the current round, at most once a second."""
        self._holder, now = replace(self._holder, round=round_), time.monotonic()
        if now >= self._next_note_s:
            self._next_note_s = now + _NOTE_INTERVAL_S
            self._write(self._holder)

    def _write(self, holder: Holder) -> None:
        if self._descriptor >= 0:
            text = json.dumps(asdict(holder)).encode()
            with suppress(OSError):  # the round is for information only
                os.pwrite(self._descriptor, text.ljust(_BYTES - 1) + b"\n", 0)

    def release(self) -> None:
        """Release the lock, and remove the file if the run has ended."""
        if self._descriptor >= 0 and self.has_ended:
            with suppress(OSError):  # the folder may have been deleted
                self._file.unlink()
        else:
            self._write(self._holder)
        self.close()

    def close(self) -> None:
        """Close the file, which releases the lock unless a parent process also has the file open."""
        _held_locks.discard(self)
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


_held_locks: Final[set[RunLock]] = set()


def _close_all() -> None:
    """Close the parent's lock files after a fork; otherwise the child would keep the locks."""
    for lock in tuple(_held_locks):
        lock.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)


@contextmanager
def lock_run(folder: Path) -> Iterator[RunLock]:
    """Lock a run's folder during the block; raises DataError if it is locked, or cannot be locked."""
    lock = _lock(folder)
    try:
        yield lock
    finally:
        lock.release()


def is_locked(folder: Path, name: str = LOCK) -> bool:
    """Return whether a process writes to a folder; `name` is the lock file."""
    try:
        with _open_file(folder / name, os.O_RDONLY) as descriptor:
            is_free = try_lock(descriptor, shared=True)
            return is_free is False or _claims_lock(descriptor, is_free_in_kernel=bool(is_free))
    except OSError:
        return False


def last_holder(folder: Path) -> Holder | None:
    """Return the current or last process that writes to a run's folder; None if unknown."""
    try:
        with _open_file(folder / LOCK, os.O_RDONLY) as descriptor:
            return _read(descriptor)
    except OSError:
        return None


def require_free(folder: Path) -> None:
    """Raise DataError if a process writes to a run's folder."""
    if is_locked(folder):
        raise _busy_error(folder, last_holder(folder))


def try_lock(descriptor: int, *, shared: bool = False) -> bool | None:
    """Try to lock an open file, and return whether this succeeded; None on file systems without locks."""
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    flags = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB
    for attempt in range(1 if shared else _TRIES):
        time.sleep(_PAUSE_S if attempt else 0)
        try:
            fcntl.flock(descriptor, flags)
        except OSError as error:
            if error.errno in _NO_LOCK_ERRORS:
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
            descriptor = _open(file, os.O_RDWR | os.O_CREAT)
        except OSError as error:
            raise DataError(f"{file} cannot be opened to be written: {error.strerror}") from None
        try:
            has_lock = try_lock(descriptor)
            holder = _read(descriptor)
            if has_lock is False or _claims_lock(descriptor, is_free_in_kernel=bool(has_lock)):
                raise _busy_error(folder, holder)
            if _is_same_file(file, descriptor):
                round_ = None if holder is None else holder.round
                return RunLock(file, descriptor, Holder(os.getpid(), platform.node(), now, round_, bool(has_lock)))
        except OSError as error:
            os.close(descriptor)
            raise DataError(f"{file} cannot be locked: {error.strerror}") from None
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the holder has removed this file, so lock a new one


def _busy_error(folder: Path, holder: Holder | None) -> DataError:
    message = f"{folder}: {holder or 'another process'} writes to this run now: wait until it has ended, or end it"
    hint = f"; if it is gone, remove {folder / LOCK} (this file system has no locks)"
    return DataError(message + (hint if holder is not None and not holder.locks else ""))


def _open(file: Path, flags: int) -> int:
    """Open a lock file; raises OSError if it is a link, or not a regular file."""
    descriptor = os.open(file, flags | _SAFE_FLAGS, 0o666)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is not a regular file")
    return descriptor


@contextmanager
def _open_file(file: Path, flags: int) -> Iterator[int]:
    descriptor = _open(file, flags)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_same_file(file: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(file, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _claims_lock(descriptor: int, *, is_free_in_kernel: bool) -> bool:
    """Return whether the file names a writing process that may still exist.

    `is_free_in_kernel`: whether the kernel reports that the lock is free, which is conclusive if the writer used it.
    """
    holder = _read(descriptor)
    if holder is None or (is_free_in_kernel and holder.locks):
        return False
    if holder.host != platform.node() or sys.platform == "win32":  # the process cannot be checked from here
        return True
    try:
        os.kill(holder.pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return holder.pid != os.getpid() or bool(_held_locks)  # a container may reuse a process id


def _read(descriptor: int) -> Holder | None:
    """Return the holder in a lock file; None if the content is invalid, because the file may come from elsewhere."""
    try:
        values: Any = json.loads(os.pread(descriptor, _BYTES, 0))
        pid, host, since, round_ = (values[name] for name in ("pid", "host", "since", "round"))
        locks = values["locks"] is not False
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    if not (_is_number(pid) and pid and isinstance(host, str) and isinstance(since, str)):
        return None
    host, since = (printable(shorten(text, 100)) for text in (host, since))
    return Holder(pid, host, since, round_ if _is_number(round_) else None, locks)


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31
