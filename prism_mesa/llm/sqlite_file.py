"""Reads SQLite files without changing their folder, and describes their faults.

In WAL mode SQLite creates two files (`-shm`, `-wal`) even for reading. Therefore a file without a log is opened as
immutable (`immutable=1`) and checked for changes after every query. A file with a log (`-wal`, or `-journal` during
writing) is read together with the log, without writing (`mode=ro`, `readonly_shm=1`). If a process was killed, SQLite
may have to write the log back first. In that case copies of the file and the log are read.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

_WAIT_S: Final = 60.0
_MAX_CHARS: Final = 120
_LOCKED: Final = "is locked by another program: try again when that is done"
_FAULTS: Final = {
    sqlite3.SQLITE_NOTADB: "is not a SQLite file; name another file",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_TOOBIG: "is damaged",
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full",
}
_READ_ONLY_CODES: Final = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
"""Codes of SQLite's errors if it has no permission to write into the file's folder."""
FAULTS: Final = (OSError, sqlite3.Error, UnicodeDecodeError)
"""Exceptions that SQLite raises for a faulty file. UnicodeDecodeError: its message quotes invalid UTF-8."""


def sqlite_fault(path: Path, error: Exception, action: str) -> str:
    """Describe a file's fault. `action` names the failed action, such as "opened"."""
    if fault := _FAULTS.get(_code(error)):
        return fault
    text = " ".join(str(error).split())[:_MAX_CHARS]  # the message may quote a whole column
    return f"cannot be {action} ({'it is a folder' if path.is_dir() else text})"


def _code(error: Exception) -> int:
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


class ReadOnlyFile:
    """A SQLite file opened for reading only, while other processes may write it. Its folder does not change.

    Queries wait up to `wait_s` seconds for writing processes. All methods raise the errors in `FAULTS`.
    """

    def __init__(self, path: Path, wait_s: float = _WAIT_S) -> None:
        self._path, self._wait_s = path, wait_s
        self._copies: TemporaryDirectory[str] | None = None
        self._db = self._open()

    def _open(self) -> sqlite3.Connection:
        self._opened_state = _state(self._path)
        self._immutable = not has_log(self._path)
        return self._connect(self._path, "mode=ro&immutable=1" if self._immutable else "mode=ro&readonly_shm=1")

    def _connect(self, path: Path, options: str) -> sqlite3.Connection:
        name = f"{path.resolve().as_uri()}?{options}"
        db = sqlite3.connect(name, self._wait_s, isolation_level=None, check_same_thread=False, uri=True)
        db.execute("PRAGMA trusted_schema = OFF")
        return db

    def fetch(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows of a query, all from the same moment."""
        while True:
            error: Exception | None = None
            rows: list[Any] = []
            try:
                rows = self._db.execute(query, values).fetchall()
            except (sqlite3.Error, UnicodeDecodeError) as fault:
                error = fault
            if self._immutable and _state(self._path) != self._opened_state:  # the rows may be inconsistent
                self._db.close()
                self._db = self._open()
            elif error is None:
                return rows
            elif self._immutable or self._copies or _code(error) not in _READ_ONLY_CODES:
                raise error
            else:
                self._read_copies()

    def copy_to(self, file: Path) -> None:
        """Copy the database to a new file, including the rows in its log."""
        self.fetch("SELECT 1 FROM sqlite_master")  # determines how the file can be read
        with closing(sqlite3.connect(file)) as copy:
            self._db.backup(copy)

    def _read_copies(self) -> None:
        self._db.close()
        self._copies = TemporaryDirectory(prefix="prism-ledger-", suffix=".temporary")
        for file in _file_and_logs(self._path):
            if file.exists():
                shutil.copyfile(file, Path(self._copies.name) / file.name)
        self._db = self._connect(Path(self._copies.name) / self._path.name, "mode=rw")

    def close(self) -> None:
        """Close the file; calling it twice is harmless."""
        self._db.close()
        if self._copies is not None:
            self._copies.cleanup()


def has_log(path: Path) -> bool:
    """Return whether a SQLite file has a non-empty log."""
    return any(log is not None and log[1] > 0 for log in _state(path)[1:])


def _file_and_logs(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}{log}") for log in ("", "-wal", "-journal")]


def _state(path: Path) -> tuple[tuple[int, int, int] | None, ...]:
    """Return a value that changes with every write to a file or its logs."""
    return tuple(map(_stamp, _file_and_logs(path)))


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_ino, stat.st_size, stat.st_mtime_ns
