"""What agents have read or written: pairs of an agent and a root, which feeds leave out."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.commit.orders import order_by_agent
from prism_mesa.kernels.commit.seen import Lists, Pairs, Part, count_known, remember
from prism_mesa.snapshot import Plain, Restorable
from prism_mesa.social.state.chunks import in_threads

type Rows = npt.NDArray[np.integer[Any]]
type Bits = npt.NDArray[np.uint8]

_SHORTER: Final = 4
"""The recent lists are at least so many times shorter than the long ones."""
NO_PAIRS: Final = Pairs(np.zeros(0, np.int32), np.zeros(0, np.int32))


class Exposure(Restorable):
    """The roots that each agent has read or written, as far as feeds can still show them.

    Long lists need not be written anew in each round: new roots can go to recent lists, which join the long ones when
    they are a quarter of them (`renew`). `of` reads both, and `lists` joins them.

    Attributes:
        start: Shape (n + 1,): the long list of agent i is ``roots[start[i]:start[i + 1]]``, ascending.
        roots: Ids of posts, int32, and space for more.
    """

    changes = ("start", "roots")

    def __init__(self, n: int) -> None:
        self.start = np.zeros(n + 1, np.int64)
        self.roots = np.zeros(0, np.int32)
        self._recent: Exposure | None = None
        self._is_joined, self._shown, self._threads = True, np.zeros(0, np.uint8), 1

    def __len__(self) -> int:
        self._join()
        return int(self.start[-1])

    def snapshot(self) -> dict[str, Plain]:
        """Return the lists, without the space for more."""
        start, roots = self.lists
        return {"start": start, "roots": roots[: len(self)]}

    @property
    def is_used(self) -> bool:
        """Whether it has any agents."""
        return len(self.start) > 1

    @property
    def lists(self) -> Lists:
        """All that agents have read, for kernels."""
        self._join()
        return Lists(self.start, self.roots)

    @property
    def long_and_recent(self) -> tuple[Lists, Lists]:
        """Both lists, not joined: the long ones may also hold roots that can no longer be shown."""
        recent = Exposure(len(self.start) - 1) if self._recent is None else self._recent
        return Lists(self.start, self.roots), Lists(recent.start, recent.roots)

    def grow(self, more: int) -> None:
        """Make room for `more` agents, if it has any."""
        self._join()
        self._recent = None
        more *= self.is_used
        self.start = np.append(self.start, np.full(more, self.start[-1]))

    def keep(self, shown: npt.NDArray[np.bool_]) -> None:
        """Forget the roots that are not marked in `shown`, which has an entry for each post."""
        self.renew([], NO_PAIRS, np.packbits(shown, bitorder="little"))

    def add(self, agents: Rows, roots: Rows) -> None:
        """Add pairs of an agent and a root, in any order; repetitions do not matter."""
        if not len(agents):
            return
        n = len(self)  # this may replace `roots`
        last = max(int(some.max(initial=0)) for some in (roots, self.roots[:n]))
        pairs = in_order(agents, roots, len(self.start) - 1)
        self.renew([], pairs, np.full(last // 8 + 1, 255, np.uint8))

    def renew(
        self, read: Sequence[Pairs], beside: Pairs, shown: Bits, threads: int = 1, *, joined: bool = True
    ) -> None:
        """Note what was read, and forget the roots that can no longer be shown.

        Args:
            read: Agents and the roots that they have read, in parts: each begins behind the last agent of the one
                before. The roots of each agent are sorted in place.
            beside: Further pairs, by agent. Repetitions do not matter.
            shown: A bit for each post: whether it is a root that can still be shown.
            threads: How many threads may share the parts.
            joined: Whether new roots join the long lists at once, and not only when there are many.
        """
        if joined:
            self._join()
            self._renew(read, beside, shown, threads)
            return
        n = len(self._shown)
        if (shown[:n] & ~self._shown).any():  # a forgotten root can be shown again
            self._join()
        if self._recent is None:
            self._recent = Exposure(len(self.start) - 1)
        self._recent._renew(read, beside, shown, threads)
        self._is_joined, self._shown, self._threads = False, shown, threads
        if _SHORTER * len(self._recent) > self.start[-1]:
            self._join()

    def _join(self) -> None:
        """Move the recent lists into the long ones, and forget the roots that can no longer be shown."""
        if self._recent is None or self._is_joined:
            return
        start, roots = self._recent.start, self._recent.roots
        agents = np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))
        firsts = start[np.linspace(0, len(start) - 1, self._threads + 1).astype(np.int64)]
        parts = [Pairs(agents[a:b], roots[a:b]) for a, b in pairwise(firsts.tolist()) if a < b]
        self._renew(parts, NO_PAIRS, self._shown, self._threads)
        start[:], self._is_joined = 0, True

    def _renew(self, read: Sequence[Pairs], beside: Pairs, shown: Bits, threads: int) -> None:
        read = read or [NO_PAIRS]
        lasts = [int(part.agents[-1]) + 1 for part in read[:-1]] + [len(self.start) - 1]
        cuts = [0, *np.searchsorted(beside.agents, lasts).tolist()]
        more = [Pairs(*(column[slice(*cut)] for column in beside)) for cut in pairwise(cuts)]
        parts = self._make_room(lasts, [len(a.agents) + len(b.agents) for a, b in zip(read, more, strict=True)])
        lists, to = Lists(self.start, self.roots), 0
        try:
            for part in reversed(parts):  # each moves up before the ones in front of it, which move less
                self.roots[part.begin + part.up : part.end + part.up] = self.roots[part.begin : part.end]
            ends = in_threads(lambda i: remember(parts[i], lists, read[i], more[i], shown), range(len(parts)), threads)
            for part, end in zip(parts, ends, strict=True):
                gap = part.to - to
                if gap:
                    self.roots[to : end - gap] = self.roots[part.to : end]
                    self.start[part.first : part.last] -= gap
                to += end - part.to
            self.start[-1] = to
        except BaseException:  # half-written lists would be read beyond their ends
            self.start, self.roots = np.zeros_like(self.start), NO_PAIRS.roots
            raise

    def _make_room(self, lasts: Sequence[int], more: Sequence[int]) -> list[Part]:
        """Return parts of the agents, up to each of `lasts`, with space for so many more entries."""
        parts, first, up = list[Part](), 0, 0
        for last, n in zip(lasts, more, strict=True):
            begin, end = int(self.start[first]), int(self.start[last])
            parts.append(Part(first, last, begin, end, begin + up, up + n))
            first, up = last, up + n
        used, before = int(self.start[-1]), self.roots
        needed = used + up
        if needed > len(before):
            self.roots = np.empty(needed + needed // 4, np.int32)
            self.roots[:used] = before[:used]
        return parts

    def of(self, agent: int) -> npt.NDArray[np.int32]:
        """Return the roots that an agent has read, ascending."""
        known = self.roots[slice(*self.start[agent : agent + 2])] if self.is_used else self.roots
        if self._recent is None or self._is_joined:
            return known
        known = known[self._shown[known >> 3] >> (known & 7) & 1 == 1]  # not joined: other threads may be reading
        return np.sort(np.append(known, self._recent.of(agent)))

    def times(self, agents: Rows, roots: Rows) -> npt.NDArray[np.int32]:
        """Return how often each agent has read its root, as far as each time was noted."""
        counts = np.zeros(len(agents), np.int32)
        if self.is_used:
            count_known(agents.astype(np.int32), roots.astype(np.int32), self.lists, counts)
        return counts


NOTHING_SHOWN: Final = Exposure(0)


def in_order(agents: Rows, roots: Rows, n: int) -> Pairs:
    """Return pairs of an agent below `n` and a root, by agent."""
    agents, roots = (np.ascontiguousarray(column, np.int32) for column in (agents, roots))
    order = order_by_agent(agents, n)
    return Pairs(agents.take(order), roots.take(order))
