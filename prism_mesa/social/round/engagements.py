"""Select the engagements that count: one like and reshare per agent and root, one reply per agent, post and round.

These limits apply to chart, scripts and tools together. The first engagement counts. The commit drops repeats; scripts
and tools learn at once that an engagement would be a repeat.
"""

import numpy as np

from prism_mesa.arrays import Int32, Keys, Mask, Rows
from prism_mesa.kernels.commit.orders import (
    counting_argsort,
    engagement_keys,
    engagement_order,
    new_post_keys,
    order_by_bits,
    possible_repeats,
)
from prism_mesa.social.params import InterventionParams
from prism_mesa.social.platform import Platform
from prism_mesa.social.round.acts import active_acts, note_acts, targets
from prism_mesa.social.state import posts as posts_of
from prism_mesa.social.state.events import REPLY, RESHARE
from prism_mesa.social.state.population import NO_POST

type Columns = tuple[Int32, Int32, Int32, Int32]
"""Engagements: tick, agent, post, action."""


def open_round(platform: Platform) -> None:
    """Note the agents that have a current post as the round opens, or have engaged since the last commit."""
    readers = np.flatnonzero(platform.population.current_post != NO_POST)
    engagers = [agent for _, agent, _, _ in platform.events.engagements]
    platform.engagements.carried_rows = np.concatenate([readers, *engagers])


def has_engaged(platform: Platform, row: int, post: int, action: int) -> bool:
    """Return whether an agent has liked or reshared the post's root before, or answered the post this round."""
    key = engagement_key(platform, row, post, action)
    if key in platform.events.individual_engagements:
        return True
    for _, agents, posts, actions in platform.events.engagements:  # each part is sorted by agent
        rows = slice(*np.searchsorted(agents, np.array([row, row + 1], np.int32)).tolist())
        if (_keys(platform, agents[rows], posts[rows], actions[rows]) == key).any():
            return True
    return action != REPLY and bool(platform.engagements.contains(np.array([key]))[0])


def engagement_key(platform: Platform, row: int, post: int, action: int) -> int:
    """Return the key of an engagement; of several engagements with the same key, only one counts."""
    return int(_keys(platform, *(np.full(1, value, np.int32) for value in (row, post, action)))[0])


def new_engagements(platform: Platform) -> Columns:
    """Return the engagements since the last commit that count, by tick and agent.

    Of several engagements with the same key, the earliest counts. Engagements from before the round come before all
    ticks of the round.
    """
    return _select_new(platform)[0]


def commit_engagements(platform: Platform) -> Columns:
    """Return `new_engagements`, store them, clear all noted engagements, and count the repeats of columns."""
    columns, keys, n_repeated, refused = _select_new(platform)
    platform.totals["repeated"] += n_repeated
    for index, act, post, agent in refused:
        note_acts(platform, "refuse", index, act, posts=post, agents=agent, actions=RESHARE)
    platform.engagements.add(keys[keys & 3 != REPLY])
    platform.events.engagements.clear()
    platform.events.individual_engagements.clear()
    return columns


def _find_refused(platform: Platform, index: int, act: InterventionParams, columns: Columns) -> Rows:
    """Return the reshares that would exceed a cap, in order of tick and then of the key of the new post.

    Reshares by agents to which the cap does not apply count too, but are not dropped.
    """
    tick, agent, post, action = columns
    rows, posts, cap = np.flatnonzero(action == RESHARE), platform.posts, act.cap.reshares if act.cap else 0
    key = platform.streams.key("reshare", platform.round)
    kinds = np.full(len(rows), posts_of.RESHARE)
    order_keys = new_post_keys(key, tick[rows], agent[rows], post[rows], kinds, posts.key)
    rows = rows[order_by_bits(tick[rows], order_keys, platform.params.ticks_per_round + 2)]
    root, is_bound = posts.root[post[rows]], targets(platform, act, agent[rows])
    is_refused = np.zeros(len(rows), np.bool_)
    n_reshares = dict(zip(root.tolist(), posts.reshares[root].tolist(), strict=True))
    for i in np.flatnonzero(np.bincount(root, minlength=len(posts))[root] + posts.reshares[root] > cap).tolist():
        is_refused[i] = is_bound[i] and n_reshares[int(root[i])] >= cap
        n_reshares[int(root[i])] += not is_refused[i]
    return np.sort(rows[is_refused])


type Refused = tuple[int, InterventionParams, Int32, Int32]
"""A cap with its number, and the posts and agents of the reshares that it refuses."""


def _select_new(platform: Platform) -> tuple[Columns, Keys, int, list[Refused]]:
    """Return the engagements that count, by tick, their ascending keys, the number of repeats, and what caps refuse."""
    tick, agent, post, action = platform.events.all_engagements()
    ticks, n_beside = platform.params.ticks_per_round, len(platform.events.individual_engagements)
    keys = _keys(platform, agent, post, action)
    order = engagement_order(keys, tick, agent, ticks, len(platform.population))
    if len(order) < len(keys):
        order = np.lexsort((np.where(tick > ticks, 0, tick), keys)).astype(np.int32)
    keys = keys.take(order)
    is_new = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_new[1:])
    _drop_known(platform, keys, is_new)
    n_repeated = int((order[~is_new] >= n_beside).sum())
    if not is_new.all():
        order, keys = order[is_new], keys[is_new]
    order = order.take(counting_argsort(tick.take(order), ticks + 2))
    columns, refused = (tick.take(order), agent.take(order), post.take(order), action.take(order)), list[Refused]()
    for index, act in active_acts(platform, "cap"):
        rows = _find_refused(platform, index, act, columns)
        _, agent, post, action = (column[rows] for column in columns)
        refused.append((index, act, post, agent))
        keys = keys[~np.isin(keys, _keys(platform, agent, post, action))] if len(rows) else keys
        tick, agent, post, action = (np.delete(column, rows) for column in columns)
        columns = tick, agent, post, action
    return columns, keys, n_repeated, refused


def _keys(platform: Platform, agent: Int32, post: Int32, action: Int32) -> Keys:
    return engagement_keys(agent, post, action, platform.posts.root)


def _drop_known(platform: Platform, keys: Keys, is_new: Mask) -> None:
    """Unmark likes and reshares that repeat an engagement of an earlier round.

    Feeds do not show roots that an agent has read, so most engagements cannot be repeats and need no lookup. Exceptions
    are agents that engaged by script or tool, agents with a current post, and roots that are too old for feeds.
    """
    engagements, population = platform.engagements, platform.population
    oldest = platform.posts.first_visible(max(platform.round, 0), platform.params.feed.window)
    suspects = np.zeros(len(population), np.bool_)
    suspects[list(engagements.individual_rows)] = True
    suspects[engagements.carried_rows] = True
    suspect_rows = possible_repeats(keys, oldest, suspects)
    if len(suspect_rows):
        is_new[suspect_rows[engagements.contains(keys[suspect_rows])]] = False
