"""A Mesa model whose agents are rows of a population; each object is made when it is first read.

Mesa schedules the agents of classes with a script; the columns move all others. Mesa drops a removed agent at once; the
population drops it when the next round opens. Mesa does not know agents that have not joined.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import mesa
import numpy as np
from mesa.agent import AgentSet

from prism_mesa.errors import AgentError
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.platform import Platform
from prism_mesa.social.platform_agent import PlainAgents, PlatformAgent
from prism_mesa.social.platform_model import PlatformModel
from prism_mesa.social.state.population import AWAY, WAITS
from prism_mesa.statechart import AgentState


class PopulationModel(PlatformModel):
    """Mesa's view of the agents in the rows of the platform's population."""

    def __init__(self, *, rng: int) -> None:
        super().__init__(rng=rng)
        self._adopted: dict[int, SocialAgent] = {}
        self._all_made = self._in_order = False

    @property
    def agents(self) -> Any:
        """All agents as a Mesa AgentSet, by row; missing objects are made now."""
        self._make_agents()
        return super().agents

    @property
    def agents_by_type(self) -> Any:
        """All agents as Mesa AgentSets by their class; missing objects are made now."""
        self._make_agents()
        return super().agents_by_type

    def remove_all_agents(self) -> None:
        """Remove all agents from the platform."""
        self._make_agents()
        super().remove_all_agents()

    @property
    def agent_types(self) -> list[type]:
        """The classes of all agents."""
        return list(self.agents_by_type)

    def _make_agents(self) -> None:
        """Make the missing objects, and sort all agents by row; agents of other classes come last."""
        if not self._all_made:  # agents that come later are made as they come
            for row in np.flatnonzero(self.population.present).tolist():
                if row not in self._adopted and row not in self.leaving:
                    SocialAgent(self, row)
            self._all_made = True
        if not self._in_order:
            for agents in (super().agents, *super().agents_by_type.values()):
                agents.sort(_sort_key, ascending=True, inplace=True)
            self._in_order = True

    def agent(self, row: int) -> SocialAgent:
        """Return the agent of a row; it is made on the first call."""
        return self._adopted.get(row) or SocialAgent(self, row)

    def register_agent(self, agent: mesa.Agent) -> None:
        """Register a new agent, as Mesa calls it; an agent of the platform takes over its row."""
        super().register_agent(agent)
        if not isinstance(agent, SocialAgent):
            agent.unique_id = -agent.unique_id  # ids above 0 are rows + 1
            return
        old_agent = self._adopted.get(agent.row)
        if old_agent is not None:
            mesa.Agent.remove(old_agent)
        self._adopted[agent.row] = agent
        self._in_order = False
        agent.unique_id = agent.row + 1
        self.population.scripted[agent.row] = is_scripted(type(agent))
        if not self.population.present[agent.row]:
            self.deregister_agent(agent)

    @property
    def made_by_class(self) -> dict[type[Any], list[Any]]:
        """The agents with objects, and agents of other classes, by class; those that may still join come last."""
        by_class = {kind: list(agents) for kind, agents in super().agents_by_type.items()}
        population = self.population
        for row, agent in self._adopted.items():
            if not population.present[row] and population.membership[row] in (WAITS, AWAY) and row not in self.leaving:
                by_class[type(agent)].append(agent)
        return by_class

    def have_moved(self, rows: Iterable[int]) -> None:
        """Register with Mesa the agents of some rows that are present, and remove those that are not."""
        registered, self._all_made = super().agents, False
        for agent in filter(None, map(self._adopted.get, rows)) if self._adopted else ():
            is_present = bool(self.population.present[agent.row]) and agent.row not in self.leaving
            if is_present and agent not in registered:
                super().register_agent(agent)
                agent.unique_id, self._in_order = agent.row + 1, False
            elif not is_present:
                mesa.Agent.remove(agent)

    def agent_of_class[A: SocialAgent](self, row: int, kind: type[A]) -> A:
        """Return the agent of a row; one of another class is replaced, without a call of `__init__`."""
        agent = self._adopted.get(row)
        if type(agent) is not kind:
            agent = kind.__new__(kind)
            agent.row, agent.model = row, self
            mesa.Agent.__init__(agent, self)
        return agent

    def put_in_order(self, kinds: Sequence[type[Any]], agents: Sequence[SocialAgent]) -> None:
        """Sort Mesa's classes and agents in this order, after all others."""
        index = {agent: i for i, agent in enumerate(agents)}
        by_type = super().agents_by_type
        for agent_set in (super().agents, *by_type.values()):
            agent_set.sort(lambda agent: index.get(agent, -1), ascending=True, inplace=True)
        for kind in kinds:
            if kind in by_type:
                by_type[kind] = by_type.pop(kind)
        self._all_made = self._in_order = False

    @property
    def made_agents(self) -> Iterable[SocialAgent]:
        """The agents whose objects were made, in the order of making."""
        return self._adopted.values()

    @property
    def has_scripted_classes(self) -> bool:
        """Whether any agent's class has a script."""
        return any(map(is_scripted, super().agents_by_type))

    @property
    def has_scripts(self) -> bool:
        """Whether Mesa schedules any agent."""
        return self.params.scheduler == "mesa" or self.has_scripted_classes

    def for_copy(self, platform: Platform) -> PlainAgents:
        """Return the agents of a copy of the platform, without Mesa.

        Raises:
            AgentError: If some agents have scripts, which are not part of the platform.
        """
        if self.has_scripted_classes:
            raise AgentError("a platform cannot copy agents with scripts: use copy.deepcopy(model)")
        return PlainAgents(platform)

    def step_scripts(self) -> None:
        """Call the `step` of the agents that Mesa schedules."""
        if self.params.scheduler == "mesa":
            scheduled = list(self.agents)
        else:
            by_type = super().agents_by_type.items()
            scheduled = [agent for kind, agents in by_type if is_scripted(kind) for agent in agents]
        # a new set, so that agents removed in this tick still act, whatever the order
        AgentSet(scheduled, random=self.random).do("step")

    def state_counts(self) -> dict[AgentState, int]:
        """Return the number of agents in each state, as in `agents`, without removed ones."""
        return self.population.state_counts(list(self.leaving))


def _sort_key(agent: mesa.Agent) -> float:
    return agent.row if isinstance(agent, SocialAgent) else float("inf")


def is_scripted(kind: type) -> bool:
    """Return whether Mesa schedules agents of a class, because it overrides a member of `SocialAgent`."""
    if not issubclass(kind, SocialAgent):
        return True
    bases = kind.__mro__[: kind.__mro__.index(SocialAgent)]
    prism_members = vars(SocialAgent).keys() | vars(PlatformAgent).keys()
    return any(name in prism_members for base in bases for name in vars(base) if not name.startswith("__"))
