"""The files of a run's folder: their names, and how they are read and checked."""

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
from prism_mesa.params import shown
from prism_mesa.runs.process.machine import memory_bytes
from prism_mesa.runs.records.table_checks import RUN_TABLES, check_columns, check_values
from prism_mesa.runs.trust import SIGNATURE, Origin, is_inside, origin
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.social.world.parquet_files import unpacked_size

LEDGER = "decisions.sqlite"
MANIFEST = "manifest.json"
MOST_MANIFEST_BYTES = 64 * 2**20
_NAMED = 3


def run_folder(run: object) -> Path:
    """Return the folder of a run, given as a result or a path; raises DataError if it is neither."""
    path = os.fspath(run) if isinstance(run, str | os.PathLike) else None
    if not isinstance(path, str):
        raise DataError(f"run: give a RunResult or the folder of a run, not {shown(run)}")
    return Path(path)


def run_around(path: str | Path) -> Path | None:
    """Return the run's folder that a path is, or lies in; None if there is none."""
    where = Path(path).resolve()
    for folder in (where, *where.parents):
        with suppress(DataError):
            if os.path.isfile(folder / MANIFEST) and "config" in read_manifest(folder):
                return folder
    return None


def check_out(out: str | Path) -> None:
    """Check that a folder for output does not lie in a run; raises DataError if it does."""
    run = run_around(out)
    if run is not None:
        raise DataError(f"--out: {out}: lies in the folder of a run, {run}, which is only read: name another")


def table_path(run: str | Path, table: str) -> Path:
    """Return the path of a run's table: a file, or a folder of parts."""
    return Path(run) / f"{table}.parquet"


def has_table(run: str | Path, table: str) -> bool:
    """Return whether a run has a table."""
    return table_path(run, table).exists()


def read_table(run: str | Path, table: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return a table of a run, or only some of its columns.

    Raises:
        DataError: If there is no such run, table or column, or it is damaged.
    """
    file = _checked_table(run, table)
    with naming_file(file):
        _check_size(file, columns)
        read = pq.ParquetDataset(file, partitioning=None)
        check_columns(str(file), table, read.schema, columns or ())
        columns_read = read.read(columns=None if columns is None else list(columns))
        columns_read.validate(full=True)  # else a text that is not UTF-8 fails only where it is used
        rows: pd.DataFrame = columns_read.to_pandas(ignore_metadata=True)
    check_values(str(file), table, rows)
    return rows


def filled_table(run: Path, name: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return some columns of a table; raises DataError if it is missing, or has no rows."""
    table = read_table(run, name, columns)
    if table.empty:
        raise DataError(f"{run}: table {name!r} has no rows: there is nothing to draw")
    return table


def read_batches(run: str | Path, table: str, columns: Sequence[str], rows: int = 1 << 16) -> Iterator[pa.RecordBatch]:
    """Yield columns of a table in batches of at most `rows` rows, in order; types are checked, values are not.

    Raises:
        DataError: If there is no such run, table or column, or it cannot be read.
    """
    file = _checked_table(run, table)
    for part in table_files(file):
        with naming_file(part):
            _check_size(part, columns)
        with naming_file(part), pq.ParquetFile(part) as opened:
            check_columns(str(part), table, opened.schema_arrow, columns)
            yield from opened.iter_batches(rows, columns=list(columns))


def _check_size(file: Path, columns: Sequence[str] | None) -> None:
    """Check that columns fit into half of the memory, unpacked: a file of a few kB can hold gigabytes."""
    most, size = memory_bytes() // 2, 0
    for part in table_files(file):
        size += unpacked_size(part, columns, most - size)
        if size > most:
            raise DataError(f"{file}: it unpacks to more than {most:,} bytes, half of the memory there is here")


def read_column_names(run: str | Path, table: str) -> list[str]:
    """Return the names of a table's columns; an older run may have fewer."""
    file = _checked_table(run, table)
    with naming_file(file):
        return [str(name) for name in pq.read_schema(table_files(file)[0]).names]


def count_rows(run: str | Path, table: str) -> int:
    """Return the number of rows of a table, without reading them."""
    file = _checked_table(run, table)
    with naming_file(file):
        return sum(pq.read_metadata(part).num_rows for part in table_files(file))


def table_files(table: Path) -> list[Path]:
    """Return the files of a table in the order of its rows."""
    return sorted(table.glob("part-*.parquet")) if table.is_dir() else [table]


def _checked_table(run: str | Path, table: str) -> Path:
    """Return the path of a table that is there, and lies in the folder."""
    if table not in RUN_TABLES:
        allowed = tuple(ECONOMY_TABLES if has_table(run, "indicators") else SOCIAL_TABLES)
        raise DataError(f"{table!r} is no table of a run ({', '.join(allowed)}).{did_you_mean(table, allowed)}")
    file = table_path(run, table)
    if not has_table(run, table):
        have = ", ".join(sorted(re.sub(r"\.parquet$", "", f.name) for f in Path(run).glob("*.parquet")))
        raise DataError(f"{run}: no table {table!r} there (it has: {have or 'none'})")
    parts = sorted(file.iterdir()) if file.is_dir() else [file]  # all files of a folder are read
    for part in parts:
        check_within(Path(run), part)
    if not parts:
        raise DataError(f"{file}: holds no part of a table")
    return file


def check_within(run: Path, file: Path) -> None:
    """Check that a file of a run's folder is plain, and no link out of it, unless the user made the run.

    The same holds for the logs that SQLite reads beside a ledger. Raises DataError.
    """
    if not file.is_file():
        raise DataError(f"{file}: is no plain file: nothing is read from it")
    logs = [file.with_name(f"{LEDGER}{log}") for log in ("-wal", "-journal")] if file.name == LEDGER else []
    for read in (file, *filter(Path.is_symlink, logs)):
        if not is_inside(run, read):
            with suppress(DataError):
                if manifest_and_origin(run)[1] == "own":
                    return
            raise DataError(f"{read}: is a link out of {run}, a run from elsewhere: put the file itself there")


@contextmanager
def naming_file(file: Path) -> Iterator[None]:
    """Raise an error of reading a file as a DataError that names the file."""
    try:
        yield
    except PrismError:
        raise
    except (OSError, pa.ArrowException, ValueError, OverflowError) as error:  # UnicodeDecodeError is a ValueError
        raise DataError(f"{file}: cannot be read: {next(iter(str(error).splitlines()), 'it is damaged')}") from None


def read_manifest(run: str | Path) -> dict[str, Any]:
    """Return the manifest of a run's folder, unchecked (`manifest.read_run` checks it).

    Raises:
        DataError: If the folder holds no run, or its manifest cannot be read.
    """
    return manifest_and_origin(run)[0]


def manifest_and_origin(run: str | Path) -> tuple[dict[str, Any], Origin]:
    """Return the manifest of a run's folder without its signature, and its origin; see `read_manifest`."""
    file = Path(run) / MANIFEST
    if not os.path.isfile(file):  # Path.is_file raises for a name that is too long
        raise DataError(f"{run}: no run there: {_explain_no_run(Path(run))}")
    if file.stat().st_size > MOST_MANIFEST_BYTES:
        raise DataError(f"{file}: has more than {MOST_MANIFEST_BYTES // 2**20} MB, so PRISM did not write it")
    try:
        manifest = json.loads(file.read_bytes().decode("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file}: cannot be read: {error}") from None
    if not isinstance(manifest, dict):
        raise DataError(f"{file}: cannot be read: it holds a {type(manifest).__name__}, not keys and values")
    whose = origin(manifest)
    if whose != "own" and not is_inside(Path(run), file):
        raise DataError(f"{file}: is a link out of {run}, a run from elsewhere: put the file itself there")
    return {key: value for key, value in manifest.items() if key != SIGNATURE}, whose


def _explain_no_run(folder: Path) -> str:
    """Return why a folder without a manifest is no run."""
    if not os.path.isdir(folder):
        return "it is a file; give the run's folder" if os.path.isfile(folder) else "there is no such folder"
    if (folder / "runs.parquet").exists():
        return f"it holds a study, which keeps its runs in {folder / 'runs'} with keep: tables"
    runs = sorted(file.parent.name for file in folder.glob(f"*/{MANIFEST}"))
    inside = f" (folders in it that have one: {', '.join(runs[-_NAMED:])})" if runs else ""
    return f"{MANIFEST} is missing{inside}"
