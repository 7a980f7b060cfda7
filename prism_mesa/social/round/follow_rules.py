"""How agents change their minds about each other by what they read: the rules of a network that moves.

Every post that an agent reads is an eligible exposure of one or more of these, whose draws are keyed by round, reader
and root; an agent reads a root once a round, so several posts of one author are several draws, and the probability that
any of k comes about is 1 - (1 - p)**k.

- follow: the root's author, whom the reader does not follow: `network.rates.follow`, times `network.rates.engaged` if
  it engaged with the post in this round. Such a post came by a reshare, or from outside of the network.
- unfollow, mute, block: who brought the post into the feed (of a reshare, who passed it on), if the post lies below the
  reader's band and it did not engage with it. Unfollowing is for who is followed, and `network.rates.reciprocal` lowers
  it for who follows back. report: the post, likewise.
- follow back: whoever has a new follower since the last round draws once (`network.rates.follow_back`).
- triads: who read something draws a followee, and one of its followees (`network.rates.triad`).

Of all that begins a follow the chance is lower for an other who is unlike the agent (`agents.homophily`).

Agents that have left, and those of whom the reader sees nothing, are no others. Most draws fail: they are made before
anything else is looked at, in `kernels.network`, so that the rest is done for few.
"""

from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.domain import FOLLOW_EVENTS, FOLLOW_REASONS
from prism_mesa.kernels.network import drawn_below
from prism_mesa.social.platform import Platform
from prism_mesa.social.state.chunks import blocks, in_threads
from prism_mesa.social.state.network import Int32s
from prism_mesa.social.state.population import NO_POST, Rows
from prism_mesa.social.state.relations import Keys, Mask, among, pair_keys, pairs_of

FOLLOW, UNFOLLOW, MUTE, BLOCK, REPORT, UNMUTE, UNBLOCK = range(len(FOLLOW_EVENTS))
ENGAGED, EXPOSURE, FOLLOW_BACK, TRIAD, IGNORED, SCRIPT, TOOL, BLOCKED = range(len(FOLLOW_REASONS))

_BY_RULES: Final = FOLLOW_EVENTS[: REPORT + 1]
_DRAWN: Final = tuple(1 << event for event in range(len(_BY_RULES)))
_PART: Final = 1 << 18
"""Impressions that one thread takes at a time; not the result's business."""


@dataclass(frozen=True)
class Decisions:
    """What agents have decided about others: columns of one length.

    Attributes:
        agent: Who.
        other: About whom.
        event: What: a place in `FOLLOW_EVENTS`.
        post: About which post, or `NO_POST`.
        why: A place in `FOLLOW_REASONS`.
    """

    agent: Rows
    other: Rows
    event: Rows
    post: Rows
    why: Rows

    def __len__(self) -> int:
        return len(self.agent)

    def where(self, which: Rows | Mask) -> "Decisions":
        """Return some of them."""
        return Decisions(self.agent[which], self.other[which], self.event[which], self.post[which], self.why[which])

    @property
    def pairs(self) -> Keys:
        """The pair of each, as one number."""
        return pair_keys(self.agent, self.other)


def decisions(agent: Rows, other: Rows, event: int, post: Rows | int, why: Rows | int) -> Decisions:
    """Return decisions of one kind."""
    n = len(agent)
    same = (np.broadcast_to(np.asarray(value, np.int64), n) for value in (event, post, why))
    return Decisions(np.asarray(agent, np.int64), np.asarray(other, np.int64), *same)


NO_DECISIONS: Final = Decisions(*(np.zeros(0, np.int64),) * 5)


def joined(*parts: Decisions) -> Decisions:
    """Return all of some decisions."""
    columns = [(part.agent, part.other, part.event, part.post, part.why) for part in parts]
    return Decisions(*map(np.concatenate, zip(*columns, strict=True)))


@dataclass(frozen=True)
class Exposures:
    """Impressions of a round that were drawn for something.

    Attributes:
        agent: Who read.
        post: What.
        drawn: For which events, one bit each.
    """

    agent: Rows
    post: Rows
    drawn: Rows


def drawn_exposures(platform: Platform, agent: Int32s, post: Int32s, root: Int32s) -> Exposures:
    """Return which impressions of this round are drawn; of following as if the reader engaged with all of them."""
    rates, posts = platform.params.network.rates, platform.posts
    chances = (min(1.0, rates.follow * max(1.0, rates.engaged)), rates.unfollow, rates.mute, rates.block, rates.report)
    found, post_key = np.empty(len(post), np.uint8), posts.key
    keys = np.array([platform.streams.key(name, platform.round, 0) for name in _BY_RULES])
    limits = np.array([ceil(chance * 2.0**53) for chance in chances], np.uint64)

    def draw_part(part: slice) -> None:
        drawn_below(keys, limits, post_key, root[part], agent[part], found[part])

    in_threads(draw_part, list(blocks(len(post), _PART)), platform.params.threads)
    which = np.flatnonzero(found)
    return Exposures(agent[which].astype(np.int64), post[which].astype(np.int64), found[which])


def by_rules(platform: Platform, exposures: Exposures, engaged: tuple[Rows, Rows]) -> Decisions:
    """Return what agents decide in this round, before it is settled what counts.

    Args:
        platform: The platform, whose network is that of the round.
        exposures: What was drawn of what they read.
        engaged: Agents, and posts that they engaged with in this round.
    """
    root, (agent, post) = platform.posts.root, engaged
    asked = np.zeros(len(platform.population), np.bool_)
    asked[exposures.agent] = True
    which = asked[agent]
    keys = np.sort(pair_keys(agent[which], root[post[which]]))
    has_engaged = among(keys, pair_keys(exposures.agent, root[exposures.post]))
    return joined(
        _follows(platform, exposures, has_engaged),
        *_dislikes(platform, exposures, has_engaged),
        _follows_back(platform),
        _triads(platform),
    )


def _follows(platform: Platform, exposures: Exposures, has_engaged: Mask) -> Decisions:
    which = exposures.drawn & _DRAWN[FOLLOW] != 0
    agent, post, has_engaged = exposures.agent[which], exposures.post[which], has_engaged[which]
    root, rates = platform.posts.root[post], platform.params.network.rates
    other = platform.posts.author[root].astype(np.int64)
    draw = platform.streams.uniform("follow", agent, round_=platform.round, index=platform.posts.key[root])
    chance = np.where(has_engaged, min(1.0, rates.follow * rates.engaged), rates.follow)
    come = draw < chance * _liking(platform, agent, other)
    come &= _may_follow(platform, agent, other)
    return decisions(agent, other, FOLLOW, post, np.where(has_engaged, ENGAGED, EXPOSURE)).where(come)


def _dislikes(platform: Platform, exposures: Exposures, has_engaged: Mask) -> list[Decisions]:
    """Return who unfollows, mutes, blocks or reports for a post that it ignored."""
    which = (exposures.drawn & ~np.uint8(_DRAWN[FOLLOW]) != 0) & ~has_engaged
    agent, post, drawn = exposures.agent[which], exposures.post[which], exposures.drawn[which]
    other = platform.posts.author[post].astype(np.int64)
    low = platform.population.engagement_threshold[agent] - platform.half_band
    ignored = platform.utilities(agent, post, platform.matches(agent, post)) < low
    ignored &= _are_there(platform, agent, other) & ~platform.relations.hides(agent, other)
    found = []
    for event in (UNFOLLOW, MUTE, BLOCK, REPORT):
        come = ignored & (drawn & _DRAWN[event] != 0)
        one = decisions(agent[come], other[come], event, post[come], IGNORED)
        found.append(_unfollows(platform, one) if event == UNFOLLOW else one)
    return found


def _unfollows(platform: Platform, drawn: Decisions) -> Decisions:
    """Return which of those drawn unfollow: of those who are followed back fewer do."""
    rates, key = platform.params.network.rates, platform.posts.key[platform.posts.root[drawn.post]]
    draw = platform.streams.uniform("unfollow", drawn.agent, round_=platform.round, index=key)
    is_mutual = platform.network.holds(drawn.other, drawn.agent)
    come = draw < np.where(is_mutual, rates.unfollow * rates.reciprocal, rates.unfollow)
    return drawn.where(come & platform.network.holds(drawn.agent, drawn.other))


def _follows_back(platform: Platform) -> Decisions:
    other, agent = pairs_of(platform.relations.new_follows)
    draw = platform.streams.uniform("follow back", agent, round_=platform.round, index=other)
    come = draw < platform.params.network.rates.follow_back * _liking(platform, agent, other)
    agent, other = agent[come], other[come]
    return decisions(agent, other, FOLLOW, NO_POST, FOLLOW_BACK).where(_may_follow(platform, agent, other))


def _triads(platform: Platform) -> Decisions:
    network, streams, now = platform.network, platform.streams, platform.round
    chance = np.where(platform.population.n_read > 0, platform.params.network.rates.triad, 0.0)
    agent = np.flatnonzero(streams.happens("triad", chance, round_=now))
    other = agent
    for step in range(2):
        many = network.indptr[other + 1] - network.indptr[other]
        agent, other, many = agent[many > 0], other[many > 0], many[many > 0]
        place = streams.integers("triad step", agent, many, round_=now, index=step)
        other = network.indices[network.indptr[other] + place].astype(np.int64)
    come = streams.uniform("triad", agent, round_=now) < chance[agent] * _liking(platform, agent, other)
    come &= _may_follow(platform, agent, other)
    return decisions(agent, other, FOLLOW, NO_POST, TRIAD).where(come)


def _liking(platform: Platform, agent: Rows, other: Rows) -> npt.NDArray[np.float64] | float:
    """Return the factor of the chance that each agent follows the other one, by how unlike they are."""
    return platform.odds.homophily.follows(platform.population.attributes, agent, other)


def _may_follow(platform: Platform, agent: Rows, other: Rows) -> Mask:
    may = _are_there(platform, agent, other) & ~platform.network.holds(agent, other)
    return may & ~platform.relations.hides(agent, other)


def _are_there(platform: Platform, agent: Rows, other: Rows) -> Mask:
    """Return whether each two are on the platform, and are two."""
    present = platform.population.present
    return np.asarray((agent != other) & present[agent] & present[other])
