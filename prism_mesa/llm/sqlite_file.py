"""SQLite files: opened to be read without leaving a trace, and what is wrong with one, in words.

SQLite puts two files beside one in WAL mode even if it is only read (a `-shm`, and a `-wal` if there is none), and
cannot read it where it may not. So a file without a log is read as one that cannot change (`immutable=1`), and is
checked for changes after every query. A file with a log (`-wal`, or `-journal` while rows are written) is read together
with it, and nothing is written (`mode=ro`, `readonly_shm=1`). Where SQLite cannot do that, because a process was killed
and the log has to be written back first, it reads copies of both.
"""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

_WAIT_S: Final = 60.0
_SAID_CAP: Final = 120
_FAULTS: Final = {
    sqlite3.SQLITE_NOTADB: "not a ledger (it is no SQLite file); name another file",
    sqlite3.SQLITE_CORRUPT: "is damaged",
    sqlite3.SQLITE_BUSY: "is locked by another program: try again when that is done",
    sqlite3.SQLITE_LOCKED: "is locked by another program: try again when that is done",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full",
    sqlite3.SQLITE_TOOBIG: "is damaged",
}

FAULTS: Final = (OSError, sqlite3.Error, UnicodeDecodeError)
"""What reading or writing a file can raise; the last where SQLite's own message quotes what is no text."""

_LOGS: Final = ("-wal", "-journal")

type State = tuple[tuple[int, int, int] | None, ...]


def fault_of(path: Path, error: Exception, doing: str) -> str:
    """Return in words what is wrong with a file; `doing` is what cannot be done if nothing better is known."""
    if isinstance(error, UnicodeDecodeError):
        return "is damaged (what should be text in it is none)"
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    said = " ".join(str(error).split())[:_SAID_CAP]  # it may quote a whole column
    if code in _FAULTS:
        known = _FAULTS[code]
        return known if known.endswith(("file", "done", "full")) else f"{known} ({said})"
    if path.is_dir():
        return f"cannot be {doing}: it is a folder"
    if _is_unreadable(path):
        return f"cannot be {doing}: you may not read it (permission denied)"
    return f"cannot be {doing} ({said})"


def _is_unreadable(path: Path) -> bool:
    try:
        path.open("rb").close()
    except PermissionError:
        return True
    except OSError:
        pass
    return False


class ReadOnlyFile:
    """A SQLite file that is only read, whatever becomes of it meanwhile; nothing in its folder is made or changed.

    Args:
        path: The file.
        wait_s: How many seconds to wait for another process that writes.

    Raises:
        sqlite3.Error: If it cannot be opened.
    """

    def __init__(self, path: Path, wait_s: float = _WAIT_S) -> None:
        self._path, self._wait_s = path, wait_s
        self._copies: TemporaryDirectory[str] | None = None
        self._db = self._open()

    def _open(self) -> sqlite3.Connection:
        self._before = _state(self._path)
        self._still = not has_log(self._path)
        return self._connected(self._path, "mode=ro&immutable=1" if self._still else "mode=ro&readonly_shm=1")

    def _connected(self, path: Path, how: str) -> sqlite3.Connection:
        name = f"{path.resolve().as_uri()}?{how}"
        db = sqlite3.connect(name, self._wait_s, isolation_level=None, check_same_thread=False, uri=True)
        db.execute("PRAGMA trusted_schema = OFF")
        return db

    def fetch(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return the rows that a query finds, as they stood at one moment.

        Raises:
            sqlite3.Error: If the file cannot be read; UnicodeDecodeError if there is no saying why.
        """
        while True:
            error: sqlite3.Error | UnicodeDecodeError | None = None
            rows: list[Any] = []
            try:
                rows = self._db.execute(query, values).fetchall()
            except (sqlite3.Error, UnicodeDecodeError) as fault:
                error = fault
            if self._still and _state(self._path) != self._before:  # somebody writes: what was read may be torn
                self._db.close()
                self._db = self._open()
            elif error is not None and not self._still and self._copies is None and _cannot_share(error):
                self._read_copies()
            elif error is not None:
                raise error
            else:
                return rows

    def copy_to(self, file: Path) -> None:
        """Copy the database to a new file, including the rows in its log.

        Raises:
            sqlite3.Error: If this file cannot be read, or the other one cannot be written.
        """
        self.fetch("SELECT 1 FROM sqlite_master")  # decides how this file can be read
        with closing(sqlite3.connect(file)) as copy:
            self._db.backup(copy)

    def _read_copies(self) -> None:
        self._db.close()
        self._copies = TemporaryDirectory(prefix="prism-ledger-", suffix=".temporary")
        for file in (self._path, *_logs_of(self._path)):
            if file.exists():
                shutil.copyfile(file, Path(self._copies.name) / file.name)
        self._db = self._connected(Path(self._copies.name) / self._path.name, "mode=rw")

    def close(self) -> None:
        """Close the file; doing it twice does no harm."""
        self._db.close()
        if self._copies is not None:
            self._copies.cleanup()


def _cannot_share(error: Exception) -> bool:
    """Return whether SQLite wants to write into the file's folder and may not."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def has_log(path: Path) -> bool:
    """Return whether a SQLite file has a log with rows beside it."""
    return any(log is not None and log[1] > 0 for log in _state(path)[1:])


def _logs_of(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}{log}") for log in _LOGS]


def _state(path: Path) -> State:
    """Return what changes about a file and its logs with every write."""

    def stamp_of(file: Path) -> tuple[int, int, int] | None:
        try:
            of = file.stat()
        except OSError:
            return None
        return of.st_ino, of.st_size, of.st_mtime_ns

    return tuple(map(stamp_of, (path, *_logs_of(path))))
