"""What became of each run of a study, written down at once: a driver that is killed loses what was under way.

SQLite, a file for each driver (shard), so that drivers on several machines write to files of their own. What several
files say of a run is put together when they are read.
"""

import json
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import DataError, RunError, printable
from prism_mesa.llm.sqlite_file import ReadOnlyFile
from prism_mesa.runs.identity import Identity
from prism_mesa.runs.run_files import MANIFEST
from prism_mesa.studies.engines.job import Outcome
from prism_mesa.studies.journal_rows import COLUMNS, Row, read_row, require_tables

_TABLES: Final = f"""
create table if not exists runs (
    run text primary key, {", ".join(f"{column} not null" for column in COLUMNS[1:])}
);
create table if not exists rows (run text not null, name text not null, arrow blob not null, primary key (run, name));
"""
_WAIT_S: Final = 60
_SPENT: Final = ("calls", "tokens")
"""Facts that are sums over all attempts at a run."""


@dataclass(frozen=True)
class Entry:
    """What is known of a run.

    Attributes:
        measures: Values by name, each with what stands for the code that took it.
        facts: Of the attempt that counts; `calls` and `tokens` are those of all attempts.
        identity: Of what its condition was made.
        told: Condition and seed in words.
        kept: Whether it has a folder.
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
        with _told(file):
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
        with _told(self._file):
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
        with _told(self._file), _in_one_piece(self._db):
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
        found = [row for db, file in self._databases for row in _rows(db.fetch, file, run)]
        return _merged(found, self._runs) if found else None

    def entries(self) -> Iterator[Entry]:
        """Yield what is known of all runs, of each once."""
        seen = set()
        for db, file in self._databases:
            for row in _rows(db.fetch, file):
                found = _merged([row], self._runs) if len(self._databases) == 1 else self.entry(row.run)
                if found is not None and row.run not in seen:
                    seen.add(row.run)
                    yield found

    def calls(self) -> int:
        """Return the calls of an LLM of all runs that are known of."""
        return sum(row.facts.get("calls") or 0 for db, file in self._databases for row in _rows(db.fetch, file))

    def rows(self, run: str, table: str) -> bytes | None:
        """Return the rows of a run's table that were collected, as an Arrow IPC stream."""
        for db, file in self._databases:
            with _told(file):
                found = db.fetch("select arrow from rows where run = ? and name = ?", (run, table))
            for (arrow,) in found:
                if not isinstance(arrow, bytes):
                    raise _damaged(file, f"rows of {run}")
                return arrow
        return None


def _merged(found: Sequence[Row], runs: Path | None) -> Entry:
    """Return what the rows of a run in several journals come to."""
    row = max(found, key=lambda one: (one.ending == "done", one.at))
    measures: dict[str, tuple[str, float | None, float]] = {}
    for one in found:
        for name, taken in one.measures.items():
            if name not in measures or taken[2] >= measures[name][2]:
                measures[name] = taken
    done = [one for one in found if one.ending == "done"]
    facts = row.facts | _spent([one.facts for one in found])
    if collected := {table for one in done for table in one.facts.get("collected", ())}:
        facts["collected"] = sorted(collected)
    return Entry(
        run=row.run,
        ending=row.ending,
        reason=row.reason,
        attempts=sum(one.attempts for one in found),
        measures={name: taken[:2] for name, taken in measures.items()},
        facts=facts,
        identity=Identity(row.config, row.data, row.code),
        told=row.told,
        kept=any(one.kept for one in done or found) and (runs is None or (runs / row.run / MANIFEST).is_file()),
    )


def _spent(facts: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the sums of what attempts have spent, as far as one of them tells."""
    told = {name: [one[name] for one in facts if one.get(name) is not None] for name in _SPENT}
    return {name: sum(values) for name, values in told.items() if values}


def _opened(file: Path) -> ReadOnlyFile:
    """Open a journal for reading; rows that a killed driver left half written do not count."""
    with _told(file):
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
    """Yield what a journal has of a run, or of all."""
    where, values = ("", ()) if run is None else ("where run = ?", (run,))
    with _told(file):
        for values_of_row in fetch(f"select {', '.join(COLUMNS)} from runs {where}", values):  # noqa: S608 - names of ours
            try:
                row = read_row(values_of_row)
            except ValueError as error:
                raise _damaged(file, f"run {values_of_row[0]!r}: {error}") from None
            yield row


def _damaged(file: Path, why: object) -> DataError:
    told = f"rename it to {file.name}.damaged, and its runs are run again"
    return DataError(printable(f"{file}: is damaged, or no journal of a study ({why}): {told}"))


@contextmanager
def _told(file: Path) -> Iterator[None]:
    """Have errors of SQLite name the file, and say what is to be done.

    Raises:
        DataError: If the file is damaged, or no journal.
        RunError: If it is a whole one that cannot be read or written.
    """
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        code = getattr(error, "sqlite_errorcode", None) or 0
        if isinstance(error, OSError) or code & 0xFF in _IN_THE_WAY:
            told = f"{file}: cannot be read or written: {error}; mend that, and the same command continues"
            raise RunError(printable(told)) from None
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
def _in_one_piece(db: sqlite3.Connection) -> Iterator[None]:
    """Have all that is written in the block be written, or none of it."""
    db.execute("begin immediate")
    try:
        yield
        db.execute("commit")
    except BaseException:
        if db.in_transaction:  # SQLite has taken it back itself if the disk is full
            db.execute("rollback")
        raise
