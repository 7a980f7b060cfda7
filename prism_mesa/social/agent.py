"""`SocialAgent`: a user of the platform as a Mesa agent."""

from collections.abc import Sequence
from typing import Any

import mesa
import numpy as np

from prism_mesa.errors import AgentError
from prism_mesa.social.platform import Platform
from prism_mesa.social.platform_agent import PlatformAgent
from prism_mesa.social.platform_model import PlatformModel
from prism_mesa.social.state.population import AWAY, GONE, SUSPENDED, WAITING
from prism_mesa.social.world.profiles import draw_interests, draw_profiles
from prism_mesa.social.world.rates import popularity_of_last


class SocialAgent(PlatformAgent, mesa.Agent):
    """One user of the platform.

    In every tick, Mesa schedules the agents of a subclass that overrides `step` or any other member of this class. All
    other agents are updated as columns. A `step` may use `feed`, `read`, `fire`, `like`, `reply`, `reshare`, `write`,
    `follow`, `unfollow`, `mute`, `block` and `report`.

    Args:
        model: The platform.
        row: The row of the agent to replace; None adds an agent that joins in the next round.
        follows: Rows of the agents that a new agent follows.
        followers: Rows of the agents that follow a new agent.
        fields: Values for any settable field, for example ``engagement_threshold=0.7``.

    Raises:
        AgentError: If a field is out of range, or the row does not exist (a ValueError).
        StateTypeError: If `state` is not an `AgentState` (a TypeError).
    """

    model: PlatformModel

    def __init__(
        self,
        model: PlatformModel,
        row: int | None = None,
        *,
        follows: Sequence[int] = (),
        followers: Sequence[int] = (),
        **fields: Any,
    ) -> None:
        platform = model.platform
        for name in fields:
            is_declared = name in platform.attributes.schema.agents
            if not is_declared and getattr(getattr(type(self), name, None), "fset", None) is None:
                raise AgentError(f"{type(self).__name__} has no settable field {name!r}")
        for name in platform.attributes.schema.agents:
            if hasattr(type(self), name):
                raise AgentError(f"{type(self).__name__}.{name}: attributes.{name} has the same name: rename one")
        is_new = row is None
        row = add_row(platform, follows, followers) if row is None else require_row(platform, row)
        self.row = row
        self.model = model
        try:
            for name, value in fields.items():
                setattr(self, name, value)
        except BaseException:
            if is_new:
                platform.population.present[row] = False  # the row stays empty
                platform.population.membership[row] = GONE
            raise
        mesa.Agent.__init__(self, model)

    @property
    def _is_initialised(self) -> bool:
        return "model" in self.__dict__

    @property
    def _platform(self) -> Platform:
        return self.model.platform

    def remove(self) -> None:
        """Remove the agent from the next round on; an agent with a script stops at once. Its posts stay.

        `SocialModel.agents` and the state counts leave the agent out at once.
        """
        self._platform.leaving[self.row] = None
        super().remove()


def require_row(platform: Platform, row: int, *, only_present: bool = False) -> int:
    """Return `row` if its agent is present, or may still join or come back (unless `only_present`).

    Raises:
        AgentError: If there is no such row, or its agent has left for good.
    """
    population = platform.population
    is_row = 0 <= row < len(population) and row not in platform.leaving
    can_join = not only_present and is_row and population.membership[row] in (WAITING, AWAY, SUSPENDED)
    if not (is_row and (population.present[row] or can_join)):
        raise AgentError(f"row {row} holds no agent (rows: 0 .. {len(population) - 1})")
    return int(row)


def add_row(platform: Platform, follows: Sequence[int], followers: Sequence[int]) -> int:
    """Draw an agent, add it to the population and the network, and return its row.

    Raises:
        AgentError: If one of `follows` or `followers` is not an agent.
    """
    row = len(platform.population)
    for other in (*follows, *followers):
        require_row(platform, other, only_present=True)
    agents, params = np.array([row]), platform.params
    streams = platform.streams.with_seed(params.agents.seed)
    interests = draw_interests(agents, platform.topics, streams)
    agent_id = str(row) if str(row) not in platform.population.ids else f"new {row}"
    platform.network = platform.network.with_agent(follows, followers)
    popularity = popularity_of_last(platform.network, params.agents, streams)
    newcomer = draw_profiles(agents, [agent_id], interests, params, streams, popularity)
    newcomer.attributes = platform.attributes.agent_values(agents, newcomer, platform.network)
    newcomer.membership[:] = WAITING  # until the next round opens
    platform.population.append(newcomer)
    platform.population.state[row] = platform.charts[0].initial.code
    platform.history.grow(1)
    for exposure in (platform.exposure, platform.copies, platform.read_roots):
        exposure.grow(1)
    platform.recorded.grow(row + 1)
    if len(platform.marks.agents):
        platform.marks = platform.marks._replace(agents=np.append(platform.marks.agents, np.uint32(0)))
    if len(platform.marks.sees_no_likes):
        platform.marks = platform.marks._replace(sees_no_likes=np.append(platform.marks.sees_no_likes, False))
    return row
