"""What became of each run of a study, written down at once: a driver that is killed loses what was under way.

SQLite, a file for each driver (shard), so that drivers on several machines write to files of their own. What several
files say of a run is put together when they are read.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Final, TypedDict

from pydantic import ConfigDict, Field, Json, ValidationError, with_config
from pydantic.dataclasses import dataclass as checked_dataclass

from prism_mesa.errors import DataError, RunError, printable
from prism_mesa.llm.sqlite_file import ReadOnlyFile
from prism_mesa.runs.identity import Identity
from prism_mesa.runs.run_files import MANIFEST
from prism_mesa.studies.engines.job import Ending, Outcome
from prism_mesa.studies.listing import require_tables

type _Count = Annotated[int, Field(ge=0, lt=2**63)]


@with_config(ConfigDict(extra="allow", strict=True))
class Facts(TypedDict, total=False):
    """The facts of a run that are read (see `engines.job.Outcome`)."""

    cpu_s: float | None
    model_cpu_s: float | None
    wall_s: float | None
    peak_memory_mb: float | None
    open: _Count | None
    fallback: _Count | None
    calls: _Count | None
    tokens: _Count | None
    signal: str | None
    decided_by: str | None
    by_source: dict[str, _Count]
    notes: list[str]
    collected: list[str]


@checked_dataclass(frozen=True, config=ConfigDict(strict=True))
class Row:
    """A row of the table `runs` of one journal: a run, as one driver knows it.

    Attributes:
        at: When it was written (seconds of the epoch).
        measures: By name: the version of the code that took it, its value, and when it was taken.
        config: With `data` and `code` the identity of its condition (see `Identity`).
        kept: 1 if it has a folder, else 0.
    """

    run: str
    at: float
    ending: Ending
    reason: str
    attempts: _Count
    measures: Json[dict[str, tuple[str, float | None, float]]]
    facts: Json[Facts]
    config: str
    data: str
    code: str
    told: str
    kept: _Count


COLUMNS: Final = tuple(field.name for field in fields(Row))
_TABLES: Final = f"""
create table if not exists runs (
    run text primary key, {", ".join(f"{column} not null" for column in COLUMNS[1:])}
);
create table if not exists rows (run text not null, name text not null, arrow blob not null, primary key (run, name));
"""
_WAIT_S: Final = 60
_SPENT: Final = ("calls", "tokens")  # facts that are sums over all attempts at a run


@dataclass(frozen=True)
class Entry:
    """What is known of a run.

    Attributes:
        measures: Values by name, each with what stands for the code that took it.
        facts: Of the attempt that counts; `calls` and `tokens` are those of all attempts.
    """

    run: str
    ending: str
    reason: str
    attempts: int
    measures: dict[str, tuple[str, float | None]]
    facts: dict[str, Any]
    identity: Identity
    told: str
    kept: bool

    @property
    def done(self) -> bool:
        """Whether it came to a good end."""
        return self.ending == "done"

    @property
    def status(self) -> str:
        """`done`, `skipped` if its LLM was missing, else `failed`."""
        return self.ending if self.ending in ("done", "skipped") else "failed"

    def has(self, versions: Mapping[str, str]) -> bool:
        """Return whether all measures were taken, by the code that there is now."""
        return all(name in self.measures and self.measures[name][0] == version for name, version in versions.items())


class Journal:
    """The journal of one driver.

    Raises:
        DataError: If the file is damaged, or is none.
        RunError: If it cannot be written.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        with _naming_file(file):
            self._db = sqlite3.connect(file, _WAIT_S, isolation_level=None)
            try:
                require_tables(self._db.execute)
                self._db.executescript(_TABLES)
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def put(self, outcome: Outcome, versions: Mapping[str, str], identity: Identity, told: str, *, kept: bool) -> None:
        """Write down what became of a run, in one piece; measures that were taken before stay.

        Raises:
            DataError: If the file is damaged.
            RunError: If it cannot be written.
        """
        at = time.time()
        measures = {name: [versions[name], v if v == v else None, at] for name, v in outcome.measures.items()}
        with _naming_file(self._file):
            before = next(_rows(self._db.execute, self._file, outcome.run), None)
        if before is not None:
            measures = {name: list(taken) for name, taken in before.measures.items()} | measures
        facts = outcome.facts | _spent([outcome.facts] + ([before.facts] if before else []))
        row = (
            outcome.run,
            at,
            outcome.ending,
            outcome.reason,
            (before.attempts if before else 0) + (outcome.ending != "skipped"),
            json.dumps(measures),
            json.dumps(facts),
            identity.config,
            identity.data,
            identity.code,
            told,
            int(kept or bool(before and before.kept and before.ending == "done")),
        )
        places = ", ".join("?" * len(row))
        with _naming_file(self._file), _transaction(self._db):
            self._db.execute(f"insert or replace into runs values ({places})", row)  # noqa: S608 - question marks
            for name, arrow in outcome.tables.items():
                self._db.execute("insert or replace into rows values (?, ?, ?)", (outcome.run, name, arrow))


class Journals:
    """All journals of a study's folder, to be read.

    Args:
        files: The journals.
        runs: Where runs are kept: one whose folder is gone counts as not kept. None: nobody looks.

    Raises:
        DataError: If one is damaged, now or when it is read.
        RunError: If one cannot be read.
    """

    def __init__(self, files: Sequence[Path], runs: Path | None = None) -> None:
        self._runs = runs
        self._databases: list[tuple[ReadOnlyFile, Path]] = []
        try:
            for file in files:
                self._databases.append((_opened(file), file))
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> "Journals":
        return self

    def __exit__(self, *_: object) -> None:
        for db, _file in self._databases:
            db.close()

    def entry(self, run: str) -> Entry | None:
        """Return what is known of a run: its good end, if any journal knows of one, and all measures that were taken.

        Of a measure that was taken several times the last one counts.
        """
        rows = [row for db, file in self._databases for row in _rows(db.fetch, file, run)]
        return _merged(rows, self._runs) if rows else None

    def entries(self) -> Iterator[Entry]:
        """Yield what is known of all runs, of each once."""
        seen = set()
        for db, file in self._databases:
            for row in _rows(db.fetch, file):
                entry = _merged([row], self._runs) if len(self._databases) == 1 else self.entry(row.run)
                if entry is not None and row.run not in seen:
                    seen.add(row.run)
                    yield entry

    def calls(self) -> int:
        """Return the calls of an LLM of all runs that are known of."""
        return sum(row.facts.get("calls") or 0 for db, file in self._databases for row in _rows(db.fetch, file))

    def rows(self, run: str, table: str) -> bytes | None:
        """Return the rows of a run's table that were collected, as an Arrow IPC stream."""
        for db, file in self._databases:
            with _naming_file(file):
                blobs = db.fetch("select arrow from rows where run = ? and name = ?", (run, table))
            for (arrow,) in blobs:
                if not isinstance(arrow, bytes):
                    raise _damaged(file, f"rows of {run}")
                return arrow
        return None


def _merged(rows: Sequence[Row], runs: Path | None) -> Entry:
    """Combine the rows of a run in several journals."""
    last = max(rows, key=lambda row: (row.ending == "done", row.at))
    measures: dict[str, tuple[str, float | None, float]] = {}
    for row in rows:
        for name, taken in row.measures.items():
            if name not in measures or taken[2] >= measures[name][2]:
                measures[name] = taken
    done = [row for row in rows if row.ending == "done"]
    facts = {**last.facts, **_spent([row.facts for row in rows])}
    if collected := {table for row in done for table in row.facts.get("collected", ())}:
        facts["collected"] = sorted(collected)
    return Entry(
        run=last.run,
        ending=last.ending,
        reason=last.reason,
        attempts=sum(row.attempts for row in rows),
        measures={name: taken[:2] for name, taken in measures.items()},
        facts=facts,
        identity=Identity(last.config, last.data, last.code),
        told=last.told,
        kept=any(row.kept for row in done or rows) and (runs is None or (runs / last.run / MANIFEST).is_file()),
    )


def _spent(facts: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the calls and tokens of all attempts, as far as they are known."""
    spent = {name: [attempt[name] for attempt in facts if attempt.get(name) is not None] for name in _SPENT}
    return {name: sum(values) for name, values in spent.items() if values}


def _opened(file: Path) -> ReadOnlyFile:
    """Open a journal for reading; rows that a killed driver left half written do not count."""
    with _naming_file(file):
        db = ReadOnlyFile(file, _WAIT_S)
        try:
            require_tables(db.fetch)
            for table, columns in (("runs", COLUMNS), ("rows", ("run", "name", "arrow"))):
                db.fetch(f"select {', '.join(columns)} from {table} where 0")  # noqa: S608 - names of ours
        except BaseException:
            db.close()
            raise
    return db


def _rows(fetch: Callable[..., Iterable[Any]], file: Path, run: str | None = None) -> Iterator[Row]:
    """Yield the rows of a run, or all rows of a journal."""
    where, arguments = ("", ()) if run is None else ("where run = ?", (run,))
    with _naming_file(file):
        for values in fetch(f"select {', '.join(COLUMNS)} from runs {where}", arguments):  # noqa: S608 - names of ours
            try:
                row = Row(**dict(zip(COLUMNS, values, strict=True)))
            except ValidationError as error:
                column = ": ".join(map(str, error.errors(include_url=False)[0]["loc"][:2]))
                raise _damaged(file, f"run {values[0]!r}: {column}: is not what a driver writes") from None
            yield row


def _damaged(file: Path, why: object) -> DataError:
    remedy = f"rename it to {file.name}.damaged, and its runs are run again"
    return DataError(printable(f"{file}: is damaged, or no journal of a study ({why}): {remedy}"))


@contextmanager
def _naming_file(file: Path) -> Iterator[None]:
    """Turn errors of SQLite into errors that name the file and the remedy."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        code = getattr(error, "sqlite_errorcode", None) or 0
        if isinstance(error, OSError) or code & 0xFF in _IN_THE_WAY:
            fault = f"{file}: cannot be read or written: {error}; mend that, and the same command continues"
            raise RunError(printable(fault)) from None
        raise _damaged(file, error) from None
    except UnicodeDecodeError as error:  # a name in it, or what SQLite says of one
        raise _damaged(file, error) from None


_IN_THE_WAY: Final = (
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_PROTOCOL,
)
"""What SQLite says of a disk, of rights and of others, not of what is in a file."""


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit all writes of the block, or none."""
    db.execute("begin immediate")
    try:
        yield
        db.execute("commit")
    except BaseException:
        if db.in_transaction:  # SQLite has taken it back itself if the disk is full
            db.execute("rollback")
        raise
