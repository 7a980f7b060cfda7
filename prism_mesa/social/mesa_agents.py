"""A Mesa model whose agents are rows of a population; Mesa's agents are made over them when somebody asks for them.

Agents of a class with a script are scheduled by Mesa; the columns move all others. Who was removed is gone for Mesa at
once, and from the population when the next round opens.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import mesa
import numpy as np
import numpy.typing as npt
from mesa.agent import AgentSet

from prism_mesa.errors import AgentError
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import IDLE
from prism_mesa.social.params import SocialParams
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.state.population import History, Population
from prism_mesa.social.state.sampling import Recorded
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.profiles import draw_interests, draw_profiles
from prism_mesa.statechart import AgentState, Statechart
from prism_mesa.streams import Streams


class PopulationModel(mesa.Model):
    """Agents as Mesa knows them, over the rows of `population`.

    Attributes:
        population: The agents, as columns.
        network: Who follows whom.
        history: What the agents did.
        exposure: What they have seen.
        recorded: Whose records are kept.
        leaving: Rows of agents that were removed since the last round opened, in that order.
    """

    params: SocialParams
    streams: Streams
    chart: Statechart
    population: Population
    network: FollowNetwork
    topics: Topics
    history: History
    exposure: Exposure
    recorded: Recorded

    def __init__(self, *, rng: int) -> None:
        super().__init__(rng=rng)
        self.leaving: dict[int, None] = {}
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

    def adopt(self, agent: SocialAgent) -> None:
        """Make `agent` the one of its row; called by `SocialAgent` itself."""
        before = self._adopted.get(agent.row)
        if before is not None:
            mesa.Agent.remove(before)
        self._adopted[agent.row] = agent
        self._in_order = False
        agent.unique_id = agent.row + 1
        self.population.scripted[agent.row] = is_scripted(type(agent))

    def existing_row(self, row: int) -> int:
        """Return `row` if an agent can be made over it.

        Raises:
            AgentError: If there is no such row, or its agent has left.
        """
        if not 0 <= row < len(self.population) or not self.population.present[row] or row in self.leaving:
            raise AgentError(f"row {row} holds no agent (rows: 0 .. {len(self.population) - 1})")
        return int(row)

    def add_row(self, follows: Sequence[int], followers: Sequence[int]) -> int:
        """Add a drawn agent to the population and the network, and return its row."""
        row = len(self.population)
        for other in (*follows, *followers):
            self.existing_row(other)
        agents = np.array([row])
        interests = draw_interests(agents, self.topics, self.streams)
        own_id = str(row) if str(row) not in self.population.ids else f"new {row}"
        self.population.append(draw_profiles(agents, [own_id], interests, self.params, self.streams))
        self.population.state[row] = self.chart.initial.code
        self.network = self.network.with_agent(follows, followers)
        self.history.grow(1)
        self.exposure.grow(1)
        self.recorded.grow(row + 1)
        return row

    def remove_departed(self) -> None:
        """Let those go who have left since the last round opened."""
        population, leaving = self.population, list(self.leaving)
        population.present[leaving] = False
        population.scripted[leaving] = False
        population.state[leaving] = IDLE.code
        self.leaving.clear()

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

    def step_scripts(self) -> None:
        """Let Mesa call the `step` of the agents that it schedules."""
        if self.params.scheduler == "mesa":
            scheduled = list(self.agents)
        else:
            by_type = super().agents_by_type.items()
            scheduled = [agent for kind, agents in by_type if is_scripted(kind) for agent in agents]
        # a set of its own: who is removed in this tick still does it, in any order of agents
        AgentSet(scheduled, random=self.random).do("step")

    def active(self) -> npt.NDArray[np.bool_]:
        """Return which agents the columns move."""
        population = self.population
        active: npt.NDArray[np.bool_] = (population.state != IDLE.code) & population.present & ~population.scripted
        if self.params.scheduler == "mesa":
            active &= np.isin(np.arange(len(population)), list(self.leaving))  # Mesa no longer knows them
        return active

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
    return any(name in vars(SocialAgent) for base in own for name in vars(base) if not name.startswith("__"))
