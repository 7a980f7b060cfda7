"""Candidates of feeds as columns, for feeds of a user's own."""

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.feeds.extras import NOBODY
from prism_mesa.kernels.matching import match_pairs
from prism_mesa.social.own.feed import OwnFeed
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns, PostColumns
from prism_mesa.social.round.feeds.ranking import Int32, Scorer
from prism_mesa.social.state.population import Rows
from prism_mesa.social.state.posts import COUNTED

type Bools = npt.NDArray[np.bool_]


def scorer_of(platform: Platform, own: OwnFeed | None) -> Scorer | None:
    """Return what scores candidates by a user's feed in this round; None if there is none."""
    if own is None:
        return None

    def scores(readers: Int32, posts: Int32, inside: Bools) -> npt.NDArray[np.float64]:
        found, there = np.zeros(len(posts)), np.flatnonzero(posts != NOBODY)
        if len(there) < len(posts):
            readers, posts, inside = readers[there], posts[there], inside[there]
        candidates = CandidateColumns(platform, readers, posts, inside)
        found[there] = own.scores(AgentColumns(platform, readers), candidates, len(posts))
        return found

    return scores


class CandidateColumns(PostColumns):
    """Candidates before readers, with what only a feed reads of them.

    `age` is in rounds, `in_network` whether the reader follows the author; ``author_`` stands before attributes of the
    author.
    """

    def __init__(self, platform: Platform, readers: Rows, posts: Rows, inside: Bools) -> None:
        super().__init__(platform, readers, posts)
        self._inside = inside
        self._roots: Rows | None = None

    def take(self, rows: Rows) -> Self:
        """Return these of the rows."""
        return type(self)(self.platform, self.readers[rows], self.posts[rows], self._inside[rows])

    def column(self, name: str) -> Any:
        """Return a field; AttributeError if there is no such column."""
        platform = self.platform
        if name == "age":
            return platform.round - platform.posts.round[self.posts].astype(np.int64)
        if name == "in_network":
            return self._inside
        if name == "author_followers":
            return platform.network.n_followers[platform.posts.author[self.posts]]
        if name in COUNTED:
            if self._roots is None:
                self._roots = platform.posts.root[self.posts]
            return getattr(platform.posts, name)[self._roots]
        own, known = name.removeprefix("author_"), platform.attributes.known
        if own != name and own in known.agents:
            return AgentColumns(platform, platform.posts.author[self.posts]).column(own)
        return super().column(name)

    def _matches(self) -> npt.NDArray[np.int16]:
        population, posts = self.platform.population, self.platform.posts
        found = np.empty(len(self.posts), np.int16)
        match_pairs(
            np.asarray(self.readers, np.int32),
            np.asarray(self.posts, np.int32),
            population.interests,
            posts.text_id,
            posts.text_vectors,
            found,
        )
        return found
