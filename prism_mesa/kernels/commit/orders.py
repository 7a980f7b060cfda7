"""Order the events of a round by agent, by tick, or by a random key, without comparing them all."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.commit.posts import REPLY
from prism_mesa.kernels.compiling import kernel, part_of_kernels
from prism_mesa.kernels.draws import mixed

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Keys = npt.NDArray[np.uint64]
type Mask = npt.NDArray[np.bool_]

AGENT: Final = 33
ABOUT: Final = 2
"""First bits of the agent, and of what it is about, in the number of an engagement; the action is below."""

_MOST_MOVED: Final = 64
"""Moves per engagement beyond which sorting is faster."""


@kernel
def ascends(agent: Int32) -> bool:
    """Return whether agents ascend."""
    falls = False
    for i in range(1, len(agent)):
        falls |= agent[i] < agent[i - 1]
    return not falls


@kernel
def order_by_agent(agent: Int32, n_agents: int) -> Int32:
    """Return the order by agent, stable."""
    if ascends(agent):
        return np.arange(len(agent)).astype(np.int32)
    return counted_order(agent, n_agents)


@kernel
def order_by_tick(tick: Int32, agent: Int32, n_ticks: int, n_agents: int) -> Int32:
    """Return the order by tick, which is below `n_ticks`, and agent, stable."""
    order = counted_order(tick, n_ticks)
    if _is_in_order(order, tick, agent):
        return order
    first = counted_order(agent, n_agents)
    by_both: Int32 = first[counted_order(tick[first], n_ticks)]
    return by_both


@kernel
def _is_in_order(order: Int32, tick: Int32, agent: Int32) -> bool:
    for i in range(1, len(order)):
        entry, before = order[i], order[i - 1]
        if tick[entry] == tick[before] and agent[entry] < agent[before]:
            return False
    return True


@kernel
def counted_order(number: Int32, n: int) -> Int32:
    """Return the order by a number from 0 to n - 1, stable (Knuth 1998, 5.2, algorithm D)."""
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
def order_by_bits(tick: Int32, bits: Keys, n_ticks: int) -> Int32:
    """Return the order by tick, which is below `n_ticks`, and then by random bits, stable.

    There are about as many buckets as entries, by tick and leading bits, so little is left to sort.
    """
    n, leading = len(bits), 0
    while (n_ticks << leading) < n:
        leading += 1
    start = np.zeros((n_ticks << leading) + 1, np.int32)
    for i in range(n):
        start[_bucket(tick[i], bits[i], leading) + 1] += 1
    for bucket in range(len(start) - 1):
        start[bucket + 1] += start[bucket]
    order, here = np.empty(n, np.int32), np.empty(n, np.uint64)
    for i in range(n):
        bucket = _bucket(tick[i], bits[i], leading)
        order[start[bucket]], here[start[bucket]] = i, bits[i]
        start[bucket] += 1
    for i in range(1, n):
        entry, key, place = order[i], here[i], i
        while place > 0 and here[place - 1] > key and tick[order[place - 1]] == tick[entry]:
            order[place], here[place] = order[place - 1], here[place - 1]
            place -= 1
        order[place], here[place] = entry, key
    return order


@part_of_kernels
def _bucket(tick: Any, bits: Any, leading: Any) -> Any:
    """Return the bucket of a key, by tick and then by so many leading bits."""
    return np.int64(tick) << leading | np.int64(bits >> np.uint64(1) >> np.uint64(63 - leading))


@kernel
def engagement_numbers(agent: Int32, post: Int32, action: Int32, root: Int32) -> Int64:
    """Return a number for each engagement, equal for those that count once: by post for replies, else by root."""
    out = np.empty(len(agent), np.int64)
    for i in range(len(agent)):
        about = post[i] if action[i] == REPLY else root[post[i]]
        out[i] = np.int64(agent[i]) << AGENT | np.int64(about) << ABOUT | np.int64(action[i])
    return out


@kernel
def order_of_engagements(numbers: Int64, tick: Int32, agent: Int32, ticks: int, n_agents: int) -> Int32:
    """Return the order by number and tick, stable; ticks above `ticks` are from before the round and come first.

    Only engagements of one agent are compared, since numbers ascend by agent. Returns nothing where some agents do so
    much that sorting is faster.
    """
    order, moved = order_by_agent(agent, n_agents), 0
    for i in range(1, len(order)):
        if moved > _MOST_MOVED * len(order):
            return order[:0]
        entry, place = order[i], i
        now = tick[entry] if tick[entry] <= ticks else 0
        while place > 0:
            other = order[place - 1]
            when = tick[other] if tick[other] <= ticks else 0
            if numbers[other] < numbers[entry] or (numbers[other] == numbers[entry] and when <= now):
                break
            order[place] = other
            place -= 1
        order[place] = entry
        moved += i - place
    return order


@kernel
def may_repeat(numbers: Int64, oldest: int, suspects: Mask) -> Int64:
    """Return the engagements with posts older than `oldest`, or by agents of `suspects`."""
    out, n = np.empty(len(numbers), np.int64), np.int64(0)
    for i in range(len(numbers)):
        about = numbers[i] >> ABOUT & ((1 << AGENT - ABOUT) - 1)
        out[n] = i
        n += np.int64(about < oldest) | np.int64(suspects[numbers[i] >> AGENT])
    return out[:n]


@kernel
def spread_keys(key: np.uint64, tick: Int32, agent: Int32, post: Int32, kind: Int64, post_key: Keys) -> Keys:
    """Return the keys of posts that engagements become, by agent, tick, parent and kind; `key` has the round in it."""
    out = np.empty(len(agent), np.uint64)
    for i in range(len(agent)):
        parent = post_key[post[i]] ^ np.uint64(kind[i])
        out[i] = mixed(mixed(mixed(key, np.uint64(tick[i])), parent), np.uint64(agent[i]))
    return out
