"""The journal of a study: each outcome is written at once, so that a killed driver loses only unfinished runs.

Each driver (shard) writes its own SQLite file. Readers merge the rows of a run in all files.
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
    """Facts of a run that are read from a journal (see `engines.job.Outcome`)."""

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
    """A row of the table `runs` of one journal.

    Attributes:
        at: Time of writing, in seconds since the epoch.
        measures: Name -> the version of the measure's code, the value, and the time of writing.
        config: The identity of the condition, with `data` and `code` (see `Identity`).
        told: The condition and the seed as text, for people who open the file.
        kept: 1 if the run has a folder, else 0.
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


@dataclass(frozen=True)
class Entry:
    """The merged rows of a run.

    Attributes:
        measures: Name -> the version of the measure's code, and the value.
        facts: Facts of the successful attempt, or else of the last one; `calls` and `tokens` sum over all attempts.
    """

    run: str
    ending: str
    reason: str
    attempts: int
    measures: dict[str, tuple[str, float | None]]
    facts: dict[str, Any]
    identity: Identity
    kept: bool

    @property
    def done(self) -> bool:
        """Whether the run succeeded."""
        return self.ending == "done"

    @property
    def status(self) -> str:
        """`done`, `skipped` if its LLM was missing, else `failed`."""
        return self.ending if self.ending in ("done", "skipped") else "failed"

    def has_current_measures(self, versions: Mapping[str, str]) -> bool:
        """Return whether the run has all measures in the current versions of their code."""
        return all(name in self.measures and self.measures[name][0] == version for name, version in versions.items())


class Journal:
    """The journal of one driver; DataError if the file is damaged, RunError if it cannot be written."""

    def __init__(self, file: Path) -> None:
        self._file = file
        with _translate_errors(file):
            self._db = sqlite3.connect(file, _WAIT_S, isolation_level="IMMEDIATE")
            try:
                require_tables(self._db.execute)
                self._db.executescript(_TABLES)
            except BaseException:
                self._db.close()
                raise

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def put(self, outcome: Outcome, versions: Mapping[str, str], identity: Identity, text: str, *, kept: bool) -> None:
        """Write the outcome of a run in one transaction; keep measures of earlier attempts."""
        at = time.time()
        measures = {name: [versions[name], v if v == v else None, at] for name, v in outcome.measures.items()}
        with _translate_errors(self._file), self._db:
            earlier_row = next(_rows(self._db.execute, self._file, outcome.run), None)
            earlier = [earlier_row] if earlier_row else []
            for row in earlier:
                measures = {name: list(measurement) for name, measurement in row.measures.items()} | measures
            values = (
                *(outcome.run, at, outcome.ending, outcome.reason),
                sum(row.attempts for row in earlier) + (outcome.ending != "skipped"),
                json.dumps(measures),
                json.dumps(outcome.facts | sum_llm_use([outcome.facts, *(row.facts for row in earlier)])),
                *(identity.config, identity.data, identity.code, text),
                int(kept or any(row.kept and row.ending == "done" for row in earlier)),
            )
            placeholders = ", ".join("?" * len(values))
            self._db.execute(f"insert or replace into runs values ({placeholders})", values)  # noqa: S608 - question marks
            for name, arrow in outcome.tables.items():
                self._db.execute("insert or replace into rows values (?, ?, ?)", (outcome.run, name, arrow))


class Journals:
    """All journals of a study, for reading; DataError if a journal is damaged, RunError if it cannot be read.

    `runs` is the folder of kept runs: a run counts as kept only if its folder exists. None skips this check.
    """

    def __init__(self, files: Sequence[Path], runs: Path | None = None) -> None:
        self._runs = runs
        self._databases: list[tuple[ReadOnlyFile, Path]] = []
        try:
            for file in files:
                with _translate_errors(file):
                    db = ReadOnlyFile(file, _WAIT_S)
                    self._databases.append((db, file))
                    require_tables(db.fetch)
                    for table, columns in (("runs", COLUMNS), ("rows", ("run", "name", "arrow"))):
                        db.fetch(f"select {', '.join(columns)} from {table} where 0")  # noqa: S608 - our names
        except BaseException:
            self.__exit__()
            raise

    def __enter__(self) -> "Journals":
        return self

    def __exit__(self, *_: object) -> None:
        for db, _file in self._databases:
            db.close()

    def _all_rows(self, run: str | None = None) -> Iterator[Row]:
        return (row for db, file in self._databases for row in _rows(db.fetch, file, run))

    def entry(self, run: str) -> Entry | None:
        """Return the merged rows of a run: a success in any journal, and the latest value of each measure."""
        rows = list(self._all_rows(run))
        return _merge_rows(rows, self._runs) if rows else None

    def entries(self) -> Iterator[Entry]:
        """Yield the entry of each run, in the order of the journals."""
        seen_runs = set()
        for row in self._all_rows():
            entry = _merge_rows([row], self._runs) if len(self._databases) == 1 else self.entry(row.run)
            if entry is not None and row.run not in seen_runs:
                seen_runs.add(row.run)
                yield entry

    def calls(self) -> int:
        """Return the total number of LLM calls."""
        return sum(row.facts.get("calls") or 0 for row in self._all_rows())

    def rows(self, run: str, table: str) -> bytes | None:
        """Return the collected rows of a run's table as an Arrow IPC stream."""
        for db, file in self._databases:
            with _translate_errors(file):
                blobs = db.fetch("select arrow from rows where run = ? and name = ?", (run, table))
            for (arrow,) in blobs:
                if not isinstance(arrow, bytes):
                    raise _damage_error(file, f"rows of {run}")
                return arrow
        return None


def _merge_rows(rows: Sequence[Row], runs: Path | None) -> Entry:
    last = max(rows, key=lambda row: (row.ending == "done", row.at))
    measures: dict[str, tuple[str, float | None, float]] = {}
    for row in rows:
        for name, measurement in row.measures.items():
            if name not in measures or measurement[2] >= measures[name][2]:
                measures[name] = measurement
    successful_rows = [row for row in rows if row.ending == "done"]
    facts = {**last.facts, **sum_llm_use([row.facts for row in rows])}
    if collected := {table for row in successful_rows for table in row.facts.get("collected", ())}:
        facts["collected"] = sorted(collected)
    return Entry(
        run=last.run,
        ending=last.ending,
        reason=last.reason,
        attempts=sum(row.attempts for row in rows),
        measures={name: measurement[:2] for name, measurement in measures.items()},
        facts=facts,
        identity=Identity(last.config, last.data, last.code),
        kept=any(row.kept for row in successful_rows or rows)
        and (runs is None or (runs / last.run / MANIFEST).is_file()),
    )


def sum_llm_use(facts: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return the sums of the known LLM calls and tokens over attempts."""
    amounts = {name: [row[name] for row in facts if row.get(name) is not None] for name in ("calls", "tokens")}
    return {name: sum(numbers) for name, numbers in amounts.items() if numbers}


def _rows(fetch: Callable[..., Iterable[Any]], file: Path, run: str | None = None) -> Iterator[Row]:
    clause, arguments = ("", ()) if run is None else ("where run = ?", (run,))
    with _translate_errors(file):
        for values in fetch(f"select {', '.join(COLUMNS)} from runs {clause}", arguments):  # noqa: S608 - our names
            try:
                row = Row(**dict(zip(COLUMNS, values, strict=True)))
            except ValidationError as error:
                column = ": ".join(map(str, error.errors(include_url=False)[0]["loc"][:2]))
                raise _damage_error(file, f"run {values[0]!r}: {column}: not allowed") from None
            yield row


def _damage_error(file: Path, reason: object) -> DataError:
    remedy = f"rename it to {file.name}.damaged to run its runs again"
    return DataError(printable(f"{file} is damaged or not a study's journal ({reason}): {remedy}"))


@contextmanager
def _translate_errors(file: Path) -> Iterator[None]:
    """Turn SQLite's errors into errors that name the file and a remedy."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        is_blocked = isinstance(error, sqlite3.OperationalError) and code != sqlite3.SQLITE_ERROR
        if is_blocked or isinstance(error, OSError):  # the disk, permissions or another process: the file is intact
            fault = f"{file} cannot be read or written: {error}; repair this, then repeat the command"
            raise RunError(printable(fault)) from None
        raise _damage_error(file, error) from None
