"""What agents have read or written: pairs of an agent and a root. Feeds leave these out."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.seen import insert, prune
from prism_mesa.snapshot import Plain, Restorable

type Rows = npt.NDArray[np.integer[Any]]


class Exposure(Restorable):
    """Which agent has read a post of which root, or has written it, for all roots that can still be shown.

    Attributes:
        start: Shape (n + 1,): agent i has read ``roots[start[i]:start[i + 1]]``, ascending.
        roots: Ids of posts, int32, and room for more.
    """

    changes = ("start", "roots")

    def __init__(self, n: int) -> None:
        self.start = np.zeros(n + 1, np.int64)
        self.roots = np.zeros(0, np.int32)

    def __len__(self) -> int:
        return int(self.start[-1])

    def snapshot(self) -> dict[str, Plain]:
        """Return what a run changes, without the room for more."""
        return {"start": self.start, "roots": self.roots[: len(self)]}

    def grow(self, more: int) -> None:
        """Make room for `more` agents."""
        self.start = np.append(self.start, np.full(more, self.start[-1]))

    def keep(self, shown: npt.NDArray[np.bool_]) -> None:
        """Let go of the roots that are not marked in `shown`, one entry per post.

        Nobody can meet them again, unless a script or a slow chart passes on a post that is in no feed any more.
        """
        prune(self.start, self.roots, np.packbits(shown, bitorder="little"))

    def add(self, agents: Rows, roots: Rows) -> None:
        """Note pairs of an agent and a root, in any order; repetitions do not matter."""
        needed = len(self) + len(roots)
        if needed > len(self.roots):  # one array that grows seldom: arrays of many sizes would leave gaps in memory
            before, self.roots = self.roots, np.zeros(needed + needed // 4, np.int32)
            self.roots[: len(before)] = before
        insert(self.start, self.roots, np.ascontiguousarray(agents, np.int32), np.ascontiguousarray(roots, np.int32))

    def of(self, agent: int) -> npt.NDArray[np.int32]:
        """Return the roots of which an agent has read a post, ascending."""
        return self.roots[self.start[agent] : self.start[agent + 1]]
