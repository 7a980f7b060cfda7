"""What agents have read: pairs of an agent and a root. It decides nothing; feeds leave out what stands here."""

from typing import Any

import numpy as np
import numpy.typing as npt

type Rows = npt.NDArray[np.integer[Any]]

_ROOT_BITS = 32


class Seen:
    """Which agent has read a post of which root, for all roots that can still be shown.

    The pairs are one sorted array of whole numbers ``agent << 32 | root``: 8 bytes for each.
    """

    def __init__(self) -> None:
        self.pairs = np.zeros(0, np.int64)

    def add(self, agents: Rows, roots: Rows) -> None:
        """Note pairs of an agent and a root; repetitions do not matter."""
        new = np.sort(agents.astype(np.int64) << _ROOT_BITS | roots)
        pairs = np.sort(np.concatenate([self.pairs, new]), kind="stable")  # which merges what is in order
        self.pairs = pairs[np.append(pairs[1:] != pairs[:-1], True)] if len(pairs) else pairs

    def keep(self, shown: npt.NDArray[np.bool_]) -> None:
        """Let go of the roots that are not marked in `shown` (one entry per post): nobody can meet them again."""
        self.pairs = self.pairs[shown[self.pairs & ((1 << _ROOT_BITS) - 1)]]

    def of(self, agents: Rows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return what each of `agents` has read, as (place in `agents`, root)."""
        first = np.searchsorted(self.pairs, agents.astype(np.int64) << _ROOT_BITS)
        last = np.searchsorted(self.pairs, (agents.astype(np.int64) + 1) << _ROOT_BITS)
        at, owner = ragged(first, last - first)
        return owner, self.pairs[at] & ((1 << _ROOT_BITS) - 1)


def ragged(start: Rows, length: Rows) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the positions ``start[i] .. start[i] + length[i] - 1`` for all i in turn, and each one's i."""
    owner = np.repeat(np.arange(len(start)), length)
    return np.arange(len(owner)) + (start - (np.cumsum(length) - length)).take(owner), owner
