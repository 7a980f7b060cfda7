"""Which engagements count: an agent likes a root once and reshares it once, and answers a post once a round.

That holds for what chart, scripts and tools do together. What comes first counts; the rest is dropped when the round
is committed, and a script or a tool that would only repeat it is told so at once.
"""

import numpy as np

from prism_mesa.kernels.commit.orders import counted_order, engagement_numbers, may_repeat, order_of_engagements
from prism_mesa.social.platform import Platform
from prism_mesa.social.state.events import REPLY, Int32, Keys, Mask
from prism_mesa.social.state.population import NO_POST

type Columns = tuple[Int32, Int32, Int32, Int32]
"""Engagements: tick, agent, post, action."""


def open_round(platform: Platform) -> None:
    """Note who comes into the round with a post at hand, or has engaged since the last one was committed."""
    reading = np.flatnonzero(platform.population.current_post != NO_POST)
    engaged = [agent for _, agent, _, _ in platform.events.engagements]
    platform.engagements.carried = np.concatenate([reading, *engaged])


def has_engaged(platform: Platform, row: int, post: int, action: int) -> bool:
    """Return whether an agent has liked or reshared the root of a post before, or has answered the post this round."""
    key = engagement_key(platform, row, post, action)
    if key in platform.events.beside:
        return True
    for _, agents, posts, actions in platform.events.engagements:  # in each of them agents ascend
        of_row = slice(*(int(np.searchsorted(agents, np.int32(row), side)) for side in ("left", "right")))
        if (_keys(platform, agents[of_row], posts[of_row], actions[of_row]) == key).any():
            return True
    return action != REPLY and bool(platform.engagements.holds(np.array([key]))[0])


def engagement_key(platform: Platform, row: int, post: int, action: int) -> int:
    """Return a number that is the same for what counts once."""
    return int(_keys(platform, *(np.full(1, value, np.int32) for value in (row, post, action)))[0])


def counted(platform: Platform) -> Columns:
    """Return which of the engagements noted since the last commit count: tick, agent, post, action; by tick and agent.

    Of several that count once it is the one with the lowest tick, and of these that noted first; what was noted
    before the round opened comes before all of it.
    """
    return _counted(platform)[0]


def taken(platform: Platform) -> Columns:
    """Return the same for good: they are remembered, and nothing is noted any more.

    What the columns have noted in vain is counted in `totals`; whoever else is not new has been told.
    """
    found, keys, n_in_vain = _counted(platform)
    platform.totals["repeated"] += n_in_vain
    platform.engagements.add(keys[keys & 3 != REPLY])
    platform.events.engagements.clear()
    platform.events.beside.clear()
    return found


def _counted(platform: Platform) -> tuple[Columns, Keys, int]:
    """Return the engagements that count, by tick, their keys, which ascend, and how many of the columns do not."""
    tick, agent, post, action = platform.events.engaged()
    ticks, n_beside = platform.params.ticks_per_round, len(platform.events.beside)
    keys = _keys(platform, agent, post, action)
    order = order_of_engagements(keys, tick, agent, ticks, len(platform.population))
    if len(order) < len(keys):
        order = np.lexsort((np.where(tick > ticks, 0, tick), keys)).astype(np.int32)
    keys = keys.take(order)
    counts = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=counts[1:])
    _drop_known(platform, keys, counts)
    if not counts.all():
        n_in_vain = int((order[~counts] >= n_beside).sum())
        order, keys = order[counts], keys[counts]
    else:
        n_in_vain = 0
    order = order.take(counted_order(tick.take(order), ticks + 2))
    return (tick.take(order), agent.take(order), post.take(order), action.take(order)), keys, n_in_vain


def _keys(platform: Platform, agent: Int32, post: Int32, action: Int32) -> Keys:
    return engagement_numbers(agent, post, action, platform.posts.root)


def _drop_known(platform: Platform, keys: Keys, counts: Mask) -> None:
    """Take those out of `counts` that repeat a like or a reshare of an earlier round.

    Most cannot, and are not looked up. Feeds leave out roots that an agent has read, as long as they can be shown
    without a break; so who engages again has done it beside the columns, still has the post at hand, or means a root
    that is itself too old for feeds, and may have come back.
    """
    engaged, population = platform.engagements, platform.population
    oldest = platform.posts.first_visible(max(platform.round, 0), platform.params.feed.window)
    suspects = np.zeros(len(population), np.bool_)
    suspects[list(engaged.beside)] = True
    suspects[engaged.carried] = True
    which = may_repeat(keys, oldest, suspects)
    if len(which):
        counts[which[engaged.holds(keys[which])]] = False
