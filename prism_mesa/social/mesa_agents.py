"""A Mesa model whose agents are rows of a population; Mesa's agents are made over them when somebody asks for them.

Agents of a class with a script are scheduled by Mesa; the columns move all others. Who was removed is gone for Mesa at
once, and from the population when the next round opens. Mesa knows nothing of who is not there, but may come.
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
    """Agents as Mesa knows them, over the rows of the platform's population."""

    def __init__(self, *, rng: int) -> None:
        super().__init__(rng=rng)
        self._adopted: dict[int, SocialAgent] = {}
        self._all_made = self._in_order = False

    @property
    def agents(self) -> Any:
        """All agents as a Mesa AgentSet, by row; those that nobody asked for before are made now."""
        self._make_agents()
        return super().agents

    @property
    def agents_by_type(self) -> Any:
        """All agents as Mesa AgentSets by their class; those that nobody asked for before are made now."""
        self._make_agents()
        return super().agents_by_type

    def remove_all_agents(self) -> None:
        """Let all agents leave the platform."""
        self._make_agents()
        super().remove_all_agents()

    @property
    def agent_types(self) -> list[type]:
        """The classes of all agents."""
        return list(self.agents_by_type)

    def _make_agents(self) -> None:
        """Make the agents that nobody asked for before, and put all in the order of rows; Mesa's own come last."""
        if not self._all_made:  # who comes later is made as it comes
            for row in np.flatnonzero(self.population.present).tolist():
                if row not in self._adopted and row not in self.leaving:
                    SocialAgent(self, row)
            self._all_made = True
        if not self._in_order:
            for agents in (super().agents, *super().agents_by_type.values()):
                agents.sort(_row_of, ascending=True, inplace=True)
            self._in_order = True

    def agent(self, row: int) -> SocialAgent:
        """Return the agent of a row; it is made when first asked for."""
        return self._adopted.get(row) or SocialAgent(self, row)

    def register_agent(self, agent: mesa.Agent) -> None:
        """Take in an agent; Mesa calls it for each new one. One of the platform takes over its row."""
        super().register_agent(agent)
        if not isinstance(agent, SocialAgent):
            agent.unique_id = -agent.unique_id  # ids above 0 are rows + 1
            return
        before = self._adopted.get(agent.row)
        if before is not None:
            mesa.Agent.remove(before)
        self._adopted[agent.row] = agent
        self._in_order = False
        agent.unique_id = agent.row + 1
        self.population.scripted[agent.row] = is_scripted(type(agent))
        if not self.population.present[agent.row]:
            self.deregister_agent(agent)

    @property
    def made_by_class(self) -> dict[type[Any], list[Any]]:
        """The agents that somebody asked for, and those that are Mesa's alone, by class; last those who may come."""
        found = {kind: list(agents) for kind, agents in super().agents_by_type.items()}
        people = self.population
        for row, agent in self._adopted.items():
            if not people.present[row] and people.membership[row] in (WAITS, AWAY) and row not in self.leaving:
                found[type(agent)].append(agent)
        return found

    def have_moved(self, rows: Iterable[int]) -> None:
        """Let Mesa know the agents of some rows who are on the platform, and forget those who are not."""
        known, self._all_made = super().agents, False
        for agent in filter(None, map(self._adopted.get, rows)) if self._adopted else ():
            is_there = bool(self.population.present[agent.row]) and agent.row not in self.leaving
            if is_there and agent not in known:
                super().register_agent(agent)
                agent.unique_id, self._in_order = agent.row + 1, False
            elif not is_there:
                mesa.Agent.remove(agent)

    def agent_of_class[A: SocialAgent](self, row: int, kind: type[A]) -> A:
        """Return the agent of a row; one of another class makes room for a new one, whose `__init__` is not called."""
        agent = self._adopted.get(row)
        if type(agent) is not kind:
            agent = kind.__new__(kind)
            agent.row, agent.model = row, self
            mesa.Agent.__init__(agent, self)
        return agent

    def put_in_order(self, kinds: Sequence[type[Any]], agents: Sequence[SocialAgent]) -> None:
        """Let Mesa have these classes, and these agents, in this order; all others come before them."""
        place = {agent: i for i, agent in enumerate(agents)}
        by_type = super().agents_by_type
        for one in (super().agents, *by_type.values()):
            one.sort(lambda agent: place.get(agent, -1), ascending=True, inplace=True)
        for kind in kinds:
            if kind in by_type:
                by_type[kind] = by_type.pop(kind)
        self._all_made = self._in_order = False

    @property
    def made_agents(self) -> Iterable[SocialAgent]:
        """The agents that somebody asked for, in the order of asking."""
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
        """Return who has the agents of a copy of the platform, which does without Mesa.

        Raises:
            AgentError: If some agents have scripts: they are no state of the platform.
        """
        if self.has_scripted_classes:
            raise AgentError("agents with scripts of their own are copied with their model: copy.deepcopy(model)")
        return PlainAgents(platform)

    def step_scripts(self) -> None:
        """Let Mesa call the `step` of the agents that it schedules."""
        if self.params.scheduler == "mesa":
            scheduled = list(self.agents)
        else:
            by_type = super().agents_by_type.items()
            scheduled = [agent for kind, agents in by_type if is_scripted(kind) for agent in agents]
        # a set of its own: who is removed in this tick still does it, in any order of agents
        AgentSet(scheduled, random=self.random).do("step")

    def state_counts(self) -> dict[AgentState, int]:
        """Return the number of agents in each state, for `state_distribution` and `agents_in_state`.

        Who was removed is counted no more, as in `agents`.
        """
        return self.population.state_counts(list(self.leaving))


def _row_of(agent: mesa.Agent) -> float:
    return agent.row if isinstance(agent, SocialAgent) else float("inf")


def is_scripted(kind: type) -> bool:
    """Return whether agents of a class are scheduled by Mesa: it overrides something that columns would not see."""
    if not issubclass(kind, SocialAgent):
        return True
    own = kind.__mro__[: kind.__mro__.index(SocialAgent)]
    known = vars(SocialAgent).keys() | vars(PlatformAgent).keys()
    return any(name in known for base in own for name in vars(base) if not name.startswith("__"))
