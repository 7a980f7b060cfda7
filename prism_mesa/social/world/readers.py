"""Read users' tables; each error is a DataError that names the key, the file and a remedy."""

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

from prism_mesa.errors import DataError, did_you_mean, format_count, shorten
from prism_mesa.social.params import FilesParams
from prism_mesa.social.params.user_files import EDGES, FOLLOW_COLUMNS, conversion, follow_columns, most_similar_column
from prism_mesa.social.world.csv_files import DELIMITERS, Header, read_csv, read_csv_ids, read_header
from prism_mesa.social.world.unpacking import check_size, may_be_utf8

_FILE_ENDINGS: Final = (".csv", ".tsv", ".txt", ".gz", ".parquet", ".pq")
_PARQUET: Final = (".parquet", ".pq")
_ERRORS: Final = (ValueError, OSError, EOFError, OverflowError, pa.ArrowException, zlib.error, pd.errors.ParserWarning)
_NAMES_SHOWN: Final = 20
_CHARACTERS_SHOWN: Final = 300
DEFAULT_FILES: Final = FilesParams()


@dataclass(frozen=True)
class Table:
    """Columns of a file, with one or more rows.

    Attributes:
        columns: The requested columns found in the file. Cells of a CSV are strings, except ids; empty cells are nulls.
        names: The name of each of these columns in the file.
        unread: The names of the other columns in the file.
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
class _Request:
    """The columns to read from a table; messages say that they should hold `content`."""

    key: str
    files: FilesParams
    required: tuple[str, ...]
    optional: tuple[str, ...] = ()
    allows_others: bool = True
    content: str = "single values"

    @property
    def names_in_file(self) -> dict[str, str]:
        """The name of each requested column in the file, without the columns that the user excludes."""
        names = {column: self.files.columns.get(column, column) for column in (*self.required, *self.optional)}
        return {column: name for column, name in names.items() if name is not None}

    def match_columns(self, names: Sequence[str], delimiter: str = "") -> dict[str, str]:
        """Return the columns to read, with their `names` in the file; errors mention the `delimiter`."""
        mapping, intro = self.names_in_file, f"it is separated by {delimiter} and has" if delimiter else "it has"
        if self.key == EDGES and not {*mapping.values()} <= {*names}:
            # src is the first column of the pair
            pair = sorted(follow_columns(names, FOLLOW_COLUMNS), key=names.index) or follow_columns(names)
            mapping = dict(zip(self.required, pair, strict=False)) or mapping
        other_names = [name for name in names if name not in mapping.values()][:1000]
        for column in (*self.required, *self.optional):
            name, is_needed = mapping.get(column), column in self.required or bool(self.files.columns.get(column))
            is_unused = column == "created_at" and (mapping.get("round") in names or mapping.get("author") not in names)
            if name in names or (not is_needed and (name is None or is_unused or not self.allows_others)):
                continue
            suggestion = most_similar_column(column, other_names, 0.6 if is_needed else 0.75)
            if suggestion or is_needed:
                hint = f"Did you mean {suggestion!r}? " if suggestion else ""
                hint += f"Rename it, or set files.columns={{{column}: {suggestion or 'NAME'}}}"
                hint += "" if is_needed else f", or {{{column}: null}} to ignore it"
                raise _UnusableFileError(f"no column {name!r} ({intro}: {_join_names(names)}). {hint}")
        excluded = [column for column, name in self.files.columns.items() if name is None]
        for name in [] if self.allows_others else [name for name in other_names if name not in excluded]:
            allowed, hint = ", ".join(mapping.values()), did_you_mean(name, mapping.values())
            raise _UnusableFileError(f"unknown column {shorten(name, _CHARACTERS_SHOWN)!r} (allowed: {allowed}).{hint}")
        for name in mapping.values():
            if names.count(name) > 1:
                raise _UnusableFileError(f"{names.count(name)} columns are called {name!r}: keep one of them")
        return {column: name for column, name in mapping.items() if name in names}


class _UnusableFileError(ValueError):
    """Raised for a readable file without the required data."""


def read_table(
    path: str | Path,
    key: str,
    required: Sequence[str],
    optional: Sequence[str] = (),
    files: FilesParams = DEFAULT_FILES,
    *,
    allows_others: bool = True,
) -> Table:
    """Return columns of a CSV (also .gz) or Parquet file.

    Args:
        path: The file, relative to the working directory.
        key: The configuration key that names the file, for messages.
        required: Required columns.
        optional: Optional columns.
        files: How to read the file.
        allows_others: Whether the file may have other columns, which are not read.

    Raises:
        DataError: If the file is missing, unreadable, too large, empty or of another kind, or has the wrong columns.
    """
    return _read(path, _Request(key, files, tuple(required), tuple(optional), allows_others), read_csv)


def read_ids(path: str | Path, key: str, columns: Sequence[str], files: FilesParams = DEFAULT_FILES) -> Table:
    """Return columns of ids as `read_table` does; ids of a CSV are int64 if all are whole numbers."""
    return _read(path, _Request(key, files, tuple(columns), content="ids"), read_csv_ids)


def _read(
    path: str | Path, request: _Request, csv_reader: Callable[[Path, Header, Sequence[str], FilesParams], pa.Table]
) -> Table:
    key, files = request.key, request.files
    with name_file_in_errors(path, key):
        file, notes = _existing_file(path, key), []
        required = [*request.names_in_file.values()][: len(request.required)]
        if file.suffix.lower() in _PARQUET:
            from prism_mesa.social.world.parquet_files import parquet_columns, read_parquet

            names, index = parquet_columns(file)
            names = [name for name in names if name not in index or name in request.names_in_file.values()]
            columns_read = request.match_columns(names)
            table = read_parquet(file, [*dict.fromkeys(columns_read.values())], files.max_bytes, request.content)
        else:
            check_size(file, files.max_bytes)
            header = read_header(file, required, files)
            names, is_comma, delimiter = list(header.names), header.delimiter == ",", DELIMITERS[header.delimiter]
            line = header.delimiter.join(names)
            if key == EDGES and not {*required} <= {*names} and (advice := conversion(file, line)):
                raise _UnusableFileError(advice)
            columns_read = request.match_columns(names, "" if is_comma else delimiter)
            notes = [] if is_comma else [f"{key}: read as separated by {delimiter}"]
            if may_be_utf8(file, files):
                notes.append(f"{key}: read as {files.encoding} (files.encoding), but it is valid UTF-8")
            table, n_headers = _drop_headers(csv_reader(file, header, [*dict.fromkeys(columns_read.values())], files))
            notes += [f"{key}: repeated header left out ({format_count(n_headers, 'line')})"] if n_headers else []
        if not table.num_rows:
            raise _UnusableFileError("no rows below the header")
    unread = [name or "an unnamed column" for name in names if name not in columns_read.values()]
    notes += [f"{key}: unused columns: {_join_names(unread)}"] if unread else []
    columns = pa.table({column: table[name] for column, name in columns_read.items()})
    return Table(columns, tuple(notes), columns_read, tuple(unread))


def _drop_headers(table: pa.Table) -> tuple[pa.Table, int]:
    """Remove repeated header rows, which concatenated files have; return the table and their number."""
    if any(pa.types.is_integer(column.type) for column in table.columns):
        return table, 0
    spellings = ("{}", "\ufeff{}", '\ufeff"{}"')  # joined files may each start with a byte order mark
    cells = [[pc.equal(table[name], spelling.format(name)) for spelling in spellings] for name in table.column_names]
    is_header = reduce(pc.and_, [reduce(pc.or_, column) for column in cells])
    n = pc.sum(is_header).as_py()
    return (table.filter(pc.invert(is_header.fill_null(False))), n) if n else (table, 0)


@contextmanager
def name_file_in_errors(path: str | Path, key: str) -> Iterator[None]:
    """Turn errors in the block into a DataError with one line that names the file."""
    where = f"{key}: {shorten(str(path), _CHARACTERS_SHOWN)}"
    try:
        yield
    except DataError:
        raise
    except _UnusableFileError as error:
        raise DataError(f"{where}: {error}") from None
    except MemoryError:
        raise DataError(f"{where}: cannot be read: it does not fit into memory: use a part of it") from None
    except _ERRORS as error:
        text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        first_line = shorten(text.strip().partition("\n")[0], _CHARACTERS_SHOWN)
        raise DataError(f"{where}: cannot be read: {first_line}") from None


def _join_names(names: Sequence[str]) -> str:
    more = f", and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
    return shorten(", ".join(names[:_NAMES_SHOWN]), _CHARACTERS_SHOWN) + more


def _existing_file(path: str | Path, key: str) -> Path:
    """Return the path of a file; raise an error if the file is missing or PRISM does not read its kind."""
    file = Path(path)
    if not file.is_file():
        fault = "is a folder, not a file" if file.is_dir() else "no such file"
        raise _UnusableFileError(f"{fault} (looked in {Path.cwd()})")
    if key == EDGES and (advice := conversion(file)):
        raise _UnusableFileError(advice)
    if not file.name.lower().endswith(_FILE_ENDINGS):
        raise _UnusableFileError(f"not a kind of file PRISM reads ({', '.join(_FILE_ENDINGS)})")
    return file
