"""Find the first different row of a table of two runs."""

import filecmp
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from prism_mesa.runs.run_files import read_batches, table_files, table_path

type Row = dict[str, Any]
type Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class DifferentRows:
    """The first different rows, with their index from 0; a row is None if its table has ended."""

    index: int
    base: Row | None
    other: Row | None


def same_bytes(base: Path, other: Path, table: str) -> bool:
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
    """Return the first rows of a table whose columns differ between two runs, if any.

    `row_filter` filters the rows. Raises DataError if a table cannot be read.
    """

    def parts(run: Path) -> Iterator[pa.RecordBatch]:
        for batch in read_batches(run, table, columns):
            rows = batch if row_filter is None else row_filter(batch)
            if rows.num_rows:
                yield rows

    for index, left, right in _side_by_side(parts(base), parts(other)):
        if left is None or right is None:
            return DifferentRows(index, _row(left), _row(right))
        different = _different_rows(left, right, columns)
        if different.any():
            offset = int(different.argmax())
            return DifferentRows(index + offset, _row(left[offset:]), _row(right[offset:]))
    return None


def _side_by_side(
    left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]
) -> Iterator[tuple[int, pa.RecordBatch | None, pa.RecordBatch | None]]:
    """Yield the row index and equally long parts of both tables; None for a table that has ended first."""
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


def _different_rows(left: pa.RecordBatch, right: pa.RecordBatch, columns: Sequence[str]) -> Bools:
    """Return which rows of two equally long parts differ; null equals null, and NaN equals NaN."""
    different = np.zeros(left.num_rows, bool)
    for name in columns:
        a, b = _comparable(left.column(name), right.column(name))
        if a.equals(b):
            continue
        blank_a, blank_b = (_bools(pc.is_null(column, nan_is_null=True)) for column in (a, b))
        unequal = _bools(pc.fill_null(pc.not_equal(a, b), fill_value=False))
        different |= np.where(blank_a | blank_b, blank_a != blank_b, unequal)
    return different


def _comparable(a: pa.Array, b: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return two columns in a common type; dictionaries with different values become strings."""
    if pa.types.is_dictionary(a.type) and pa.types.is_dictionary(b.type) and a.dictionary.equals(b.dictionary):
        return a.indices, b.indices
    a, b = (column.dictionary_decode() if pa.types.is_dictionary(column.type) else column for column in (a, b))
    if pa.types.is_null(a.type) or pa.types.is_null(b.type):
        kind = b.type if pa.types.is_null(a.type) else a.type
        return a.cast(kind), b.cast(kind)
    if a.type != b.type and not pa.types.is_primitive(a.type):
        return a.cast(pa.large_string()), b.cast(pa.large_string())
    return a, b


def _bools(values: pa.Array) -> Bools:
    return np.asarray(values.to_numpy(zero_copy_only=False), bool)
