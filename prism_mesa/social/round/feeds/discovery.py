"""What agents come upon beside those whom they follow: what is trending, and what a search finds."""

from typing import Any, Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.feeds.extras import NOBODY
from prism_mesa.kernels.feeds.outbox import Outbox
from prism_mesa.social.params import CandidateParams, FeedParams, SlotParams
from prism_mesa.social.state.population import Population
from prism_mesa.social.state.posts import Posts
from prism_mesa.streams import Streams

type Ids = npt.NDArray[np.integer[Any]]
type Int32 = npt.NDArray[np.int32]

_NEAREST: Final = 3
"""Topics, nearest to its interests, of which an agent searches for one in a round."""


class Discovered(NamedTuple):
    """Local numbers of roots (`Outbox`), in the order in which they are shown.

    Attributes:
        trending: Those with the highest velocity, the newer first.
        found: Shape (topics, posts): those nearest to each topic, the newer first, and `NOBODY` behind them.
        query: The topic that each agent searches for; -1: none.
    """

    trending: Int32
    found: Int32
    query: npt.NDArray[np.int16]

    def most(self, own: CandidateParams | SlotParams) -> Self:
        """Return the first ones, so many of each kind."""
        return self._replace(trending=self.trending[: own.trending], found=self.found[:, : own.search].copy())


def discovered(
    readers: Int32, outbox: Outbox, population: Population, posts: Posts, params: FeedParams, streams: Streams, now: int
) -> Discovered:
    """Return what some readers come upon in a round, as many posts as their feeds have candidates or slots for."""
    trends, finds = (max(getattr(params.candidates, key), getattr(params.slots, key)) for key in ("trending", "search"))
    query = np.zeros(0, np.int16)
    if not (trends or finds):
        return Discovered(np.zeros(0, np.int32), np.zeros((len(posts.topics.names), 0), np.int32), query)
    ids = np.arange(outbox.first, len(posts))
    roots = ids[posts.root[ids] == ids]
    if finds:
        query = np.full(len(population), -1, np.int16)
        query[readers] = _searched(readers, population, posts, streams, now)
    return Discovered(_trending(roots, posts, trends, outbox.first), _found(roots, posts, finds, outbox.first), query)


def _trending(roots: Ids, posts: Posts, most: int, first: int) -> Int32:
    if not most:
        return np.zeros(0, np.int32)
    moving = roots[posts.velocity[roots] > 0]
    best = moving[np.lexsort((moving, posts.velocity[moving]))[::-1][:most]]
    return np.asarray(best - first, np.int32)


def _found(roots: Ids, posts: Posts, most: int, first: int) -> Int32:
    topics = posts.topics.name_vectors.astype(np.int64)
    found = np.full((len(topics), min(most, len(roots))), NOBODY, np.int32)
    if not found.size:
        return found
    texts, which = np.unique(posts.text_id[roots], return_inverse=True)
    vectors = posts.text_vectors[texts].astype(np.int64)
    for row, axis in zip(found, topics, strict=True):
        nearness = (vectors @ axis)[which]
        near = np.flatnonzero(nearness > 0)
        key = nearness[near] << 32 | roots[near]
        best = np.sort(np.partition(key, -most)[-most:] if len(key) > most else key)[::-1]
        row[: len(best)] = (best & 0xFFFFFFFF) - first
    return found


def _searched(
    readers: Int32, population: Population, posts: Posts, streams: Streams, now: int
) -> npt.NDArray[np.int16]:
    """Return the topic that each reader searches for, of those near to its interests; -1 where none is."""
    if not posts.topics.names:
        return np.full(len(readers), -1, np.int16)
    nearest = posts.topics.nearest_names(population.interests[readers], _NEAREST)
    n_near = (nearest >= 0).sum(axis=1)  # they come first
    drawn = (streams.uniform("search", readers, round_=now) * n_near).astype(np.int64)
    return nearest[np.arange(len(readers)), drawn]
