"""Keeping lists of what agents know, all in one array."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import lean_kernel, part_of_kernels
from prism_mesa.kernels.ordering import n_among

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Bits = npt.NDArray[np.uint8]


class Lists(NamedTuple):
    """What agents know.

    Attributes:
        start: Agent i knows ``roots[start[i]:start[i] + count[i]]``, ascending.
        count: See `start`.
        roots: The lists, in any order, each with room for more behind it.
    """

    start: Int64
    count: Int32
    roots: Int32


class Pairs(NamedTuple):
    """Agents, ascending, and roots that each is to know."""

    agents: Int32
    roots: Int32


@lean_kernel
def mark(root: Int32, shown: Bits) -> None:
    """Set the bits of some roots."""
    for one in root:
        shown[one >> 3] |= np.uint8(1 << (one & 7))


@lean_kernel
def count_known(agents: Int32, roots: Int32, lists: Lists, out: Int32) -> None:
    """Write how often each agent's list holds the root beside it."""
    for i in range(len(out)):
        agent = agents[i]
        begin = lists.start[agent]
        out[i] = n_among(lists.roots, begin, begin + lists.count[agent], roots[i])


@lean_kernel
def prune(first: int, last: int, lists: Lists, shown: Bits) -> None:
    """Let the lists of agents ``first`` .. ``last - 1`` go of what can no more be shown."""
    for agent in range(first, last):
        _prune(agent, lists, shown)


@lean_kernel
def copy_lists(lists: Lists, start: Int64, roots: Int32) -> None:
    """Write all lists into other `roots`, that of agent i from ``start[i]`` on."""
    for agent in range(len(lists.start)):
        begin, to = lists.start[agent], start[agent]
        for k in range(lists.count[agent]):
            roots[np.uint64(to + k)] = lists.roots[np.uint64(begin + k)]


@lean_kernel
def prune_and_count(new: Pairs, lists: Lists, room: Int32, shown: Bits) -> int:
    """Prune the lists of the agents of `new`; return how many places those need that will outgrow their room."""
    needed, i = np.int64(0), np.int64(0)
    while i < len(new.agents):
        agent = new.agents[i]
        _prune(agent, lists, shown)
        n = np.int64(lists.count[agent])
        while i < len(new.agents) and new.agents[i] == agent:
            n += _is_shown(shown, new.roots[i])
            i += 1
        needed += roomy(n) * (n > room[agent])
    return needed


@lean_kernel
def remember(new: Pairs, lists: Lists, room: Int32, shown: Bits, to: int) -> None:
    """Add what is new and can be shown to pruned lists; those that outgrow their room move, the first of them to `to`.

    Roots that are new are put in order on the way.
    """
    roots, i = lists.roots, np.int64(0)
    while i < len(new.agents):
        agent, first = new.agents[i], i
        while i < len(new.agents) and new.agents[i] == agent:
            i += 1
        more, begin, n = _ordered(new.roots, first, i, shown), lists.start[agent], np.int64(lists.count[agent])
        if n + more > room[agent]:
            for k in range(n):
                roots[np.uint64(to + k)] = roots[np.uint64(begin + k)]
            lists.start[agent] = begin = to
            room[agent] = roomy(n + more)
            to += roomy(n + more)
        _merge(roots, begin, begin + n, new.roots, first, more)
        lists.count[agent] = n + more


@part_of_kernels
def roomy(n: Any) -> Any:
    """Return how many places a list of `n` entries gets."""
    return n + (n >> 3)


@part_of_kernels
def _prune(agent: Any, lists: Lists, shown: Bits) -> None:
    begin = at = lists.start[agent]
    for k in range(begin, begin + lists.count[agent]):
        root = lists.roots[np.uint64(k)]
        lists.roots[np.uint64(at)] = root
        at += _is_shown(shown, root)
    lists.count[agent] = at - begin


@part_of_kernels
def _is_shown(shown: Bits, root: Any) -> Any:
    place = np.uint64(root)
    return np.int64(shown[place >> np.uint64(3)] >> (place & np.uint64(7)) & np.uint64(1))


@part_of_kernels
def _merge(roots: Int32, first: Any, end: Any, new: Int32, begin: Any, n: Any) -> None:
    """Put the ascending ``new[begin:begin + n]`` into the ascending ``roots[first:end]``, which has room behind it."""
    last, one = end - 1, begin + n - 1
    for to in range(end + n - 1, first - 1, -1):
        if one < begin:
            break
        if last >= first and roots[last] > new[one]:
            roots[to] = roots[last]
            last -= 1
        else:
            roots[to] = new[one]
            one -= 1


@part_of_kernels
def _ordered(new: Int32, begin: Any, behind: Any, shown: Bits) -> Any:
    """Let those of ``new[begin:behind]`` that can be shown stand first, ascending, and return how many they are.

    What is read from the newest post on is turned round before; so few are left to be moved.
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
