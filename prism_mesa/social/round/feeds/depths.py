"""How far agents have read into each visible round, so that chronological feeds begin where their readers stopped."""

from itertools import pairwise
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.commit.seen import Lists
from prism_mesa.kernels.feeds.depths import NOTHING_PASSED, add_round, deepen, rank_by_depth, room_for_rounds
from prism_mesa.kernels.feeds.outbox import Outbox
from prism_mesa.kernels.feeds.room import Audience
from prism_mesa.social.round.feeds.in_rooms import in_room
from prism_mesa.social.state.chunks import in_threads
from prism_mesa.social.state.population import Population, Rows
from prism_mesa.social.state.posts import Posts

type Int32 = npt.NDArray[np.int32]


class Depths:
    """What of each visible round agents have passed: they know it, or it is never shown to them.

    It saves time and changes no feed: where nothing is noted, a feed looks at all that is visible. So no snapshot holds
    it, and a copy begins without it. An agent whose follows, mutes or blocks change has passed nothing again.
    """

    def __init__(self) -> None:
        self._begin(0, 0)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return one in which nothing is noted."""
        return type(self)()

    def _begin(self, n_agents: int, window: int) -> None:
        self._depth = np.full((n_agents, window), NOTHING_PASSED, np.uint16)
        self._rounds, self._opened = room_for_rounds(window, n_agents, 0), -1
        self._ranked: list[tuple[Int32, Int32]] = []

    def ranked_in(self, round_: int) -> bool:
        """Return whether feeds of a round were ranked by depth."""
        return self._opened == round_

    def forget(self, agents: Rows) -> None:
        """Let these agents have passed nothing."""
        self._depth[agents[agents < len(self._depth)]] = NOTHING_PASSED

    def rank(
        self,
        readers: Int32,
        most: Int32,
        audience: Audience,
        recent: Lists,
        outbox: Outbox,
        population: Population,
        posts: Posts,
        window: int,
        now: int,
        block: int,
        threads: int,
    ) -> None:
        """Write chronological feeds of agents; `most` says how many posts each is shown at most."""
        self._open(posts, len(population), window, now)
        self._ranked.append((readers, most))
        own, feeds = (now, self._depth, self._rounds), (population.feed, population.n_feed)

        def rank_block(first: int) -> None:
            part, ranked = slice(first, first + block), 0

            def rank_more(room: Any) -> bool:
                nonlocal ranked
                ranked = rank_by_depth(
                    readers[part], ranked, most[part], *own, audience, recent, outbox, posts.author, room, *feeds
                )
                return bool(ranked == len(readers[part]))

            in_room(rank_more, outbox)

        in_threads(rank_block, range(0, len(readers), block), threads)

    def _open(self, posts: Posts, n_agents: int, window: int, now: int) -> None:
        """Add the rounds that have become visible."""
        if self._depth.shape != (n_agents, window):
            self._begin(n_agents, window)
        if self.ranked_in(now):
            return
        visible = range(max(now - window + 1, 0), now + 1)
        ends = np.searchsorted(posts.round, np.arange(visible.start, now + 2, dtype=np.int32)).tolist()
        new = [round_ for round_ in visible if round_ > self._opened]
        for round_ in new:
            self._depth[:, round_ % window] = NOTHING_PASSED
        largest = max(last - first for first, last in pairwise(ends))
        if largest > self._rounds.item.shape[1]:
            self._rounds, new = room_for_rounds(window, n_agents, 2 * largest), [*visible]
        for round_ in new:
            first, last = ends[round_ - visible.start :][:2]
            add_round(posts.author[first:last], first, round_ % window, self._rounds)
        self._opened, self._ranked = now, []

    def note_read(self, population: Population, posts: Posts, now: int) -> None:
        """Note how far those have read whose feeds were ranked in this round."""
        feeds = population.feed, population.n_feed, population.n_read
        for readers, most in self._ranked if self.ranked_in(now) else ():  # a round before may have been broken off
            deepen(readers, most, now, posts.round, self._rounds, *feeds, self._depth)
        self._ranked = []
