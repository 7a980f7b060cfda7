"""Pairs of an agent and a root that it has read or written; feeds leave these roots out."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from prism_mesa.arrays import Int32, Rows, UInt8
from prism_mesa.kernels.commit.orders import order_by_agent
from prism_mesa.kernels.commit.seen import Lists, Pairs, Part, count_known, remember
from prism_mesa.snapshot import Plain, Restorable
from prism_mesa.social.state.chunks import map_in_threads, mapped_zeros

_MIN_LENGTH_RATIO: Final = 4
"""Minimum length of the long lists as a multiple of the length of the recent lists."""
NO_PAIRS: Final = Pairs(np.zeros(0, np.int32), np.zeros(0, np.int32))


class Exposure(Restorable):
    """The roots that each agent has read or written and that feeds can still show.

    To avoid rewriting long lists in each round, new roots can go to recent lists. These join the long lists when they
    have a quarter of the length (`update_lists`). `agent_roots` reads both kinds, and `lists` joins them.

    Attributes:
        start: Shape (n + 1,): the long list of agent i is ``roots[start[i]:start[i + 1]]``, ascending.
        roots: Ids of posts, int32, followed by spare space.
    """

    saved_fields = ("start", "roots")

    def __init__(self, n: int) -> None:
        self.start = np.zeros(n + 1, np.int64)
        self.roots = np.zeros(0, np.int32)
        self._recent: Exposure | None = None
        self._is_joined, self._shown_bits, self._threads = True, np.zeros(0, np.uint8), 1

    def __len__(self) -> int:
        self._join_lists()
        return int(self.start[-1])

    def snapshot(self) -> dict[str, Plain]:
        """Return the lists without spare space."""
        start, roots = self.lists
        return {"start": start, "roots": roots[: len(self)]}

    @property
    def is_used(self) -> bool:
        """Whether there are any agents."""
        return len(self.start) > 1

    @property
    def lists(self) -> Lists:
        """All roots that agents have read, for kernels."""
        self._join_lists()
        return Lists(self.start, self.roots)

    @property
    def long_and_recent(self) -> tuple[Lists, Lists]:
        """The long and the recent lists; the long lists may contain roots that feeds can no longer show."""
        recent = Exposure(len(self.start) - 1) if self._recent is None else self._recent
        return Lists(self.start, self.roots), Lists(recent.start, recent.roots)

    def grow(self, n_added: int) -> None:
        """Add `n_added` agents, if there are any agents."""
        self._join_lists()
        self._recent = None
        n_added *= self.is_used
        self.start = np.append(self.start, np.full(n_added, self.start[-1]))

    def add(self, agents: Rows, roots: Rows) -> None:
        """Add pairs of an agent and a root in any order; duplicates are allowed."""
        if not len(agents):
            return
        n = len(self)  # this may replace `roots`
        last = max(int(column.max(initial=0)) for column in (roots, self.roots[:n]))
        pairs = sort_pairs(agents, roots, len(self.start) - 1)
        self.update_lists([], pairs, np.full(last // 8 + 1, 255, np.uint8))

    def update_lists(
        self, read_pairs: Sequence[Pairs], extras: Pairs, shown_bits: UInt8, threads: int = 1, *, joined: bool = True
    ) -> None:
        """Add roots that were read, and drop roots that feeds can no longer show.

        Args:
            read_pairs: Agents and the roots that they have read, in parts. Each part begins after the last agent of the
                previous part. The roots of each agent are sorted in place.
            extras: Further pairs, by agent. Duplicates are allowed.
            shown_bits: A bit for each post: whether it is a root that feeds can still show.
            threads: Maximum number of threads that share the parts.
            joined: Whether new roots join the long lists now; otherwise only when there are many.
        """
        if joined:
            self._join_lists()
            self._rewrite(read_pairs, extras, shown_bits, threads)
            return
        n = len(self._shown_bits)
        if (shown_bits[:n] & ~self._shown_bits).any():  # a dropped root can be shown again
            self._join_lists()
        if self._recent is None:
            self._recent = Exposure(len(self.start) - 1)
        self._recent._rewrite(read_pairs, extras, shown_bits, threads)
        self._is_joined, self._shown_bits, self._threads = False, shown_bits, threads
        if _MIN_LENGTH_RATIO * len(self._recent) > self.start[-1]:
            self._join_lists()

    def _join_lists(self) -> None:
        """Move the recent lists into the long lists, and drop roots that feeds can no longer show."""
        if self._recent is None or self._is_joined:
            return
        start, roots = self._recent.start, self._recent.roots
        agents = np.repeat(np.arange(len(start) - 1, dtype=np.int32), np.diff(start))
        firsts = start[np.linspace(0, len(start) - 1, self._threads + 1).astype(np.int64)]
        parts = [Pairs(agents[a:b], roots[a:b]) for a, b in pairwise(firsts.tolist()) if a < b]
        self._rewrite(parts, NO_PAIRS, self._shown_bits, self._threads)
        start[:], self._is_joined = 0, True

    def _rewrite(self, read_pairs: Sequence[Pairs], extras: Pairs, shown_bits: UInt8, threads: int) -> None:
        read_pairs = read_pairs or [NO_PAIRS]
        lasts = [int(part.agents[-1]) + 1 for part in read_pairs[:-1]] + [len(self.start) - 1]
        cuts = [0, *np.searchsorted(extras.agents, lasts).tolist()]
        extra_parts = [Pairs(*(column[slice(*cut)] for column in extras)) for cut in pairwise(cuts)]
        added_counts = [len(a.agents) + len(b.agents) for a, b in zip(read_pairs, extra_parts, strict=True)]
        parts = self._make_room(lasts, added_counts)
        lists, list_end = Lists(self.start, self.roots), 0
        try:
            for part in reversed(parts):  # the last part moves first, because it moves farthest
                self.roots[part.begin + part.shift : part.end + part.shift] = self.roots[part.begin : part.end]
            jobs = list(zip(parts, read_pairs, extra_parts, strict=True))
            ends = map_in_threads(lambda job: remember(job[0], lists, *job[1:], shown_bits), jobs, threads)
            for part, end in zip(parts, ends, strict=True):
                gap = part.new_begin - list_end
                if gap:
                    self.roots[list_end : end - gap] = self.roots[part.new_begin : end]
                    self.start[part.first : part.last] -= gap
                list_end += end - part.new_begin
            self.start[-1] = list_end
        except BaseException:  # half-written lists would be read beyond their ends
            self.start, self.roots = np.zeros_like(self.start), NO_PAIRS.roots
            raise

    def _make_room(self, lasts: Sequence[int], added_counts: Sequence[int]) -> list[Part]:
        """Return parts of the agents, each up to one of `lasts`, with space for the `added_counts`."""
        parts, first, shift = list[Part](), 0, 0
        for last, n in zip(lasts, added_counts, strict=True):
            begin, end = int(self.start[first]), int(self.start[last])
            parts.append(Part(first, last, begin, end, begin + shift, shift + n))
            first, shift = last, shift + n
        used, old_roots = int(self.start[-1]), self.roots
        needed = used + shift
        if needed > len(old_roots):
            self.roots = mapped_zeros(2 * needed, np.int32)
            self.roots[:used] = old_roots[:used]
        return parts

    def agent_roots(self, agent: int) -> Int32:
        """Return the roots that an agent has read, ascending."""
        known_roots = self.roots[slice(*self.start[agent : agent + 2])] if self.is_used else self.roots
        if self._recent is None or self._is_joined:
            return known_roots
        is_shown = self._shown_bits[known_roots >> 3] >> (known_roots & 7) & 1 == 1
        # lists are not joined here, because other threads may be reading
        return np.sort(np.append(known_roots[is_shown], self._recent.agent_roots(agent)))

    def read_counts(self, agents: Rows, roots: Rows) -> Int32:
        """Return how often each pair of agent and root is in the lists."""
        counts = np.zeros(len(agents), np.int32)
        if self.is_used:
            count_known(agents.astype(np.int32), roots.astype(np.int32), self.lists, counts)
        return counts


NO_EXPOSURE: Final = Exposure(0)


def sort_pairs(agents: Rows, roots: Rows, n: int) -> Pairs:
    """Return pairs of an agent (below `n`) and a root, sorted by agent."""
    agents, roots = (np.ascontiguousarray(column, np.int32) for column in (agents, roots))
    order = order_by_agent(agents, n)
    return Pairs(agents.take(order), roots.take(order))
