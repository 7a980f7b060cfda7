"""Ties as compressed sparse rows: mutual follows and the close ones among them, and follows that begin and end.

Rows are as in `kernels.network`.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, part_of_kernels
from prism_mesa.kernels.draws import mixed
from prism_mesa.kernels.ordering import is_among

type Keys = npt.NDArray[np.uint64]
type Bools = npt.NDArray[np.bool_]
type Int32s = npt.NDArray[np.int32]
type Int64s = npt.NDArray[np.int64]


@kernel
def mutual_pairs(indptr: Int64s, indices: Int32s, one: Int32s, other: Int32s) -> int:
    """Write all pairs that stand in each other's rows, the lower number in `one`, and return how many they are.

    They come by `one`, then by `other`; both arrays have room for half of all entries.
    """
    cursor = indptr[:-1].copy()
    found = 0
    for row in range(len(indptr) - 1):
        for at in range(indptr[row], indptr[row + 1]):
            number = indices[at]
            if number < row:
                continue
            while cursor[number] < indptr[number + 1] and indices[cursor[number]] < row:  # rows come ascending
                cursor[number] += 1
            if cursor[number] < indptr[number + 1] and indices[cursor[number]] == row:
                one[found], other[found] = row, number
                found += 1
    return found


@kernel
def choose_pairs(order: Int64s, one: Int32s, other: Int32s, most: int, n: int) -> npt.NDArray[np.bool_]:
    """Return which pairs are taken, gone through in `order`, if each number is to be in at most `most` of them."""
    taken, count = np.zeros(len(one), np.bool_), np.zeros(n, np.int64)
    for pair in order:
        a, b = one[pair], other[pair]
        if count[a] < most and count[b] < most:
            count[a] += 1
            count[b] += 1
            taken[pair] = True
    return taken


_LOWER = np.int64(0xFFFFFFFF)
_11 = np.uint64(11)


@part_of_kernels
def _copy(source: Int32s, at: Any, end: Any, out: Int32s, to: Any) -> Any:
    """Copy ``source[at:end]`` to where `to` is, and return where that ends; most are short."""
    for i in range(end - at):
        out[to + i] = source[at + i]
    return to + end - at


@kernel
def changed_rows(
    indptr: Int64s, indices: Int32s, added: Int64s, removed: Int64s, out_indptr: Int64s, out: Int32s
) -> Any:
    """Write rows that have some entries more and some less, and return how many entries they have.

    What stands already is not added, what does not stand is not removed. Rows in which nothing changes are copied in
    one piece with those beside them.

    Args:
        indptr: With `indices`: the rows as they were.
        indices: See `indptr`.
        added: Numbers ``row << 32 | entry``, ascending.
        removed: The same; none that is added.
        out_indptr: Where it is written where the rows begin, shape (n + 1,).
        out: Where the entries are written; as long as `indices` and `added` together.
    """
    n, row, at, to, a, r = len(indptr) - 1, np.int64(0), np.int64(0), np.int64(0), 0, 0
    out_indptr[0] = 0
    while a < len(added) or r < len(removed):
        adds = a < len(added) and (r == len(removed) or added[a] < removed[r])
        key = added[a] if adds else removed[r]
        changes, entry = key >> 32, np.int32(key & _LOWER)
        for i in range(row + 1, changes + 1):
            out_indptr[i] = indptr[i] - at + to
        row = changes
        low, high = max(at, indptr[row]), indptr[row + 1]
        end = high
        while low < high:
            middle = (low + high) >> 1
            if indices[middle] < entry:
                low = middle + 1
            else:
                high = middle
        to = _copy(indices, at, low, out, to)
        at = low
        stands = at < end and indices[at] == entry
        if adds:
            a += 1
            if not stands:
                out[to] = entry
                to += 1
        else:
            r += 1
            at += 1 if stands else 0
    for i in range(row + 1, n + 1):
        out_indptr[i] = indptr[i] - at + to
    return _copy(indices, at, indptr[n], out, to)


@kernel
def rows_among(indptr: Int64s, indices: Int32s, here: Bools, out_indptr: Int64s, out: Int32s) -> Any:
    """Write the entries of rows that are here, if they are here too, and return how many these are.

    Args:
        indptr: With `indices`: the rows.
        indices: See `indptr`.
        here: Of each number, whether it is here.
        out_indptr: Where it is written where the rows begin, shape (n + 1,).
        out: Where the entries are written, as long as `indices`.
    """
    to = np.int64(0)
    out_indptr[0] = 0
    for row in range(len(indptr) - 1):
        if here[row]:
            for at in range(indptr[row], indptr[row + 1]):
                if here[indices[at]]:
                    out[to] = indices[at]
                    to += 1
        out_indptr[row + 1] = to
    return to


@kernel
def keys_of_comers(indptr: Int64s, indices: Int32s, here: Bools, comes: Bools, keys: Int64s) -> Any:
    """Write ``row << 32 | entry`` of entries whose two ends are here, one of which has just come; return how many.

    Args:
        indptr: With `indices`: the rows.
        indices: See `indptr`.
        here: Of each number, whether it is here, having come or not.
        comes: Of each number, whether it has just come.
        keys: Where they are written, ascending; of a length of 0 they are counted.
    """
    found, writes = 0, len(keys) > 0
    for row in range(len(indptr) - 1):
        if here[row]:
            for at in range(indptr[row], indptr[row + 1]):
                entry = indices[at]
                if here[entry] and (comes[row] or comes[entry]):
                    if writes:
                        keys[found] = np.int64(row) << 32 | np.int64(entry)
                    found += 1
    return found


@kernel
def are_in_rows(indptr: Int64s, indices: Int32s, row: Int64s, entry: Int64s, out: Bools) -> None:
    """Write whether each entry stands in the row before it."""
    for i in range(len(out)):
        out[i] = is_among(indices, indptr[row[i]], indptr[row[i] + 1], entry[i])


@kernel
def drawn_below(
    keys: Keys, limits: Keys, post_key: Keys, post: Int32s, agent: Int32s, found: npt.NDArray[np.uint8]
) -> None:
    """Write which draws of each impression, whole numbers below 2**53, lie below their limits: bit k for draw k.

    Args:
        keys: Of the draws; their index is the key of the post, their agent the reader.
        limits: Their limits.
        post_key: Keys of all posts.
        post: Of each impression.
        agent: Of each impression.
        found: Of each impression, the bits.
    """
    for i in range(len(found)):
        own, reader, bits = post_key[post[i]], np.uint64(agent[i]), 0
        for k in range(len(keys)):
            draw = mixed(mixed(keys[k], own), reader) >> _11
            bits |= (draw < limits[k]) << k
        found[i] = bits
