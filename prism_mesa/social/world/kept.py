"""The world of a run as it was drawn, kept for another process that would have to draw it once more."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import DataError
from prism_mesa.snapshot import Plain, require, restored_like
from prism_mesa.social.params import SocialParams
from prism_mesa.social.snapshots.bounds import check_network
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.population import WHO_THEY_ARE, Population
from prism_mesa.social.state.topics import topics_of
from prism_mesa.social.world.corpus import load_corpus
from prism_mesa.social.world.profiles import draw_interests, draw_profiles
from prism_mesa.streams import Streams

KEPT: Final = tuple(name for name in WHO_THEY_ARE if name != "attributes")
"""Columns of a population that are kept; attributes may come from a user's function, which is asked again."""

DEAR: Final = 16_000_000
"""Follows of a network from which on a world is kept: about two CPU seconds of drawing it."""


@dataclass(frozen=True)
class KeptWorld:
    """What was drawn: a network, and the columns of a population that say who the agents are, by their names."""

    network: FollowNetwork
    columns: dict[str, npt.NDArray[Any]]


def is_drawn(params: SocialParams) -> bool:
    """Return whether network and agents are drawn, and nothing about them is read from files."""
    return params.network.edges is None and params.agents.profiles is None and params.posts.file is None


def world_to_keep(params: SocialParams, network: FollowNetwork, people: Population) -> dict[str, Plain] | None:
    """Return a world as plain data; None if it is soon drawn again, or not all of it is drawn.

    Args:
        params: What it was made of.
        network: That of the beginning.
        people: The agents, who are as they were at the beginning.
    """
    if not is_drawn(params) or network.n_edges < DEAR or network.dropped or network.notes:
        return None
    return {"network": network.snapshot(), "agents": {name: getattr(people, name) for name in KEPT}}


def kept_world(kept: Mapping[str, Plain], params: SocialParams, checksum: int) -> KeptWorld:
    """Return the world that `world_to_keep` gave.

    Args:
        kept: What it returned.
        params: What the world would be made of.
        checksum: Of the network that it should be. Who the agents are is compared when a snapshot is brought back.

    Raises:
        DataError: If it is damaged, or another.
    """
    n, like = params.agents.n, _one_agent(params)
    network = FollowNetwork(np.zeros(1, np.int64), np.zeros(0, np.int32))
    try:
        network.restore(kept["network"])
        columns = {name: restored_like(name, kept["agents"][name], getattr(like, name)) for name in KEPT}
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        raise DataError(f"it is no world ({type(error).__name__}: {error})") from None
    require({len(column) for column in columns.values()} == {n}, f"columns of {n:,} agents differ in length")
    check_network(network, n)
    require(network.checksum == checksum, "the network is not that of the run")
    return KeptWorld(network, columns)


def _one_agent(params: SocialParams) -> Population:
    """Return the first agent: its columns are of the types that all have."""
    rows, streams = np.arange(1), Streams(params.seed)
    topics = topics_of(load_corpus(None, params.files), params.posts)
    return draw_profiles(rows, ["0"], draw_interests(rows, topics, streams), params, streams, np.zeros(1))
