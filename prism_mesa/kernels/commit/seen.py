"""Keeping lists of what agents know, one behind the other in one array."""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import lean_kernel, part_of_kernels

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Bits = npt.NDArray[np.uint8]


class Lists(NamedTuple):
    """What agents know.

    Attributes:
        start: Agent i knows ``roots[start[i]:start[i + 1]]``, ascending. In place, it becomes the same of `out`.
        roots: The lists as they are.
        out: Where the new ones are written.
    """

    start: Int64
    roots: Int32
    out: Int32


class Pairs(NamedTuple):
    """Agents, ascending, and roots that each is to know."""

    agents: Int32
    roots: Int32


class Part(NamedTuple):
    """Agents whose lists are made anew by one thread.

    Attributes:
        first: The first of them.
        last: The one behind the last.
        begin: Where their lists begin.
        end: Where their lists end.
        to: Where the new lists begin.
    """

    first: int
    last: int
    begin: int
    end: int
    to: int


@lean_kernel
def mark(root: Int32, shown: Bits) -> None:
    """Set the bits of some roots."""
    for one in root:
        shown[one >> 3] |= np.uint8(1 << (one & 7))


@lean_kernel
def remember(part: Part, lists: Lists, read: Pairs, beside: Pairs, shown: Bits) -> int:
    """Write the lists of a part with what is new, without what can no more be shown, and return where they end.

    What an agent has `read` is put in from the last on: feeds are mostly read from the newest post on, so few move.
    """
    start, roots, out = lists.start, lists.roots, lists.out
    at, begin, i, j = part.to, part.begin, 0, 0
    for agent in range(part.first, part.last):
        end = start[agent + 1] if agent + 1 < part.last else part.end
        start[agent] = first = at
        for known in range(begin, end):
            out[at] = roots[known]
            at += _is_shown(shown, roots[known])
        begin, own = end, i
        while i < len(read.agents) and read.agents[i] == agent:
            i += 1
        for back in range(i - 1, own - 1, -1):
            at = _inserted(out, first, at, read.roots[back], shown)
        while j < len(beside.agents) and beside.agents[j] == agent:
            at = _inserted(out, first, at, beside.roots[j], shown)
            j += 1
    return at


@part_of_kernels
def _is_shown(shown: Bits, root: Any) -> Any:
    return np.int64(shown[root >> 3] >> (root & 7) & 1)


@part_of_kernels
def _inserted(out: Int32, first: Any, at: Any, root: Any, shown: Bits) -> Any:
    """Put a root, if it can be shown, into the ascending ``out[first:at]``, and return where that ends then."""
    if _is_shown(shown, root):
        place = at
        while place > first and out[place - 1] > root:
            out[place] = out[place - 1]
            place -= 1
        out[place] = root
        at += 1
    return at


@lean_kernel
def close_gap(start: Int64, roots: Int32, part: Part, end: int, to: int) -> None:
    """Move the new lists of a part, which end at `end`, down to `to`."""
    gap = part.to - to
    for i in range(to, end - gap):
        roots[i] = roots[i + gap]
    for agent in range(part.first, part.last):
        start[agent] -= gap
