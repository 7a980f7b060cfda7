"""The first row in which a table of two runs differs, read in parts side by side."""

import filecmp
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from prism_mesa.runs.run_files import batches_of, file_of, files_of

type Row = dict[str, Any]
type Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class DifferentRows:
    """The first place of a table at which two runs differ.

    Attributes:
        place: Which row of those that were compared, from 0.
        base: The row on one side; None where its table has ended.
        other: That on the other side.
    """

    place: int
    base: Row | None
    other: Row | None


def same_bytes(base: Path, other: Path, table: str) -> bool:
    """Return whether a table is the same in two runs, byte for byte."""
    left, right = files_of(file_of(base, table)), files_of(file_of(other, table))
    if [file.name for file in left] != [file.name for file in right]:
        return False
    return all(filecmp.cmp(one, another, shallow=False) for one, another in zip(left, right, strict=True))


def first_difference(
    base: Path,
    other: Path,
    table: str,
    columns: Sequence[str],
    only: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
) -> DifferentRows | None:
    """Return the first row in which some columns of a table differ; None if there is none.

    No more than a part of either table is in memory.

    Args:
        base: The folder of one run.
        other: That of the other.
        table: The name of a table that both have.
        columns: Of it, those that are compared; both have them.
        only: Returns of a part the rows that count.

    Raises:
        DataError: If a table cannot be read.
    """

    def parts(run: Path) -> Iterator[pa.RecordBatch]:
        for batch in batches_of(run, table, columns):
            kept = batch if only is None else only(batch)
            if kept.num_rows:
                yield kept

    for place, left, right in _side_by_side(parts(base), parts(other)):
        if left is None or right is None:
            return DifferentRows(place, _row(left), _row(right))
        apart = _apart(left, right, columns)
        if apart.any():
            at = int(apart.argmax())
            return DifferentRows(place + at, _row(left[at:]), _row(right[at:]))
    return None


def _side_by_side(
    left: Iterator[pa.RecordBatch], right: Iterator[pa.RecordBatch]
) -> Iterator[tuple[int, pa.RecordBatch | None, pa.RecordBatch | None]]:
    """Yield parts of the same rows, and which their first one is; None for a side that has ended before the other."""
    place, a, b = 0, next(left, None), next(right, None)
    while a is not None and b is not None:
        n = min(a.num_rows, b.num_rows)
        yield place, a[:n], b[:n]
        place += n
        a = a[n:] if a.num_rows > n else next(left, None)
        b = b[n:] if b.num_rows > n else next(right, None)
    if a is not None or b is not None:
        yield place, a, b


def _row(part: pa.RecordBatch | None) -> Row | None:
    return None if part is None else dict(part[:1].to_pylist()[0])


def _apart(left: pa.RecordBatch, right: pa.RecordBatch, columns: Sequence[str]) -> Bools:
    """Return in which rows two parts of the same length differ; nothing, and what is no number, equals itself."""
    apart = np.zeros(left.num_rows, bool)
    for name in columns:
        a, b = _comparable(left.column(name), right.column(name))
        if a.equals(b):
            continue
        blank_a, blank_b = (_bools(pc.is_null(one, nan_is_null=True)) for one in (a, b))
        unequal = _bools(pc.fill_null(pc.not_equal(a, b), fill_value=False))
        apart |= np.where(blank_a | blank_b, blank_a != blank_b, unequal)
    return apart


def _comparable(a: pa.Array, b: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Return two columns as what can be compared: codes of the same texts as they are, other codes as texts."""
    if pa.types.is_dictionary(a.type) and pa.types.is_dictionary(b.type) and a.dictionary.equals(b.dictionary):
        return a.indices, b.indices
    decoded = [one.dictionary_decode() if pa.types.is_dictionary(one.type) else one for one in (a, b)]
    kinds = [one.type for one in decoded]
    if pa.types.is_null(kinds[0]) or pa.types.is_null(kinds[1]):
        kind = kinds[1] if pa.types.is_null(kinds[0]) else kinds[0]
        decoded = [one.cast(kind) for one in decoded]
    elif kinds[0] != kinds[1] and not pa.types.is_primitive(kinds[0]):
        decoded = [one.cast(pa.large_string()) for one in decoded]
    return decoded[0], decoded[1]


def _bools(values: pa.Array) -> Bools:
    return np.asarray(values.to_numpy(zero_copy_only=False), bool)
