"""Read and check the files in the folder of a run."""

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.errors import DataError, PrismError, did_you_mean
from prism_mesa.params import short_repr
from prism_mesa.runs.process.machine import memory_bytes
from prism_mesa.runs.records.table_checks import RUN_TABLES, check_columns, check_values
from prism_mesa.runs.trust import SIGNATURE, Origin, find_origin, is_inside
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.social.world.parquet_files import unpacked_size

LEDGER = "decisions.sqlite"
MANIFEST = "manifest.json"
MAX_MANIFEST_BYTES = 64 * 2**20
_MAX_EXAMPLES = 3


def run_folder(run: object) -> Path:
    """Return the folder of a result, or a path unchanged; raises DataError for other values."""
    path = os.fspath(run) if isinstance(run, str | os.PathLike) else None
    if not isinstance(path, str):
        hint = "; for an agent, call prism_mesa.chart_agents.why" if hasattr(run, "ticks_in_state") else ""
        raise DataError(f"run: give a RunResult or the folder of a run, not {short_repr(run)}{hint}")
    return Path(path)


def enclosing_run(path: str | Path) -> Path | None:
    """Return the folder of the run that contains a path; None if there is none."""
    where = Path(path).resolve()
    for folder in (where, *where.parents):
        with suppress(DataError):
            if os.path.isfile(folder / MANIFEST) and "config" in read_manifest(folder):
                return folder
    return None


def check_output_folder(out: str | Path) -> None:
    """Raise DataError if a folder for output lies in a run."""
    run = enclosing_run(out)
    if run is not None:
        raise DataError(f"--out: {out} lies in the folder of a run, {run}: name another folder")


def table_path(run: str | Path, table: str) -> Path:
    """Return the path of a run's table: a file, or a folder of parts."""
    return Path(run) / f"{table}.parquet"


def has_table(run: str | Path, table: str) -> bool:
    """Return whether a run has a table."""
    return table_path(run, table).exists()


def read_table(run: str | Path, table: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return a table of a run, or some of its columns; raises DataError if it is missing or damaged."""
    file = _checked_table(run, table)
    with name_file_in_errors(file):
        _check_size(file, columns)
        dataset = pq.ParquetDataset(file, partitioning=None)
        check_columns(str(file), table, dataset.schema, columns or ())
        arrow = dataset.read(columns=None if columns is None else list(columns))
        arrow.validate(full=True)  # finds texts that are not UTF-8
        rows: pd.DataFrame = arrow.to_pandas(ignore_metadata=True)
    check_values(str(file), table, rows)
    return rows


def read_nonempty_table(run: Path, name: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return columns of a table; raises DataError if it is missing or empty."""
    table = read_table(run, name, columns)
    if table.empty:
        raise DataError(f"{run}: table {name!r} has no rows: there is nothing to draw")
    return table


def read_batches(run: str | Path, table: str, columns: Sequence[str], rows: int = 1 << 16) -> Iterator[pa.RecordBatch]:
    """Yield columns of a table in batches of at most `rows` rows; types are checked, values are not.

    Raises DataError if the table or a column is missing, or cannot be read.
    """
    file = _checked_table(run, table)
    for part in table_files(file):
        with name_file_in_errors(part):
            _check_size(part, columns)
        with name_file_in_errors(part), pq.ParquetFile(part) as parquet:
            check_columns(str(part), table, parquet.schema_arrow, columns)
            yield from parquet.iter_batches(rows, columns=list(columns))


def _check_size(file: Path, columns: Sequence[str] | None) -> None:
    """Raise DataError if unpacked columns need more than half of the memory; a small file can hold gigabytes."""
    limit, size = memory_bytes() // 2, 0
    for part in table_files(file):
        with name_file_in_errors(part):
            size += unpacked_size(part, columns, limit - size)
        if size > limit:
            raise DataError(f"{file}: it unpacks to more than {limit:,} bytes, half of this machine's memory")


def read_column_names(run: str | Path, table: str) -> list[str]:
    """Return the names of a table's columns."""
    file = _checked_table(run, table)
    with name_file_in_errors(file):
        return [str(name) for name in pq.read_schema(table_files(file)[0]).names]


def count_rows(run: str | Path, table: str) -> int:
    """Return the number of rows of a table, without reading them."""
    file = _checked_table(run, table)
    with name_file_in_errors(file):
        return sum(pq.read_metadata(part).num_rows for part in table_files(file))


def table_files(table: Path) -> list[Path]:
    """Return the files of a table in the order of its rows."""
    return sorted(table.glob("part-*.parquet")) if table.is_dir() else [table]


def _checked_table(run: str | Path, table: str) -> Path:
    """Return the path of a table; raises DataError if it is missing, or lies outside of the folder."""
    if table not in RUN_TABLES:
        allowed = tuple(ECONOMY_TABLES if has_table(run, "indicators") else SOCIAL_TABLES)
        raise DataError(f"{table!r} is not a table of a run ({', '.join(allowed)}).{did_you_mean(table, allowed)}")
    file = table_path(run, table)
    if not has_table(run, table):
        tables = ", ".join(sorted(re.sub(r"\.parquet$", "", f.name) for f in Path(run).glob("*.parquet")))
        raise DataError(f"{run}: no table {table!r} there (it has: {tables or 'none'})")
    parts = sorted(file.iterdir()) if file.is_dir() else [file]  # all files of a folder are read
    for part in parts:
        check_within(Path(run), part)
    if not parts:
        raise DataError(f"{file}: holds no part of a table")
    return file


def check_within(run: Path, file: Path) -> None:
    """Raise DataError if a file of a run is a link out of its folder, unless the user made the run.

    This includes the logs next to a ledger, which SQLite reads.
    """
    if not file.is_file():
        raise DataError(f"{file} is not a regular file")
    logs = [file.with_name(f"{LEDGER}{log}") for log in ("-wal", "-journal")] if file.name == LEDGER else []
    for path in (file, *filter(Path.is_symlink, logs)):
        if not is_inside(run, path):
            with suppress(DataError):
                if manifest_and_origin(run)[1] == "own":
                    return
            raise DataError(f"{path} is a link out of {run}, a run from elsewhere: put the file itself into the folder")


@contextmanager
def name_file_in_errors(file: Path) -> Iterator[None]:
    """Turn errors from reading a file into a DataError that names the file."""
    try:
        yield
    except PrismError:
        raise
    except _READ_ERRORS as error:
        damaged, reason = _find_damaged_part(file, error)
        raise DataError(f"{damaged} cannot be read: {next(iter(str(reason).splitlines()), 'it is damaged')}") from None


_READ_ERRORS = (OSError, pa.ArrowException, ValueError, OverflowError)  # UnicodeDecodeError is a ValueError


def _find_damaged_part(file: Path, error: Exception) -> tuple[Path, Exception]:
    """Return the first part of a table that cannot be read, or the table itself, and the error."""
    for part in table_files(file) if file.is_dir() else ():
        try:
            pq.ParquetFile(part).read().validate(full=True)
        except _READ_ERRORS as part_error:
            return part, part_error
    return file, error


def read_manifest(run: str | Path) -> dict[str, Any]:
    """Return the unchecked manifest of a run (see `manifest.read_run`); raises DataError if it cannot be read."""
    return manifest_and_origin(run)[0]


def manifest_and_origin(run: str | Path) -> tuple[dict[str, Any], Origin]:
    """Return the manifest of a run without its signature, and its origin; see `read_manifest`."""
    file = Path(run) / MANIFEST
    if not os.path.isfile(file):  # Path.is_file raises for a name that is too long
        raise DataError(f"{run}: no run there: {_explain_no_run(Path(run))}")
    if file.stat().st_size > MAX_MANIFEST_BYTES:
        raise DataError(f"{file} has more than {MAX_MANIFEST_BYTES // 2**20} MB, so PRISM did not write it")
    try:
        manifest = json.loads(file.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file} cannot be read: {error}") from None
    if not isinstance(manifest, dict):
        raise DataError(f"{file} cannot be read: it holds a {type(manifest).__name__}, not keys and values")
    origin = find_origin(manifest)
    if origin != "own" and not is_inside(Path(run), file):
        raise DataError(f"{file} is a link out of {run}, a run from elsewhere: put the file itself into the folder")
    return {key: value for key, value in manifest.items() if key != SIGNATURE}, origin


def _explain_no_run(folder: Path) -> str:
    if not os.path.isdir(folder):
        return "it is a file; give the run's folder" if os.path.isfile(folder) else "there is no such folder"
    if (folder / "runs.parquet").exists():
        return f"it holds a study, which keeps its runs in {folder / 'runs'} with keep: tables"
    runs = sorted(file.parent.name for file in folder.glob(f"*/{MANIFEST}"))
    hint = f" (folders in it with one: {', '.join(runs[-_MAX_EXAMPLES:])})" if runs else ""
    return f"{MANIFEST} is missing{hint}"
