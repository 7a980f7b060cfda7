"""`SocialAgent`: a user of the platform as an agent of Mesa."""

from collections.abc import Sequence
from typing import Any

import mesa

from prism_mesa.errors import AgentError
from prism_mesa.social.newcomers import add_row, existing_row
from prism_mesa.social.platform import Platform
from prism_mesa.social.platform_agent import PlatformAgent
from prism_mesa.social.platform_model import PlatformModel
from prism_mesa.social.state.population import GONE


class SocialAgent(PlatformAgent, mesa.Agent):
    """One user of the platform.

    A subclass that overrides `step`, or anything else of this class, is scheduled by Mesa in every tick,
    beside the columns, and does what its author wrote; its `step` may use `feed`, `read`, `fire`, `like`,
    `reply`, `reshare` and `write`, and `follow`, `unfollow`, `mute`, `block` and `report`.

    Args:
        model: The platform.
        row: The row of the population to take over (the ordinary agent there is replaced); None makes a
            new agent, who is on the platform from the next round on.
        follows: Rows of the agents that a new agent follows.
        followers: Rows of the agents that follow a new agent.
        fields: Values for any settable field, for example ``engagement_threshold=0.7``.

    Raises:
        AgentError: (a ValueError) if a field is out of its range, or the row is not there.
        StateTypeError: (a TypeError) if `state` is no `AgentState`.
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
            is_declared = name in platform.attributes.known.agents
            if not is_declared and getattr(getattr(type(self), name, None), "fset", None) is None:
                raise AgentError(f"{type(self).__name__} has no field {name!r} that can be set")
        for name in platform.attributes.known.agents:
            if hasattr(type(self), name):
                raise AgentError(
                    f"{type(self).__name__}.{name}: attributes.{name} of the configuration is called so, too"
                )
        is_new = row is None
        row = add_row(platform, follows, followers) if row is None else existing_row(platform, row)
        self.row = row
        self.model = model
        try:
            for name, value in fields.items():
                setattr(self, name, value)
        except BaseException:
            if is_new:
                platform.population.present[row] = False  # no agent was made: the row stays empty
                platform.population.membership[row] = GONE
            raise
        mesa.Agent.__init__(self, model)

    @property
    def _is_made(self) -> bool:
        return "model" in self.__dict__

    @property
    def _platform(self) -> Platform:
        return self.model.platform

    def remove(self) -> None:
        """Leave the platform: from the next round on the agent is gone (one with a script at once); its posts stay.

        `SocialModel.agents` and the counts of states are without it at once.
        """
        self._platform.leaving[self.row] = None
        super().remove()
