"""Candidates of feeds as columns, for feeds of a user's own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.feeds.candidates import NOBODY
from prism_mesa.kernels.matching import match_pairs
from prism_mesa.social.own.feed import OwnFeed
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.columns import AgentColumns, PostColumns

type Int32 = npt.NDArray[np.int32]


def scorer_of(platform: Platform, own: OwnFeed | None) -> Callable[[Int32, Int32], npt.NDArray[np.float64]] | None:
    """Return what scores candidates (readers, ids of posts) by a user's feed in this round; None if there is none."""
    if own is None:
        return None

    def scores(readers: Int32, posts: Int32) -> npt.NDArray[np.float64]:
        found, there = np.zeros(len(posts)), np.flatnonzero(posts != NOBODY)
        some, shown = (readers, posts) if len(there) == len(posts) else (readers[there], posts[there])
        found[there] = own.scores(AgentColumns(platform, some), CandidateColumns(platform, some, shown), len(shown))
        return found

    return scores


class CandidateColumns(PostColumns):
    """Candidates before readers, with what only a feed reads of them.

    `age` is in rounds, `in_network` whether the reader follows the author; ``author_`` stands before attributes of the
    author.
    """

    def column(self, name: str) -> Any:
        """Return a field; AttributeError if there is no such column."""
        platform = self.platform
        if name == "age":
            return platform.round - platform.posts.round[self.posts].astype(np.int64)
        if name == "in_network":
            return platform.network.holds(self.readers, platform.posts.author[self.posts])
        if name == "author_followers":
            return platform.network.n_followers[platform.posts.author[self.posts]]
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
