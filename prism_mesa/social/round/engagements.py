"""Which engagements count: one like and one reshare per agent and root, and one reply per agent, post and round.

That holds for chart, scripts and tools together. The first counts; others are dropped when the round is committed, and
a script or tool that would only repeat an engagement is told so at once.
"""

import numpy as np

from prism_mesa.kernels.commit.orders import counted_order, engagement_numbers, may_repeat, order_of_engagements
from prism_mesa.social.platform import Platform
from prism_mesa.social.state.events import REPLY, Int32, Keys, Mask
from prism_mesa.social.state.population import NO_POST

type Columns = tuple[Int32, Int32, Int32, Int32]
"""Engagements: tick, agent, post, action."""


def open_round(platform: Platform) -> None:
    """Note the agents that enter the round with a post at hand, or have engaged since the last commit."""
    reading = np.flatnonzero(platform.population.current_post != NO_POST)
    engaged = [agent for _, agent, _, _ in platform.events.engagements]
    platform.engagements.carried = np.concatenate([reading, *engaged])


def has_engaged(platform: Platform, row: int, post: int, action: int) -> bool:
    """Return whether an agent has liked or reshared a post's root before, or has answered the post this round."""
    key = engagement_key(platform, row, post, action)
    if key in platform.events.beside:
        return True
    for _, agents, posts, actions in platform.events.engagements:  # each is sorted by agent
        rows = slice(*np.searchsorted(agents, np.array([row, row + 1], np.int32)).tolist())
        if (_keys(platform, agents[rows], posts[rows], actions[rows]) == key).any():
            return True
    return action != REPLY and bool(platform.engagements.holds(np.array([key]))[0])


def engagement_key(platform: Platform, row: int, post: int, action: int) -> int:
    """Return the key of an engagement; of several with the same key, only one counts."""
    return int(_keys(platform, *(np.full(1, value, np.int32) for value in (row, post, action)))[0])


def counted_engagements(platform: Platform) -> Columns:
    """Return the engagements since the last commit that count, by tick and agent.

    Of several with the same key, the one with the lowest tick counts, and at equal ticks the one noted first. Those
    noted before the round opened come before all ticks of the round.
    """
    return _counted(platform)[0]


def commit_engagements(platform: Platform) -> Columns:
    """Return `counted_engagements`, remember them, and clear the noted ones; add repeats in columns to `totals`."""
    columns, keys, n_repeated = _counted(platform)
    platform.totals["repeated"] += n_repeated
    platform.engagements.add(keys[keys & 3 != REPLY])
    platform.events.engagements.clear()
    platform.events.beside.clear()
    return columns


def _counted(platform: Platform) -> tuple[Columns, Keys, int]:
    """Return the engagements that count, by tick, their ascending keys, and the number of repeats in the columns."""
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
    n_repeated = int((order[~counts] >= n_beside).sum())
    if not counts.all():
        order, keys = order[counts], keys[counts]
    order = order.take(counted_order(tick.take(order), ticks + 2))
    return (tick.take(order), agent.take(order), post.take(order), action.take(order)), keys, n_repeated


def _keys(platform: Platform, agent: Int32, post: Int32, action: Int32) -> Keys:
    return engagement_numbers(agent, post, action, platform.posts.root)


def _drop_known(platform: Platform, keys: Keys, counts: Mask) -> None:
    """Mark likes and reshares that repeat one of an earlier round as not counting.

    Feeds leave out roots that an agent has read, so most engagements cannot repeat one and are not looked up. The
    exceptions are agents that engaged by a script or tool or still have a post at hand, and roots too old for feeds.
    """
    engaged, population = platform.engagements, platform.population
    oldest = platform.posts.first_visible(max(platform.round, 0), platform.params.feed.window)
    suspects = np.zeros(len(population), np.bool_)
    suspects[list(engaged.beside)] = True
    suspects[engaged.carried] = True
    suspicious = may_repeat(keys, oldest, suspects)
    if len(suspicious):
        counts[suspicious[engaged.holds(keys[suspicious])]] = False
