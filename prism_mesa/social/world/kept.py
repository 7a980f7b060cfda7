"""The world of a run as it was drawn, kept for another process that would have to draw it once more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.snapshot import Plain, restored
from prism_mesa.social.params import SocialParams
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.population import WHO_THEY_ARE, Population

KEPT: Final = tuple(name for name in WHO_THEY_ARE if name != "attributes")
"""Columns of a population that are kept; attributes may come from a user's function, which is asked again."""

DEAR: Final = 16_000_000
"""Follows of a network from which on a world is kept: about two CPU seconds of drawing it."""


@dataclass(frozen=True)
class KeptWorld:
    """What was drawn: a network, and the columns of a population that say who the agents are, by their names."""

    network: FollowNetwork
    columns: dict[str, npt.NDArray[Any]]


def world_to_keep(params: SocialParams, network: FollowNetwork, people: Population) -> dict[str, Plain] | None:
    """Return a world as plain data; None if it is soon drawn again, or not all of it is drawn.

    Args:
        params: What it was made of.
        network: That of the beginning.
        people: The agents, who are as they were at the beginning.
    """
    is_read = (params.network.edges, params.agents.profiles, params.posts.file) != (None, None, None)
    if is_read or network.n_edges < DEAR or network.dropped or network.notes:
        return None
    return {"network": network.snapshot(), "agents": {name: getattr(people, name) for name in KEPT}}


def kept_world(kept: Mapping[str, Plain]) -> KeptWorld:
    """Return the world that `world_to_keep` gave. Restoring a snapshot checks whether it is that of the run."""
    network = FollowNetwork(np.zeros(1, np.int64), np.zeros(0, np.int32))
    network.restore(kept["network"])
    return KeptWorld(network, {name: restored(column) for name, column in kept["agents"].items()})
