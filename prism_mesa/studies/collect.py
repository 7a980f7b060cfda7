"""Collect the runs of a study into tables: `runs`, `facts`, and the tables in `collect`."""

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

from prism_mesa.errors import DataError, format_count
from prism_mesa.studies.design.study_design import PlannedRun, StudyDesign, override_text
from prism_mesa.studies.driver import measure_versions
from prism_mesa.studies.folder import StudyFolder, replacing
from prism_mesa.studies.journal import Entry, Journals
from prism_mesa.studies.statistics.analysis import RunTable

RUNS: Final = "runs"
FACTS: Final = "facts"
_BATCH_SIZE: Final = 1000


def collect(design: StudyDesign, folder: StudyFolder) -> tuple[str, ...]:
    """Write ``runs.parquet``, ``facts.parquet`` and the tables in `collect`, and return notes.

    Rows follow the order of the plan. They are written in parts, so memory does not grow with the number of runs.
    """
    versions, notes = measure_versions(design), list[str]()
    with folder.lock_tables(), folder.journals() as journals:
        _write_parts(
            folder.table(RUNS),
            (_run_rows(part, journals, design, versions) for part in batched(design.runs(), _BATCH_SIZE)),
            lambda new_file: notes.extend(_keep_larger_table(folder, _count_numbers(new_file))),
        )
        unique_runs = {planned.run: planned for planned in design.runs()}.values()
        facts = (_fact_rows(part, journals, design, folder) for part in batched(unique_runs, _BATCH_SIZE))
        _write_parts(folder.table(FACTS), facts)
        for table in design.params.collect:
            _write_parts(folder.table(table), _table_rows(table, journals, design))
    return tuple(notes)


def _keep_larger_table(folder: StudyFolder, n_new: int) -> tuple[str, ...]:
    """Keep the earlier table of runs and its report under new names if it holds more numbers than the new table."""
    n_old = _count_numbers(folder.table(RUNS))
    if n_old <= n_new:
        return ()
    number = 1
    while any(folder.path.glob(f"*.before-{number}.*")):
        number += 1
    new_names = []
    for file in (folder.table(RUNS), folder.path / "report.html", folder.path / "report.md"):
        if file.is_file():
            new_names.append(f"{file.stem}.before-{number}{file.suffix}")
            file.rename(folder.path / new_names[-1])
    sizes = f"runs.parquet holds {format_count(n_new, 'measure')}, the earlier table {n_old:,}"
    return (f"{sizes}; kept: {', '.join(new_names)}",)


def _count_numbers(file: Path) -> int:
    try:
        frame = pd.read_parquet(file)
        return int(frame[frame["status"] == "done"].select_dtypes("float").notna().sum().sum())
    except (OSError, ValueError, KeyError, pa.ArrowException):
        return 0


def run_table(design: StudyDesign, folder: StudyFolder) -> RunTable:
    """Return the collected runs."""
    frame, points, params = pd.read_parquet(folder.table(RUNS)), design.points, design.params
    kind: Any = points.kind
    facts = design.arms, points.factors, tuple(params.measures), kind, params.paired, points.sampling
    return RunTable(frame, *facts, design.treatments)


def _run_rows(
    part: Sequence[PlannedRun], journals: Journals, design: StudyDesign, versions: Mapping[str, str]
) -> pa.Table:
    entries = [journals.entry(planned.run) for planned in part]
    columns = {
        "run": [planned.run for planned in part],
        "arm": [planned.condition.arm for planned in part],
        "seed": [planned.seed for planned in part],
        "status": [entry.status if entry else "missing" for entry in entries],
        "reason": [entry.reason if entry else "" for entry in entries],
    }
    string_columns = ("run", "arm", "status", "reason")
    arrays = {name: pa.array(v, pa.string() if name in string_columns else pa.int64()) for name, v in columns.items()}
    for index, factor in enumerate(design.points.factors):
        arrays[factor] = _factor_column([planned.condition.point[index] for planned in part], design, index)
    for name, version in versions.items():
        arrays[name] = pa.array([_measure_value(entry, name, version) for entry in entries], pa.float64())
    return pa.table(arrays)


def _measure_value(entry: Entry | None, name: str, version: str) -> float:
    """Return a measure of a successful run; NaN if it is missing or other code computed it."""
    code, value = entry.measures.get(name, ("", None)) if entry is not None and entry.done else ("", None)
    return float("nan") if value is None or code != version else float(value)


def _factor_column(values: list[Any], design: StudyDesign, index: int) -> pa.Array:
    """Return the values of a factor as a column: in the common type of all its levels, or else as strings."""
    types = {type(point[index]) for point in design.points.values}
    if types <= {bool}:
        return pa.array(values, pa.bool_())
    if types <= {int}:
        return pa.array(values, pa.int64())
    if types <= {int, float}:
        return pa.array([float(value) for value in values], pa.float64())
    return pa.array([value if isinstance(value, str) else json.dumps(value) for value in values], pa.string())


_FACTS: Final = pa.schema(
    [(name, pa.string()) for name in ("run", "ending", "reason")]
    + [(name, pa.float64()) for name in ("cpu_s", "model_cpu_s", "wall_s", "peak_memory_mb")]
    + [(name, pa.string()) for name in ("signal", "decided_by")]
    + [(name, pa.int64()) for name in ("open", "fallback", "calls", "tokens")]
    + [(name, pa.string()) for name in ("sources", "notes")]
    + [("attempts", pa.int64()), ("folder", pa.string()), ("again", pa.string())]
)


def _fact_rows(part: Sequence[PlannedRun], journals: Journals, design: StudyDesign, folder: StudyFolder) -> pa.Table:
    rows = [
        {
            **entry.facts,
            "run": entry.run,
            "ending": entry.ending,
            "reason": entry.reason,
            "sources": json.dumps(entry.facts.get("by_source", {})),
            "notes": json.dumps(entry.facts.get("notes", [])),
            "attempts": entry.attempts,
            "folder": f"runs/{entry.run}" if entry.kept else "",
            "again": _repeat_overrides(planned, entry, design, folder),
        }
        for planned in part
        if (entry := journals.entry(planned.run)) is not None
    ]
    return pa.Table.from_pylist(rows, _FACTS)


def _repeat_overrides(planned: PlannedRun, entry: Entry, design: StudyDesign, folder: StudyFolder) -> str:
    overrides = override_text(planned, design)
    if not design.params.cache or not {"llm", "cache"} & set(entry.facts.get("by_source", {})):
        return overrides
    return f"{overrides} reasoner.ledger=cache reasoner.ledger_path={shlex.quote(str(folder.ledger))}"


def _table_rows(table: str, journals: Journals, design: StudyDesign) -> Iterator[pa.Table]:
    """Yield a table's rows run by run; the first columns are the run, arm, seed and factors."""
    for planned in design.runs():
        entry = journals.entry(planned.run)
        stream = journals.rows(planned.run, table) if entry is not None and entry.done else None
        if stream is None:
            continue
        try:
            rows = pa.ipc.open_stream(io.BytesIO(stream)).read_all()
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = str(error).partition("\n")[0]
            raise DataError(f"{planned.run}: journal: table {table!r} is damaged: {reason}") from None
        n = len(rows)
        columns = {
            "run": pa.array([planned.run] * n, pa.string()),
            "arm": pa.array([planned.condition.arm] * n, pa.string()),
            "seed": pa.array([planned.seed] * n, pa.int64()),
        }
        for index, factor in enumerate(design.points.factors):
            columns[factor] = _factor_column([planned.condition.point[index]] * n, design, index)
        yield pa.table(columns | {name: _widen(rows[name]) for name in rows.column_names if name not in columns})


def _widen(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with a type that all runs share: strings instead of categories, and 64-bit integers."""
    if pa.types.is_dictionary(column.type):
        return column.cast(pa.string())
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def _write_parts(file: Path, parts: Iterator[pa.Table], on_written: Callable[[Path], None] = lambda _: None) -> None:
    """Write the parts of a table to a new file, call `on_written` with this file, and replace `file` with it."""
    first = next(parts, None)
    if first is None:
        return
    with replacing(file) as new_file:
        with pq.ParquetWriter(new_file, first.schema, compression="zstd", compression_level=1) as writer:
            for part in chain((first,), parts):
                if part.schema != first.schema:
                    raise DataError(f"{file}: runs differ in their columns: a journal is damaged")
                writer.write_table(part)
        on_written(new_file)
