"""The ledger: what was asked of an LLM and what it answered, in one SQLite file.

`answers` holds each answer once, under a key made of everything that can change it; `asked` holds who
asked for it, where and when in the run, and what came of it. A fallback stands in `asked` only: it is
never an answer of a key. The file can be read while a run writes (WAL). Nothing here decides what is asked.
"""

import json
import sqlite3
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from prism_mesa.errors import DataError
from prism_mesa.reasoner.question import Source
from prism_mesa.statechart import AgentState

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, prompt TEXT NOT NULL, options TEXT NOT NULL, llm TEXT NOT NULL, digest TEXT NOT NULL,
    decoding TEXT NOT NULL, raw TEXT NOT NULL, choice TEXT NOT NULL, prompt_tokens INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL, latency_ms REAL NOT NULL
);
CREATE TABLE IF NOT EXISTS asked (
    round INTEGER NOT NULL, tick INTEGER NOT NULL, agent INTEGER NOT NULL, key TEXT NOT NULL,
    source TEXT NOT NULL, reason TEXT NOT NULL, attempts INTEGER NOT NULL
);
"""
_WAIT_MS = 30_000


def answer_key(prompt: str, options: Sequence[AgentState], llm: str, digest: str, decoding: Mapping[str, Any]) -> str:
    """Return the SHA-256, in hexadecimal, of everything that can change an answer."""
    parts = [prompt, [option.value for option in options], llm, digest, dict(decoding)]
    return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class StoredAnswer:
    """A row of `answers`: an LLM's answer that was one of the options.

    Attributes:
        options: JSON list of the states' values; `decoding` is a JSON object.
        raw: What the LLM said; `choice` the state's value that was read from it.
    """

    key: str
    prompt: str
    options: str
    llm: str
    digest: str
    decoding: str
    raw: str
    choice: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_ms: float = 0.0


@dataclass(frozen=True)
class AskedRow:
    """A row of `asked`: one question of one agent, and what came of it."""

    round: int
    tick: int
    agent: int
    key: str
    source: Source
    reason: str = ""
    attempts: int = 0


def _insert(table: str, row: type[StoredAnswer] | type[AskedRow]) -> str:
    names = [field.name for field in fields(row)]
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"


def _values(row: StoredAnswer | AskedRow) -> tuple[Any, ...]:
    """Return a row's values; half a surrogate pair, which SQLite cannot store, becomes a question mark."""
    values = (getattr(row, field.name) for field in fields(row))
    return tuple(v.encode("utf-8", "replace").decode() if isinstance(v, str) else v for v in values)


_INSERT_ANSWER = _insert("answers", StoredAnswer) + " ON CONFLICT (key) DO NOTHING"
_INSERT_ASKED = _insert("asked", AskedRow)


class Ledger:
    """A ledger file, made if missing (its folder too). Any thread may use it.

    Raises:
        DataError: If the file cannot be opened or is no SQLite database.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._db = sqlite3.connect(self.path, isolation_level=None, check_same_thread=False)
        except (OSError, sqlite3.Error) as error:
            raise DataError(f"ledger {self.path}: cannot be opened ({error})") from error
        try:
            self._db.execute(f"PRAGMA busy_timeout = {_WAIT_MS}")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.executescript(_TABLES)
        except sqlite3.Error as error:
            self._db.close()
            raise DataError(f"ledger {self.path}: not a ledger ({error}); name another file") from error

    def write(self, answers: Iterable[StoredAnswer], asked: Iterable[AskedRow]) -> None:
        """Store a tick's rows in one transaction: all of them or, if the process dies, none.

        The first answer of a key stands: a later one is dropped.
        """
        with self._lock:
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
        with self._lock:
            row = self._db.execute("SELECT * FROM answers WHERE key = ?", (key,)).fetchone()
        return None if row is None else StoredAnswer(*row)

    def answers(self) -> list[StoredAnswer]:
        """Return all answers, in the order in which they were stored."""
        with self._lock:
            return [StoredAnswer(*row) for row in self._db.execute("SELECT * FROM answers ORDER BY rowid")]

    def asked(self) -> list[AskedRow]:
        """Return all rows of `asked`, in the order in which they were stored."""
        with self._lock:
            return [AskedRow(*row) for row in self._db.execute("SELECT * FROM asked ORDER BY rowid")]

    def close(self) -> None:
        """Close the file; doing it twice does no harm."""
        with self._lock:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
