"""Close ties of agents: drawn beside the other follows of a network, or found in one from a file."""

from typing import Final

import numpy as np

from prism_mesa.kernels.ties import choose_pairs, draw_near, mutual_pairs, union_of_rows
from prism_mesa.social.state.network import FollowNetwork, from_parts
from prism_mesa.streams import Streams

REACH: Final = 50
"""The longest distance of a drawn close tie, on the ring of row numbers."""


def with_close_ties(network: FollowNetwork, mean: int, streams: Streams) -> FollowNetwork:
    """Return the network with `mean` close ties of each agent beside its other follows, on average.

    Each agent draws half of them, at a distance of 1 to `REACH` on the ring of row numbers; half a tie is one tie for
    every other agent. Both follow each other. Among few agents, ties go no further than half around the ring.
    """
    if not mean:
        return network
    n = network.n_agents
    agents, most = np.arange(n, dtype=np.int32), max(1, min(REACH, (n - 1) // 2))
    wanted = np.full(n, mean // 2)
    if mean % 2:
        wanted += streams.uniform("half a close tie", agents) < 0.5
    indptr = np.append(0, np.cumsum(np.minimum(wanted, most)))
    others = np.empty(int(indptr[-1]), np.int32)
    draw_near(streams.key("close tie"), most, indptr, others)
    own = np.repeat(agents, np.diff(indptr))
    close = from_parts([(own, others), (others, own)], n)
    return _beside(network, close)


def _beside(network: FollowNetwork, close: FollowNetwork) -> FollowNetwork:
    """Return a network that has the follows of both, and knows which are close ties."""
    indptr, indices = np.empty_like(network.indptr), np.empty(network.n_edges + close.n_edges, np.int32)
    kept = union_of_rows(network.indptr, network.indices, close.indptr, close.indices, indptr, indices)
    both = indices[:kept].copy() if kept < len(indices) else indices
    return FollowNetwork(indptr, both, network.dropped, network.notes, close.indptr, close.indices)


def with_mutual_ties(network: FollowNetwork, most: int, streams: Streams) -> FollowNetwork:
    """Return the network with up to `most` of each agent's mutual follows as close ties.

    Mutual follows are gone through by the sum of the two agents' followers, the lowest first and equal ones in a keyed
    order; one becomes a close tie if both agents have less than `most` by then.
    """
    if not most:
        return network
    one, other = (np.empty(network.n_edges // 2, np.int32) for _ in range(2))
    found = mutual_pairs(network.indptr, network.indices, one, other)
    one, other = one[:found].copy(), other[:found].copy()
    followers = network.n_followers.astype(np.uint64)
    chance = streams.bits("mutual tie", one, index=other) >> np.uint64(28)  # below 2**36, and the sum below 2**28
    order = np.argsort((followers[one] + followers[other]) << np.uint64(36) | chance)
    taken = choose_pairs(order, one, other, most, network.n_agents)
    one, other = one[taken], other[taken]
    close = from_parts([(one, other), (other, one)], network.n_agents)
    return FollowNetwork(network.indptr, network.indices, network.dropped, network.notes, close.indptr, close.indices)
