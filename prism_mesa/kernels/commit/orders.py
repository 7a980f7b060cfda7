"""Order the events of a round by agent, by tick, or by a random key, without a comparison sort."""

from typing import Any, Final

import numpy as np

from prism_mesa.arrays import Int32, Ints, Mask, UInt64
from prism_mesa.kernels.commit.posts import REPLY
from prism_mesa.kernels.compiling import inline_kernel, kernel
from prism_mesa.kernels.draws import mix

AGENT_SHIFT: Final = 33
TARGET_SHIFT: Final = 2
"""The key of an engagement is ``agent << AGENT_SHIFT | target << TARGET_SHIFT | action``; the target is a post."""

_MAX_MOVES: Final = 64
"""Average number of moves per engagement above which a general sort is faster."""


@kernel
def is_ascending(agent: Int32) -> bool:
    """Return whether agents are in ascending order."""
    descends = False
    for i in range(1, len(agent)):
        descends |= agent[i] < agent[i - 1]
    return not descends


@kernel
def order_by_agent(agent: Int32, n_agents: int) -> Int32:
    """Return the stable order by agent."""
    if is_ascending(agent):
        return np.arange(len(agent)).astype(np.int32)
    return counting_argsort(agent, n_agents)


@kernel
def order_by_tick(tick: Int32, agent: Int32, n_ticks: int, n_agents: int) -> Int32:
    """Return the stable order by tick (below `n_ticks`) and agent."""
    order: Int32 = counting_argsort(tick, n_ticks)
    if not _is_in_order(order, tick, agent):
        by_agent = counting_argsort(agent, n_agents)
        order = by_agent[counting_argsort(tick[by_agent], n_ticks)]
    return order


@kernel
def _is_in_order(order: Int32, tick: Int32, agent: Int32) -> bool:
    for i in range(1, len(order)):
        entry, previous = order[i], order[i - 1]
        if tick[entry] == tick[previous] and agent[entry] < agent[previous]:
            return False
    return True


@kernel
def counting_argsort(number: Int32, n: int) -> Int32:
    """Return the stable order by a number from 0 to n - 1: a counting sort (Knuth 1998, 5.2, algorithm D)."""
    start = np.zeros(n + 1, np.int32)
    for i in range(len(number)):
        start[number[i] + 1] += 1
    for bucket in range(n):
        start[bucket + 1] += start[bucket]
    order = np.empty(len(number), np.int32)
    for i in range(len(number)):
        order[start[number[i]]] = i
        start[number[i]] += 1
    return order


@kernel
def order_by_bits(tick: Int32, bits: UInt64, n_ticks: int) -> Int32:
    """Return the stable order by tick (below `n_ticks`) and then by random bits.

    Entries go into buckets by tick and leading bits. There are about as many buckets as entries, so little is left to
    sort.
    """
    n, leading = len(bits), 0
    while (n_ticks << leading) < n:
        leading += 1
    start = np.zeros((n_ticks << leading) + 1, np.int32)
    for i in range(n):
        start[_bucket(tick[i], bits[i], leading) + 1] += 1
    for bucket in range(len(start) - 1):
        start[bucket + 1] += start[bucket]
    order, sorted_bits = np.empty(n, np.int32), np.empty(n, np.uint64)
    for i in range(n):
        bucket = _bucket(tick[i], bits[i], leading)
        order[start[bucket]], sorted_bits[start[bucket]] = i, bits[i]
        start[bucket] += 1
    for i in range(1, n):
        entry, key, place = order[i], sorted_bits[i], i
        while place > 0 and sorted_bits[place - 1] > key and tick[order[place - 1]] == tick[entry]:
            order[place], sorted_bits[place] = order[place - 1], sorted_bits[place - 1]
            place -= 1
        order[place], sorted_bits[place] = entry, key
    return order


@inline_kernel
def _bucket(tick: Any, bits: Any, leading: Any) -> Any:
    """Return the bucket of an entry, from its tick and the `leading` highest bits."""
    return np.int64(tick) << leading | np.int64(bits >> np.uint64(1) >> np.uint64(63 - leading))


@kernel
def engagement_keys(agent: Int32, post: Int32, action: Int32, root: Int32) -> Ints:
    """Return the key of each engagement; repeats share a key: replies to a post, and other actions on a root."""
    out = np.empty(len(agent), np.int64)
    for i in range(len(agent)):
        target = post[i] if action[i] == REPLY else root[post[i]]
        out[i] = np.int64(agent[i]) << AGENT_SHIFT | np.int64(target) << TARGET_SHIFT | np.int64(action[i])
    return out


@kernel
def engagement_order(keys: Ints, tick: Int32, agent: Int32, ticks: int, n_agents: int) -> Int32:
    """Return the stable order by key and tick; ticks above `ticks` are from before the round and come first.

    Only engagements of the same agent are compared, because keys ascend by agent. The result is empty if some agents
    have so many engagements that a general sort is faster.
    """
    order, n_moves = order_by_agent(agent, n_agents), 0
    for i in range(1, len(order)):
        if n_moves > _MAX_MOVES * len(order):
            return order[:0]
        entry, place = order[i], i
        entry_tick = tick[entry] if tick[entry] <= ticks else 0
        while place > 0:
            other = order[place - 1]
            other_tick = tick[other] if tick[other] <= ticks else 0
            if keys[other] < keys[entry] or (keys[other] == keys[entry] and other_tick <= entry_tick):
                break
            order[place] = other
            place -= 1
        order[place] = entry
        n_moves += i - place
    return order


@kernel
def possible_repeats(keys: Ints, oldest: int, suspects: Mask) -> Ints:
    """Return the indices of engagements with posts older than `oldest`, or by agents marked in `suspects`."""
    out, n = np.empty(len(keys), np.int64), np.int64(0)
    for i in range(len(keys)):
        target = keys[i] >> TARGET_SHIFT & ((1 << AGENT_SHIFT - TARGET_SHIFT) - 1)
        out[n] = i
        n += np.int64(target < oldest) | np.int64(suspects[keys[i] >> AGENT_SHIFT])
    return out[:n]


@kernel
def new_post_keys(key: np.uint64, tick: Int32, agent: Int32, post: Int32, kind: Ints, post_key: UInt64) -> UInt64:
    """Return keys of the posts that engagements create, from agent, tick, parent and kind; `key` includes the round."""
    out = np.empty(len(agent), np.uint64)
    for i in range(len(agent)):
        parent = post_key[post[i]] ^ np.uint64(kind[i])
        out[i] = mix(mix(mix(key, np.uint64(tick[i])), parent), np.uint64(agent[i]))
    return out
