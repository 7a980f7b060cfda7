"""Read CSV files as columns of strings, without guessing types or missing values."""

import csv
import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from prism_mesa.social.params import FilesParams
from prism_mesa.social.world.unpacking import open_text

MAX_COLUMNS: Final = 10_000
_MAX_HEADER: Final = 1_000_000
_STREAM_BLOCK: Final = 1 << 22
DELIMITERS: Final = {",": "','", ";": "';'", "\t": "tabs", "|": "'|'", " ": "spaces"}
"""Delimiters, and their names in messages."""


@dataclass(frozen=True)
class Header:
    """The first line of a CSV.

    Attributes:
        delimiter: The character between columns.
        is_stripped: Whether the file has no blanks around the names.
    """

    names: tuple[str, ...]
    delimiter: str
    is_stripped: bool


def read_header(file: Path, required: Sequence[str], files: FilesParams) -> Header:
    """Return the header of a CSV, split by the delimiter that yields the required columns, or else the most columns.

    Raises:
        ValueError: If the file is empty or its first line is not a header; see also `open_text`.
    """
    with open_text(file, files) as stream:
        head = stream.read(_MAX_HEADER + 1).lstrip(b"\r\n")
    line = head.replace(b"\r", b"\n").partition(b"\n")[0]
    if len(line) > _MAX_HEADER - 1:
        raise ValueError(f"its first line is longer than {_MAX_HEADER:,} bytes")
    if not line.strip():
        raise ValueError("the file is empty")
    headers = [_split_header(line.decode(), delimiter) for delimiter in DELIMITERS]
    headers = [header for header in headers if len(header.names) > 1 and header.delimiter != " "] or headers
    complete_headers = [header for header in headers if set(required) <= set(header.names)]
    header = complete_headers[0] if complete_headers else max(headers, key=lambda header: len(header.names))
    if len(header.names) > MAX_COLUMNS:
        raise ValueError(f"its first line names {len(header.names):,} columns; at most {MAX_COLUMNS:,} are allowed")
    return header


def _split_header(line: str, delimiter: str) -> Header:
    try:
        names = next(csv.reader([line], delimiter=delimiter))
    except csv.Error as error:
        raise ValueError(f"its first line is not the header of a table: {error}") from None
    stripped = tuple(name.strip() for name in names)
    return Header(stripped, delimiter, stripped == tuple(names))


def check_quotes(file: Path, header: Header, files: FilesParams) -> None:
    """Check that no quotation mark in a text is escaped by a backslash, as Spark does by default.

    Raises:
        ValueError: If one is; the message has the line of the first.
    """
    with open_text(file, files) as stream:
        if not any(b'\\"' in line for line in stream):
            return
    with io.TextIOWrapper(open_text(file, files), "utf-8", newline="") as lines:
        rows = csv.reader(lines, delimiter=header.delimiter, strict=True)
        try:
            rows_fit = all(
                len(row) <= len(header.names) + 1
                and not any(cell.endswith("\\") and '"' in rest for cell, rest in pairwise(row))
                for row in rows
            )
        except csv.Error as error:
            rows_fit = "field limit" in str(error)  # a text too long for this reader
    if not rows_fit:
        spark = "(in Spark: .option('escape', '\"'))"
        raise ValueError(f"line {rows.line_num}: a quotation mark is escaped by a backslash: double it instead {spark}")


def read_csv(file: Path, header: Header, columns: Sequence[str], files: FilesParams) -> pa.Table:
    """Return columns of a CSV as strings, with empty cells as nulls.

    Raises:
        ValueError: If rows do not fit the header; see also `open_text`.
    """
    check_quotes(file, header, files)
    with warnings.catch_warnings(), open_text(file, files) as stream:
        warnings.simplefilter("error", pd.errors.ParserWarning)
        frame = pd.read_csv(
            stream, sep=header.delimiter, index_col=False, dtype=str, keep_default_na=False, na_values=[""]
        )
    if len(frame.columns) != len(header.names):
        raise ValueError(f"its first line names {len(header.names)} columns, its rows have {len(frame.columns)}")
    cells = {name: frame.iloc[:, header.names.index(name)] for name in columns}
    return pa.table({name: pa.array(column, pa.large_string(), from_pandas=True) for name, column in cells.items()})


def read_csv_ids(file: Path, header: Header, columns: Sequence[str], files: FilesParams) -> pa.Table:
    """Return columns of ids as int64 if all ids are whole numbers, else as strings; blank cells are nulls.

    Raises:
        ValueError: See `read_csv`.
    """
    if len(header.names) > len(columns):
        check_quotes(file, header, files)
    for as_numbers in (True, False):
        table = _read_stream(file, header, columns, files, as_numbers=as_numbers)
        if table is not None:
            return table
    table = read_csv(file, header, columns, files)  # it accepts rows that are too short or end in a comma
    return pa.table({name: _strip_texts(table[name].combine_chunks()) for name in columns})


def _read_stream(
    file: Path, header: Header, columns: Sequence[str], files: FilesParams, *, as_numbers: bool
) -> pa.Table | None:
    """Return the columns, read block by block; None on errors, or for a cell that should be a number."""
    if not header.is_stripped:
        return None
    types = dict.fromkeys(columns, pa.string())
    conversion = pa.csv.ConvertOptions(
        include_columns=columns, column_types=types, strings_can_be_null=True, null_values=[""]
    )
    parsing = pa.csv.ParseOptions(delimiter=header.delimiter, newlines_in_values=True)
    batches: list[pa.RecordBatch] = []
    try:
        with open_text(file, files) as stream:
            for block in _whole_lines(stream):  # pyarrow's own stream has a thread that outlives an error
                names = list(header.names) if batches else None
                reading = pa.csv.ReadOptions(use_threads=False, block_size=len(block) + 1, column_names=names)
                table = pa.csv.read_csv(pa.BufferReader(block), reading, parsing, conversion).combine_chunks()
                texts = [table[name].combine_chunks() for name in columns]
                cells = [whole_numbers(column) if as_numbers else _strip_texts(column) for column in texts]
                if any(column is None for column in cells):
                    return None
                batches.append(pa.record_batch(cells, names=list(columns)))
    except (ValueError, KeyError, pa.ArrowException):
        return None
    return pa.Table.from_batches(batches) if batches else None


def _whole_lines(stream: BinaryIO) -> Iterator[bytes]:
    """Yield a file in blocks of whole lines.

    Raises:
        ValueError: If a line is longer than a block, or a block may end within a quoted text.
    """
    remainder = b""
    while block := stream.read(_STREAM_BLOCK):
        end = max(block.rfind(b"\n"), block.rfind(b"\r")) + 1
        lines, remainder = remainder + block[:end], block[end:]
        if not end or lines.count(b'"') % 2:
            raise ValueError
        yield lines
    if remainder:
        yield remainder


def whole_numbers(texts: pa.Array) -> pa.Array | None:
    """Return strings as int64; None unless every string is a whole number without leading zeros, plus signs or blanks.

    >>> whole_numbers(pa.array(["7", None, "-12"])).to_pylist(), whole_numbers(pa.array(["7", "007"]))
    ([7, None, -12], None)
    """
    try:
        numbers = texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    return numbers if numbers.cast(texts.type).equals(texts) else None


def _strip_texts(texts: pa.Array) -> pa.DictionaryArray:
    encoded = texts.dictionary_encode()
    values = pc.utf8_trim_whitespace(encoded.dictionary.cast(pa.string()))
    blanks = pc.index_in(encoded.indices, value_set=pc.indices_nonzero(pc.equal(values, "")).cast(encoded.indices.type))
    indices = pc.if_else(pc.is_null(blanks), encoded.indices, pa.scalar(None, encoded.indices.type))
    return pa.DictionaryArray.from_arrays(indices, values)
