"""What posts are to their readers: how they look, and what they are worth."""

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import Post
from prism_mesa.kernels.utility import Tastes, TasteTables, utilities
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.odds import Odds
from prism_mesa.social.state.population import NO_POST, Population, Rows
from prism_mesa.social.state.posts import Posts, matches, relevance_of
from prism_mesa.social.state.topics import UNIT_LENGTH
from prism_mesa.social.world.attributes import AttributeSource


class Reading:
    """A part of `Platform`: it changes nothing."""

    population: Population
    posts: Posts
    network: FollowNetwork
    attributes: AttributeSource
    odds: Odds
    met: Exposure
    round: int

    def post(self, post_id: int, reader: int) -> Post | None:
        """Return a post as the agent of row `reader` sees it; None for `NO_POST`."""
        if post_id == NO_POST:
            return None
        return self.views(np.array([reader]), np.array([post_id]))[0]

    def views(self, readers: Rows, posts: Rows) -> list[Post]:
        """Return the posts as the reader before each sees it."""
        authors = [self.population.names[author] for author in self.posts.author[posts].tolist()]
        matches = self.matches(readers, posts)
        worth = relevance_of(matches).tolist(), self.utilities(readers, posts, matches).tolist()
        return self.attributes.shown(self.posts.views(posts, authors, *worth), self.posts.attributes[posts])

    def utilities(self, readers: Rows, posts: Rows, matches: Rows) -> npt.NDArray[np.float64]:
        """Return what each post is worth to the reader before it; `matches` are their similarities."""
        if not self.odds.params.sensitivity:
            return np.asarray(relevance_of(matches))
        tastes, tables = self.tastes
        found = np.empty(len(posts), np.float64)
        who, what, near = (np.ascontiguousarray(column, np.int64) for column in (readers, posts, matches))
        utilities(who, what, near, UNIT_LENGTH, self.posts.table, tastes, tables, found)
        return found

    def log_odds(self, reader: int, post: int) -> dict[str, float]:
        """Return what a post has for a reader beside its relevance, in words -> log-odds; nothing without any."""
        own = self.posts, self.network, self.population.attributes, self.met
        return self.odds.in_words(max(self.round, 0), reader, post, *own)

    @property
    def tastes(self) -> tuple[Tastes, TasteTables]:
        """What utility is made of in this round."""
        tables = self.odds.tables(self.network, self.population.attributes, self.met)
        return self.odds.tastes(max(self.round, 0)), tables

    def matches(self, readers: Rows, posts: Rows) -> npt.NDArray[np.int16]:
        """Return the similarity of each reader's interests and the topics of the post before it, as whole numbers."""
        return matches(self.population.interests[readers], self.posts.vectors(posts))
