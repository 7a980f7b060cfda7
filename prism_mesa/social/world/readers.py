"""Read users' tables; a fault is one DataError that names the key, the file and a remedy."""

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from prism_mesa.errors import DataError, counted, did_you_mean, shortened
from prism_mesa.social.params import FilesParams
from prism_mesa.social.params.user_files import EDGES, FOLLOWS, conversion, follow_columns, meant_for
from prism_mesa.social.world.csv_files import DELIMITERS, Header, read_csv, read_csv_ids, read_header
from prism_mesa.social.world.unpacking import check_size, may_be_utf8

_READABLE: Final = (".csv", ".tsv", ".txt", ".gz", ".parquet", ".pq")
_PARQUET: Final = (".parquet", ".pq")
_NAMES_SHOWN: Final = 20
_CHARACTERS_SHOWN: Final = 300
DEFAULT: Final = FilesParams()


@dataclass(frozen=True)
class Table:
    """Columns of a file, all of one length, at least 1.

    Attributes:
        columns: The wanted columns that the file has. Those of a CSV are texts, except ids; empty cells are nulls.
        notes: Notes on how the file was read.
        names: Their names in the file.
        unread: The names of all other columns in the file.
    """

    columns: pa.Table
    notes: tuple[str, ...] = ()
    names: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()

    def __contains__(self, column: object) -> bool:
        return column in self.columns.column_names

    def __getitem__(self, column: str) -> pa.ChunkedArray:
        return self.columns[column]

    def __len__(self) -> int:
        return int(self.columns.num_rows)


@dataclass(frozen=True)
class _ColumnsNeeded:
    """The columns that a table needs and may have, whether others are allowed, and `what` they hold, for errors."""

    key: str
    files: FilesParams
    needs: tuple[str, ...]
    may: tuple[str, ...] = ()
    others: bool = True
    what: str = "single values"

    @property
    def named(self) -> dict[str, str]:
        """The name of each column in the file, without columns that the user excludes."""
        names = {column: self.files.columns.get(column, column) for column in (*self.needs, *self.may)}
        return {column: name for column, name in names.items() if name is not None}

    def among(self, names: Sequence[str], separated: str = "") -> dict[str, str]:
        """Return the names in the file of the columns to read; errors name the delimiter, `separated`."""
        named, have = self.named, f"it is separated by {separated} and has" if separated else "it has"
        if self.key == EDGES and not {*named.values()} <= {*names}:
            pair = sorted(follow_columns(names, FOLLOWS), key=names.index) or follow_columns(names)  # src is the first
            named = dict(zip(self.needs, pair, strict=False)) or named
        others = [name for name in names if name not in named.values()][:1000]
        for column in (*self.needs, *self.may):
            name, is_needed = named.get(column), column in self.needs or bool(self.files.columns.get(column))
            idle = column == "created_at" and (named.get("round") in names or named.get("author") not in names)
            if name in names or (not is_needed and (name is None or idle or not self.others)):
                continue
            near = meant_for(column, others, 0.6 if is_needed else 0.75)
            if near or is_needed:
                hint = f"Did you mean {near!r}? " if near else ""
                hint += f"Rename it, or set files.columns={{{column}: {near or 'NAME'}}}"
                hint += "" if is_needed else f", or {{{column}: null}} to ignore it"
                raise _UnfitError(f"no column {name!r} ({have}: {_listed(names)}). {hint}")
        unread = [column for column, name in self.files.columns.items() if name is None]
        for name in [] if self.others else [name for name in others if name not in unread]:
            near = did_you_mean(name, named.values())
            raise _UnfitError(
                f"unknown column {shortened(name, _CHARACTERS_SHOWN)!r} (allowed: {', '.join(named.values())}).{near}"
            )
        for name in named.values():
            if names.count(name) > 1:
                raise _UnfitError(f"{names.count(name)} columns are called {name!r}: keep one of them")
        return {column: name for column, name in named.items() if name in names}


class _UnfitError(ValueError):
    """Raised for a readable file without the needed data."""


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
        path: The file, relative to the working directory.
        key: The configuration key that names it, for messages.
        needs: Required columns.
        may: Optional columns.
        files: How to read it.
        others: Whether other columns are allowed, which are not read.

    Raises:
        DataError: If it is missing, unreadable, too large, empty or of another kind, or has the wrong columns.
    """
    return _read(path, _ColumnsNeeded(key, files, tuple(needs), tuple(may), others), read_csv)


def read_ids(path: str | Path, key: str, columns: Sequence[str], files: FilesParams = DEFAULT) -> Table:
    """Return columns of ids like `read_table`; those of a CSV are int64 if all are whole numbers."""
    return _read(path, _ColumnsNeeded(key, files, tuple(columns), what="ids"), read_csv_ids)


def _read(
    path: str | Path, wanted: _ColumnsNeeded, csv_reader: Callable[[Path, Header, Sequence[str], FilesParams], pa.Table]
) -> Table:
    key, files = wanted.key, wanted.files
    with naming_file(path, key):
        file, notes, needs = _readable(path, key), [], [*wanted.named.values()][: len(wanted.needs)]
        if file.suffix.lower() in _PARQUET:
            from prism_mesa.social.world.parquet_files import parquet_columns, read_parquet

            names, index = parquet_columns(file)
            names = [name for name in names if name not in index or name in wanted.named.values()]
            read = wanted.among(names)
            table = read_parquet(file, [*dict.fromkeys(read.values())], files.max_bytes, wanted.what)
        else:
            check_size(file, files.max_bytes)
            header = read_header(file, needs, files)
            names, by_comma, delimiter = list(header.names), header.delimiter == ",", DELIMITERS[header.delimiter]
            line = header.delimiter.join(names)
            if key == EDGES and not {*needs} <= {*names} and (how := conversion(file, line)):
                raise _UnfitError(how)
            read = wanted.among(names, "" if by_comma else delimiter)
            notes = [] if by_comma else [f"{key}: read as separated by {delimiter}"]
            if may_be_utf8(file, files):
                notes.append(f"{key}: read as {files.encoding} (files.encoding), but it is valid UTF-8")
            table, headers = _without_headers(csv_reader(file, header, [*dict.fromkeys(read.values())], files))
            notes += [f"{key}: {counted(headers, 'line')} equal to its header left out"] if headers else []
        if not table.num_rows:
            raise _UnfitError("no rows below the header")
    unread = [name or "an unnamed column" for name in names if name not in read.values()]
    notes += [f"{key}: unused columns: {_listed(unread)}"] if unread else []
    return Table(pa.table({column: table[name] for column, name in read.items()}), tuple(notes), read, tuple(unread))


def _without_headers(table: pa.Table) -> tuple[pa.Table, int]:
    """Return a table without repeated header rows, as in concatenated files, and their number."""
    if any(pa.types.is_integer(column.type) for column in table.columns):
        return table, 0
    written = ("{}", "\ufeff{}", '\ufeff"{}"')  # each file may start with a byte order mark
    cells = [[pc.equal(table[name], how.format(name)) for how in written] for name in table.column_names]
    same = reduce(pc.and_, [reduce(pc.or_, column) for column in cells])
    n = pc.sum(same).as_py()
    return (table.filter(pc.invert(same.fill_null(False))), n) if n else (table, 0)


@contextmanager
def naming_file(path: str | Path, key: str) -> Iterator[None]:
    """Turn errors of reading a file into one line that names it; raise DataError in place of the error."""
    where = f"{key}: {shortened(str(path), _CHARACTERS_SHOWN)}"
    try:
        yield
    except DataError:
        raise
    except _UnfitError as error:
        raise DataError(f"{where}: {error}") from None
    except MemoryError:
        raise DataError(f"{where}: cannot be read: it does not fit into memory: use a part of it") from None
    except (
        ValueError,
        OSError,
        EOFError,
        OverflowError,
        pa.ArrowException,
        zlib.error,
        pd.errors.ParserWarning,
    ) as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        first_line = shortened(text.strip().partition("\n")[0], _CHARACTERS_SHOWN)
        raise DataError(f"{where}: cannot be read: {first_line}") from None


def _listed(names: Sequence[str]) -> str:
    more = f", and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return shortened(", ".join(names[:_NAMES_SHOWN]), _CHARACTERS_SHOWN) + more


def _readable(path: str | Path, key: str) -> Path:
    """Return the path if it is a file of a kind that PRISM reads."""
    file = Path(path)
    if not file.is_file():
        what = "is a folder, not a file" if file.is_dir() else "no such file"
        raise _UnfitError(f"{what} (looked in {Path.cwd()})")
    if key == EDGES and (how := conversion(file)):
        raise _UnfitError(how)
    if not file.name.lower().endswith(_READABLE):
        raise _UnfitError(f"not a kind of file PRISM reads ({', '.join(_READABLE)})")
    return file
