"""Reading users' tables. Whatever is wrong with a file ends as one DataError that names key, file and way out.

Tables are columns in the order of their rows: what a pandas index says is a column like others.
"""

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd
import pyarrow as pa

from prism_mesa.errors import DataError, did_you_mean, printable
from prism_mesa.social.params import FilesParams
from prism_mesa.social.world.csv_files import Header, NoHeader, read_csv, read_csv_ids, read_header
from prism_mesa.social.world.unpacking import check_size, may_be_utf8

_READABLE: Final = (".csv", ".csv.gz", ".gz", ".parquet", ".pq")
_PARQUET: Final = (".parquet", ".pq")
_NAMES_SHOWN: Final = 20
_CHARACTERS_SHOWN: Final = 300
DEFAULT: Final = FilesParams()


@dataclass(frozen=True)
class Table:
    """Columns of a file, of one length that is at least 1.

    Attributes:
        columns: Those that were wanted and are there. A CSV's are texts, but for ids; empty cells are nulls.
        notes: How the file was read, where that may surprise, in words.
    """

    columns: pa.Table
    notes: tuple[str, ...] = ()

    def __contains__(self, column: object) -> bool:
        return column in self.columns.column_names

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        return self.columns[column]

    def __len__(self) -> int:
        return int(self.columns.num_rows)


@dataclass(frozen=True)
class _ColumnsNeeded:
    """Columns that a table must have and may have, whether it may have others, and what they hold, for errors."""

    needs: tuple[str, ...]
    may: tuple[str, ...] = ()
    others: bool = True
    what: str = "single values"

    def among(self, names: Sequence[str], separated: str = "") -> list[str]:
        """Return those that are to be read; `separated` says by what the names are, for errors."""
        for column in self.needs:
            if column not in names:
                have = _listed(names)
                said = f"it is separated by {separated} and has: {have}" if separated else f"it has: {have}"
                raise _UnfitError(f"no column {column!r} ({said}).{did_you_mean(column, names[:1000])}")
        known = (*self.needs, *self.may)
        for column in () if self.others else names:
            if column not in known:
                near = did_you_mean(column, known)
                raise _UnfitError(f"unknown column {_shown(column)!r} (allowed: {', '.join(known)}).{near}")
        for column in known:
            if names.count(column) > 1:
                raise _UnfitError(f"{names.count(column)} columns are called {column!r}: leave one of them")
        return [column for column in known if column in names]


class _UnfitError(ValueError):
    """What a file holds, as far as it can be read, is not what is needed."""


def read_table(
    path: str | Path,
    key: str,
    needs: Sequence[str],
    may: Sequence[str] = (),
    files: FilesParams = DEFAULT,
    *,
    others: bool = True,
) -> Table:
    """Return columns of a CSV (also .gz) or Parquet file.

    Args:
        path: The file; relative paths are relative to the working directory.
        key: The configuration key that named it, for messages.
        needs: Columns it must have.
        may: Columns that are read as well where it has them.
        files: How it is read.
        others: Whether it may have columns besides, which are left alone.

    Raises:
        DataError: If it is missing, of another kind, unreadable, too large, empty, or its columns are others.
    """
    return _read(path, key, _ColumnsNeeded(tuple(needs), tuple(may), others), files, read_csv)


def read_ids(path: str | Path, key: str, columns: Sequence[str], files: FilesParams = DEFAULT) -> Table:
    """Return columns of ids alone; a CSV's are int64 if all are written as whole numbers are. See `read_table`."""
    return _read(path, key, _ColumnsNeeded(tuple(columns), what="ids"), files, read_csv_ids)


def _read(
    path: str | Path,
    key: str,
    wanted: _ColumnsNeeded,
    files: FilesParams,
    csv_reader: Callable[[Path, Header, Sequence[str], FilesParams], pa.Table],
) -> Table:
    with naming_file(path, key):
        file, notes = _readable(path), []
        if is_parquet(file):
            from prism_mesa.social.world.parquet_files import parquet_columns, read_parquet

            names, index = parquet_columns(file)
            columns = wanted.among([name for name in names if name not in index or name in wanted.needs + wanted.may])
            table = read_parquet(file, columns, files.max_bytes, wanted.what)
        else:
            check_size(file, files.max_bytes)
            try:
                header = read_header(file, wanted.needs, files)
            except NoHeader:
                raise _UnfitError(f"the file is empty; it needs the columns {', '.join(wanted.needs)}") from None
            by_comma = header.delimiter == ","
            columns = wanted.among(header.names, "" if by_comma else header.separated)
            notes = [] if by_comma else [f"{key}: is separated by {header.separated}, and read so"]
            if may_be_utf8(file, files):
                notes.append(f"{key}: is UTF-8 by all its letters, but read as files.encoding={files.encoding} says")
            table = csv_reader(file, header, columns, files)
        if not table.num_rows:
            raise _UnfitError("no rows below the header")
    return Table(table, tuple(notes))


@contextmanager
def naming_file(path: str | Path, key: str) -> Iterator[None]:
    """Make errors of reading a file, or of what it holds, one line that names it.

    Raises:
        DataError: In their place.
    """
    shown = printable(str(path))
    where = f"{key}: {shown if len(shown) <= _CHARACTERS_SHOWN else f'...{shown[-_CHARACTERS_SHOWN:]}'}"
    try:
        yield
    except DataError:
        raise
    except _UnfitError as error:
        raise DataError(f"{where}: {error}") from None
    except MemoryError:
        raise DataError(f"{where}: cannot be read: it does not fit into memory: take a part of it") from None
    except (
        ValueError,
        OSError,
        EOFError,
        OverflowError,
        pa.ArrowException,
        zlib.error,
        pd.errors.ParserWarning,
    ) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise DataError(f"{where}: cannot be read: {_shown(said.strip().partition('\n')[0])}") from None


def is_parquet(path: str | Path) -> bool:
    """Return whether a file is read as Parquet, by its name; else it is CSV."""
    return Path(path).suffix in _PARQUET


def _shown(text: str) -> str:
    return printable(text if len(text) <= _CHARACTERS_SHOWN else f"{text[:_CHARACTERS_SHOWN]}...")


def _listed(names: Sequence[str]) -> str:
    """Return the first names in words."""
    more = f", and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return _shown(", ".join(names[:_NAMES_SHOWN])) + more


def _readable(path: str | Path) -> Path:
    """Return the file, if it is one, of a kind that PRISM reads."""
    file = Path(path)
    if not file.is_file():
        what = "is a folder, not a file" if file.is_dir() else "no such file"
        raise _UnfitError(f"{what} (looked in {Path.cwd()})")
    if not file.name.endswith(_READABLE):
        raise _UnfitError(f"not a kind of file PRISM reads ({', '.join(_READABLE)})")
    return file
