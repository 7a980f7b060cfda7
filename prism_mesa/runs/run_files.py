"""The files of a run's folder: their names, and reading and checking what is in them."""

import errno
import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.errors import DataError, PrismError, did_you_mean, printable, shortened
from prism_mesa.params import shown
from prism_mesa.runs.process.machine import memory_bytes
from prism_mesa.runs.records.table_checks import RUN_TABLES, check_columns, check_values
from prism_mesa.runs.trust import SIGNATURE, Origin, is_inside, origin
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.social.world.parquet_files import unpacked_size

LEDGER = "decisions.sqlite"
MANIFEST = "manifest.json"
MOST_MANIFEST_BYTES = 64 * 2**20
_LONGEST_PATH = 200
_NAMED = 3


def folder_of(run: object) -> Path:
    """Return the folder of a run, given as a result or as a path.

    Raises:
        DataError: If it is neither.
    """
    path = os.fspath(run) if isinstance(run, str | os.PathLike) else None
    if not isinstance(path, str):
        raise DataError(f"run: give a RunResult or the folder of a run, not {shown(run)}")
    return Path(path)


def run_around(path: str | Path) -> Path | None:
    """Return the folder of a run that a path is, or lies in; None if there is none."""
    where = Path(path).resolve()
    return next((folder for folder in (where, *where.parents) if _is_run(folder)), None)


def _is_run(folder: Path) -> bool:
    try:
        return os.path.isfile(folder / MANIFEST) and "config" in read_manifest(folder)
    except DataError:
        return False


def check_out(out: str | Path) -> None:
    """Check that what is kept does not go into a run.

    Raises:
        DataError: If it would.
    """
    run = run_around(out)
    if run is not None:
        raise DataError(f"--out: {out}: lies in the folder of a run, {run}, which is only read: name another")


def file_of(run: str | Path, table: str) -> Path:
    """Return where a table of a run is, or would be: a file, or a folder of parts."""
    return Path(run) / f"{table}.parquet"


def has_table(run: str | Path, table: str) -> bool:
    """Return whether a run's folder has a table."""
    return file_of(run, table).exists()


def read_table(run: str | Path, table: str, columns: Sequence[str] | None = None) -> pd.DataFrame:
    """Return one table of a run's folder, or only some of its columns.

    Raises:
        DataError: If there is no such run, table or column, it cannot be read, or holds what no such table does.
    """
    file = _table_of(run, table)
    with naming_file(file):
        _check_size(file, columns)
        read = pq.ParquetDataset(file, partitioning=None)
        check_columns(str(file), table, read.schema, columns or ())
        columns_read = read.read(columns=None if columns is None else list(columns))
        columns_read.validate(full=True)  # a text that is not UTF-8 comes out only where it is used
        rows: pd.DataFrame = columns_read.to_pandas(ignore_metadata=True)
    check_values(str(file), table, rows)
    return rows


def filled_table(run: Path, name: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return some columns of a table of a run that has rows.

    Raises:
        DataError: If it is not there, or has none.
    """
    table = read_table(run, name, columns)
    if table.empty:
        raise DataError(f"{run}: table {name!r} has no rows: there is nothing to draw")
    return table


def batches_of(run: str | Path, table: str, columns: Sequence[str], rows: int = 1 << 16) -> Iterator[pa.RecordBatch]:
    """Yield columns of a table in parts of at most so many rows, in order, so that none is in memory as a whole.

    Types are checked, values are not (see `read_table`).

    Raises:
        DataError: If there is no such run, table or column, or it cannot be read.
    """
    file = _table_of(run, table)
    for part in files_of(file):
        with naming_file(part):
            _check_size(part, columns)
        with naming_file(part), pq.ParquetFile(part) as opened:
            check_columns(str(part), table, opened.schema_arrow, columns)
            yield from opened.iter_batches(rows, columns=list(columns))


def _check_size(file: Path, columns: Sequence[str] | None) -> None:
    """Check that columns of a table fit into half of the memory that there is, before anything of them is unpacked.

    Raises:
        DataError: If not: a file of a few kB can say that a billion rows are in it.
    """
    most, size = memory_bytes() // 2, 0
    for part in files_of(file):
        size += unpacked_size(part, columns, most - size)
        if size > most:
            raise DataError(f"{file}: it unpacks to more than {most:,} bytes, half of the memory there is here")


def columns_of(run: str | Path, table: str) -> list[str]:
    """Return the names of a table's columns; those of an older run may be fewer.

    Raises:
        DataError: If there is no such run or table, or it cannot be read.
    """
    file = _table_of(run, table)
    with naming_file(file):
        return [str(name) for name in pq.read_schema(files_of(file)[0]).names]


def count_rows(run: str | Path, table: str) -> int:
    """Return the number of rows of a table, which is read off its files' ends.

    Raises:
        DataError: If there is no such run or table, or it cannot be read.
    """
    file = _table_of(run, table)
    with naming_file(file):
        return sum(pq.read_metadata(part).num_rows for part in files_of(file))


def files_of(table: Path) -> list[Path]:
    """Return the files of a table, a file or a folder of parts, in the order of its rows."""
    return sorted(table.glob("part-*.parquet")) if table.is_dir() else [table]


def _table_of(run: str | Path, table: str) -> Path:
    if table not in RUN_TABLES:
        allowed = tuple(ECONOMY_TABLES if has_table(run, "indicators") else SOCIAL_TABLES)
        raise DataError(f"{table!r} is no table of a run ({', '.join(allowed)}).{did_you_mean(table, allowed)}")
    file = file_of(run, table)
    if not has_table(run, table):
        have = ", ".join(sorted(re.sub(r"\.parquet$", "", f.name) for f in Path(run).glob("*.parquet")))
        raise DataError(f"{run}: no table {table!r} there (it has: {have or 'none'})")
    parts = sorted(file.iterdir()) if file.is_dir() else [file]  # those of a folder are all read, whatever their names
    for part in parts:
        check_within(Path(run), part)
    if not parts:
        raise DataError(f"{file}: holds no part of a table")
    return file


def check_within(run: Path, file: Path) -> None:
    """Check that a file of a run's folder is a plain one and lies in it, also where it is a link.

    What SQLite reads with a ledger, a log of its name beside it, has to lie there too. In a run that was made here
    links may lead anywhere.

    Raises:
        DataError: If not.
    """
    if not file.is_file():
        raise DataError(f"{file}: is no plain file: nothing is read from it")
    logs = [file.with_name(f"{LEDGER}{log}") for log in ("-wal", "-journal")] if file.name == LEDGER else []
    for read in (file, *filter(Path.is_symlink, logs)):
        if not is_inside(run, read) and not _is_own(run):
            raise DataError(f"{read}: is a link out of {run}, a run from elsewhere: put the file itself there")


def _is_own(run: Path) -> bool:
    try:
        return manifest_and_origin(run)[1] == "own"
    except DataError:
        return False


@contextmanager
def naming_file(file: Path) -> Iterator[None]:
    """Make errors of reading `file` say so in one line."""
    try:
        yield
    except PrismError:
        raise
    except _UNREADABLE as error:
        where, why = _damaged_part(file, error)
        raise DataError(f"{where}: cannot be read: {next(iter(str(why).splitlines()), 'it is damaged')}") from None


_UNREADABLE = (OSError, pa.ArrowException, ValueError, OverflowError)  # UnicodeDecodeError is a ValueError


def _damaged_part(file: Path, error: Exception) -> tuple[Path, Exception]:
    """Return which file of a table cannot be read, and why: of a folder of parts the first such part."""
    for part in files_of(file) if file.is_dir() else ():
        try:
            pq.ParquetFile(part).read().validate(full=True)
        except _UNREADABLE as own:
            return part, own
    return file, error


def read_manifest(run: str | Path) -> dict[str, Any]:
    """Return the manifest of a run's folder, as it stands there: it may hold anything (`manifest.read_run` checks it).

    Raises:
        DataError: If the folder holds no run, or its manifest cannot be read.
    """
    return manifest_and_origin(run)[0]


def manifest_and_origin(run: str | Path) -> tuple[dict[str, Any], Origin]:
    """Return the manifest of a run's folder without its signature, and whose it is.

    Raises:
        DataError: If the folder holds no run, or its manifest cannot be read.
    """
    file = Path(run) / MANIFEST
    with naming_file(file):
        size = _size_of(file)
    if size is None:
        where = printable(shortened(str(run), _LONGEST_PATH))
        raise DataError(f"{where}: no run there: {_what_is_there(Path(run))}")
    if size > MOST_MANIFEST_BYTES:
        raise DataError(f"{file}: has more than {MOST_MANIFEST_BYTES // 2**20} MB: is none that PRISM wrote")
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


def _size_of(file: Path) -> int | None:
    """Return the bytes of a file; None if there is none, as under a name that is too long for one."""
    try:
        return file.stat().st_size if file.is_file() else None
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            return None
        raise


def _what_is_there(folder: Path) -> str:
    """Return why a folder without a manifest is no run's, in words."""
    if not os.path.isdir(folder):
        return "it is a file; give the run's folder" if os.path.isfile(folder) else "there is no such folder"
    if (folder / "runs.parquet").exists():
        first = next((file.parent.name for file in sorted(folder.glob(f"runs/*/{MANIFEST}"))), None)
        where = "rows of runs.parquet" if first is None else f"in {folder / 'runs'}, such as {printable(first)}"
        return f"it holds a study: its runs are {where}"
    runs = sorted(file.parent.name for file in folder.glob(f"*/{MANIFEST}"))
    inside = f" (folders in it that have one: {', '.join(runs[-_NAMED:])})" if runs else ""
    return f"{MANIFEST} is missing{inside}"
