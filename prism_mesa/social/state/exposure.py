"""What agents have read or written: pairs of an agent and a root. Feeds leave these out."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.commit.orders import order_by_agent
from prism_mesa.kernels.commit.seen import (
    Lists,
    Pairs,
    copy_lists,
    count_known,
    prune,
    prune_and_count,
    remember,
)
from prism_mesa.snapshot import Plain, Restorable, restored
from prism_mesa.social.state.chunks import blocks, in_threads

type Rows = npt.NDArray[np.integer[Any]]

NO_PAIRS: Final = Pairs(np.zeros(0, np.int32), np.zeros(0, np.int32))


class Exposure(Restorable):
    """Which agent has read a post of which root, or has written it, for all roots that can still be shown.

    A round writes only the lists of those who have read something. Those of others may hold roots that can no more be
    shown: `untidy` has them, all else leaves them out.

    Attributes:
        room: Shape (n,): how many places the list of each agent has.
        end: Behind all lists: `untidy` has room for more from there on.
        shown: A bit for each post: whether it was a root that can be shown when lists were last renewed.
        gone: Likewise, whether it has been one, but is no more, and lists may hold it.
    """

    def __init__(self, n: int) -> None:
        self.untidy = Lists(np.zeros(n, np.int64), np.zeros(n, np.int32), np.zeros(0, np.int32))
        self.room, self.end = np.zeros(n, np.int32), 0
        self.shown = self.gone = np.zeros(0, np.uint8)

    def __len__(self) -> int:
        return int(self.lists.count.sum())

    def snapshot(self) -> dict[str, Plain]:
        """Return the lists one behind the other, that of agent i from ``start[i]`` to ``start[i + 1]``."""
        start = np.append(0, np.cumsum(self.lists.count, dtype=np.int64))
        return {"start": start, "roots": self._copied(start, int(start[-1]))}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Bring back what `snapshot` returned."""
        start, roots = restored(kept["start"]), restored(kept["roots"])
        self.room, self.end = np.diff(start).astype(np.int32), len(roots)
        self.untidy = Lists(start[:-1], self.room.copy(), roots)
        self.shown = np.full(int(roots.max(initial=0)) // 8 + 1, 255, np.uint8)
        self.gone = np.zeros_like(self.shown)

    @property
    def is_used(self) -> bool:
        """Whether it is of any agents."""
        return len(self.room) > 0

    @property
    def lists(self) -> Lists:
        """All that agents have read, for kernels."""
        if self.gone.any():
            self._prune(1)
        return self.untidy

    def grow(self, more: int) -> None:
        """Make room for `more` agents; if there are none it is not in use, and none come."""
        more *= self.is_used
        start, count, roots = self.untidy
        self.untidy = Lists(
            np.append(start, np.zeros(more, np.int64)), np.append(count, np.zeros(more, np.int32)), roots
        )
        self.room = np.append(self.room, np.zeros(more, np.int32))

    def keep(self, shown: npt.NDArray[np.bool_]) -> None:
        """Let go of the roots that are not marked in `shown`, one entry per post."""
        self.renew([], NO_PAIRS, np.packbits(shown, bitorder="little"))

    def add(self, agents: Rows, roots: Rows) -> None:
        """Note pairs of an agent and a root, in any order; repetitions do not matter."""
        n = max(len(self.shown), int(roots.max(initial=0)) // 8 + 1)
        self.renew([], in_order(agents, roots, len(self.room)), np.full(n, 255, np.uint8))

    def renew(self, read: Sequence[Pairs], beside: Pairs, shown: npt.NDArray[np.uint8], threads: int = 1) -> None:
        """Note what was read, and let go of the roots that can no more be shown.

        Nobody can meet these again, unless a script or a slow chart passes on a post that is in no feed any more: then
        it is as if nobody had read it.

        Args:
            read: Agents, and what they have read, in parts: each begins behind the last agent of the one before. The
                roots of each agent are put in order here.
            beside: What is noted too, likewise. Repetitions do not matter.
            shown: A bit for each post: whether it is a root that can still be shown. It is kept, and not copied.
            threads: How many may share the parts.
        """
        n = len(self.shown)
        if (self.gone & shown[:n]).any():
            self._prune(threads)
        gone = np.zeros_like(shown)
        gone[:n] = self.gone | self.shown & ~shown[:n]
        self.shown, self.gone = shown, gone
        for parts in (read, [beside]):
            self._note(parts, threads)

    def _note(self, parts: Sequence[Pairs], threads: int) -> None:
        def needed() -> list[int]:
            return in_threads(lambda new: prune_and_count(new, self.untidy, self.room, self.shown), parts, threads)

        while self.end + sum(more := needed()) > len(self.untidy.roots):
            self._lay_out(sum(more), threads)
        begin = self.end + np.cumsum([0, *more])
        self.end = int(begin[-1])  # first: whatever fails below, no list is written over
        in_threads(
            lambda i: remember(parts[i], self.untidy, self.room, self.shown, int(begin[i])), range(len(parts)), threads
        )

    def _prune(self, threads: int) -> None:
        """Let all lists go of what could no more be shown when they were last renewed."""
        cuts = list(blocks(len(self.room)))
        in_threads(lambda cut: prune(cut.start, cut.stop, self.untidy, self.shown), cuts, threads)
        self.gone = np.zeros_like(self.gone)

    def _lay_out(self, needed: int, threads: int) -> None:
        """Write all lists anew, with room for `needed` entries, and some more, behind them."""
        self._prune(threads)
        room = self.untidy.count + (self.untidy.count >> 3)  # as `roomy` has it
        behind = np.cumsum(room, dtype=np.int64)
        end = int(behind[-1])
        roots = self._copied(behind - room, end + needed + (end + needed) // 4)
        self.untidy, self.room, self.end = Lists(behind - room, self.untidy.count, roots), room, end

    def _copied(self, start: npt.NDArray[np.int64], n: int) -> npt.NDArray[np.int32]:
        roots = np.empty(n, np.int32)
        copy_lists(self.untidy, start, roots)
        return roots

    def of(self, agent: int) -> npt.NDArray[np.int32]:
        """Return the roots of which an agent has read a post, ascending."""
        start, count, roots = self.lists
        return roots[start[agent] :][: count[agent]] if self.is_used else roots

    def times(self, agents: Rows, roots: Rows) -> npt.NDArray[np.int32]:
        """Return how often each agent has read the root beside it, as far as each time was noted."""
        found = np.zeros(len(agents), np.int32)
        if self.is_used:
            count_known(agents.astype(np.int32), roots.astype(np.int32), self.lists, found)
        return found


NOTHING_SHOWN: Final = Exposure(0)


def in_order(agents: Rows, roots: Rows, n: int) -> Pairs:
    """Return pairs of an agent below `n` and a root by agent."""
    agents, roots = (np.ascontiguousarray(column, np.int32) for column in (agents, roots))
    order = order_by_agent(agents, n)
    return Pairs(agents.take(order), roots.take(order))
