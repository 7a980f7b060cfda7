"""Rows of bytes that are filled from the left: copied one behind the other, without the room that is left, and back."""

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel

type Bytes = npt.NDArray[np.uint8]
type Int64s = npt.NDArray[np.int64]


@kernel
def pack(table: Bytes, lengths: Int64s, packed: Bytes) -> None:
    """Copy the first ``lengths[i]`` bytes of each row i of `table` into `packed`, which has room for them all."""
    to = 0
    for row in range(len(lengths)):
        length = lengths[row]
        for at in range(length):
            packed[to + at] = table[row, at]
        to += length


@kernel
def unpack(packed: Bytes, lengths: Int64s, table: Bytes) -> None:
    """Copy what `pack` has copied back into the rows of `table`; of rows that are longer than these the first bytes."""
    begin, width = 0, table.shape[1]
    for row in range(len(lengths)):
        length = lengths[row]
        for at in range(min(length, width)):
            table[row, at] = packed[begin + at]
        begin += length


def packed_rows[T: np.generic](table: npt.NDArray[T], lengths: npt.NDArray[np.integer]) -> npt.NDArray[T]:
    """Return the first ``lengths[i]`` entries of each row i, one row behind the other.

    Args:
        table: Shape (n, width), in one piece.
        lengths: Shape (n,), in 0 .. width.
    """
    counts, size = lengths.astype(np.int64), table.itemsize
    packed = np.empty(int(counts.sum()), table.dtype)
    pack(_as_bytes(table), counts * size, packed.view(np.uint8))
    return packed


def unpack_rows[T: np.generic](packed: npt.NDArray[T], lengths: npt.NDArray[np.integer], table: npt.NDArray[T]) -> None:
    """Write what `packed_rows` returned into the rows of a table; longer rows than it has lose their ends.

    Args:
        packed: Entries of the type of the table.
        lengths: Shape (n,), from 0; they add up to the entries.
        table: Shape (n, width), in one piece.
    """
    unpack(packed.view(np.uint8), lengths.astype(np.int64) * table.itemsize, _as_bytes(table))


def _as_bytes(table: npt.NDArray[np.generic]) -> Bytes:
    return table.view(np.uint8).reshape(len(table), table.shape[1] * table.itemsize)
