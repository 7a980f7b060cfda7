"""The lists of roots that agents know, concatenated in one array."""

from typing import Any, NamedTuple

import numpy as np

from prism_mesa.arrays import Int32, Ints, UInt8
from prism_mesa.kernels.compiling import inline_kernel, kernel_step, lean_kernel
from prism_mesa.kernels.lanes import LANES, place_by_rank
from prism_mesa.kernels.ordering import count_equal


class Lists(NamedTuple):
    """Agent i knows ``roots[start[i]:start[i + 1]]``, ascending; `roots` has space for more."""

    start: Ints
    roots: Int32


class Pairs(NamedTuple):
    """Pairs of an agent and a root, with agents ascending."""

    agents: Int32
    roots: Int32


class Part(NamedTuple):
    """Agents ``first`` .. ``last - 1``; one thread rewrites their lists.

    Attributes:
        begin, end: Where the old lists begin and end.
        new_begin: Where the new lists begin.
        shift: How far the old lists were moved up to make room for the new lists.
    """

    first: int
    last: int
    begin: int
    end: int
    new_begin: int
    shift: int


@lean_kernel
def mark_posts(root: Int32, shown_bits: UInt8) -> None:
    """Set the bits of some posts."""
    for post in root:
        shown_bits[post >> 3] |= np.uint8(1 << (post & 7))


@lean_kernel
def count_known(agents: Int32, roots: Int32, lists: Lists, out: Int32) -> None:
    """Write how often each agent's list contains the root."""
    for i in range(len(out)):
        agent = agents[i]
        out[i] = count_equal(lists.roots, lists.start[agent], lists.start[agent + 1], roots[i])


@lean_kernel
def remember(part: Part, lists: Lists, read_pairs: Pairs, extra_pairs: Pairs, shown_bits: UInt8) -> int:
    """Rewrite the lists of a part and return their end: add new roots, drop roots that can no longer be shown.

    The old lists were moved up, so no list is overwritten before it is read. The new roots are sorted in place.
    """
    start, roots = lists.start, lists.roots
    position, begin, i, j = part.new_begin, part.begin, 0, 0
    for agent in range(part.first, part.last):
        end = start[agent + 1] if agent + 1 < part.last else part.end
        start[agent] = first = position
        for old_position in range(begin + part.shift, end + part.shift):
            root = roots[np.uint64(old_position)]
            roots[np.uint64(position)] = root
            position += _is_shown(shown_bits, root)
        begin, read_begin, extra_begin = end, i, j
        while i < len(read_pairs.agents) and read_pairs.agents[i] == agent:
            i += 1
        position = _merge(roots, first, position, read_pairs.roots, read_begin, i, shown_bits)
        while j < len(extra_pairs.agents) and extra_pairs.agents[j] == agent:
            j += 1
        position = _merge(roots, first, position, extra_pairs.roots, extra_begin, j, shown_bits)
    return position


@inline_kernel
def _is_shown(shown_bits: UInt8, root: Any) -> Any:
    place = np.uint64(root)
    return np.int64(shown_bits[place >> np.uint64(3)] >> (place & np.uint64(7)) & np.uint64(1))


@inline_kernel
def _merge(roots: Int32, first: Any, end: Any, new_roots: Int32, begin: Any, stop: Any, shown_bits: UInt8) -> Any:
    """Merge the roots of ``new_roots[begin:stop]`` that can be shown into ``roots[first:end]``; return the new end."""
    n = _sort_shown(new_roots, begin, stop, shown_bits, roots, end)
    last, last_new = end - 1, begin + n - 1
    for target in range(end + n - 1, first - 1, -1):
        if last_new < begin:
            break
        if last >= first and roots[last] > new_roots[last_new]:
            roots[target] = roots[last]
            last -= 1
        else:
            roots[target] = new_roots[last_new]
            last_new -= 1
    return end + n


@inline_kernel
def _sort_shown(new_roots: Int32, begin: Any, stop: Any, shown_bits: UInt8, spare: Int32, first: Any) -> Any:
    """Sort the roots of ``new_roots[begin:stop]`` that can be shown to the front, and return their number.

    Agents mostly read newer roots first, so the order is reversed before sorting. `spare` has space from `first` on.
    """
    low, high = begin, stop - 1
    if low < high and new_roots[low] > new_roots[high]:
        while low < high:
            new_roots[low], new_roots[high] = new_roots[high], new_roots[low]
            low, high = low + 1, high - 1
    end, previous, is_sorted = begin, np.int32(0), True
    for k in range(begin, stop):
        root = new_roots[np.uint64(k)]
        new_roots[np.uint64(end)] = root
        if _is_shown(shown_bits, root):
            is_sorted &= previous <= root
            previous, end = root, end + 1
    if not is_sorted and end - begin < LANES:
        _insert(new_roots, begin, end)
    elif not is_sorted:
        _place(new_roots, begin, end, spare, first)
    return end - begin


@inline_kernel
def _insert(roots: Int32, begin: Any, end: Any) -> None:
    """Sort a few roots."""
    for k in range(begin + 1, end):
        root, place = roots[k], k
        while place > begin and roots[place - 1] > root:
            roots[place] = roots[place - 1]
            place -= 1
        roots[place] = root


@kernel_step
def _place(roots: Int32, begin: Any, end: Any, spare: Int32, first: Any) -> None:
    """Sort roots by counting the smaller ones. Equal roots leave gaps, which the first of them fills."""
    n = end - begin
    for k in range(n):
        spare[first + k] = -1
    for block in range(begin, end, LANES):
        place_by_rank(roots, np.int64(min(block, end - LANES)), np.int64(begin), np.int64(end), spare, np.int64(first))
    for k in range(n):
        roots[begin + k] = spare[first + k] if spare[first + k] >= 0 else roots[begin + k - 1]
