"""Merging what has just been read into what was read before. Nothing here decides what is shown."""

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]


@kernel
def merged(start: Int64, roots: Int32, agents: Int32, new: Int32, shown: npt.NDArray[np.uint8]) -> tuple[Int64, Int32]:
    """Return the lists of all agents with new roots in them, without those that are not shown any more.

    Args:
        start: Agent i's list is ``roots[start[i]:start[i + 1]]``, ascending, each root once.
        roots: See `start`.
        agents: Who has read, in any order; `new` what, repetitions do not matter.
        new: See `agents`.
        shown: Whether a root can still be shown, a bit for each post.
    """
    n = len(start) - 1
    at = np.zeros(n + 1, np.int64)
    for i in range(len(agents)):
        at[agents[i] + 1] += 1
    for a in range(n):
        at[a + 1] += at[a]
    by_agent = np.empty(len(new), np.int32)
    for i in range(len(agents)):
        by_agent[at[agents[i]]] = new[i]
        at[agents[i]] += 1
    lists, out = np.zeros(n + 1, np.int64), np.empty(len(roots) + len(new), np.int32)
    size, first = 0, 0
    for a in range(n):
        begin = size
        for i in range(start[a], start[a + 1]):
            out[size] = roots[i]
            size += shown[roots[i] >> 3] >> (roots[i] & 7) & 1
        for i in range(at[a] - 1, first - 1, -1):  # feeds are mostly read from the newest post on
            root = by_agent[i]
            if not shown[root >> 3] >> (root & 7) & 1:
                continue
            place = size
            while place > begin and out[place - 1] > root:
                place -= 1
            if place > begin and out[place - 1] == root:
                continue
            for j in range(size, place, -1):
                out[j] = out[j - 1]
            out[place] = root
            size += 1
        first = at[a]
        lists[a + 1] = size
    return lists, out[:size].copy()
