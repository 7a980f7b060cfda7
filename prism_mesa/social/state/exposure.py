"""What agents have read or written: pairs of an agent and a root. Feeds leave these out."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.seen import Lists, Pairs, Part, Read, chain, close_gap, remember
from prism_mesa.snapshot import Plain, Restorable
from prism_mesa.social.state.chunks import in_threads

type Rows = npt.NDArray[np.integer[Any]]
type Int32 = npt.NDArray[np.int32]

PADDING: Final = 16
"""Entries behind the lists that may be read, whatever they hold."""


_NOBODY: Final[Int32] = np.zeros(0, np.int32)


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
        self._spare = np.zeros(0, np.int32)  # lists are written from one array into the other, and back
        self._last = np.zeros(0, np.int32)

    def __len__(self) -> int:
        return int(self.start[-1])

    def snapshot(self) -> dict[str, Plain]:
        """Return what a run changes, without the room for more."""
        return {"start": self.start, "roots": self.roots[: len(self)]}

    def grow(self, more: int) -> None:
        """Make room for `more` agents."""
        self.start = np.append(self.start, np.full(more, self.start[-1]))

    def keep(self, shown: npt.NDArray[np.bool_]) -> None:
        """Let go of the roots that are not marked in `shown`, one entry per post."""
        self.renew([], _NOBODY, _NOBODY, _NOBODY, np.packbits(shown, bitorder="little"))

    def add(self, agents: Rows, roots: Rows) -> None:
        """Note pairs of an agent and a root, in any order; repetitions do not matter."""
        last = max(int(some.max(initial=0)) for some in (roots, self.roots[: len(self)]))
        self.renew([], _NOBODY, agents, roots, np.full(last // 8 + 1, 255, np.uint8))

    def renew(
        self,
        read: Sequence[tuple[Int32, Int32]],
        root: Int32,
        agents: Rows,
        roots: Rows,
        shown: npt.NDArray[np.uint8],
        threads: int = 1,
    ) -> None:
        """Note what was read, and let go of the roots that can no more be shown.

        Nobody can meet these again, unless a script or a slow chart passes on a post that is in no feed any more.

        Args:
            read: Agents, and posts that they have read, in parts of which each begins behind the last agent of the one
                before; agents ascend.
            root: The roots of all posts.
            agents: With `roots`: pairs that are noted too, in any order. Repetitions do not matter.
            roots: Of the pairs.
            shown: A bit for each post: whether it is a root that can still be shown.
            threads: How many may share the parts.
        """
        beside = self._chained(agents, roots)
        read = read or [(_NOBODY, _NOBODY)]
        parts = self._parts(read, agents)
        self._make_room(len(self) + len(agents) + sum(len(part[0]) for part in read))
        lists = Lists(self.start, self.roots, self._spare)

        def renewed(i: int) -> int:
            return remember(parts[i], lists, Read(*read[i], root), beside, shown)

        ends = in_threads(renewed, range(len(parts)), threads)
        self.roots, self._spare, to = self._spare, self.roots, 0
        for part, end in zip(parts, ends, strict=True):
            if part.to > to:
                close_gap(self.start, self.roots, part, end, to)
            to += end - part.to
        self.start[-1] = to

    def _chained(self, agents: Rows, roots: Rows) -> Pairs:
        if len(self._last) < len(self.start):
            self._last = np.full(len(self.start), -1, np.int32)
        pairs = Pairs(np.ascontiguousarray(roots, np.int32), self._last, np.empty(len(agents), np.int32))
        chain(np.ascontiguousarray(agents, np.int32), pairs)
        return pairs

    def _parts(self, read: Sequence[tuple[Int32, Int32]], beside: Rows) -> list[Part]:
        """Return the agents of each part; each one's new lists have room for all that may come."""
        lasts = [int(agents[-1]) + 1 for agents, _ in read[:-1]] + [len(self.start) - 1]
        more = [len(beside)] if len(read) == 1 else np.bincount(np.searchsorted(lasts, beside, "right")).tolist()
        parts, first, to = list[Part](), 0, 0
        for (agents, _), last, own in zip(read, lasts, more, strict=False):
            begin, end = int(self.start[first]), int(self.start[last])
            parts.append(Part(first, last, begin, end, to))
            first, to = last, to + end - begin + len(agents) + own
        return parts

    def _make_room(self, needed: int) -> None:
        if needed + PADDING > len(self._spare):
            self._spare = _NOBODY  # first: else there are three for a while
            self._spare = np.empty(needed + needed // 4 + PADDING, np.int32)

    def of(self, agent: int) -> npt.NDArray[np.int32]:
        """Return the roots of which an agent has read a post, ascending."""
        return self.roots[self.start[agent] : self.start[agent + 1]]
