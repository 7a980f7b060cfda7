"""Reading users' tables. Whatever is wrong with a file ends as one DataError that names key, file and way out."""

import warnings
import zlib
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa

from prism_mesa.errors import DataError, did_you_mean

_READABLE = (".csv", ".csv.gz", ".gz", ".parquet", ".pq")


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
    file = Path(path)
    if not file.is_file():
        what = "is a folder, not a file" if file.is_dir() else "no such file"
        raise DataError(f"{key}: {path}: {what} (looked in {Path.cwd()})")
    if not file.name.endswith(_READABLE):
        raise DataError(f"{key}: {path}: not a kind of file PRISM reads ({', '.join(_READABLE)})")
    try:
        table = pd.read_parquet(file) if file.suffix in {".parquet", ".pq"} else _read_csv(file, ids)
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


def _read_csv(file: Path, ids: Sequence[str]) -> pd.DataFrame:
    """Return a CSV; rows longer than the header are a fault, not an index.

    A blank cell would turn a column of long ids into floats that no longer tell them apart.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("error", pd.errors.ParserWarning)
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        table = pd.read_csv(file, index_col=False)
        if all(pd.api.types.is_integer_dtype(table[column]) for column in ids if column in table):
            return table
        return pd.read_csv(file, index_col=False, dtype=dict.fromkeys(ids, str))
