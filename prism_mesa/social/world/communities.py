"""Communities of agents: the blocks of a stochastic block model; in other networks those who share a main interest."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.social.params import NetworkParams
from prism_mesa.social.world.random_networks import block_bounds

type Ints = npt.NDArray[np.integer[Any]]

NONE: Final = -1
"""The community of whoever has none: no interest has a name, or the agent came after the network was made."""


def find_communities(
    network: NetworkParams, n: int, names: Sequence[str], main_interest: Ints
) -> tuple[npt.NDArray[np.int64], int]:
    """Return the community of each agent, `NONE` or from 0, and how many there are.

    Args:
        network: How the network was made.
        n: Agents that it was made of; those of higher rows came later.
        names: Names of interests, some may be equal.
        main_interest: The place among them of what each agent likes best, -1 for none, shape (agents,).
    """
    if network.kind == "stochastic_block":
        own = np.searchsorted(block_bounds(network.blocks, n), np.arange(len(main_interest)), side="right") - 1
        return np.where(own < network.blocks, own, NONE), network.blocks
    codes, _ = pd.factorize(np.array([*names, ""], dtype=object), sort=True)
    blank = codes[-1]
    named = np.where(codes == blank, NONE, codes)[np.asarray(main_interest, np.int64)]
    there, place = np.unique(named, return_inverse=True)
    without = int(len(there) > 0 and there[0] == NONE)
    return place.astype(np.int64) - without, len(there) - without


def share_across(community: Ints, followed: Ints, follower: Ints, n: int) -> npt.NDArray[np.float64]:
    """Return which share of each agent's followers are of other communities; 0 for who has none, shape (n,).

    Args:
        community: Of each agent, `NONE` for none; follows to or from such are not counted.
        followed: Of each follow, the agent that is followed.
        follower: The one that follows it.
        n: Agents.
    """
    known = (community[followed] != NONE) & (community[follower] != NONE)
    across = known & (community[followed] != community[follower])
    counted, crossing = (np.bincount(followed[which], minlength=n) for which in (known, across))
    return np.asarray(crossing / np.maximum(counted, 1))
