"""The ledger: questions to an LLM and its answers, in one SQLite file.

`answers` has each answer once, under a key made of everything that can change it. `asked` has a row for each question
of an agent, with its outcome. Fallbacks appear only in `asked`. Several processes may read and write one file (WAL).
"""

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass, field, fields
from functools import partial
from hashlib import sha256
from pathlib import Path
from types import UnionType
from typing import Any

from prism_mesa.errors import DataError, one_line
from prism_mesa.llm.errors import Closing, replace_lone_surrogates
from prism_mesa.llm.params import Source
from prism_mesa.llm.sqlite_file import FAULTS, ReadOnlyFile, sqlite_fault

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
    """Return the SHA-256 of everything that can change an answer; `options` are states, or a form's name and schema."""
    parts = [prompt, list(options), llm, digest, dict(decoding)]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def decoding_text(decoding: Mapping[str, Any]) -> str:
    """Return decoding options as `answers` stores them."""
    return json.dumps(dict(decoding), sort_keys=True)


@dataclass(frozen=True)
class StoredAnswer:
    """A row of `answers`: an LLM's usable answer.

    Attributes:
        options: JSON list of the states' values, or of a form's name and JSON schema; `decoding` is a JSON object.
        raw: The LLM's text; `choice` is the state's value in it, or empty.
        probabilities: JSON list of each option's probability if the LLM did not choose, for the agent who asked first.
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
    """A row of `asked`: one question of one agent in one run, and its outcome.

    Attributes:
        prompt_tokens: Tokens of all attempts, including useless ones; None in older ledgers, like `completion_tokens`.
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


type _Row = StoredAnswer | AskedRow

_TYPES: dict[type[_Row], tuple[type | UnionType, ...]] = {
    StoredAnswer: (*[str] * 9, int, int, float),
    AskedRow: (int, int, int, str, str, str, int, str, int | None, int | None),
}
"""The types of a row's columns."""
_COSTS = ("prompt_tokens", "completion_tokens")
"""Columns of `asked` that older ledgers lack."""


def _columns(row: type[_Row]) -> list[str]:
    return [column.name for column in fields(row)]


def _values(row: _Row) -> tuple[Any, ...]:
    return tuple(replace_lone_surrogates(value) if isinstance(value, str) else value for value in astuple(row))


def _select(table: str, row: type[_Row]) -> str:
    return f"SELECT {', '.join(_columns(row))} FROM {table}"  # noqa: S608 - our own names


def _insert(table: str, row: type[_Row]) -> str:
    names = _columns(row)
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"  # noqa: S608 - our own names


_SELECT_ANSWERS = _select("answers", StoredAnswer)
_SELECT_ASKED = _select("asked", AskedRow)
_INSERT_ANSWER = _insert("answers", StoredAnswer) + " ON CONFLICT (key) DO NOTHING"
_INSERT_ASKED = _insert("asked", AskedRow)


class Ledger(Closing):
    """A ledger file, created if missing. Any thread may use it, and any number of processes.

    With `read_only` nothing is created or changed. DataError if the file cannot be opened or is not a ledger.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self._lock = threading.Lock()
        self._select_asked = _SELECT_ASKED
        if read_only and not self.path.is_file():
            raise DataError(f"ledger {self.path}: no such file")
        with self._locked("opened"):
            if read_only:
                self._db: Any = ReadOnlyFile(self.path)
            else:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._db = sqlite3.connect(str(self.path), _WAIT_S, isolation_level=None, check_same_thread=False)
            try:
                if not read_only:
                    self._prepare()
                self._check()
            except BaseException:
                self._db.close()
                raise

    def _fetch(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        rows = self._db.fetch(query, values) if self.read_only else self._db.execute(query, values).fetchall()
        return list(rows)

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the constructor of a copy, which opens the file again."""
        return partial(type(self), read_only=self.read_only), (self.path,)

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}{', read only' if self.read_only else ''}>"

    @contextmanager
    def _locked(self, action: str) -> Iterator[None]:
        """Lock a block against other threads, and raise DataError for a fault of the file."""
        with self._lock:
            try:
                yield
            except sqlite3.IntegrityError:  # the row is wrong, not the file
                raise
            except FAULTS as error:
                raise DataError(f"ledger {self.path}: {sqlite_fault(self.path, error, action)}") from error

    def _not_a_ledger(self, why: str) -> DataError:
        return DataError(f"ledger {self.path}: not a ledger ({why}); name another file")

    def _tables(self) -> set[str]:
        return {str(name) for (name,) in self._fetch("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def _prepare(self) -> None:
        """Create the tables, retrying if another process does so too, because SQLite does not always wait."""
        if foreign := self._tables() - {"answers", "asked"}:
            raise self._not_a_ledger(f"it has a table {min(foreign)}")
        deadline = time.monotonic() + _WAIT_S
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = NORMAL")
                self._db.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        columns = self._columns_in("asked")
        for name in _COSTS if "attempts" in columns else ():  # add the columns that an older ledger lacks
            if name not in columns:
                with suppress(sqlite3.OperationalError):  # another process has added the column
                    self._db.execute(f"ALTER TABLE asked ADD COLUMN {name} INTEGER")

    def _columns_in(self, table: str) -> set[str]:
        return {column for _, column, *_ in self._fetch(f"PRAGMA table_info({table})")}

    def _check(self) -> None:
        """Check that the file has the tables of a ledger, not views, and no triggers."""
        if self._fetch("SELECT 1 FROM sqlite_master WHERE type = 'trigger'"):
            raise self._not_a_ledger("it has a trigger")
        tables = self._tables()
        for table, row in (("answers", StoredAnswer), ("asked", AskedRow)):
            columns = self._columns_in(table) if table in tables else set()
            missing = [name for name in _columns(row) if name not in columns]
            if table == "asked" and missing == [*_COSTS]:
                self._select_asked = _SELECT_ASKED.replace(", ".join(_COSTS), "NULL, NULL")
            elif missing:
                raise self._not_a_ledger(f"it has no table {table} with a column {missing[0]}")

    def _rows(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._locked("read"):
            return self._fetch(query, values)

    def _typed[R: (StoredAnswer, AskedRow)](self, row: type[R], query: str, values: Any = ()) -> list[R]:
        """Return the rows of a query; DataError if a value has the wrong type."""
        rows, types = self._rows(query, values), _TYPES[row]
        for values in rows:
            for name, value, expected in zip(_columns(row), values, types, strict=True):
                if not isinstance(value, expected):
                    fault = f"{name} has type {type(value).__name__}, not {getattr(expected, '__name__', expected)}"
                    raise DataError(f"ledger {self.path}: is damaged: {fault}")
        return [row(*values) for values in rows]

    def _check_writable(self) -> None:
        if self.read_only:
            raise DataError(f"ledger {self.path}: cannot be written: it was opened read-only")

    def write(self, answers: Iterable[StoredAnswer], asked: Iterable[AskedRow]) -> None:
        """Store rows in one transaction, keeping the first answer of a key; DataError if the file cannot be written."""
        self._check_writable()
        with self._locked("written"):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany(_INSERT_ANSWER, map(_values, answers))
                self._db.executemany(_INSERT_ASKED, map(_values, asked))
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def put(self, answer: StoredAnswer) -> None:
        """Store one answer."""
        self.write([answer], [])

    def get(self, key: str) -> StoredAnswer | None:
        """Return the answer of a key, or None if there is none."""
        rows = self._typed(StoredAnswer, f"{_SELECT_ANSWERS} WHERE key = ?", (key,))
        return rows[0] if rows else None

    def answers(self) -> list[StoredAnswer]:
        """Return all answers in the order of their storage."""
        return self._typed(StoredAnswer, f"{_SELECT_ANSWERS} ORDER BY rowid")

    def asked(self, run: str | None = None) -> list[AskedRow]:
        """Return the rows of `asked`, of one run or of all, in the order of their storage."""
        where, values = ("", ()) if run is None else ("WHERE run = ?", (run,))
        return self._typed(AskedRow, f"{self._select_asked} {where} ORDER BY rowid", values)

    def llms(self) -> list[tuple[str, str, str]]:
        """Return name, digest and decoding (JSON) of the LLMs that have answered, latest first."""
        query = "SELECT llm, digest, decoding FROM answers GROUP BY 1, 2, 3 ORDER BY max(rowid) DESC"
        return [(str(llm), str(digest), str(decoding)) for llm, digest, decoding in self._rows(query)]

    def runs(self) -> list[str]:
        """Return the runs that have rows in `asked`, latest first."""
        return [str(run) for (run,) in self._rows("SELECT run FROM asked GROUP BY run ORDER BY max(rowid) DESC")]

    def costs_since(self, run: str, round_: int) -> dict[str, tuple[int, int, int]]:
        """Return, by key, the attempts and tokens of the answers that a run did not yet have when a round began."""
        known = "SELECT key FROM asked WHERE run = ? AND round < ? AND source IN ('llm', 'cache')"
        keys = self._rows(f"SELECT key FROM answers WHERE key NOT IN ({known})", (run, round_))  # noqa: S608 - ours
        rows = {row.key: row for row in self.asked(run) if row.round >= round_ and row.source == "llm"}
        costs = {key: (row.attempts, row.prompt_tokens or 0, row.completion_tokens or 0) for key, row in rows.items()}
        return {str(key): costs.get(key, (1, 0, 0)) for (key,) in keys}

    def cached_since(self, run: str, round_: int) -> set[str]:
        """Return the keys of answers that a run got from elsewhere, without asking, from a round on."""
        query = "SELECT key FROM asked WHERE run = ? AND round >= ? AND source = "
        rows = self._rows(f"{query} 'cache' EXCEPT {query} 'llm'", (run, round_) * 2)
        return {str(key) for (key,) in rows}

    def forget_asked(self, run: str, round_: int) -> None:
        """Delete a run's rows of `asked` from a round on, but no answers."""
        self._change("DELETE FROM asked WHERE run = ? AND round >= ?", (run, round_))

    def rename(self, run: str, name: str) -> None:
        """Rename a run."""
        self._change("UPDATE asked SET run = ? WHERE run = ?", (name, run))

    def sizes(self, run: str, before: int) -> tuple[int, int]:
        """Return the number of answers, and of rows that a run asked before a round."""
        [(answers,)] = self._rows("SELECT count(*) FROM answers")
        [(asked,)] = self._rows("SELECT count(*) FROM asked WHERE run = ? AND round < ?", (run, before))
        return int(answers), int(asked)

    def copy_to(self, file: Path) -> None:
        """Copy the ledger to a new file, including the rows in its log."""
        with self._locked("copied"), closing(ReadOnlyFile(self.path)) as source:
            source.copy_to(file)

    def sync(self) -> None:
        """Write all rows to the disk, so that they survive a power failure."""
        self._change("PRAGMA wal_checkpoint(PASSIVE)")

    def _change(self, query: str, values: tuple[Any, ...] = ()) -> None:
        self._check_writable()
        with self._locked("written"):
            self._fetch(query, values)

    def close(self) -> None:
        """Close the file; calling it twice is harmless."""
        with self._lock:
            self._db.close()
