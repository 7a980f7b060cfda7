"""Find the first row in which a table differs between two runs."""

import filecmp
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from prism_mesa.arrays import Mask
from prism_mesa.runs.run_files import read_batches, table_files, table_path

type Row = dict[str, Any]


@dataclass(frozen=True)
class DifferentRows:
    """The first rows that differ, and their index; a row is None if its table is shorter."""

    index: int
    base: Row | None
    other: Row | None


def has_same_bytes(base: Path, other: Path, table: str) -> bool:
    """Return whether a table has the same bytes in two runs."""
    left, right = table_files(table_path(base, table)), table_files(table_path(other, table))
    if [file.name for file in left] != [file.name for file in right]:
        return False
    return all(filecmp.cmp(a, b, shallow=False) for a, b in zip(left, right, strict=True))


def first_difference(
    base: Path,
    other: Path,
    table: str,
    columns: Sequence[str],
    row_filter: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
) -> DifferentRows | None:
    """Return the first rows in which the columns of a table differ between two runs, if any.

    `row_filter` filters the rows before the comparison. Raises DataError if a table cannot be read.
    """

    def filtered_batches(run: Path) -> Iterator[pa.RecordBatch]:
        for batch in read_batches(run, table, columns):
            rows = batch if row_filter is None else row_filter(batch)
            if rows.num_rows:
                yield rows

    for index, left, right in _side_by_side(filtered_batches(base), filtered_batches(other)):
        if left is None or right is None:
            return DifferentRows(index, _row(left), _row(right))
        is_different = _different_rows(left, right, columns)
        if is_different.any():
            offset = int(is_different.argmax())
            return DifferentRows(index + offset, _row(left[offset:]), _row(right[offset:]))
    return None


def _side_by_side(
    left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]
) -> Iterator[tuple[int, pa.RecordBatch | None, pa.RecordBatch | None]]:
    """Yield the row index and equally long parts of both tables; None for the table that ends first."""
    index, a, b = 0, next(left, None), next(right, None)
    while a is not None and b is not None:
        n = min(a.num_rows, b.num_rows)
        yield index, a[:n], b[:n]
        index += n
        a = a[n:] if a.num_rows > n else next(left, None)
        b = b[n:] if b.num_rows > n else next(right, None)
    if a is not None or b is not None:
        yield index, a, b


def _row(part: pa.RecordBatch | None) -> Row | None:
    return None if part is None else dict(part[:1].to_pylist()[0])


def _different_rows(left: pa.RecordBatch, right: pa.RecordBatch, columns: Sequence[str]) -> Mask:
    """Return which rows of two equally long parts differ; null equals null, and NaN equals NaN."""
    is_different = np.zeros(left.num_rows, bool)
    for name in columns:
        a, b = _comparable(left.column(name), right.column(name))
        if a.equals(b):
            continue
        is_blank_a, is_blank_b = (_bool_array(pc.is_null(column, nan_is_null=True)) for column in (a, b))
        is_unequal = _bool_array(pc.fill_null(pc.not_equal(a, b), fill_value=False))
        is_different |= np.where(is_blank_a | is_blank_b, is_blank_a != is_blank_b, is_unequal)
    return is_different


def _comparable(a: pa.Array, b: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return two columns with a common type; dictionaries with different values become strings."""
    if pa.types.is_dictionary(a.type) and pa.types.is_dictionary(b.type) and a.dictionary.equals(b.dictionary):
        return a.indices, b.indices
    a, b = (column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in (a, b))
    if pa.types.is_null(a.type) or pa.types.is_null(b.type):
        common_type = b.type if pa.types.is_null(a.type) else a.type
        return a.cast(common_type), b.cast(common_type)
    if a.type != b.type and not pa.types.is_primitive(a.type):
        return a.cast(pa.large_string()), b.cast(pa.large_string())
    return a, b


def _bool_array(values: pa.Array) -> Mask:
    return np.asarray(values.to_numpy(zero_copy_only=False), bool)
