"""Close ties of agents: chosen among the mutual follows of a network."""

import numpy as np

from prism_mesa.kernels.network import choose_pairs, mutual_pairs
from prism_mesa.social.state.network import FollowNetwork, from_parts
from prism_mesa.streams import Streams


def with_close_ties(network: FollowNetwork, most: int, streams: Streams) -> FollowNetwork:
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
