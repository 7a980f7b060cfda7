"""Lists of the roots that agents know, one behind the other in one array."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import lean_kernel, part_of_kernels
from prism_mesa.kernels.ordering import n_among

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Bits = npt.NDArray[np.uint8]


class Lists(NamedTuple):
    """Agent i knows ``roots[start[i]:start[i + 1]]``, ascending; `roots` has space for more."""

    start: Int64
    roots: Int32


class Pairs(NamedTuple):
    """Agents, ascending, and a root for each."""

    agents: Int32
    roots: Int32


class Part(NamedTuple):
    """Agents ``first`` .. ``last - 1``, whose lists one thread rewrites.

    Attributes:
        begin, end: Where their lists begin and end.
        to: Start of the new lists.
        up: How far their lists were moved up, so that the new lists fit below.
    """

    first: int
    last: int
    begin: int
    end: int
    to: int
    up: int


@lean_kernel
def mark(root: Int32, shown: Bits) -> None:
    """Set the bits of some roots."""
    for post in root:
        shown[post >> 3] |= np.uint8(1 << (post & 7))


@lean_kernel
def count_known(agents: Int32, roots: Int32, lists: Lists, out: Int32) -> None:
    """Write how often each agent's list holds its root."""
    for i in range(len(out)):
        agent = agents[i]
        out[i] = n_among(lists.roots, lists.start[agent], lists.start[agent + 1], roots[i])


@lean_kernel
def remember(part: Part, lists: Lists, read: Pairs, beside: Pairs, shown: Bits) -> int:
    """Write the lists of a part with new roots, and without roots that can no longer be shown; return their end.

    The lists were moved up, so none is overwritten before it is read. New roots are sorted on the way.
    """
    start, roots = lists.start, lists.roots
    at, begin, i, j = part.to, part.begin, 0, 0
    for agent in range(part.first, part.last):
        end = start[agent + 1] if agent + 1 < part.last else part.end
        start[agent] = first = at
        for known in range(begin + part.up, end + part.up):
            root = roots[np.uint64(known)]
            roots[np.uint64(at)] = root
            at += _is_shown(shown, root)
        begin, own_i, own_j = end, i, j
        while i < len(read.agents) and read.agents[i] == agent:
            i += 1
        at = _merged(roots, first, at, read.roots, own_i, i, shown)
        while j < len(beside.agents) and beside.agents[j] == agent:
            j += 1
        at = _merged(roots, first, at, beside.roots, own_j, j, shown)
    return at


@part_of_kernels
def _is_shown(shown: Bits, root: Any) -> Any:
    place = np.uint64(root)
    return np.int64(shown[place >> np.uint64(3)] >> (place & np.uint64(7)) & np.uint64(1))


@part_of_kernels
def _merged(roots: Int32, first: Any, end: Any, new: Int32, begin: Any, behind: Any, shown: Bits) -> Any:
    """Merge ``new[begin:behind]``, if it can be shown, into the ascending ``roots[first:end]``; return the new end."""
    n = _ordered(new, begin, behind, shown)
    last, last_new = end - 1, begin + n - 1
    for to in range(end + n - 1, first - 1, -1):
        if last_new < begin:
            break
        if last >= first and roots[last] > new[last_new]:
            roots[to] = roots[last]
            last -= 1
        else:
            roots[to] = new[last_new]
            last_new -= 1
    return end + n


@part_of_kernels
def _ordered(new: Int32, begin: Any, behind: Any, shown: Bits) -> Any:
    """Sort those of ``new[begin:behind]`` that can be shown to the front, and return how many they are.

    Roots are mostly read from the newest on, so their order is reversed first.
    """
    low, high = begin, behind - 1
    if low < high and new[low] > new[high]:
        while low < high:
            new[low], new[high] = new[high], new[low]
            low, high = low + 1, high - 1
    n = 0
    for k in range(begin, behind):
        root, place = new[k], begin + n
        if _is_shown(shown, root):
            while place > begin and new[place - 1] > root:
                new[place] = new[place - 1]
                place -= 1
            new[place] = root
            n += 1
    return n
