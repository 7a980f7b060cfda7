"""Build, sort, sum and change compressed sparse rows, and number the ids of edge lists.

Row i is ``indices[indptr[i]:indptr[i + 1]]``, ascending, without repetitions and without i. Draws for a row are keyed
by its number, so parts ``first .. last - 1`` can be built independently and in any order.
"""

from math import log1p
from typing import Any

import numpy as np

from prism_mesa.arrays import Floats, Int32, Ints, Mask, UInt8, UInt64
from prism_mesa.kernels.compiling import inline_kernel, kernel
from prism_mesa.kernels.draws import mix, uniform
from prism_mesa.kernels.ordering import is_among

_MAX_INSERTION = 48


@kernel
def sort_unique(values: Int32, begin: int, end: int, without: int) -> int:
    """Sort ``values[begin:end]``, drop repetitions and the value `without`, and return the new end."""
    if end - begin > _MAX_INSERTION:
        values[begin:end].sort()
    else:
        for i in range(begin + 1, end):
            value, place = values[i], i
            while place > begin and values[place - 1] > value:
                values[place] = values[place - 1]
                place -= 1
            values[place] = value
    new_end = begin
    for i in range(begin, end):
        if values[i] != without and (new_end == begin or values[i] != values[new_end - 1]):
            values[new_end] = values[i]
            new_end += 1
    return new_end


@kernel
def find_slot(slots: Ints, key: np.int64) -> np.int64:
    """Return the slot of a key, or the free slot for a new key (open addressing)."""
    mask = len(slots) - 1
    slot = np.int64(mix(np.uint64(key), np.uint64(0)) & np.uint64(mask))
    while slots[slot, 1] > 0 and slots[slot, 0] != key:
        slot = (slot + 1) & mask
    return slot


@kernel
def number_keys(keys: Ints, slots: Ints, count: int, codes: Int32) -> tuple[Ints, int]:
    """Write the code of each key: distinct keys get 0, 1, 2, ... in order of appearance.

    Args:
        keys: Any integers.
        slots: Shape (a power of 2, 2): known keys and their codes + 1; free slots are 0.
        count: Number of known keys.
        codes: Receives the codes.

    Returns:
        `slots`, or a larger copy if it would be more than half full, and the new `count`.
    """
    for i in range(len(keys)):
        if 2 * count >= len(slots):
            before, slots = slots, np.zeros((4 * len(slots), 2), np.int64)
            for old_slot in range(len(before)):
                if before[old_slot, 1] > 0:
                    slot = find_slot(slots, before[old_slot, 0])
                    slots[slot, 0], slots[slot, 1] = before[old_slot, 0], before[old_slot, 1]
        slot = find_slot(slots, keys[i])
        if slots[slot, 1] == 0:
            count += 1
            slots[slot, 0], slots[slot, 1] = keys[i], count
        codes[i] = slots[slot, 1] - 1
    return slots, count


@kernel
def count_rows(src: Int32, dst: Int32, counts: Ints) -> None:
    """Add 1 to ``counts[dst + 1]`` for each edge, except for loops."""
    for edge in range(len(src)):
        if src[edge] != dst[edge]:
            counts[dst[edge] + 1] += 1


@kernel
def place_rows(src: Int32, dst: Int32, cursor: Ints, indices: Int32) -> None:
    """Write each `src` to the next position in the row of its `dst`, except for loops."""
    for edge in range(len(src)):
        row = dst[edge]
        if src[edge] != row:
            indices[cursor[row]] = src[edge]
            cursor[row] += 1


@kernel
def tidy_rows(indptr: Ints, indices: Int32) -> int:
    """Sort all rows, drop repetitions, close gaps, and return the number of remaining entries."""
    begin, new_end = int(indptr[0]), 0
    for row in range(len(indptr) - 1):
        end = int(indptr[row + 1])
        row_end = sort_unique(indices, begin, end, row)
        if new_end != begin:
            for i in range(begin, row_end):
                indices[new_end + i - begin] = indices[i]
        new_end += row_end - begin
        begin, indptr[row + 1] = end, new_end
    return new_end


@kernel
def draw_rows(
    first: int,
    last: int,
    key: np.uint64,
    cumulative: Floats,
    guide: Int32,
    attempts: int,
    existing_indptr: Ints,
    existing: Int32,
    indptr: Ints,
    indices: Int32,
    n_made: Int32,
) -> None:
    """Fill rows ``first`` .. ``last - 1`` with distinct numbers below n, each drawn with its own probability.

    The index of a draw counts the draws of a row; its agent is the row.

    Args:
        first: The first row to draw.
        last: The row after the last one.
        key: Key of the draws.
        cumulative: Cumulative probabilities, shape (n,), up to 1.
        guide: The first index with ``cumulative > b / n``, for b in 0 .. n - 1 (Chen and Asau 1974,
            doi:10.1080/05695557408974949).
        attempts: Maximum number of draws per missing entry, on average over a row.
        existing_indptr: Where the existing entries of each row begin in `existing`; never more than the row can hold.
        existing: Existing entries, ascending in each row.
        indptr: Starts of rows, which give their maximum lengths.
        indices: Receives the rows.
        n_made: Receives the number of entries of each row.
    """
    n = len(cumulative)
    start = mix(mix(key, np.uint64(0)), np.uint64(0))
    last_row = np.full(max(n, last), -1, np.int32)  # the last row that has this number or is this number
    for row in range(first, last):
        begin, end = indptr[row], indptr[row + 1]
        filled, n_draws, max_draws = begin, 0, attempts * (end - begin)
        last_row[row] = row
        for i in range(existing_indptr[row], existing_indptr[row + 1]):
            indices[filled] = existing[i]
            last_row[existing[i]] = row
            filled += 1
        while filled < end and n_draws < max_draws:
            for _ in range(end - filled):
                u = uniform(mix(mix(start, np.uint64(n_draws)), np.uint64(row)))
                number = guide[int(u * n)]
                while cumulative[number] <= u and number < n - 1:
                    number += 1
                if last_row[number] != row:
                    last_row[number] = row
                    indices[filled] = number
                    filled += 1
                n_draws += 1
        n_made[row] = sort_unique(indices, begin, filled, row) - begin


@kernel
def draw_block_rows(
    first: int, last: int, key: np.uint64, bounds: Ints, inside: float, outside: float, indptr: Ints, indices: Int32
) -> None:
    """Draw rows with one probability for numbers in the same block, and another for numbers in other blocks.

    The gaps between entries are geometric (Batagelj and Brandes 2005, doi:10.1103/PhysRevE.71.036113).

    Args:
        first: The first row to draw.
        last: The row after the last one.
        key: Key of the draws. The index counts draws in a row, and the agent is the row.
        bounds: Block b is ``bounds[b] .. bounds[b + 1] - 1``.
        inside: ``log(1 - p)`` for numbers in the same block.
        outside: ``log(1 - p)`` for numbers in other blocks.
        indptr: Starts of rows.
        indices: Receives the entries. If it is empty, ``indptr[row + 1]`` receives the number of entries instead.
    """
    start = mix(mix(key, np.uint64(0)), np.uint64(0))
    block = 0
    for row in range(first, last):
        while row >= bounds[block + 1]:
            block += 1
        n_draws, n_made, row_begin = 0, 0, indptr[row]
        for part in range(3):
            begin = 0 if part == 0 else bounds[block + part - 1]
            end = bounds[len(bounds) - 1] if part == 2 else bounds[block + part]
            log_miss = inside if part == 1 else outside
            while begin < end and log_miss < 0.0:
                u = uniform(mix(mix(start, np.uint64(n_draws)), np.uint64(row)))
                n_draws += 1
                gap = np.floor(log1p(-u) / log_miss)
                if gap >= end - begin:
                    break
                begin += int(gap)
                if begin != row:
                    if len(indices):
                        indices[row_begin + n_made] = begin
                    n_made += 1
                begin += 1
        if not len(indices):
            indptr[row + 1] = n_made


@kernel
def rewire(key: np.uint64, coin: np.uint64, share: float, out: Int32) -> None:
    """Rewire a share of a ring's edges: one end becomes a random number (Watts and Strogatz 1998, doi:10.1038/30918).

    Args:
        key: Key of the draws of new ends. The tick is the edge's position in its row, the index is the attempt, and the
            agent is the row.
        coin: Key of the draws that decide on rewiring. The index is the edge's position, and the agent is the row.
        share: The probability of rewiring.
        out: The other ends of edges, shape (n, edges per row).
    """
    n, width = out.shape
    degree = np.full(n, 2 * width, np.int32)
    start, toss = mix(key, np.uint64(0)), mix(mix(coin, np.uint64(0)), np.uint64(0))
    for place in range(width):
        for row in range(n):
            if uniform(mix(mix(toss, np.uint64(place)), np.uint64(row))) >= share or degree[row] >= n - 1:
                continue
            attempt, other, is_taken = 0, row, True
            while is_taken:
                u = uniform(mix(mix(mix(start, np.uint64(place)), np.uint64(attempt)), np.uint64(row)))
                other, attempt = int(u * n), attempt + 1
                is_taken = other == row
                for i in range(width):
                    is_taken |= out[row, i] == other or out[other, i] == row
            degree[out[row, place]] -= 1
            degree[other] += 1
            out[row, place] = other


@kernel
def attach(key: np.uint64, n: int, m: int, edge_end: Int32) -> None:
    """Let nodes m + 1 .. n - 1 each choose `m` distinct older nodes, in proportion to their edges so far.

    Edge e begins at ``e + 1`` for e < m, and ends at 0; later edges begin at ``m + e // m``. A random end of a random
    edge is a node drawn in proportion to its edges (Barabasi and Albert 1999, doi:10.1126/science.286.5439.509).

    Args:
        key: Key of the draws. The index counts the draws of a node, and the agent is the node.
        n: Number of nodes.
        m: Number of nodes that each new node chooses.
        edge_end: Receives the end of each edge, shape (m * (n - m),).
    """
    start = mix(mix(key, np.uint64(0)), np.uint64(0))
    last_chooser = np.zeros(n, np.int32)
    edge_end[:m] = 0
    edges = m
    for new in range(m + 1, n):
        n_chosen, n_draws = 0, 0
        while n_chosen < m:
            u = uniform(mix(mix(start, np.uint64(n_draws)), np.uint64(new)))
            n_draws += 1
            end = int(u * (2 * edges))
            edge = end >> 1
            number = int(edge_end[edge])
            if end & 1:
                number = edge + 1 if edge < m else m + edge // m
            if last_chooser[number] != new:
                last_chooser[number] = new
                edge_end[edges + n_chosen] = number
                n_chosen += 1
        edges += m


@kernel
def sum_rows(first: int, indptr: Ints, indices: Int32, source_row: Int32, values: Ints, total: Ints) -> None:
    """Add the values of each row's entries to `total`, shape (rows, k); row 0 of `total` is for row `first`.

    ``values[source_row[i]]`` are the values of entry i. An entry with source row -1 has no values.
    """
    for row in range(len(total)):
        for i in range(indptr[first + row], indptr[first + row + 1]):
            source = source_row[indices[i]]
            if source >= 0:
                for k in range(total.shape[1]):
                    total[row, k] += values[source, k]


@kernel
def mutual_pairs(indptr: Ints, indices: Int32, first: Int32, other: Int32) -> int:
    """Write all pairs whose members are in each other's rows, and return the number of pairs.

    `first` receives the lower number. Pairs are sorted by `first`, then by `other`. Both arrays need room for half of
    all entries.
    """
    cursor = indptr[:-1].copy()
    n_pairs = 0
    for row in range(len(indptr) - 1):
        for i in range(indptr[row], indptr[row + 1]):
            number = indices[i]
            if number < row:
                continue
            while cursor[number] < indptr[number + 1] and indices[cursor[number]] < row:  # rows ascend
                cursor[number] += 1
            if cursor[number] < indptr[number + 1] and indices[cursor[number]] == row:
                first[n_pairs], other[n_pairs] = row, number
                n_pairs += 1
    return n_pairs


@kernel
def choose_pairs(order: Ints, first: Int32, other: Int32, max_pairs: int, n: int) -> Mask:
    """Return a mask of chosen pairs. Pairs are chosen in `order`, each number in at most `max_pairs` pairs."""
    is_chosen, count = np.zeros(len(first), np.bool_), np.zeros(n, np.int64)
    for pair in order:
        a, b = first[pair], other[pair]
        if count[a] < max_pairs and count[b] < max_pairs:
            count[a] += 1
            count[b] += 1
            is_chosen[pair] = True
    return is_chosen


_LOWER = np.int64(0xFFFFFFFF)
_11 = np.uint64(11)


@inline_kernel
def _copy(source: Int32, begin: Any, end: Any, out: Int32, out_begin: Any) -> Any:
    """Copy ``source[begin:end]`` to ``out[out_begin:]``, and return the new end. A loop is fast for short slices."""
    for i in range(end - begin):
        out[out_begin + i] = source[begin + i]
    return out_begin + end - begin


@kernel
def change_rows(indptr: Ints, indices: Int32, added: Ints, removed: Ints, out_indptr: Ints, out: Int32) -> Any:
    """Write a copy of the rows with some entries added and some removed, and return the number of entries.

    `added` and `removed` are disjoint and contain ``row << 32 | entry`` in ascending order. Adding an existing entry or
    removing a missing one has no effect. `out` is as long as `indices` and `added` together. Adjacent rows without
    changes are copied at once.
    """
    n, row, position, n_written, a, r = len(indptr) - 1, np.int64(0), np.int64(0), np.int64(0), 0, 0
    out_indptr[0] = 0
    while a < len(added) or r < len(removed):
        is_addition = a < len(added) and (r == len(removed) or added[a] < removed[r])
        key = added[a] if is_addition else removed[r]
        changed_row, entry = key >> 32, np.int32(key & _LOWER)
        for i in range(row + 1, changed_row + 1):
            out_indptr[i] = indptr[i] - position + n_written
        row = changed_row
        low, high = max(position, indptr[row]), indptr[row + 1]
        end = high
        while low < high:
            middle = (low + high) >> 1
            if indices[middle] < entry:
                low = middle + 1
            else:
                high = middle
        n_written = _copy(indices, position, low, out, n_written)
        position = low
        is_present = position < end and indices[position] == entry
        if is_addition:
            a += 1
            if not is_present:
                out[n_written] = entry
                n_written += 1
        else:
            r += 1
            position += 1 if is_present else 0
    for i in range(row + 1, n + 1):
        out_indptr[i] = indptr[i] - position + n_written
    return _copy(indices, position, indptr[n], out, n_written)


@kernel
def select_rows(indptr: Ints, indices: Int32, is_present: Mask, out_indptr: Ints, out: Int32) -> Any:
    """Write the rows and entries of numbers that are present to `out`, and return the number of entries."""
    n_written = np.int64(0)
    out_indptr[0] = 0
    for row in range(len(indptr) - 1):
        if is_present[row]:
            for i in range(indptr[row], indptr[row + 1]):
                if is_present[indices[i]]:
                    out[n_written] = indices[i]
                    n_written += 1
        out_indptr[row + 1] = n_written
    return n_written


@kernel
def list_new_edges(indptr: Ints, indices: Int32, is_present: Mask, is_new: Mask, keys: Ints) -> Any:
    """Write the key ``row << 32 | entry`` of each edge between present numbers of which at least one is new.

    Keys ascend. Returns their number; if `keys` is empty, edges are only counted.
    """
    n_keys, is_writing = 0, len(keys) > 0
    for row in range(len(indptr) - 1):
        if is_present[row]:
            for i in range(indptr[row], indptr[row + 1]):
                entry = indices[i]
                if is_present[entry] and (is_new[row] or is_new[entry]):
                    if is_writing:
                        keys[n_keys] = np.int64(row) << 32 | np.int64(entry)
                    n_keys += 1
    return n_keys


@kernel
def are_in_rows(indptr: Ints, indices: Int32, row: Ints, entry: Ints, out: Mask) -> None:
    """Write whether each row contains the entry in the same place."""
    for i in range(len(out)):
        out[i] = is_among(indices, indptr[row[i]], indptr[row[i] + 1], entry[i])


@kernel
def draw_bits(keys: UInt64, limits: UInt64, post_key: UInt64, post: Int32, agent: Int32, event_bits: UInt8) -> None:
    """Write for each impression which of its draws are below their limits, with bit k for draw k.

    Draws are integers below 2**53. The index of a draw is the key of the post, and its agent is the reader. `post_key`
    has the keys of all posts.
    """
    for i in range(len(event_bits)):
        index, reader, bits = post_key[post[i]], np.uint64(agent[i]), 0
        for k in range(len(keys)):
            draw = mix(mix(keys[k], index), reader) >> _11
            bits |= (draw < limits[k]) << k
        event_bits[i] = bits
