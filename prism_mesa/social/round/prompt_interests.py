"""Which interests a question tells of an agent, and how near a post is to them.

What an LLM reads of an agent is a few names of interests (its own, or those of its kind), not the numbers behind
them; how near a post is to the nearest of these names says more about the LLM's answer than the relevance, which is
what the agent itself goes by.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.reasoner import Question
from prism_mesa.social.state.population import NO_POST, Population, Rows
from prism_mesa.social.state.posts import Posts
from prism_mesa.social.state.topics import UNIT, Topics
from prism_mesa.social.world.archetypes import Archetypes

type Names = npt.NDArray[np.int16]

_BLOCK: Final = 1 << 16
"""Agents whose kind is found at a time."""


class PromptInterests:
    """The interests that are told of agents, as places in `Topics.names`; found when first needed."""

    def __init__(self, population: Population, posts: Posts, topics: Topics, archetypes: Archetypes | None) -> None:
        self._population, self._posts, self._topics, self._archetypes = population, posts, topics, archetypes
        self._names: Names = np.zeros((0, 1), np.int16)
        self._interests = population.interests[:0]
        self._traits = population.traits[:0]

    def matches(self, rows: Rows, posts: Rows) -> npt.NDArray[np.float64]:
        """Return the cosine of each agent's post and the nearest of its told interests; 0 where one is missing."""
        self._refresh(rows)
        return self._cosines(self._names[rows], posts)

    def match(self, question: Question) -> float:
        """Return the same for a question: by the words in it, whoever put them there."""
        if question.post is None or not 0 <= question.post.post_id < len(self._posts):
            return 0.0
        place = {name: i for i, name in enumerate(self._topics.names)}
        names = [place[word] for word in question.persona.interests if word in place]
        return float(self._cosines(np.array([names], np.int16).reshape(1, -1), np.array([question.post.post_id]))[0])

    def _cosines(self, names: Names, posts: Rows) -> npt.NDArray[np.float64]:
        cosines, there = np.zeros(len(posts)), np.flatnonzero((posts != NO_POST) & (names >= 0).any(axis=1))
        vectors, names = self._posts.vectors(posts[there]).astype(np.int32), names[there]
        products = np.einsum("nkd,nd->nk", self._topics.name_vectors[names].astype(np.int32), vectors)
        cosines[there] = np.where(names >= 0, products, -(UNIT**2)).max(axis=1, initial=-(UNIT**2)) / float(UNIT**2)
        return cosines

    def _refresh(self, rows: Rows) -> None:
        """Find the names of those that are new, or whose interests or, where kinds are told, traits have changed."""
        people, by_kind = self._population, self._archetypes is not None
        known = len(self._names)
        if known < len(people):
            new = np.arange(known, len(people))
            names = self._found(new)
            self._names = np.concatenate([self._names, names]) if known else names
            self._interests = np.concatenate([self._interests, people.interests[new]])
            self._traits = np.concatenate([self._traits, people.traits[new]]) if by_kind else self._traits
        has_changed = (self._interests[rows] != people.interests[rows]).any(axis=1)
        if by_kind:
            has_changed |= (self._traits[rows] != people.traits[rows]).any(axis=1)
        changed = rows[has_changed]
        if len(changed):
            self._names[changed] = self._found(changed)
            self._interests[changed] = people.interests[changed]
            if by_kind:
                self._traits[changed] = people.traits[changed]

    def _found(self, rows: Rows) -> Names:
        topics, people, archetypes = self._topics, self._population, self._archetypes
        if archetypes is None:
            return topics.nearest_names(people.interests[rows])
        blocks = [rows[first : first + _BLOCK] for first in range(0, len(rows), _BLOCK)]
        kinds = np.concatenate([archetypes.of(people, block) for block in blocks])
        return np.asarray(_places(archetypes.interests, topics.names)[kinds])


def _places(told: list[tuple[str, ...]], names: list[str]) -> Names:
    """Return the places of words among `names`, -1 where there are no more; one row for each of `told`."""
    place = {name: i for i, name in enumerate(names)}
    most = max(map(len, told), default=0)
    padded = [[place[word] for word in words] + [-1] * (most - len(words)) for words in told]
    return np.array(padded, np.int16).reshape(len(told), most)
