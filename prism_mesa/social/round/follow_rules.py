"""Rules by which agents follow, unfollow, mute, block and report if `network.dynamics` is `live`.

Rules have a draw for each impression, keyed by round, reader and root. A reader sees a root once a round. So after k
posts of an author, at least one draw has succeeded with probability 1 - (1 - p)**k.

- follow: the root's author, if the reader does not follow this author: `network.rates.follow`, times
  `network.rates.engaged` if the reader engaged with the post in this round.
- unfollow, mute, block: the author of the post, or of the reshare, if the post lies below the reader's band and the
  reader did not engage with it. `network.rates.reciprocal` lowers the chance of unfollowing a mutual follow. report:
  the post, under the same conditions.
- follow back: an agent draws once for each new follower (`network.rates.follow_back`).
- triads: an agent that read something draws a followee, and a followee of that followee (`network.rates.triad`).

`agents.homophily` lowers the probability of following a dissimilar agent. Absent and hidden agents are left out. Most
draws fail, so `kernels.network.draw_bits` draws before all other checks.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final, NamedTuple

import numpy as np

from prism_mesa.arrays import Floats, Int32, Keys, Mask, Rows
from prism_mesa.domain import FOLLOW_EVENTS, FOLLOW_REASONS
from prism_mesa.kernels.network import draw_bits
from prism_mesa.social.platform import Platform
from prism_mesa.social.state.chunks import blocks, map_in_threads
from prism_mesa.social.state.population import NO_POST
from prism_mesa.social.state.relations import is_in_keys, pair_keys, split_keys

FOLLOW, UNFOLLOW, MUTE, BLOCK, REPORT, UNMUTE, UNBLOCK = range(len(FOLLOW_EVENTS))
ENGAGED, EXPOSURE, FOLLOW_BACK, TRIAD, IGNORED, SCRIPT, TOOL, BLOCKED = range(len(FOLLOW_REASONS))

_RULE_EVENTS: Final = FOLLOW_EVENTS[: REPORT + 1]
_EVENT_BITS: Final = tuple(1 << event for event in range(len(_RULE_EVENTS)))
_PART_SIZE: Final = 1 << 18
"""Number of impressions that a thread takes at a time; results do not depend on it."""


@dataclass(frozen=True)
class Decisions:
    """Decisions of agents about other agents, as columns of the same length.

    `event` and `why` are indices into `FOLLOW_EVENTS` and `FOLLOW_REASONS`; a decision about no post has `NO_POST`.
    """

    agent: Rows
    other: Rows
    event: Rows
    post: Rows
    why: Rows

    def __len__(self) -> int:
        return len(self.agent)

    def select(self, rows: Rows | Mask) -> "Decisions":
        """Return the decisions of some rows."""
        return Decisions(*(column[rows] for column in vars(self).values()))

    @property
    def pairs(self) -> Keys:
        """The pair of each decision as one number."""
        return pair_keys(self.agent, self.other)


def decisions(agent: Rows, other: Rows, event: int, post: Rows | int, why: Rows | int) -> Decisions:
    """Return decisions of one kind."""
    constants = (np.broadcast_to(np.asarray(value, np.int64), len(agent)) for value in (event, post, why))
    return Decisions(np.asarray(agent, np.int64), np.asarray(other, np.int64), *constants)


NO_DECISIONS: Final = Decisions(*(np.zeros(0, np.int64),) * 5)


def concatenate(*parts: Decisions) -> Decisions:
    """Return the decisions of all parts."""
    return Decisions(*map(np.concatenate, zip(*(vars(part).values() for part in parts), strict=True)))


class Exposures(NamedTuple):
    """Impressions of a round: reader, post, and a bit for each event whose draw succeeded."""

    agent: Rows
    post: Rows
    event_bits: Rows

    def select(self, rows: Mask) -> "Exposures":
        """Return the impressions of some rows."""
        return Exposures(*(column[rows] for column in self))


def draw_exposures(platform: Platform, agent: Int32, post: Int32) -> Exposures:
    """Return impressions with a successful draw; follows are drawn as if the reader had engaged with every post."""
    rates, posts = platform.params.network.rates, platform.posts
    chances = (min(1.0, rates.follow * max(1.0, rates.engaged)), rates.unfollow, rates.mute, rates.block, rates.report)
    bits, post_key, root = np.empty(len(post), np.uint8), posts.key, posts.root[post]
    keys = np.array([platform.streams.key(name, platform.round, 0) for name in _RULE_EVENTS])
    limits = np.array([ceil(probability * 2.0**53) for probability in chances], np.uint64)

    def draw_part(part: slice) -> None:
        draw_bits(keys, limits, post_key, root[part], agent[part], bits[part])

    map_in_threads(draw_part, list(blocks(len(post), _PART_SIZE)), platform.params.threads)
    rows = np.flatnonzero(bits)
    return Exposures(agent[rows].astype(np.int64), post[rows].astype(np.int64), bits[rows])


def draw_decisions(platform: Platform, exposures: Exposures, engagements: tuple[Rows, Rows]) -> Decisions:
    """Return the decisions of this round by rules, before conflicts are settled.

    `engagements` has agents and the posts that they engaged with in this round.
    """
    root, (agent, post) = platform.posts.root, engagements
    is_exposed = np.zeros(len(platform.population), np.bool_)
    is_exposed[exposures.agent] = True
    is_relevant = is_exposed[agent]
    keys = np.sort(pair_keys(agent[is_relevant], root[post[is_relevant]]))
    has_engaged = is_in_keys(keys, pair_keys(exposures.agent, root[exposures.post]))
    return concatenate(
        _draw_follows(platform, exposures, has_engaged),
        *_draw_dislikes(platform, exposures, has_engaged),
        _draw_follow_backs(platform),
        _draw_triads(platform),
    )


def _draw_follows(platform: Platform, exposures: Exposures, has_engaged: Mask) -> Decisions:
    is_drawn = exposures.event_bits & _EVENT_BITS[FOLLOW] != 0
    (agent, post, _), has_engaged = exposures.select(is_drawn), has_engaged[is_drawn]
    root, rates = platform.posts.root[post], platform.params.network.rates
    other = platform.posts.author[root].astype(np.int64)
    draws = platform.streams.uniform("follow", agent, round_=platform.round, index=platform.posts.key[root])
    probability = np.where(has_engaged, min(1.0, rates.follow * rates.engaged), rates.follow)
    follows = (draws < probability * _homophily_factor(platform, agent, other)) & _can_follow(platform, agent, other)
    return decisions(agent, other, FOLLOW, post, np.where(has_engaged, ENGAGED, EXPOSURE)).select(follows)


def _draw_dislikes(platform: Platform, exposures: Exposures, has_engaged: Mask) -> list[Decisions]:
    is_candidate = (exposures.event_bits & ~np.uint8(_EVENT_BITS[FOLLOW]) != 0) & ~has_engaged
    agent, post, event_bits = exposures.select(is_candidate)
    other = platform.posts.author[post].astype(np.int64)
    low_threshold = platform.population.engagement_threshold[agent] - platform.half_band
    is_ignored = platform.utilities(agent, post, platform.similarities(agent, post)) < low_threshold
    is_ignored &= _are_present(platform, agent, other) & ~platform.relations.are_hidden(agent, other)
    by_event = []
    for event in (UNFOLLOW, MUTE, BLOCK, REPORT):
        is_drawn = is_ignored & (event_bits & _EVENT_BITS[event] != 0)
        by_event.append(decisions(agent[is_drawn], other[is_drawn], event, post[is_drawn], IGNORED))
    return [_draw_unfollows(platform, by_event[0]), *by_event[1:]]


def _draw_unfollows(platform: Platform, unfollows: Decisions) -> Decisions:
    """Return the unfollows that take place; mutual follows end less often."""
    rates, key = platform.params.network.rates, platform.posts.key[platform.posts.root[unfollows.post]]
    draws = platform.streams.uniform("unfollow", unfollows.agent, round_=platform.round, index=key)
    is_mutual = platform.network.contains(unfollows.other, unfollows.agent)
    is_unfollowed = draws < np.where(is_mutual, rates.unfollow * rates.reciprocal, rates.unfollow)
    return unfollows.select(is_unfollowed & platform.network.contains(unfollows.agent, unfollows.other))


def _draw_follow_backs(platform: Platform) -> Decisions:
    other, agent = split_keys(platform.relations.new_follows)
    draw = platform.streams.uniform("follow back", agent, round_=platform.round, index=other)
    follows = draw < platform.params.network.rates.follow_back * _homophily_factor(platform, agent, other)
    agent, other = agent[follows], other[follows]
    return decisions(agent, other, FOLLOW, NO_POST, FOLLOW_BACK).select(_can_follow(platform, agent, other))


def _draw_triads(platform: Platform) -> Decisions:
    network, streams, now = platform.network, platform.streams, platform.round
    chance = np.where(platform.population.n_read > 0, platform.params.network.rates.triad, 0.0)
    agent = np.flatnonzero(streams.draw_events("triad", chance, round_=now))
    other = agent
    for step in range(2):
        degree = network.indptr[other + 1] - network.indptr[other]
        agent, other, degree = agent[degree > 0], other[degree > 0], degree[degree > 0]
        index = streams.integers("triad step", agent, degree, round_=now, index=step)
        other = network.indices[network.indptr[other] + index].astype(np.int64)
    follows = streams.uniform("triad", agent, round_=now) < chance[agent] * _homophily_factor(platform, agent, other)
    follows &= _can_follow(platform, agent, other)
    return decisions(agent, other, FOLLOW, NO_POST, TRIAD).select(follows)


def _homophily_factor(platform: Platform, agent: Rows, other: Rows) -> Floats | float:
    return platform.odds.homophily.follow_factor(platform.population.attributes, agent, other)


def _can_follow(platform: Platform, agent: Rows, other: Rows) -> Mask:
    can_follow = _are_present(platform, agent, other) & ~platform.network.contains(agent, other)
    return can_follow & ~platform.relations.are_hidden(agent, other)


def _are_present(platform: Platform, agent: Rows, other: Rows) -> Mask:
    present = platform.population.present
    return np.asarray((agent != other) & present[agent] & present[other])
