"""A Mesa model whose agents are rows of a population; agent objects are made on first use.

Mesa schedules agents whose class has a script; all other agents are updated as columns. Mesa drops a removed agent at
once, and the population drops it when the next round opens. Mesa does not know agents that have not joined yet.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import mesa
import numpy as np
from mesa.agent import AgentSet

from prism_mesa.domain import AgentState
from prism_mesa.errors import AgentError
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.platform import Platform
from prism_mesa.social.platform_agent import PlainAgents, PlatformAgent
from prism_mesa.social.platform_model import PlatformModel
from prism_mesa.social.state.population import AWAY, SUSPENDED, WAITING


class PopulationModel(PlatformModel):
    """Mesa's view of the agents in the rows of the platform's population."""

    def __init__(self, *, rng: int) -> None:
        super().__init__(rng=rng)
        self._agents_by_row: dict[int, SocialAgent] = {}
        self._has_all_objects = self._is_sorted = False

    @property
    def agents(self) -> Any:
        """All agents as a Mesa AgentSet, by row; this makes all agent objects."""
        self._make_agents()
        return super().agents

    @property
    def agents_by_type(self) -> Any:
        """All agents as Mesa AgentSets, by class; this makes all agent objects."""
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
        """Make missing agent objects, and sort agents by row; agents of unrelated classes come last."""
        if not self._has_all_objects:  # agents that join later are made when they join
            for row in np.flatnonzero(self.population.present).tolist():
                if row not in self._agents_by_row and row not in self.leaving:
                    SocialAgent(self, row)
            self._has_all_objects = True
        if not self._is_sorted:
            for agents in (super().agents, *super().agents_by_type.values()):
                agents.sort(_sort_key, ascending=True, inplace=True)
            self._is_sorted = True

    def agent(self, row: int) -> SocialAgent:
        """Return the agent of a row; the first call makes the object."""
        return self._agents_by_row.get(row) or SocialAgent(self, row)

    def register_agent(self, agent: mesa.Agent) -> None:
        """Register a new agent (Mesa calls this); a `SocialAgent` takes over its row."""
        super().register_agent(agent)
        if not isinstance(agent, SocialAgent):
            agent.unique_id = -agent.unique_id  # ids above 0 are rows + 1
            return
        old_agent = self._agents_by_row.get(agent.row)
        if old_agent is not None:
            mesa.Agent.remove(old_agent)
        self._agents_by_row[agent.row] = agent
        self._is_sorted = False
        agent.unique_id = agent.row + 1
        self.population.scripted[agent.row] = is_scripted(type(agent))
        if not self.population.present[agent.row]:
            self.deregister_agent(agent)

    @property
    def agents_by_class(self) -> dict[type[Any], list[Any]]:
        """All agents that have objects, by class; in each class, agents that may still join come last."""
        by_class = {kind: list(agents) for kind, agents in super().agents_by_type.items()}
        population = self.population
        for row, agent in self._agents_by_row.items():
            is_absent = not population.present[row] and row not in self.leaving
            if is_absent and population.membership[row] in (WAITING, AWAY, SUSPENDED):
                by_class[type(agent)].append(agent)
        return by_class

    def update_presence(self, rows: Iterable[int]) -> None:
        """Register the present agents of `rows` with Mesa, and remove the absent agents."""
        registered, self._has_all_objects = super().agents, False
        for agent in filter(None, map(self._agents_by_row.get, rows)) if self._agents_by_row else ():
            is_present = bool(self.population.present[agent.row]) and agent.row not in self.leaving
            if is_present and agent not in registered:
                super().register_agent(agent)
                agent.unique_id, self._is_sorted = agent.row + 1, False
            elif not is_present:
                mesa.Agent.remove(agent)

    def agent_of_class[A: SocialAgent](self, row: int, kind: type[A]) -> A:
        """Return the agent of a row; an agent of another class is replaced, and `__init__` is not called."""
        agent = self._agents_by_row.get(row)
        if type(agent) is not kind:
            agent = kind.__new__(kind)
            agent.row, agent.model = row, self
            mesa.Agent.__init__(agent, self)
        return agent

    def sort_agents(self, classes: Sequence[type[Any]], agents: Sequence[SocialAgent]) -> None:
        """Put these classes and agents last in Mesa's collections, in the given order."""
        index = {agent: i for i, agent in enumerate(agents)}
        by_type = super().agents_by_type
        for agent_set in (super().agents, *by_type.values()):
            agent_set.sort(lambda agent: index.get(agent, -1), ascending=True, inplace=True)
        for kind in classes:
            if kind in by_type:
                by_type[kind] = by_type.pop(kind)
        self._has_all_objects = self._is_sorted = False

    @property
    def existing_agents(self) -> Iterable[SocialAgent]:
        """Agents whose objects exist, in order of creation."""
        return self._agents_by_row.values()

    @property
    def has_scripted_classes(self) -> bool:
        """Whether any agent's class has a script."""
        return any(map(is_scripted, super().agents_by_type))

    @property
    def has_scripts(self) -> bool:
        """Whether Mesa schedules any agent."""
        return self.params.scheduler == "mesa" or self.has_scripted_classes

    def copy_for(self, platform: Platform) -> PlainAgents:
        """Return agent objects for a copy of the platform, without Mesa.

        Raises:
            AgentError: If any agent has a script, because scripts are not part of the platform.
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
        """Return the number of agents in each state, without removed agents."""
        return self.population.state_counts(list(self.leaving), self.platform.states)


def _sort_key(agent: mesa.Agent) -> float:
    return agent.row if isinstance(agent, SocialAgent) else float("inf")


def is_scripted(kind: type) -> bool:
    """Return whether Mesa schedules the agents of a class: whether it overrides a member of `SocialAgent`."""
    if not issubclass(kind, SocialAgent):
        return True
    bases = kind.__mro__[: kind.__mro__.index(SocialAgent)]
    prism_members = vars(SocialAgent).keys() | vars(PlatformAgent).keys()
    return any(name in prism_members for base in bases for name in vars(base) if not name.startswith("__"))
