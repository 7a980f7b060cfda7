"""What agents have read or written: pairs of an agent and a root. It decides nothing; feeds leave this out."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.seen import merged

type Rows = npt.NDArray[np.integer[Any]]

_NOTHING = np.zeros(0, np.int32)


class Seen:
    """Which agent has read a post of which root, or has written it, for all roots that can still be shown.

    Attributes:
        start: Shape (n + 1,): agent i has read ``roots[start[i]:start[i + 1]]``, ascending.
        roots: Ids of posts, int32.
    """

    def __init__(self, n: int) -> None:
        self.start = np.zeros(n + 1, np.int64)
        self.roots = _NOTHING

    def grow(self, more: int) -> None:
        """Make room for `more` agents."""
        self.start = np.append(self.start, np.full(more, self.start[-1]))

    def update(self, agents: Rows, roots: Rows, shown: npt.NDArray[np.bool_]) -> None:
        """Note pairs of an agent and a root (repetitions do not matter), and let go of the roots that are not in `shown`.

        `shown` has one entry per post: who is not in it, nobody can meet again.
        """
        new = np.ascontiguousarray(agents, np.int32), np.ascontiguousarray(roots, np.int32)
        self.start, self.roots = merged(self.start, self.roots, *new, np.packbits(shown, bitorder="little"))

    def of(self, agent: int) -> npt.NDArray[np.int32]:
        """Return the roots of which an agent has read a post, ascending."""
        return self.roots[self.start[agent] : self.start[agent + 1]]


def ragged(start: Rows, length: Rows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the positions ``start[i] .. start[i] + length[i] - 1`` for all i in turn, and each one's i."""
    owner = np.repeat(np.arange(len(start)), length)
    return np.arange(len(owner)) + (start - (np.cumsum(length) - length)).take(owner), owner
