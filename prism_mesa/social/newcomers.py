"""Agents that come to a platform after it has begun."""

from collections.abc import Sequence

import numpy as np

from prism_mesa.errors import AgentError
from prism_mesa.social.platform import Platform
from prism_mesa.social.state.population import AWAY, WAITS
from prism_mesa.social.world.profiles import draw_interests, draw_profiles
from prism_mesa.social.world.rates import popularity_of_last


def existing_row(platform: Platform, row: int, *, is_there: bool = False) -> int:
    """Return `row` if an agent can be made over it, one who is there or may come.

    Args:
        platform: The platform.
        row: The row.
        is_there: Whether it must be one who is there.

    Raises:
        AgentError: If there is no such row, or its agent has left for good.
    """
    population = platform.population
    comes = 0 <= row < len(population) and not is_there and population.membership[row] in (WAITS, AWAY)
    if not 0 <= row < len(population) or not (population.present[row] or comes) or row in platform.leaving:
        raise AgentError(f"row {row} holds no agent (rows: 0 .. {len(population) - 1})")
    return int(row)


def add_row(platform: Platform, follows: Sequence[int], followers: Sequence[int]) -> int:
    """Add a drawn agent to the population and the network, and return its row.

    Raises:
        AgentError: If one of those that it follows, or that follow it, is no agent.
    """
    row = len(platform.population)
    for other in (*follows, *followers):
        existing_row(platform, other, is_there=True)
    agents = np.array([row])
    params, streams = platform.params, platform.streams.of(platform.params.agents.seed)
    interests = draw_interests(agents, platform.topics, streams)
    own_id = str(row) if str(row) not in platform.population.ids else f"new {row}"
    platform.network = platform.network.with_agent(follows, followers)
    popularity = popularity_of_last(platform.network, params.agents, streams)
    newcomer = draw_profiles(agents, [own_id], interests, params, streams, popularity)
    newcomer.attributes = platform.attributes.of_agents(agents, newcomer, platform.network)
    newcomer.membership[:] = WAITS  # until the next round opens
    platform.population.append(newcomer)
    platform.population.state[row] = platform.chart.initial.code
    platform.history.grow(1)
    for known in (platform.exposure, platform.copies, platform.met):
        known.grow(1)
    platform.recorded.grow(row + 1)
    return row
