"""Reading users' tables. Whatever is wrong with a file ends as one DataError that names key, file and way out."""

import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from prism_mesa.errors import DataError, did_you_mean

_READABLE = (".csv", ".csv.gz", ".gz", ".parquet", ".pq")
_PARQUET = (".parquet", ".pq")


def read_table(path: str | Path, key: str, needs: Sequence[str], ids: Sequence[str] = ()) -> pd.DataFrame:
    """Return the table in a CSV (also .gz) or Parquet file.

    Args:
        path: The file; relative paths are relative to the working directory.
        key: The configuration key that named it, for messages.
        needs: Columns it must have.
        ids: Columns of ids: unless all are whole numbers, a CSV's are read as the text they are.

    Raises:
        DataError: If it is missing, of another kind, unreadable, empty, or lacks a column.
    """
    file = _readable(path, key)
    try:
        table = pd.read_parquet(file) if file.suffix in _PARQUET else _read_csv(file, ids)
    except pd.errors.EmptyDataError:
        raise DataError(f"{key}: {path}: the file is empty; it needs the columns {', '.join(needs)}") from None
    except (ValueError, OSError, EOFError, pa.ArrowException, zlib.error, pd.errors.ParserWarning) as error:
        raise DataError(f"{key}: {path}: cannot be read: {str(error).partition('\n')[0]}") from None
    for column in needs:
        if column not in table.columns:
            have = ", ".join(map(str, table.columns))
            near = did_you_mean(column, map(str, table.columns))
            raise DataError(f"{key}: {path}: no column {column!r} (it has: {have}).{near}")
    if table.empty:
        raise DataError(f"{key}: {path}: no rows below the header")
    return table


def read_ids(path: str | Path, key: str, columns: Sequence[str]) -> pa.Table:
    """Return columns of ids alone, blank cells as nulls; see `read_table`.

    Raises:
        DataError: As `read_table`, or if a column of a Parquet file holds lists or the like.
    """
    file = _readable(path, key)
    table = _columns_of_parquet(file, columns) if file.suffix in _PARQUET else None
    if table is not None:
        return table
    frame = read_table(path, key, needs=columns, ids=columns)
    try:
        table = pa.table({name: pa.array(frame[name], from_pandas=True) for name in columns})
    except pa.ArrowException as error:
        raise DataError(f"{key}: {path}: cannot be read: {str(error).partition('\n')[0]}") from None
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        if pa.types.is_nested(kind):
            raise DataError(f"{key}: {path}: column {name!r} holds {kind}, not ids")
    return table


def _columns_of_parquet(file: Path, columns: Sequence[str]) -> pa.Table | None:
    """Return columns of whole numbers or texts; None if they are not such, or anything is wrong."""
    try:
        if not set(columns) <= set(pq.read_schema(file).names):
            return None
        table = pq.read_table(file, columns=list(columns), memory_map=True, pre_buffer=False, partitioning=None)
    except (ValueError, OSError, pa.ArrowException):
        return None
    plain = all(
        pa.types.is_integer(t) or pa.types.is_string(t) or pa.types.is_large_string(t) for t in table.schema.types
    )
    return table if plain and table.num_rows else None


def _readable(path: str | Path, key: str) -> Path:
    """Return the file, if it is one, of a kind that PRISM reads."""
    file = Path(path)
    if not file.is_file():
        what = "is a folder, not a file" if file.is_dir() else "no such file"
        raise DataError(f"{key}: {path}: {what} (looked in {Path.cwd()})")
    if not file.name.endswith(_READABLE):
        raise DataError(f"{key}: {path}: not a kind of file PRISM reads ({', '.join(_READABLE)})")
    return file


def _read_csv(file: Path, ids: Sequence[str]) -> pd.DataFrame:
    """Return a CSV; rows longer than the header are a fault, not an index.

    A blank cell would turn a column of long ids into floats that no longer tell them apart. Where pandas has found
    only texts, they are what the file says.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        table = pd.read_csv(file, index_col=False)
        kinds = [table[column].dtype for column in ids if column in table]
        if all(map(pd.api.types.is_integer_dtype, kinds)) or all(isinstance(k, pd.StringDtype) for k in kinds):
            return table
        return pd.read_csv(file, index_col=False, dtype=dict.fromkeys(ids, str))
