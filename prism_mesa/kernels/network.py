"""Compressed sparse rows: numbering, drawing, sorting, adding up, and changing them.

Row i is ``indices[indptr[i]:indptr[i + 1]]``, ascending, without repetitions and without i. Draws for a row depend only
on its number, so rows can be made in any order and in parts ``first .. last - 1``.
"""

from math import log1p
from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, part_of_kernels
from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.kernels.ordering import is_among

type Int32s = npt.NDArray[np.int32]
type Int64s = npt.NDArray[np.int64]
type Floats = npt.NDArray[np.float64]

_SHORT = 48


@kernel
def sort_unique(values: Int32s, begin: int, end: int, without: int) -> int:
    """Sort ``values[begin:end]``, drop repetitions and `without`, and return the new end."""
    if end - begin > _SHORT:
        values[begin:end].sort()
    else:
        for at in range(begin + 1, end):
            value, to = values[at], at
            while to > begin and values[to - 1] > value:
                values[to] = values[to - 1]
                to -= 1
            values[to] = value
    kept = begin
    for at in range(begin, end):
        if values[at] != without and (kept == begin or values[at] != values[kept - 1]):
            values[kept] = values[at]
            kept += 1
    return kept


@kernel
def slot_of(slots: Int64s, key: np.int64) -> np.int64:
    """Return the slot of a key, or the free one where it belongs (open addressing)."""
    mask = len(slots) - 1
    at = np.int64(mixed(np.uint64(key), np.uint64(0)) & np.uint64(mask))
    while slots[at, 1] > 0 and slots[at, 0] != key:
        at = (at + 1) & mask
    return at


@kernel
def number_keys(keys: Int64s, slots: Int64s, count: int, codes: Int32s) -> tuple[Int64s, int]:
    """Write the code of each key: distinct keys get 0, 1, 2, ... in order of appearance.

    Args:
        keys: Any whole numbers.
        slots: Shape (a power of 2, 2): known keys and their codes + 1; free slots are 0.
        count: Number of known keys.
        codes: Receives the codes.

    Returns:
        `slots` or a larger copy, which is never more than half full, and the new `count`.
    """
    for i in range(len(keys)):
        if 2 * count >= len(slots):
            before, slots = slots, np.zeros((4 * len(slots), 2), np.int64)
            for at in range(len(before)):
                if before[at, 1] > 0:
                    slot = slot_of(slots, before[at, 0])
                    slots[slot, 0], slots[slot, 1] = before[at, 0], before[at, 1]
        slot = slot_of(slots, keys[i])
        if slots[slot, 1] == 0:
            count += 1
            slots[slot, 0], slots[slot, 1] = keys[i], count
        codes[i] = slots[slot, 1] - 1
    return slots, count


@kernel
def count_rows(src: Int32s, dst: Int32s, counts: Int64s) -> None:
    """Add 1 to ``counts[dst + 1]`` for each edge that is not a loop."""
    for edge in range(len(src)):
        if src[edge] != dst[edge]:
            counts[dst[edge] + 1] += 1


@kernel
def place_rows(src: Int32s, dst: Int32s, cursor: Int64s, indices: Int32s) -> None:
    """Write each `src` to the next position of its `dst`'s row; loops are left out."""
    for edge in range(len(src)):
        row = dst[edge]
        if src[edge] != row:
            indices[cursor[row]] = src[edge]
            cursor[row] += 1


@kernel
def tidy_rows(indptr: Int64s, indices: Int32s) -> int:
    """Sort all rows, drop repetitions, close gaps, and return the number of remaining entries."""
    begin, to = int(indptr[0]), 0
    for row in range(len(indptr) - 1):
        end = int(indptr[row + 1])
        kept = sort_unique(indices, begin, end, row)
        if to != begin:
            for at in range(begin, kept):
                indices[to + at - begin] = indices[at]
        to += kept - begin
        begin, indptr[row + 1] = end, to
    return to


@kernel
def draw_rows(
    first: int,
    last: int,
    key: np.uint64,
    cumulative: Floats,
    guide: Int32s,
    attempts: int,
    held_indptr: Int64s,
    held: Int32s,
    indptr: Int64s,
    indices: Int32s,
    n_made: Int32s,
) -> None:
    """Fill rows ``first`` .. ``last - 1`` with distinct numbers below n, each drawn with its own chance.

    The index of a draw counts the draws of a row, its agent is the row. `indptr` says how long rows are to be, and
    `n_made` gets how many entries each row has.

    Args:
        first: The first row to draw.
        last: The row after the last one.
        key: Key of the draws.
        cumulative: Cumulative probabilities, shape (n,), up to 1.
        guide: The first place with ``cumulative > b / n``, for b in 0 .. n - 1 (Chen and Asau 1974,
            doi:10.1080/05695557408974949).
        attempts: Draws per entry, on average, after which a row stays as it is.
        held_indptr: Where the entries that a row has already begin in `held`; at most as many as the row is long.
        held: These entries, ascending.
        indptr: Starts of rows.
        indices: Gets the rows.
        n_made: Gets the number of entries of each row.
    """
    n = len(cumulative)
    start = mixed(mixed(key, np.uint64(0)), np.uint64(0))
    last_row = np.full(max(n, last), -1, np.int32)  # entries that the row has, or the row itself
    for row in range(first, last):
        begin, end = indptr[row], indptr[row + 1]
        have, drawn, most = begin, 0, attempts * (end - begin)
        last_row[row] = row
        for at in range(held_indptr[row], held_indptr[row + 1]):
            indices[have] = held[at]
            last_row[held[at]] = row
            have += 1
        while have < end and drawn < most:
            for _ in range(end - have):
                u = unit(mixed(mixed(start, np.uint64(drawn)), np.uint64(row)))
                number = guide[int(u * n)]
                while cumulative[number] <= u and number < n - 1:
                    number += 1
                if last_row[number] != row:
                    last_row[number] = row
                    indices[have] = number
                    have += 1
                drawn += 1
        n_made[row] = sort_unique(indices, begin, have, row) - begin


@kernel
def toss_rows(
    first: int,
    last: int,
    key: np.uint64,
    bounds: Int64s,
    inside: float,
    outside: float,
    indptr: Int64s,
    indices: Int32s,
) -> None:
    """Include each other number in a row with one probability inside its block and another outside.

    The gaps between entries are geometric (Batagelj and Brandes 2005, doi:10.1103/PhysRevE.71.036113).

    Args:
        first: The first row to draw.
        last: The row after the last one.
        key: Key of the draws; their index counts within a row, their agent is the row.
        bounds: Block b is ``bounds[b] .. bounds[b + 1] - 1``.
        inside: ``log(1 - p)`` for others in the same block.
        outside: The same for others outside.
        indptr: Starts of rows.
        indices: Receives the entries; if it is empty, rows are only counted, into ``indptr[row + 1]``.
    """
    start = mixed(mixed(key, np.uint64(0)), np.uint64(0))
    block = 0
    for row in range(first, last):
        while row >= bounds[block + 1]:
            block += 1
        drawn, n_made, to = 0, 0, indptr[row]
        for part in range(3):
            begin = 0 if part == 0 else bounds[block + part - 1]
            end = bounds[len(bounds) - 1] if part == 2 else bounds[block + part]
            log_none = inside if part == 1 else outside
            while begin < end and log_none < 0.0:
                u = unit(mixed(mixed(start, np.uint64(drawn)), np.uint64(row)))
                drawn += 1
                gap = np.floor(log1p(-u) / log_none)
                if gap >= end - begin:
                    break
                begin += int(gap)
                if begin != row:
                    if len(indices):
                        indices[to + n_made] = begin
                    n_made += 1
                begin += 1
        if not len(indices):
            indptr[row + 1] = n_made


@kernel
def rewire(key: np.uint64, coin: np.uint64, share: float, out: Int32s) -> None:
    """Move one end of a share of a ring's edges to a new number (Watts and Strogatz 1998, doi:10.1038/30918).

    Args:
        key: Key of the draws of ends: the tick is the edge's position in its row, the index the attempt, the agent the
            row.
        coin: Key of the draws that decide on rewiring: the index is the edge's position, the agent the row.
        share: The probability of rewiring.
        out: Shape (n, edges of a row): each edge is in the row of the agent that it counts for.
    """
    n, width = out.shape
    degree = np.full(n, 2 * width, np.int32)
    start, toss = mixed(key, np.uint64(0)), mixed(mixed(coin, np.uint64(0)), np.uint64(0))
    for place in range(width):
        for row in range(n):
            if unit(mixed(mixed(toss, np.uint64(place)), np.uint64(row))) >= share or degree[row] >= n - 1:
                continue
            attempt, other, taken = 0, row, True
            while taken:
                u = unit(mixed(mixed(mixed(start, np.uint64(place)), np.uint64(attempt)), np.uint64(row)))
                other, attempt = int(u * n), attempt + 1
                taken = other == row
                for at in range(width):
                    taken |= out[row, at] == other or out[other, at] == row
            degree[out[row, place]] -= 1
            degree[other] += 1
            out[row, place] = other


@kernel
def attach(key: np.uint64, n: int, m: int, old: Int32s) -> None:
    """Let numbers m + 1 .. n - 1 each choose `m` distinct older ones, in proportion to their edges so far.

    Edge e begins at ``e + 1`` for e < m, where all end at 0, else at ``m + e // m``; the end of a random edge is
    a number drawn in proportion to its edges (Barabasi and Albert 1999, doi:10.1126/science.286.5439.509).

    Args:
        key: Key of the draws: the index counts those of a number, which is their agent.
        n: Number of numbers.
        m: How many each chooses.
        old: Receives the end of each edge, shape (m * (n - m),).
    """
    start = mixed(mixed(key, np.uint64(0)), np.uint64(0))
    chosen_by = np.zeros(n, np.int32)
    old[:m] = 0
    edges = m
    for new in range(m + 1, n):
        have, drawn = 0, 0
        while have < m:
            u = unit(mixed(mixed(start, np.uint64(drawn)), np.uint64(new)))
            drawn += 1
            end = int(u * (2 * edges))
            edge = end >> 1
            number = int(old[edge])
            if end & 1:
                number = edge + 1 if edge < m else m + edge // m
            if chosen_by[number] != new:
                chosen_by[number] = new
                old[edges + have] = number
                have += 1
        edges += m


@kernel
def add_up(first: int, indptr: Int64s, indices: Int32s, place: Int32s, values: Int64s, total: Int64s) -> None:
    """Add the values of each row's entries to `total`, shape (rows, k), whose row 0 stands for row `first`.

    ``values[place[i]]`` are the values of entry i; none if its place is -1.
    """
    for row in range(len(total)):
        for at in range(indptr[first + row], indptr[first + row + 1]):
            source = place[indices[at]]
            if source >= 0:
                for k in range(total.shape[1]):
                    total[row, k] += values[source, k]


type Keys = npt.NDArray[np.uint64]
type Bools = npt.NDArray[np.bool_]


@kernel
def mutual_pairs(indptr: Int64s, indices: Int32s, first: Int32s, other: Int32s) -> int:
    """Write all pairs that stand in each other's rows, the lower number in `first`, and return how many they are.

    They come by `first`, then by `other`; both arrays have room for half of all entries.
    """
    cursor = indptr[:-1].copy()
    n_pairs = 0
    for row in range(len(indptr) - 1):
        for at in range(indptr[row], indptr[row + 1]):
            number = indices[at]
            if number < row:
                continue
            while cursor[number] < indptr[number + 1] and indices[cursor[number]] < row:  # rows come ascending
                cursor[number] += 1
            if cursor[number] < indptr[number + 1] and indices[cursor[number]] == row:
                first[n_pairs], other[n_pairs] = row, number
                n_pairs += 1
    return n_pairs


@kernel
def choose_pairs(order: Int64s, first: Int32s, other: Int32s, most: int, n: int) -> npt.NDArray[np.bool_]:
    """Return which pairs are chosen, in `order`, so that each number is in at most `most` of them."""
    taken, count = np.zeros(len(first), np.bool_), np.zeros(n, np.int64)
    for pair in order:
        a, b = first[pair], other[pair]
        if count[a] < most and count[b] < most:
            count[a] += 1
            count[b] += 1
            taken[pair] = True
    return taken


_LOWER = np.int64(0xFFFFFFFF)
_11 = np.uint64(11)


@part_of_kernels
def _copy(source: Int32s, at: Any, end: Any, out: Int32s, to: Any) -> Any:
    """Copy ``source[at:end]`` to `to`, and return its end; most are short."""
    for i in range(end - at):
        out[to + i] = source[at + i]
    return to + end - at


@kernel
def changed_rows(
    indptr: Int64s, indices: Int32s, added: Int64s, removed: Int64s, out_indptr: Int64s, out: Int32s
) -> Any:
    """Write rows with some entries added and some removed, and return how many entries they have.

    Entries that are there are not added, and entries that are not there not removed. `added` and `removed` are numbers
    ``row << 32 | entry``, ascending, without common ones. `out` is as long as `indices` and `added` together. Runs of
    rows without changes are copied in one piece.
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
    """Write the entries between numbers that are `here` to `out`, as long as `indices`; return how many they are."""
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
    """Write ``row << 32 | entry`` where both are `here` and one has just come, ascending; return how many they are.

    With empty `keys` they are only counted.
    """
    n_keys, writes = 0, len(keys) > 0
    for row in range(len(indptr) - 1):
        if here[row]:
            for at in range(indptr[row], indptr[row + 1]):
                entry = indices[at]
                if here[entry] and (comes[row] or comes[entry]):
                    if writes:
                        keys[n_keys] = np.int64(row) << 32 | np.int64(entry)
                    n_keys += 1
    return n_keys


@kernel
def are_in_rows(indptr: Int64s, indices: Int32s, row: Int64s, entry: Int64s, out: Bools) -> None:
    """Write whether each row contains the given entry."""
    for i in range(len(out)):
        out[i] = is_among(indices, indptr[row[i]], indptr[row[i] + 1], entry[i])


@kernel
def drawn_below(
    keys: Keys, limits: Keys, post_key: Keys, post: Int32s, agent: Int32s, drawn: npt.NDArray[np.uint8]
) -> None:
    """Write which draws of each impression, integers below 2**53, are below their limits: bit k for draw k.

    The index of a draw is the key of the post, its agent the reader. `post_key` has the keys of all posts.
    """
    for i in range(len(drawn)):
        index, reader, bits = post_key[post[i]], np.uint64(agent[i]), 0
        for k in range(len(keys)):
            draw = mixed(mixed(keys[k], index), reader) >> _11
            bits |= (draw < limits[k]) << k
        drawn[i] = bits
