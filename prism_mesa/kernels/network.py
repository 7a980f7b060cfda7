"""Compressed sparse rows: numbering, drawing, sorting and adding up.

Row i holds ``indices[indptr[i]:indptr[i + 1]]``, ascending, without repetitions and without i. What is drawn for
a row depends on its number alone, so rows may be made in any order and in parts ``first .. last - 1``.
"""

from math import log1p

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel
from prism_mesa.kernels.draws import mixed, unit

type Int32s = npt.NDArray[np.int32]
type Int64s = npt.NDArray[np.int64]
type Floats = npt.NDArray[np.float64]

_SHORT = 48


@kernel
def sort_unique(values: Int32s, begin: int, end: int, without: int) -> int:
    """Sort ``values[begin:end]``, leave out repetitions and `without`, and return where the rest ends."""
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
    """Return the slot that holds a key, or else the free one where it belongs (open addressing)."""
    mask = len(slots) - 1
    at = np.int64(mixed(np.uint64(key), np.uint64(0)) & np.uint64(mask))
    while slots[at, 1] > 0 and slots[at, 0] != key:
        at = (at + 1) & mask
    return at


@kernel
def number_keys(keys: Int64s, slots: Int64s, count: int, codes: Int32s) -> tuple[Int64s, int]:
    """Write the code of each key: distinct keys are numbered 0, 1, 2, ... as they come.

    Args:
        keys: Any whole numbers.
        slots: Shape (a power of 2, 2): keys met before and their codes + 1; free slots are 0.
        count: How many these are.
        codes: Where the codes are written.

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
    """Add to ``counts[dst + 1]`` one for each edge that is no loop."""
    for edge in range(len(src)):
        if src[edge] != dst[edge]:
            counts[dst[edge] + 1] += 1


@kernel
def place_rows(src: Int32s, dst: Int32s, cursor: Int64s, indices: Int32s) -> None:
    """Write each `src` where the row of its `dst` goes on, and move that place on; loops are left out."""
    for edge in range(len(src)):
        row = dst[edge]
        if src[edge] != row:
            indices[cursor[row]] = src[edge]
            cursor[row] += 1


@kernel
def tidy_rows(indptr: Int64s, indices: Int32s) -> int:
    """Sort all rows, leave out repetitions, close the gaps, and return how many entries are left."""
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
    found: Int32s,
) -> None:
    """Fill up rows to a length with distinct numbers below n, each drawn with its own chance.

    Args:
        first: The first row to draw.
        last: The row after the last one.
        key: Of the draws; their index counts those of a row, their agent is the row.
        cumulative: Cumulative chances, shape (n,), up to 1.
        guide: Where to look: the first place with ``cumulative > b / n``, for b in 0 .. n - 1 (Chen and Asau 1974,
            doi:10.1080/05695557408974949).
        attempts: Draws for each entry of a row, on average, after which the row stays as it is.
        held_indptr: With `held`: what each row has already, ascending; at most as long as the row.
        held: See `held_indptr`.
        indptr: Says how long rows are to be.
        indices: Where they are written.
        found: How many entries of each row, from its beginning, were made.
    """
    n = len(cumulative)
    start = mixed(mixed(key, np.uint64(0)), np.uint64(0))
    last_row = np.full(max(n, last), -1, np.int32)  # that has each number, or is it
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
        found[row] = sort_unique(indices, begin, have, row) - begin


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
    """Let each row hold each other number with one chance inside its block and another one outside.

    The gaps between entries are geometric (Batagelj and Brandes 2005, doi:10.1103/PhysRevE.71.036113).

    Args:
        first: The first row to draw.
        last: The row after the last one.
        key: Of the draws; their index counts those of a row, their agent is the row.
        bounds: Block b is ``bounds[b] .. bounds[b + 1] - 1``.
        inside: ``log(1 - chance)`` of others in the own block.
        outside: The same of all others.
        indptr: Where rows begin.
        indices: Where they are written; without any entries, rows are only counted, into ``indptr[row + 1]``.
    """
    start = mixed(mixed(key, np.uint64(0)), np.uint64(0))
    block = 0
    for row in range(first, last):
        while row >= bounds[block + 1]:
            block += 1
        drawn, found, to = 0, 0, indptr[row]
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
                        indices[to + found] = begin
                    found += 1
                begin += 1
        if not len(indices):
            indptr[row + 1] = found


@kernel
def rewire(key: np.uint64, coin: np.uint64, share: float, out: Int32s) -> None:
    """Give a share of a ring's edges another end, drawn until it is new (Watts and Strogatz 1998, doi:10.1038/30918).

    Args:
        key: Of the draws of ends: tick is the edge's place in its row, index the attempt, agent the row.
        coin: The key of whether an edge is rewired: index is the edge's place, agent the row.
        share: The probability of that.
        out: Shape (n, edges of a row): each edge stands in the row of the agent that it is counted for.
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
    """Let numbers m + 1 .. n - 1 choose `m` distinct older ones each, in proportion to their edges so far.

    Edge e begins at ``e + 1`` for e < m, where all end at 0, else at ``m + e // m``; the end of a random edge is
    a number drawn in proportion to its edges (Barabasi and Albert 1999, doi:10.1126/science.286.5439.509).

    Args:
        key: Of the draws: index counts those of a number, which is their agent.
        n: How many numbers there are.
        m: How many each chooses.
        old: Where each edge ends, shape (m * (n - m),).
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

    ``values[place[i]]`` are those of entry i, or none where its place is -1.
    """
    for row in range(len(total)):
        for at in range(indptr[first + row], indptr[first + row + 1]):
            source = place[indices[at]]
            if source >= 0:
                for k in range(total.shape[1]):
                    total[row, k] += values[source, k]
