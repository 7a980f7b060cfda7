"""Keeping lists of what agents know, one behind the other in one array."""

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]


@kernel
def prune(start: Int64, roots: Int32, shown: npt.NDArray[np.uint8]) -> None:
    """Move up, in their place, what of the lists ``roots[start[i]:start[i + 1]]`` has its bit in `shown`."""
    size, first = np.int64(0), start[0]
    for a in range(len(start) - 1):
        last = start[a + 1]
        for i in range(first, last):
            root = roots[i]
            roots[size] = root
            size += np.int64(shown[root >> 3] >> (root & 7) & 1)
        first = last
        start[a + 1] = size


@kernel
def insert(start: Int64, roots: Int32, agents: Int32, new: Int32) -> None:
    """Put new roots into the ascending lists of agents, in their place; `roots` has room for them at its end."""
    n = len(start) - 1
    at = np.zeros(n + 1, np.int32)
    for i in range(len(agents)):
        at[agents[i] + 1] += 1
    for a in range(n):
        at[a + 1] += at[a]
    by_agent = np.empty(len(new), np.int32)
    for i in range(len(agents)):
        by_agent[at[agents[i]]] = new[i]
        at[agents[i]] += 1
    end = start[n]
    for a in range(n - 1, -1, -1):  # from the end on, where there is room
        first = at[a - 1] if a > 0 else 0
        begin, size = start[a] + first, end - start[a]
        end, start[a + 1] = start[a], start[a + 1] + at[a]
        if first > 0:
            for i in range(size - 1, -1, -1):
                roots[begin + i] = roots[start[a] + i]
        for i in range(first + 1, at[a]):  # feeds are mostly read from the newest post on: these fall, nearly
            root, place = by_agent[i], i
            while place > first and by_agent[place - 1] < root:
                by_agent[place] = by_agent[place - 1]
                place -= 1
            by_agent[place] = root
        old, place = begin + size - 1, begin + size + at[a] - first - 1
        for i in range(first, at[a]):
            root = by_agent[i]
            while old >= begin and roots[old] > root:
                roots[place] = roots[old]
                old -= 1
                place -= 1
            roots[place] = root
            place -= 1
