"""The drawn world of a run, kept for other processes."""

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
"""Columns of a population that are kept; attributes, perhaps of a user's function, are computed again."""

DEAR: Final = 16_000_000
"""Follows from which on a world is kept; drawing them takes about two CPU seconds."""


@dataclass(frozen=True)
class KeptWorld:
    """A drawn network, and the columns of a population that were drawn, by name."""

    network: FollowNetwork
    columns: dict[str, npt.NDArray[Any]]


def world_to_keep(params: SocialParams, network: FollowNetwork, people: Population) -> dict[str, Plain] | None:
    """Return a world at its start as plain data; None if it is quick to draw, or partly read from files."""
    is_read = (params.network.edges, params.agents.profiles, params.posts.file) != (None, None, None)
    if is_read or network.n_edges < DEAR or network.dropped or network.notes:
        return None
    return {"network": network.snapshot(), "agents": {name: getattr(people, name) for name in KEPT}}


def kept_world(kept: Mapping[str, Plain]) -> KeptWorld:
    """Return the world of a `world_to_keep`; restoring a snapshot checks that it belongs to the run."""
    network = FollowNetwork(np.zeros(1, np.int64), np.zeros(0, np.int32))
    network.restore(kept["network"])
    return KeptWorld(network, {name: restored(column) for name, column in kept["agents"].items()})
