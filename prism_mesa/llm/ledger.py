"""The ledger: questions to an LLM and its answers, in one SQLite file.

The table `answers` has each answer once. Its key is a digest of everything that can change the answer. The table
`asked` has a row with the outcome of each question. Fallbacks appear only in `asked`. Several processes may read and
write one file (WAL).
"""

import json
import sqlite3
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import astuple, dataclass, field, fields
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

from prism_mesa.errors import DataError, one_line
from prism_mesa.llm.errors import Closeable, replace_lone_surrogates
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
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL
);
"""
_WAIT_S = 60.0


def answer_key(prompt: str, options: Sequence[str], llm: str, digest: str, decoding: Mapping[str, Any]) -> str:
    """Return the SHA-256 of everything that can change an answer.

    `options` are states, or the name and the schema of an answer format.
    """
    parts = [prompt, list(options), llm, digest, dict(decoding)]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def decoding_text(decoding: Mapping[str, Any]) -> str:
    """Return decoding options as the JSON text in `answers`."""
    return json.dumps(dict(decoding), sort_keys=True)


@dataclass(frozen=True)
class StoredAnswer:
    """A row of `answers`: an LLM's usable answer.

    Attributes:
        options: JSON list of the states' values, or of the answer format's name and schema.
        decoding: JSON object of the decoding options.
        raw: The LLM's text; `choice` is the state that the text names, or empty.
        probabilities: JSON list of the options' probabilities for the agent that asked first; empty if the LLM chose.
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
    """A row of `asked`: an agent's question in a run, and its outcome.

    Attributes:
        prompt_tokens: Tokens of all attempts, including useless ones.
        completion_tokens: Like `prompt_tokens`.
    """

    round: int
    tick: int
    agent: int
    key: str
    source: Source
    reason: str = ""
    attempts: int = 0
    run: str = ""
    prompt_tokens: int = field(default=0, compare=False)
    completion_tokens: int = field(default=0, compare=False)


type _Row = StoredAnswer | AskedRow

_TYPES: dict[type[_Row], tuple[type, ...]] = {
    StoredAnswer: (*[str] * 9, int, int, float),
    AskedRow: (int, int, int, str, str, str, int, str, int, int),
}
"""The types of a row's columns."""


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


class Ledger(Closeable):
    """A ledger file, created if missing. Several threads and processes may use the same file.

    With `read_only` nothing is created or changed. Raises DataError if the file cannot be opened or is not a ledger.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self.read_only = read_only
        self._lock = threading.Lock()
        if read_only and not self.path.is_file():
            raise DataError(f"ledger {self.path}: no such file")
        with self._guard("opened"):
            if read_only:
                self._db: Any = ReadOnlyFile(self.path)
            else:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                self._db = sqlite3.connect(str(self.path), _WAIT_S, isolation_level=None, check_same_thread=False)
            try:
                if not read_only:
                    self._create_tables()
                self._check_tables()
            except BaseException:
                self._db.close()
                raise

    def _fetch(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        rows = self._db.fetch(query, values) if self.read_only else self._db.execute(query, values).fetchall()
        return list(rows)

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(type(self), read_only=self.read_only), (self.path,)

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path}{', read only' if self.read_only else ''}>"

    @contextmanager
    def _guard(self, action: str) -> Iterator[None]:
        """Lock out other threads during a block, and raise DataError for a fault of the file."""
        with self._lock:
            try:
                yield
            except sqlite3.IntegrityError:  # a wrong row is not a fault of the file
                raise
            except FAULTS as error:
                raise DataError(f"ledger {self.path} {sqlite_fault(self.path, error, action)}") from error

    def _not_a_ledger(self, reason: str) -> DataError:
        return DataError(f"{self.path} is not a ledger ({reason}); name another file")

    def _tables(self) -> set[str]:
        return {str(name) for (name,) in self._fetch("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def _create_tables(self) -> None:
        """Create the tables. Retry if another process also creates them, because SQLite does not always wait."""
        if foreign_tables := self._tables() - {"answers", "asked"}:
            raise self._not_a_ledger(f"it has a table {min(foreign_tables)}")
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

    def _check_tables(self) -> None:
        """Check that the file has the tables of a ledger (not views with their names), and no triggers."""
        if self._fetch("SELECT 1 FROM sqlite_master WHERE type = 'trigger'"):
            raise self._not_a_ledger("it has a trigger")
        tables = self._tables()
        for table, row in (("answers", StoredAnswer), ("asked", AskedRow)):
            info = self._fetch(f"PRAGMA table_info({table})") if table in tables else ()
            columns = {column for _, column, *_ in info}
            missing = [name for name in _columns(row) if name not in columns]
            if missing:
                raise self._not_a_ledger(f"it has no table {table} with a column {missing[0]}")

    def _fetch_locked(self, query: str, values: tuple[Any, ...] = ()) -> list[Any]:
        with self._guard("read"):
            return self._fetch(query, values)

    def _fetch_typed[R: (StoredAnswer, AskedRow)](self, row: type[R], query: str, values: Any = ()) -> list[R]:
        rows, types = self._fetch_locked(query, values), _TYPES[row]
        for values in rows:
            for name, value, expected in zip(_columns(row), values, types, strict=True):
                if not isinstance(value, expected):
                    fault = f"{name} has type {type(value).__name__}, not {getattr(expected, '__name__', expected)}"
                    raise DataError(f"ledger {self.path} is damaged: {fault}")
        return [row(*values) for values in rows]

    def _check_writable(self) -> None:
        if self.read_only:
            raise DataError(f"ledger {self.path} cannot be written: it was opened read-only")

    def write(self, answers: Iterable[StoredAnswer], asked: Iterable[AskedRow]) -> None:
        """Store rows in one transaction, except answers to a known key. Raises DataError if writing fails."""
        self._check_writable()
        with self._guard("written"):
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
        """Return the answer with a key, or None."""
        rows = self._fetch_typed(StoredAnswer, f"{_SELECT_ANSWERS} WHERE key = ?", (key,))
        return rows[0] if rows else None

    def answers(self) -> list[StoredAnswer]:
        """Return all answers in the order in which they were stored."""
        return self._fetch_typed(StoredAnswer, f"{_SELECT_ANSWERS} ORDER BY rowid")

    def asked(self, run: str | None = None) -> list[AskedRow]:
        """Return the rows of `asked` for one run or for all runs, in the order in which they were stored."""
        where, values = ("", ()) if run is None else ("WHERE run = ?", (run,))
        return self._fetch_typed(AskedRow, f"{_SELECT_ASKED} {where} ORDER BY rowid", values)

    def llms(self) -> list[tuple[str, str, str]]:
        """Return name, digest and decoding (JSON) of each LLM that has answered, latest first."""
        query = "SELECT llm, digest, decoding FROM answers GROUP BY 1, 2, 3 ORDER BY max(rowid) DESC"
        return [(str(llm), str(digest), str(decoding)) for llm, digest, decoding in self._fetch_locked(query)]

    def runs(self) -> list[str]:
        """Return the runs that have rows in `asked`, latest first."""
        return [
            str(run) for (run,) in self._fetch_locked("SELECT run FROM asked GROUP BY run ORDER BY max(rowid) DESC")
        ]

    def costs_since(self, run: str, round_: int) -> dict[str, tuple[int, int, int]]:
        """Return, by key, the attempts and tokens of the answers that a run lacked when a round began."""
        known_keys = "SELECT key FROM asked WHERE run = ? AND round < ? AND source IN ('llm', 'cache')"
        keys = self._fetch_locked(f"SELECT key FROM answers WHERE key NOT IN ({known_keys})", (run, round_))  # noqa: S608 - ours
        rows = {row.key: row for row in self.asked(run) if row.round >= round_ and row.source == "llm"}
        costs = {key: (row.attempts, row.prompt_tokens, row.completion_tokens) for key, row in rows.items()}
        return {str(key): costs.get(key, (1, 0, 0)) for (key,) in keys}

    def cached_since(self, run: str, round_: int) -> set[str]:
        """Return the keys of answers that a run got without asking an LLM, in a round or later."""
        query = "SELECT key FROM asked WHERE run = ? AND round >= ? AND source = "
        rows = self._fetch_locked(f"{query} 'cache' EXCEPT {query} 'llm'", (run, round_) * 2)
        return {str(key) for (key,) in rows}

    def forget_asked(self, run: str, round_: int) -> None:
        """Delete a run's rows of `asked` in a round and later; keep all answers."""
        self._execute("DELETE FROM asked WHERE run = ? AND round >= ?", (run, round_))

    def rename(self, run: str, name: str) -> None:
        """Rename a run."""
        self._execute("UPDATE asked SET run = ? WHERE run = ?", (name, run))

    def count_rows(self, run: str, before_round: int) -> tuple[int, int]:
        """Return the number of answers, and the number of a run's rows in `asked` before a round."""
        [(answers,)] = self._fetch_locked("SELECT count(*) FROM answers")
        [(asked,)] = self._fetch_locked("SELECT count(*) FROM asked WHERE run = ? AND round < ?", (run, before_round))
        return int(answers), int(asked)

    def copy_to(self, file: Path) -> None:
        """Copy the ledger to a new file, including the rows in its log."""
        with self._guard("copied"), closing(ReadOnlyFile(self.path)) as source:
            source.copy_to(file)

    def sync(self) -> None:
        """Write all rows to the disk, so that they survive a power failure."""
        self._execute("PRAGMA wal_checkpoint(PASSIVE)")

    def _execute(self, query: str, values: tuple[Any, ...] = ()) -> None:
        self._check_writable()
        with self._guard("written"):
            self._fetch(query, values)

    def close(self) -> None:
        """Close the file; calling it twice is harmless."""
        with self._lock:
            self._db.close()
