"""The ledger: what was asked of an LLM and what it answered, in one SQLite file.

`answers` holds each answer once, under a key made of everything that can change it; `asked` holds who
asked for it, where and when in which run, and what came of it. A fallback stands in `asked` only: it is
never an answer of a key. Several processes may read and write one file (WAL).
"""

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, fields
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import UnionType
from typing import Any

from prism_mesa.errors import DataError, one_line
from prism_mesa.llm.errors import Closing, storable
from prism_mesa.llm.params import Source
from prism_mesa.llm.sqlite_file import FAULTS, ReadOnlyFile, fault_of

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, prompt TEXT NOT NULL, options TEXT NOT NULL, llm TEXT NOT NULL, digest TEXT NOT NULL,
    decoding TEXT NOT NULL, raw TEXT NOT NULL, choice TEXT NOT NULL, probabilities TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, latency_ms REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS asked (
    round INTEGER NOT NULL, tick INTEGER NOT NULL, agent INTEGER NOT NULL, key TEXT NOT NULL,
    source TEXT NOT NULL, reason TEXT NOT NULL, attempts INTEGER NOT NULL, run TEXT NOT NULL,
    prompt_tokens INTEGER, completion_tokens INTEGER
);
"""
_WAIT_S = 60.0


def answer_key(prompt: str, options: Sequence[str], llm: str, digest: str, decoding: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hexadecimal, of everything that can change an answer.

    `options` are what could be answered: states, or the name and the JSON schema of a form.
    """
    parts = [prompt, list(options), llm, digest, dict(decoding)]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def decoding_text(decoding: Mapping[str, Any]) -> str:
    """Return decoding options as `answers` holds them."""
    return json.dumps(dict(decoding), sort_keys=True)


@dataclass(frozen=True)
class StoredAnswer:
    """A row of `answers`: an LLM's answer that could be used.

    Attributes:
        options: JSON list of the states' values, or of the name and the JSON schema of a form; `decoding` is a JSON
            object.
        raw: What the LLM said; `choice` the state's value that was read from it, or empty.
        probabilities: Where the LLM did not choose: what it gave each option, a JSON list (for the agent who
            asked first; how they are read from `raw` may depend on the agent).
    """

    key: str
    prompt: str
    options: str
    llm: str
    digest: str
    decoding: str
    raw: str
    choice: str = ""
    probabilities: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_ms: float = 0.0


@dataclass(frozen=True)
class AskedRow:
    """A row of `asked`: one question of one agent in one run, and what came of it.

    Attributes:
        prompt_tokens: Of all attempts, those of useless answers too; so `completion_tokens`. None in a ledger that was
            made before they were counted.
    """

    round: int
    tick: int
    agent: int
    key: str
    source: Source
    reason: str = ""
    attempts: int = 0
    run: str = ""
    prompt_tokens: int | None = field(default=None, compare=False)
    completion_tokens: int | None = field(default=None, compare=False)


def _insert(table: str, row: type[StoredAnswer] | type[AskedRow]) -> str:
    names = [field.name for field in fields(row)]
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - names of ours


def _values(row: StoredAnswer | AskedRow) -> tuple[Any, ...]:
    """Return a row's values; half a surrogate pair, which SQLite cannot store, becomes a question mark."""
    values = (getattr(row, field.name) for field in fields(row))
    return tuple(storable(v) if isinstance(v, str) else v for v in values)


def _select(table: str, row: type[StoredAnswer] | type[AskedRow]) -> str:
    return f"SELECT {', '.join(field.name for field in fields(row))} FROM {table}"  # noqa: S608 - names of ours


_TYPES: dict[type, tuple[type | UnionType, ...]] = {
    StoredAnswer: (*[str] * 9, int, int, float),
    AskedRow: (int, int, int, str, str, str, int, str, int | None, int | None),
}
"""What stands in the columns of a row."""
_SELECT_ANSWERS = _select("answers", StoredAnswer)
_SELECT_ASKED = _select("asked", AskedRow)
_COSTS = ("prompt_tokens", "completion_tokens")
"""Columns of `asked` that older ledgers do not have."""
_INSERT_ANSWER = _insert("answers", StoredAnswer) + " ON CONFLICT (key) DO NOTHING"
_INSERT_ASKED = _insert("asked", AskedRow)


class Ledger(Closing):
    """A ledger file, made if missing (its folder too). Any thread may use it, and any number of processes.

    Args:
        path: The file.
        read_only: Only look: nothing is made or changed, and a missing file is an error.

    Raises:
        DataError: If the file is missing, cannot be opened (may not be read, is locked, or damaged), or is no ledger.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        self._select_asked = _SELECT_ASKED
        if read_only and not self.path.is_file():
            raise DataError(f"ledger {self.path}: no such file")
        self._db: sqlite3.Connection | ReadOnlyFile
        try:
            self._db = ReadOnlyFile(self.path) if read_only else self._to_write()
        except FAULTS as error:
            raise self._fault(error, "opened") from error
        try:
            if isinstance(self._db, sqlite3.Connection):
                self._prepare(self._db)
            self._check()
        except FAULTS as error:
            self._db.close()
            raise self._fault(error, "opened") from error
        except DataError:
            self._db.close()
            raise

    def __reduce__(self) -> tuple[Any, ...]:
        """Return how a copy is made: the file is opened once more."""
        return partial(type(self), read_only=isinstance(self._db, ReadOnlyFile)), (self.path,)

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}{', read only' if isinstance(self._db, ReadOnlyFile) else ''}>"

    def _to_write(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        return sqlite3.connect(str(self.path), _WAIT_S, isolation_level=None, check_same_thread=False)

    def _fault(self, error: Exception, doing: str) -> DataError:
        return DataError(f"ledger {self.path}: {fault_of(self.path, error, doing)}")

    def _is_none(self, why: str) -> DataError:
        return DataError(f"ledger {self.path}: not a ledger ({why}); name another file")

    def _fetched(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        if isinstance(self._db, ReadOnlyFile):
            return self._db.fetch(query, values)
        return self._db.execute(query, values).fetchall()

    def _tables(self) -> set[str]:
        return {str(name) for (name,) in self._fetched("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def _prepare(self, db: sqlite3.Connection) -> None:
        """Make the tables, again if another process does the same at that moment: SQLite does not always wait."""
        foreign = self._tables() - {"answers", "asked"}
        if foreign:
            raise self._is_none(f"it holds a table {min(foreign)}")
        until = time.monotonic() + _WAIT_S
        while True:
            try:
                db.execute("PRAGMA journal_mode = WAL")
                db.execute("PRAGMA synchronous = NORMAL")
                db.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
                self._add_costs(db)
                return
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > until:
                    raise
                time.sleep(0.01)

    def _add_costs(self, db: sqlite3.Connection) -> None:
        """Give an older ledger the columns for what questions cost."""
        has = {column for _, column, *_ in db.execute("PRAGMA table_info(asked)")}
        for name in _COSTS if "asked" in self._tables() and "attempts" in has else ():
            if name not in has:
                with suppress(sqlite3.OperationalError):  # another process has just done so
                    db.execute(f"ALTER TABLE asked ADD COLUMN {name} INTEGER")

    def _check(self) -> None:
        """Check that the file has the tables of a ledger, and nothing that is done as they are written."""
        if self._fetched("SELECT 1 FROM sqlite_master WHERE type = 'trigger'"):
            raise self._is_none("it holds a trigger")
        tables = self._tables()  # a view of that name, whose query may never end, is none
        for table, row in (("answers", StoredAnswer), ("asked", AskedRow)):
            columns = self._fetched(f"PRAGMA table_info({table})") if table in tables else []
            has = {column for _, column, *_ in columns}
            missing = [field.name for field in fields(row) if field.name not in has]
            if table == "asked" and missing == [*_COSTS]:
                self._select_asked = _SELECT_ASKED.replace(", ".join(_COSTS), "NULL, NULL")
            elif missing:
                raise self._is_none(f"it has no table {table} with a column {missing[0]}")

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        """Return what a query finds."""
        with self._lock:
            try:
                return self._fetched(query, values)
            except FAULTS as error:
                raise self._fault(error, "read") from error

    def _typed[R: (StoredAnswer, AskedRow)](self, table: str, row: type[R], query: str, values: Any = ()) -> list[R]:
        """Return the rows that a query finds in a table."""
        found, types = self._rows(query, values), _TYPES[row]
        for held in found:
            if not all(map(isinstance, held, types)):
                place = next(i for i, value in enumerate(held) if not isinstance(value, types[i]))
                raise DataError(
                    f"ledger {self.path}: is damaged: table {table} holds {type(held[place]).__name__} under "
                    f"{fields(row)[place].name}, where {getattr(types[place], '__name__', types[place])} belongs"
                )
        return [row(*held) for held in found]

    def write(self, answers: Iterable[StoredAnswer], asked: Iterable[AskedRow]) -> None:
        """Store rows in one transaction: all of them or, if the process dies, none.

        The first answer of a key stands: a later one is dropped.

        Raises:
            DataError: If the file cannot be written (a full disk, or another process held it for a minute).
        """
        db = self._db
        if isinstance(db, ReadOnlyFile):
            raise DataError(f"ledger {self.path}: cannot be written: it was opened to be read only")
        with self._lock:
            try:
                db.execute("BEGIN IMMEDIATE")
                try:
                    db.executemany(_INSERT_ANSWER, map(_values, answers))
                    db.executemany(_INSERT_ASKED, map(_values, asked))
                except BaseException:
                    db.execute("ROLLBACK")
                    raise
                db.execute("COMMIT")
            except sqlite3.IntegrityError:  # a row that is none
                raise
            except FAULTS as error:
                raise self._fault(error, "written") from error

    def put(self, answer: StoredAnswer) -> None:
        """Store one answer."""
        self.write([answer], [])

    def get(self, key: str) -> StoredAnswer | None:
        """Return the answer of a key, or None if there is none."""
        found = self._typed("answers", StoredAnswer, f"{_SELECT_ANSWERS} WHERE key = ?", (key,))
        return found[0] if found else None

    def answers(self) -> list[StoredAnswer]:
        """Return all answers, in the order in which they were stored."""
        return self._typed("answers", StoredAnswer, f"{_SELECT_ANSWERS} ORDER BY rowid")

    def asked(self, run: str | None = None) -> list[AskedRow]:
        """Return the rows of `asked`, of one run or of all, in the order in which they were stored."""
        where, values = ("", ()) if run is None else ("WHERE run = ?", (run,))
        return self._typed("asked", AskedRow, f"{self._select_asked} {where} ORDER BY rowid", values)

    def llms(self) -> list[tuple[str, str, str]]:
        """Return name, digest and decoding (JSON) of the LLMs that have answered, the latest first."""
        query = "SELECT llm, digest, decoding FROM answers GROUP BY 1, 2, 3 ORDER BY max(rowid) DESC"
        return [(str(llm), str(digest), str(decoding)) for llm, digest, decoding in self._rows(query)]

    def runs(self) -> list[str]:
        """Return the runs that have rows in `asked`, the latest first."""
        return [str(run) for (run,) in self._rows("SELECT run FROM asked GROUP BY run ORDER BY max(rowid) DESC")]

    def unsettled(self, run: str, round_: int) -> dict[str, tuple[int, int, int]]:
        """Return the keys of answers that a run did not have when a round began, and the attempts and tokens they took.

        They came in that round or later, or of what they were for nothing was written down any more.
        """
        known = "SELECT key FROM asked WHERE run = ? AND round < ? AND source IN ('llm', 'cache')"
        keys = self._rows(f"SELECT key FROM answers WHERE key NOT IN ({known})", (run, round_))  # noqa: S608 - ours
        took = {row.key: row for row in self.asked(run) if row.round >= round_ and row.source == "llm"}
        costs = {key: (row.attempts, row.prompt_tokens or 0, row.completion_tokens or 0) for key, row in took.items()}
        return {str(key): costs.get(key, (1, 0, 0)) for (key,) in keys}

    def taken_since(self, run: str, round_: int) -> set[str]:
        """Return the keys of answers that a run, from a round on, took from elsewhere and never asked for."""
        which = "SELECT key FROM asked WHERE run = ? AND round >= ? AND source = "
        rows = self._rows(f"{which} 'cache' EXCEPT {which} 'llm'", (run, round_) * 2)
        return {str(key) for (key,) in rows}

    def forget_asked(self, run: str, round_: int) -> None:
        """Delete what a run asked from a round on; answers stay, and errors are as in `write`."""
        self._change("DELETE FROM asked WHERE run = ? AND round >= ?", (run, round_))

    def rename(self, run: str, name: str) -> None:
        """Call a run by another name; errors are as in `write`."""
        self._change("UPDATE asked SET run = ? WHERE run = ?", (name, run))

    def sizes(self, run: str, before: int) -> tuple[int, int]:
        """Return how many answers there are, and how many rows of what a run asked before a round."""
        [(answers,)] = self._rows("SELECT count(*) FROM answers")
        [(asked,)] = self._rows("SELECT count(*) FROM asked WHERE run = ? AND round < ?", (run, before))
        return int(answers), int(asked)

    def copy_to(self, file: Path) -> None:
        """Copy the ledger to a new file, including the rows in its log.

        Raises:
            DataError: If it cannot be read, or the file cannot be written.
        """
        try:
            with closing(ReadOnlyFile(self.path)) as opened:
                opened.copy_to(file)
        except FAULTS as error:
            raise self._fault(error, "copied") from error

    def sync(self) -> None:
        """Have all that was written reach the disk, so that not even a power failure takes it away.

        Raises:
            DataError: As `write`.
        """
        self._change("PRAGMA wal_checkpoint(PASSIVE)")

    def _change(self, query: str, values: tuple[Any, ...] = ()) -> None:
        db = self._db
        if isinstance(db, ReadOnlyFile):
            raise DataError(f"ledger {self.path}: cannot be written: it was opened to be read only")
        with self._lock:
            try:
                db.execute(query, values).fetchall()
            except FAULTS as error:
                raise self._fault(error, "written") from error

    def close(self) -> None:
        """Close the file; doing it twice does no harm."""
        with self._lock:
            self._db.close()
