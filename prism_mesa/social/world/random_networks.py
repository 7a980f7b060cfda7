"""Random networks and close ties; the module `follows` reads files of edges."""

from collections.abc import Callable
from math import inf, lgamma, log1p, sqrt
from typing import Final

import numpy as np

from prism_mesa.arrays import Floats, Int32, Ints, Rows
from prism_mesa.errors import ConfigError
from prism_mesa.kernels.network import attach, choose_pairs, draw_block_rows, draw_rows, mutual_pairs, rewire
from prism_mesa.social.params import NetworkParams
from prism_mesa.social.state.chunks import blocks, fill_in_blocks
from prism_mesa.social.state.network import FollowNetwork, from_parts
from prism_mesa.streams import Streams

MEAN_DRAWS: Final = 8
"""Mean number of draws per follow; follows still missing are then drawn without replacement."""

_MIN_SHARE_LEFT: Final = 0.01
"""Minimum share of an agent's popularity that remains for follows that are not mutual."""


def generate_network(params: NetworkParams, n: int, streams: Streams) -> FollowNetwork:
    """Return a network of `n` agents of kind ``params.kind``.

    Raises:
        ConfigError: If `mean_degree` is not possible among `n` agents, or within and between their blocks.
    """
    degree = params.mean_degree
    if degree > n - 1:
        raise ConfigError(
            f"network.mean_degree: {degree} is more than the {n - 1} others that each of {n} agents can follow: "
            f"set network.mean_degree={n - 1} or less, or more agents"
        )
    kinds: dict[str, Callable[[NetworkParams, int, Streams], FollowNetwork]] = {
        "configuration": _configuration,
        "erdos_renyi": _erdos_renyi,
        "stochastic_block": _stochastic_block,
        "watts_strogatz": _watts_strogatz,
        "barabasi_albert": _barabasi_albert,
    }
    return kinds[params.kind](params, n, streams)


def _erdos_renyi(params: NetworkParams, n: int, streams: Streams) -> FollowNetwork:
    """Everyone follows everyone else with the same probability (Gilbert 1959, doi:10.1214/aoms/1177706098)."""
    return _draw_follows(np.array([0, n]), params.mean_degree / (n - 1), 0.0, streams)


def _stochastic_block(params: NetworkParams, n: int, streams: Streams) -> FollowNetwork:
    """Directed stochastic block model: the share `within` of an agent's follows stays inside its block."""
    if params.blocks > n:
        raise ConfigError(f"network.blocks: {params.blocks} is more than the {n} agents")
    size, n_larger = divmod(n, params.blocks)
    max_size = size + bool(n_larger)
    share = params.within if params.blocks > 1 else 1.0
    p_inside = params.mean_degree * share / max(1, size - 1)
    p_outside = params.mean_degree * (1.0 - share) / max(1, n - max_size)
    if p_inside > 1.0 or p_outside > 1.0:
        raise ConfigError(
            f"network.within: {share:g} of {params.mean_degree:g} follows do not fit: a block of {size} agents has "
            f"{size - 1} others inside and {n - max_size} outside; change within, blocks or mean_degree"
        )
    return _draw_follows(block_bounds(params.blocks, n), p_inside, p_outside, streams)


def block_bounds(blocks: int, n: int) -> Ints:
    """Return the bounds of blocks of `n` agents: block b has the rows from ``bounds[b]`` to ``bounds[b + 1] - 1``.

    Blocks are equal; if `n` is not divisible by `blocks`, the first blocks have one more agent.
    """
    size, n_larger = divmod(n, blocks)
    return np.arange(blocks + 1) * size + np.minimum(np.arange(blocks + 1), n_larger)


def _draw_follows(bounds: Ints, p_inside: float, p_outside: float, streams: Streams) -> FollowNetwork:
    n, key = int(bounds[-1]), streams.key("follow")
    log_in, log_out = (log1p(-probability) if probability < 1.0 else -inf for probability in (p_inside, p_outside))
    indptr, no_indices = np.zeros(n + 1, np.int64), np.zeros(0, np.int32)
    draw_block_rows(0, n, key, bounds, log_in, log_out, indptr, no_indices)
    np.cumsum(indptr, out=indptr)
    indices = np.empty(int(indptr[-1]), np.int32)
    draw_block_rows(0, n, key, bounds, log_in, log_out, indptr, indices)
    return FollowNetwork(indptr, indices)


def _watts_strogatz(params: NetworkParams, n: int, streams: Streams) -> FollowNetwork:
    """Neighbours on a ring follow each other; in a share `rewire` of the pairs, a random agent replaces the second."""
    half = max(1, round(params.mean_degree / 2))
    if 2 * half >= n:
        return _draw_follows(np.array([0, n]), 1.0, 0.0, streams)
    agents = np.arange(n, dtype=np.int32)
    others = np.empty((n, half), np.int32)
    for index in range(half):
        others[:, index] = (agents + index + 1) % n
    rewire(streams.key("rewired to"), streams.key("rewire"), params.rewire, others)
    first, second = np.repeat(agents, half), others.reshape(-1)
    return from_parts([(first, second), (second, first)], n)


def _barabasi_albert(params: NetworkParams, n: int, streams: Streams) -> FollowNetwork:
    """Newcomers follow popular agents (Barabasi and Albert 1999), and a share of them is followed back."""
    m = min(n - 1, max(1, round(params.mean_degree / (1 + params.reciprocity))))
    older = np.empty(m * (n - m), np.int32)
    attach(streams.key("attach"), n, m, older)
    newer = np.append(np.arange(1, m + 1, dtype=np.int32), np.repeat(np.arange(m + 1, n, dtype=np.int32), m))
    is_followed_back = np.empty(len(older), np.bool_)
    for part in blocks(len(older)):
        is_followed_back[part] = streams.uniform("follow back", newer[part], index=older[part]) < params.reciprocity
    return from_parts([(older, newer), (newer[is_followed_back], older[is_followed_back])], n)


def _configuration(params: NetworkParams, n: int, streams: Streams) -> FollowNetwork:
    """Directed configuration model: popularity is lognormal, and follows are drawn in proportion to it.

    The number of an agent's followees is Poisson, or lognormal and at least 1. Mutual follows are drawn first: the
    numbers of followees stay the same, and the numbers of followers hardly change. Repeated follows are drawn again, in
    the end without replacement. Lognormal draws are rounded to float32, because digits of exp differ between machines.
    """
    agents, sigma = np.arange(n), params.follower_sigma
    popularity = fill_in_blocks(
        np.empty(n, np.float32), agents, lambda rows: np.exp(sigma * streams.normal("popularity", rows))
    ).astype(np.float64)
    n_followees = fill_in_blocks(np.empty(n, np.int32), agents, _followee_draws(params, n, streams))
    n_followees = np.minimum(n_followees, n - 1)
    popularity_per_follow = np.cumsum(popularity)[-1] / max(1, int(n_followees.sum()))  # popularity per follower
    mutual = _draw_mutual(params.mutual, popularity / popularity_per_follow, n_followees, streams)
    popularity_left = np.maximum(popularity - mutual.n_followers * popularity_per_follow, _MIN_SHARE_LEFT * popularity)
    lengths = np.maximum(n_followees, mutual.n_followees)
    network, n_drawn = _draw_followees(popularity_left, lengths, mutual, streams.key("follow"))
    for row in np.flatnonzero(n_drawn < lengths).tolist():
        _fill_row(row, network.followees(row), int(n_drawn[row]), popularity_left, streams)
    return network


def _draw_mutual(share: float, followers: Floats, followees: Int32, streams: Streams) -> FollowNetwork:
    """Draw mutual follows: a share of the maximum that the expected followers and followees allow.

    Each agent draws half of its partners, in proportion to the partners' own target numbers.
    """
    n = len(followees)
    partners = share * np.minimum(followers, followees)
    halves = np.floor(partners / 2 + streams.uniform("half a mutual follow", np.arange(n))).astype(np.int64)
    empty = from_parts([], n)
    if not halves.any():
        return empty
    drawn, n_drawn = _draw_followees(partners, np.minimum(halves, n - 1), empty, streams.key("mutual follow"))
    second, first = drawn.edges()
    is_drawn = np.arange(len(first)) - drawn.indptr[first] < n_drawn[first]
    first, second = first[is_drawn], second[is_drawn]
    return from_parts([(first, second), (second, first)], n)


def _draw_followees(
    weights: Floats, lengths: Int32, fixed: FollowNetwork, key: np.uint64
) -> tuple[FollowNetwork, Int32]:
    """Return rows of followees, fixed ones first, then drawn by weight, and the number of followees in each row."""
    n, indptr = len(weights), np.zeros(len(weights) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    indices, n_drawn = np.empty(int(indptr[-1]), np.int32), np.empty(n, np.int32)
    cumulative = np.cumsum(weights)
    cumulative /= cumulative[-1]
    guide = np.searchsorted(cumulative, np.arange(n) / n, side="right").astype(np.int32)
    draw_rows(0, n, key, cumulative, guide, MEAN_DRAWS, fixed.indptr, fixed.indices, indptr, indices, n_drawn)
    return FollowNetwork(indptr, indices), n_drawn


def _followee_draws(params: NetworkParams, n: int, streams: Streams) -> Callable[[Rows], Rows | Floats]:
    mean, sigma = params.mean_degree, params.followee_sigma
    correlation = params.correlation if params.follower_sigma else 0.0
    if not sigma:
        cumulative = _poisson(mean)
        return lambda rows: np.searchsorted(cumulative, streams.uniform("followees", rows), "right")

    def lognormal(rows: Rows) -> Floats:
        independent, popularity = (streams.normal(purpose, rows) for purpose in ("followees", "popularity"))
        normal = correlation * popularity + sqrt(1 - correlation * correlation) * independent
        drawn = mean * np.exp(sigma * normal - sigma * sigma / 2)
        return np.clip(np.rint(drawn.astype(np.float32)), 1, n - 1)

    return lognormal


def _poisson(mean: float) -> Floats:
    """Return the cumulative Poisson probabilities of 0, 1, 2, ..., up to 12 standard deviations above the mean."""
    k = np.arange(int(mean + 12 * np.sqrt(mean) + 12))
    logs = k * np.log(mean) - mean - np.array([lgamma(i + 1) for i in k])
    return np.cumsum(np.exp(logs))


def _fill_row(row: int, followees: Int32, n_drawn: int, weights: Floats, streams: Streams) -> None:
    """Fill ``followees[n_drawn:]`` with the agents of the smallest exponential draws, whose rates are the weights.

    Efraimidis and Spirakis 2006, doi:10.1016/j.ipl.2005.11.003.
    """
    u = streams.uniform("follow at last", row, index=np.arange(len(weights)))
    draws = -np.log1p(-u) / weights
    draws[np.append(followees[:n_drawn], row)] = np.inf
    n_missing = len(followees) - n_drawn
    followees[n_drawn:] = np.argpartition(draws, n_missing - 1)[:n_missing]
    followees.sort()


def with_close_ties(network: FollowNetwork, max_ties: int, streams: Streams) -> FollowNetwork:
    """Return the network with up to `max_ties` close ties per agent, chosen among mutual follows.

    Pairs with the fewest followers in total come first; equal pairs are in a keyed order. A pair becomes a close tie if
    both agents still have fewer than `max_ties`.
    """
    if not max_ties:
        return network
    first, second = (np.empty(network.n_edges // 2, np.int32) for _ in range(2))
    n_pairs = mutual_pairs(network.indptr, network.indices, first, second)
    first, second = first[:n_pairs].copy(), second[:n_pairs].copy()
    followers = network.n_followers.astype(np.uint64)
    tie_draws = streams.bits("mutual tie", first, index=second) >> np.uint64(28)  # below 2**36; sums are below 2**28
    order = np.argsort((followers[first] + followers[second]) << np.uint64(36) | tie_draws)
    pairs = choose_pairs(order, first, second, max_ties, network.n_agents)
    first, second = first[pairs], second[pairs]
    close = from_parts([(first, second), (second, first)], network.n_agents)
    return FollowNetwork(network.indptr, network.indices, network.dropped, network.notes, close.indptr, close.indices)
