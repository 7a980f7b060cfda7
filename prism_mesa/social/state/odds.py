"""The parts of utility that are log-odds: their draws and tables."""

from functools import cache, lru_cache
from math import inf
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Rows, UInt64
from prism_mesa.kernels.draws import mix
from prism_mesa.kernels.utility import (
    MOOD_BITS,
    MOOD_SHIFT,
    NO_MARKS,
    SOFT_STEPS,
    Marks,
    Tastes,
    TasteTables,
    added_odds,
    attribute_odds,
    post_mood_key,
    root_appeal,
    shown_likes_odds,
    softplus,
)
from prism_mesa.llm.params import value_text
from prism_mesa.social.params import HomophilyParams, UtilityParams
from prism_mesa.social.state.attributes import NO_ATTRIBUTES, Attributes
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.posts import RESHARE, Posts
from prism_mesa.streams import Streams

_MAX_STEPS: Final = 1 << 16
"""Age in rounds after which a post no longer loses log-odds, and number of likes above which it gains no more."""
_MAX_DIFFERENCE: Final = 20
"""Difference in log-odds above which the weaker of two reasons has no effect."""


class Homophily:
    """The differences between agents, and how much these reduce engagement and following."""

    def __init__(self, params: HomophilyParams | None = None, declared: Attributes = NO_ATTRIBUTES) -> None:
        self.is_on = params is not None and params.by is not None
        self.index, self.scale, self.engagement_weight, self.follow_weight = 0, 0.0, 0.0, 0.0
        if params is not None and params.by is not None:
            self.index, attribute = declared.agent_attribute(params.by)
            self.scale, self.engagement_weight, self.follow_weight = attribute.scale, params.engaging, params.following

    def difference(self, attributes: Floats, agents: Rows, others: Rows) -> Floats:
        """Return differences between `agents` and `others`, 0 to 1; `attributes` has a row for every agent."""
        column = attributes[:, self.index]
        return np.minimum(1.0, np.abs(column[agents] - column[others]) * self.scale)

    def follow_factor(self, attributes: Floats, agents: Rows, others: Rows) -> Floats | float:
        """Return the factor on the probability that each of `agents` follows the one in `others`."""
        if not self.follow_weight:
            return 1.0
        factor = np.exp(-self.follow_weight * self.difference(attributes, agents, others))
        return factor.astype(np.float32).astype(np.float64)  # the last digits of exp depend on the machine


class Odds:
    """The parts of utility that are log-odds of engaging.

    Tables and draws are rounded to float32, because the last digits of log and exp depend on the machine.
    """

    def __init__(
        self,
        params: UtilityParams,
        streams: Streams,
        round_hours: float,
        homophily: Homophily | None = None,
        declared: Attributes = NO_ATTRIBUTES,
    ) -> None:
        self.params, self.homophily = params, homophily or Homophily()
        self._streams = streams
        self._loss_by_age = _logarithms(params.theta, round_hours)
        self._likes_gain = _logarithms(params.counts, 1.0) if params.counts else np.zeros(0)
        self._appeal_by, self._per_unit, self._value_gain = -1, 0.0, np.zeros((2, 0))
        by, effect = params.appeal_by.attribute, params.appeal_by.effect
        if by is not None and effect:
            self._appeal_by, attribute = declared.post_attribute(by)
            if isinstance(effect, dict):
                gains = [(attribute.number(v), effect.get(value_text(v), 0.0)) for v in attribute.values]
                self._value_gain = np.ascontiguousarray(np.array(gains).T)
            else:
                self._per_unit = effect
        self._mood = params.mood * _logistic_quantiles() if params.sensitivity else np.zeros(1)

    def draw_appeal(self, key: UInt64) -> npt.NDArray[np.float32]:
        """Return the appeal of the posts with these keys, in log-odds; the odds are lognormal with mean 1."""
        sigma = self.params.appeal_sigma
        return np.asarray(sigma * self._streams.normal("appeal", key.view(np.int64)) - sigma * sigma / 2, np.float32)

    def tastes(self, now: int) -> Tastes:
        """Return the parameters of utility for round `now`."""
        params = self.params
        return Tastes(
            weight=params.weight if params.sensitivity else 1.0,
            sensitivity=params.sensitivity,
            gamma=params.gamma,
            reshared=params.reshared,
            closeness=-inf if params.closeness is None else params.closeness,
            homophily=self.homophily.engagement_weight,
            attribute=self.homophily.index,
            scale=self.homophily.scale,
            per_source=params.per_source,
            appeal_by=self._appeal_by,
            per_unit=self._per_unit,
            fades=self.params.appeal_by.fades,
            mood_key=self._streams.key("mood"),
            now=now,
        )

    def tables(
        self, posts: Posts, network: FollowNetwork, attributes: Floats, impressions: Exposure, marks: Marks = NO_MARKS
    ) -> TasteTables:
        """Return the arrays of utility; `attributes` has a row for every agent."""
        gains = self._loss_by_age, self._likes_gain, self._value_gain, self._mood, _softplus_table()
        ties = (network.indptr, network.indices, network.close_indptr, network.close_indices)
        agent_values = np.ascontiguousarray(attributes)
        return TasteTables(*gains, *ties, agent_values, *impressions.lists, posts.likes, marks)

    def explain(
        self,
        now: int,
        reader: int,
        post: int,
        posts: Posts,
        network: FollowNetwork,
        attributes: Floats,
        impressions: Exposure,
        marks: Marks = NO_MARKS,
    ) -> dict[str, float]:
        """Return the log-odds in the utility of a post to a reader, by name; empty if utility is relevance."""
        tastes, tables = self.tastes(now), self.tables(posts, network, attributes, impressions, marks)
        if not tastes.sensitivity:
            return {}
        root, author = int(posts.root[post]), int(posts.author[post])
        is_reshare = bool(posts.kind[post] == RESHARE)
        is_followed = not is_reshare and author in network.followees(reader)
        close = network.close_indices[network.close_indptr[reader] : network.close_indptr[reader + 1]]
        age = min(max(tastes.now - int(posts.round[root]), 0), len(tables.age_loss) - 1)
        appeal = float(root_appeal(np.int64(root), tastes, tables, posts.table))
        appeal *= 1.0 if is_followed else tastes.gamma
        has_tie = author in close and tastes.closeness > -inf
        bonus = softplus(tastes.closeness - appeal, tables.softplus_table) if has_tie else 0
        parts = {
            "its appeal": appeal,
            "passed on": tastes.reshared * is_reshare,
            "its age": -float(tables.age_loss[age]),
            "by a close tie": float(bonus),
        }
        if self.homophily.is_on:
            pair = np.array([reader]), posts.author[[root]].astype(np.int64)
            parts["by an unlike author"] = -tastes.homophily * float(self.homophily.difference(attributes, *pair)[0])
        if impressions.is_used:
            [n_read] = impressions.read_counts(np.array([reader]), np.array([root])).tolist()
            parts["shown before"] = tastes.per_source * n_read
        if marks.scale:
            parts["its labels"] = float(added_odds(np.int64(reader), np.int64(root), marks))
        if self._appeal_by >= 0 and not tastes.fades:
            name = self.params.appeal_by.attribute
            parts[f"by its {name}"] = float(attribute_odds(np.int64(root), tastes, tables, posts.table))
        if self.params.counts:
            parts["its likes"] = float(shown_likes_odds(np.int64(reader), np.int64(root), tables))
        draw = np.uint64(post_mood_key(post, root, tastes, tables, posts.table))  # the kernel returns an int
        draw = np.uint64(mix(draw, np.uint64(reader)))
        parts["its mood"] = float(tables.mood[int(draw >> MOOD_SHIFT)])
        return parts


@lru_cache(maxsize=16)
def _logarithms(weight: float, step: float) -> Floats:
    """Return ``weight * log(1 + k * step)`` for k = 0, 1, 2, ..."""
    values = weight * np.log1p(np.arange(_MAX_STEPS + 1) * step)
    return values.astype(np.float32).astype(np.float64)


@cache
def _softplus_table() -> Floats:
    """Return the log-odds that the weaker of two reasons adds to the stronger, by their difference in log-odds."""
    differences = np.arange(_MAX_DIFFERENCE * SOFT_STEPS + 1) / SOFT_STEPS
    return np.log1p(np.exp(-differences)).astype(np.float32).astype(np.float64)


@cache
def _logistic_quantiles() -> Floats:
    """Return the standard logistic quantiles at the midpoints of equal steps of probability."""
    probability = (np.arange(1 << MOOD_BITS) + 0.5) / (1 << MOOD_BITS)
    return np.log(probability / (1 - probability)).astype(np.float32).astype(np.float64)
