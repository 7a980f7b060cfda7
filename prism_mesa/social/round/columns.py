"""Columns of agents and their posts for guards, feeds and rules, gathered on demand."""

from collections.abc import Callable
from dataclasses import fields
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Int32, Mask, Rows
from prism_mesa.domain import ACTIONS, BIG_FIVE, POST_KINDS, Post
from prism_mesa.kernels.matching import match_pairs
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.feeds import Scorer
from prism_mesa.social.state.agent_fields import AGENT_FIELDS
from prism_mesa.social.state.feeds import UserFeed
from prism_mesa.social.state.population import NO_POST, Categories, Population
from prism_mesa.social.state.posts import POST_COUNTERS, to_relevance

_STORED_FIELDS: Final = ("ticks_in_state", "scripted")
_DERIVED_FIELDS: Final[dict[str, Callable[[Population, Rows], Any]]] = {
    "n_unread": lambda p, rows: p.n_feed[rows].astype(np.int64) - p.n_read[rows],
    "pending_action": lambda p, rows: Categories(p.pending_action[rows], ACTIONS),
}
_BAND_SIDES: Final = {"low_threshold": -1, "high_threshold": 1}
FIELDS: Final = frozenset(
    [f"agent.{name}" for name in ("state", *AGENT_FIELDS, *_STORED_FIELDS, *_DERIVED_FIELDS, *_BAND_SIDES, *BIG_FIVE)]
    + [f"post.{field.name}" for field in fields(Post)]
    + ["post.has_media"]
)
"""Fields of all agents and posts that guard expressions can read."""


class AgentColumns:
    """The agents in some rows; each row is an agent from `Platform.agent_objects`."""

    def __init__(self, platform: Platform, rows: Rows) -> None:
        self.platform, self.rows = platform, rows

    def take(self, rows: Rows) -> Self:
        """Return some of the rows."""
        return type(self)(self.platform, self.rows[rows])

    def row(self, i: int) -> Any:
        """Return the agent of row `i`."""
        return self.platform.agent_objects.agent(int(self.rows[i]))

    def column(self, name: str) -> Any:
        """Return a field; AttributeError if there is none."""
        population, rows = self.platform.population, self.rows
        if name == "row":
            return rows
        if name == "state":
            return Categories(population.state[rows], tuple(state.value for state in self.platform.states))
        if name in AGENT_FIELDS:
            return AGENT_FIELDS[name].to_column(getattr(population, name)[rows])
        if name in _STORED_FIELDS:
            return getattr(population, name)[rows]
        if name in _DERIVED_FIELDS:
            return _DERIVED_FIELDS[name](population, rows)
        if name in _BAND_SIDES:
            return population.engagement_threshold[rows] + _BAND_SIDES[name] * self.platform.half_band
        if name in BIG_FIVE:
            return population.traits[rows, BIG_FIVE.index(name)]
        schema = self.platform.attributes.schema
        if name in schema.agents:
            index, attribute = schema.agent_attribute(name)
            return attribute.column(population.attributes[rows, index])
        raise AttributeError(f"agents have no column {name!r}")


class PostColumns:
    """The current posts of some agents; each row is a `Post`, or None without a post.

    Attributes of authors have ``author_`` before their names.
    """

    def __init__(self, platform: Platform, readers: Rows, posts: Rows) -> None:
        self.platform, self.readers, self.posts = platform, readers, posts
        self._views: list[Post | None] | None = None

    def take(self, rows: Rows) -> Self:
        """Return some of the rows."""
        return type(self)(self.platform, self.readers[rows], self.posts[rows])

    def row(self, i: int) -> Post | None:
        """Return the post of row `i` as its reader sees it."""
        if self._views is None:  # creates all views at once
            self._views = [None] * len(self.posts)
            with_post = np.flatnonzero(self.posts != NO_POST)
            views = self.platform.views(self.readers[with_post], self.posts[with_post]) if len(with_post) else ()
            for index, view in zip(with_post.tolist(), views, strict=True):
                self._views[index] = view
        return self._views[i]

    def column(self, name: str) -> Any:
        """Return a field; AttributeError if a row has no post, or there is no such column."""
        table = self.platform.posts
        if (self.posts == NO_POST).any():
            raise AttributeError(f"no post from which to read {name!r}")
        if name == "relevance":
            return to_relevance(self._matches())
        if name == "utility":
            return self.platform.utilities(self.readers, self.posts, self._matches())
        if name == "post_id":
            return self.posts
        if name == "kind":
            return Categories(table.kind[self.posts], POST_KINDS)
        if name in POST_COUNTERS:
            return getattr(table, name)[table.root[self.posts]]
        if name in ("round", "author", "root"):
            return getattr(table, name)[self.posts]
        schema = self.platform.attributes.schema
        if name in schema.posts:
            index, attribute = schema.post_attribute(name)
            return attribute.column(table.attributes[self.posts, index])
        field = name.removeprefix("author_")
        if field != name and field in schema.agents:
            return AgentColumns(self.platform, table.author[self.posts]).column(field)
        raise AttributeError(f"posts have no column {name!r}")

    def _matches(self) -> npt.NDArray[np.int16]:
        """Return similarities; the population stores those of current posts."""
        population = self.platform.population
        if (population.current_post[self.readers] == self.posts).all():
            return population.current_match[self.readers]
        return self.platform.similarities(self.readers, self.posts)


class CandidateColumns(PostColumns):
    """Candidates of feeds, each with its reader.

    Besides the fields of posts there are `age` in rounds, `age_hours`, `in_network` (whether the reader follows the
    author), `author_followers`, and `expected_utility` (without the reader's mood, which no platform can know).
    """

    def __init__(self, platform: Platform, readers: Rows, posts: Rows, is_followed: Mask) -> None:
        super().__init__(platform, readers, posts)
        self._is_followed = is_followed

    def take(self, rows: Rows) -> Self:
        """Return some of the rows."""
        return type(self)(self.platform, self.readers[rows], self.posts[rows], self._is_followed[rows])

    def column(self, name: str) -> Any:
        """Return a field; AttributeError if there is none."""
        platform = self.platform
        if name == "age":
            return platform.round - platform.posts.round[self.posts].astype(np.int64)
        if name == "age_hours":
            return self.column("age") * (platform.params.clock.round_minutes / 60)
        if name == "in_network":
            return self._is_followed
        if name == "expected_utility":  # a mood of 0 for everybody
            tastes, tables = platform.tastes
            no_moods = tables._replace(mood=np.zeros_like(tables.mood))
            return platform.utilities(self.readers, self.posts, self._matches(), (tastes, no_moods))
        if name == "author_followers":
            return platform.network.n_followers[platform.posts.author[self.posts]]
        return super().column(name)

    def _matches(self) -> npt.NDArray[np.int16]:
        posts, matches = self.platform.posts, np.empty(len(self.posts), np.int16)
        readers, ids = np.asarray(self.readers, np.int32), np.asarray(self.posts, np.int32)
        match_pairs(readers, ids, self.platform.population.interests, posts.text_id, posts.text_vectors, matches)
        return matches


def make_scorer(platform: Platform, feed: UserFeed | None) -> Scorer | None:
    """Return a function that scores candidates by your own feed in this round; None without such a feed."""
    if feed is None:
        return None

    def score(readers: Int32, posts: Int32, is_followed: Mask) -> Floats:
        scores, rows_with_post = np.zeros(len(posts)), np.flatnonzero(posts != NO_POST)
        if len(rows_with_post) < len(posts):
            readers, posts, is_followed = readers[rows_with_post], posts[rows_with_post], is_followed[rows_with_post]
        candidates = CandidateColumns(platform, readers, posts, is_followed)
        scores[rows_with_post] = feed.scores(AgentColumns(platform, readers), candidates, len(posts))
        return scores

    return score
