"""Puts the runs of a study together: one row for each, and the rows of tables that are collected."""

import io
import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import batched, chain
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from prism_mesa.errors import DataError, counted
from prism_mesa.studies.design.study_design import PlannedRun, StudyDesign, override_text
from prism_mesa.studies.driver import measure_versions
from prism_mesa.studies.folder import StudyFolder, replacing
from prism_mesa.studies.journal import Entry, Journals
from prism_mesa.studies.statistics.analysis import RunTable

RUNS: Final = "runs"
FACTS: Final = "facts"
_AT_A_TIME: Final = 1000


def collect(design: StudyDesign, folder: StudyFolder) -> tuple[str, ...]:
    """Write ``runs.parquet``, ``facts.parquet``, and the tables that are collected, in the order of the plan.

    So many rows as are in memory at a time do not depend on the number of runs.

    Returns:
        What a reader should know: that a table of before, which held more, was put aside.
    """
    versions, notes = measure_versions(design), list[str]()
    with folder.collecting(), folder.journals() as known:
        _write(
            folder.table(RUNS),
            (_runs(part, known, design, versions) for part in batched(design.runs(), _AT_A_TIME)),
            lambda new: notes.extend(_put_aside(folder, _numbers_in(new))),
        )
        facts = (_facts(part, known, design, folder) for part in batched(_distinct(design), _AT_A_TIME))
        _write(folder.table(FACTS), facts)
        for table in design.params.collect:
            _write(folder.table(table), _rows(table, known, design))
    return tuple(notes)


def _put_aside(folder: StudyFolder, now: int) -> tuple[str, ...]:
    """Keep the runs of before, and their report, under other names if they held more numbers than there are now."""
    before = _numbers_in(folder.table(RUNS))
    if before <= now:
        return ()
    number = 1
    while any(folder.path.glob(f"*.before-{number}.*")):
        number += 1
    moved = []
    for old in (folder.table(RUNS), folder.path / "report.html", folder.path / "report.md"):
        if old.is_file():
            moved.append(f"{old.stem}.before-{number}{old.suffix}")
            old.rename(folder.path / moved[-1])
    told = f"{counted(now, 'measure')} taken, where the table of before had {before:,}"
    return (f"{told}: it is kept ({', '.join(moved)})",)


def _numbers_in(file: Path) -> int:
    """Return how many measures a table of runs holds that are numbers; 0 if there is none that can be read."""
    try:
        frame = pd.read_parquet(file)
        return int(frame[frame["status"] == "done"].select_dtypes("float").notna().sum().sum())
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return 0


def run_table(design: StudyDesign, folder: StudyFolder) -> RunTable:
    """Return the runs, as they were put together."""
    frame = pd.read_parquet(folder.table(RUNS))
    points = design.points
    kind: Any = points.kind
    return RunTable(
        frame,
        design.arms,
        points.factors,
        tuple(design.params.measures),
        kind,
        design.params.paired,
        points.sampling,
    )


def _distinct(design: StudyDesign) -> Iterator[PlannedRun]:
    seen = set()
    for planned in design.runs():
        if planned.run not in seen:
            seen.add(planned.run)
            yield planned


def _runs(part: Sequence[PlannedRun], known: Journals, design: StudyDesign, versions: Mapping[str, str]) -> pa.Table:
    entries = [known.entry(planned.run) for planned in part]
    columns: dict[str, pa.Array] = {
        "run": pa.array([planned.run for planned in part], pa.string()),
        "arm": pa.array([planned.condition.arm for planned in part], pa.string()),
        "seed": pa.array([planned.seed for planned in part], pa.int64()),
        "status": pa.array([entry.status if entry else "missing" for entry in entries], pa.string()),
        "reason": pa.array([entry.reason if entry else "" for entry in entries], pa.string()),
    }
    for place, factor in enumerate(design.points.factors):
        columns[factor] = _factor([planned.condition.point[place] for planned in part], design, place)
    for name, version in versions.items():
        columns[name] = pa.array([_value(entry, name, version) for entry in entries], pa.float64())
    return pa.table(columns)


def _value(entry: Entry | None, name: str, version: str) -> float:
    """Return a measure of a run that is done, NaN where there is none, or one of other code."""
    by, value = entry.measures.get(name, ("", None)) if entry is not None and entry.done else ("", None)
    return float("nan") if value is None or by != version else float(value)


def _factor(values: list[Any], design: StudyDesign, place: int) -> pa.Array:
    """Return the values of a factor: of one type in the whole table, texts where they are of several."""
    kinds = {type(point[place]) for point in design.points.values}
    if kinds <= {bool}:
        return pa.array(values, pa.bool_())
    if kinds <= {int}:
        return pa.array(values, pa.int64())
    if kinds <= {int, float}:
        return pa.array([float(value) for value in values], pa.float64())
    return pa.array([value if isinstance(value, str) else json.dumps(value) for value in values], pa.string())


_FACTS: Final[dict[str, pa.DataType]] = {
    "cpu_s": pa.float64(),
    "model_cpu_s": pa.float64(),
    "wall_s": pa.float64(),
    "peak_memory_mb": pa.float64(),
    "signal": pa.string(),
    "decided_by": pa.string(),
    "open": pa.int64(),
    "fallback": pa.int64(),
    "calls": pa.int64(),
    "tokens": pa.int64(),
}


def _facts(part: Sequence[PlannedRun], known: Journals, design: StudyDesign, folder: StudyFolder) -> pa.Table:
    found = [(planned, entry) for planned in part if (entry := known.entry(planned.run)) is not None]
    entries = [entry for _, entry in found]
    columns: dict[str, pa.Array] = {
        "run": pa.array([entry.run for entry in entries], pa.string()),
        "ending": pa.array([entry.ending for entry in entries], pa.string()),
        "reason": pa.array([entry.reason for entry in entries], pa.string()),
    }
    for name, kind in _FACTS.items():
        values = [entry.facts.get(name) for entry in entries]
        columns[name] = pa.array([None if v is None else str(v) if kind == pa.string() else v for v in values], kind)
    columns["sources"] = pa.array([json.dumps(entry.facts.get("by_source", {})) for entry in entries], pa.string())
    columns["notes"] = pa.array([json.dumps(entry.facts.get("notes", [])) for entry in entries], pa.string())
    columns["attempts"] = pa.array([entry.attempts for entry in entries], pa.int64())
    columns["folder"] = pa.array([f"runs/{entry.run}" if entry.kept else "" for entry in entries], pa.string())
    columns["again"] = pa.array([_again(planned, entry, design, folder) for planned, entry in found], pa.string())
    return pa.table(columns)


def _again(planned: PlannedRun, entry: Entry, design: StudyDesign, folder: StudyFolder) -> str:
    """Return what makes a run again, typed where the study was run; an LLM is asked only what it was not before."""
    own = override_text(planned, design)
    if not design.params.cache or not {"llm", "cache"} & set(entry.facts.get("by_source", {})):
        return own
    return f"{own} reasoner.ledger=cache reasoner.ledger_path={shlex.quote(str(folder.ledger))}"


def _rows(table: str, known: Journals, design: StudyDesign) -> Iterator[pa.Table]:
    """Yield the rows of a table of each run, with the run's name, arm, seed and factors before its own columns."""
    for planned in design.runs():
        entry = known.entry(planned.run)
        found = known.rows(planned.run, table) if entry is not None and entry.done else None
        if found is None:
            continue
        try:
            rows = pa.ipc.open_stream(io.BytesIO(found)).read_all()
        except (pa.ArrowException, OSError, ValueError) as error:
            told = str(error).partition("\n")[0]
            raise DataError(f"{planned.run}: the rows of {table} in its journal are damaged: {told}") from None
        n = len(rows)
        before = {
            "run": pa.array([planned.run] * n, pa.string()),
            "arm": pa.array([planned.condition.arm] * n, pa.string()),
        }
        before["seed"] = pa.array([planned.seed] * n, pa.int64())
        for place, factor in enumerate(design.points.factors):
            before[factor] = _factor([planned.condition.point[place]] * n, design, place)
        yield pa.table(before | {name: _plain(rows[name]) for name in rows.column_names if name not in before})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column whose type does not depend on the run: texts for codes, whole numbers of 64 bits."""
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.string())
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def _write(file: Path, parts: Iterator[pa.Table], written: Callable[[Path], None] = lambda new: None) -> None:
    """Write a table in parts, in one piece for whoever reads it; without any part there is none.

    `written` is called with the new file before it takes the place of the one that is there.
    """
    first = next(parts, None)
    if first is None:
        return
    with replacing(file) as new:
        with pq.ParquetWriter(new, first.schema, compression="zstd", compression_level=1) as writer:
            for part in chain((first,), parts):
                if part.schema != first.schema:
                    raise DataError(f"{file}: rows of its runs have not the same columns: a journal is damaged")
                writer.write_table(part)
        written(new)
