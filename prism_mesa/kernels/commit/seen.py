"""The lists of roots that agents know, concatenated in one array."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import inline_kernel, lean_kernel
from prism_mesa.kernels.ordering import count_equal

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Bits = npt.NDArray[np.uint8]


class Lists(NamedTuple):
    """Agent i knows ``roots[start[i]:start[i + 1]]``, ascending; `roots` has space for more."""

    start: Int64
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
def mark_posts(root: Int32, shown_bits: Bits) -> None:
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
def remember(part: Part, lists: Lists, read_pairs: Pairs, extra_pairs: Pairs, shown_bits: Bits) -> int:
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
def _is_shown(shown_bits: Bits, root: Any) -> Any:
    place = np.uint64(root)
    return np.int64(shown_bits[place >> np.uint64(3)] >> (place & np.uint64(7)) & np.uint64(1))


@inline_kernel
def _merge(roots: Int32, first: Any, end: Any, new_roots: Int32, begin: Any, stop: Any, shown_bits: Bits) -> Any:
    """Merge the roots of ``new_roots[begin:stop]`` that can be shown into ``roots[first:end]``; return the new end."""
    n = _sort_shown(new_roots, begin, stop, shown_bits)
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
def _sort_shown(new_roots: Int32, begin: Any, stop: Any, shown_bits: Bits) -> Any:
    """Sort the roots of ``new_roots[begin:stop]`` that can be shown to the front, and return their number.

    Agents mostly read newer roots first, so the order is reversed before sorting.
    """
    low, high = begin, stop - 1
    if low < high and new_roots[low] > new_roots[high]:
        while low < high:
            new_roots[low], new_roots[high] = new_roots[high], new_roots[low]
            low, high = low + 1, high - 1
    n = 0
    for k in range(begin, stop):
        root, place = new_roots[k], begin + n
        if _is_shown(shown_bits, root):
            while place > begin and new_roots[place - 1] > root:
                new_roots[place] = new_roots[place - 1]
                place -= 1
            new_roots[place] = root
            n += 1
    return n
