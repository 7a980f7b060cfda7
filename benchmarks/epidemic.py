"""Steps of SIR on one Watts-Strogatz graph: plain Mesa, and `tick_all`.

All have infection at a rate of 0.1 for each infected neighbour, and recovery after an exponential time with a mean
of 10 steps. Plain Mesa does this in `step`, agent by agent, and ours for all agents at once: in docs/own_model/sir.py
each agent asks its neighbours, and with a column the model counts infected neighbours over the arrays of edges. The
graph and the agents are made before, and measured by themselves.

    uv run python benchmarks/epidemic.py
"""

import argparse
import math
import sys
from typing import Any, Final

import mesa
import networkx as nx
import numpy as np
from measuring import ROOT, Times, cpu_s, machine
from mesa.discrete_space import CellAgent, Network

from prism_mesa import StatechartAgent, state_shares, tick_all
from prism_mesa.chart_agents import column, get_column, set_column

sys.path.append(str(ROOT / "docs" / "own_model"))
from sir import Epidemic, Person

BETA: Final = 0.1
MEAN: Final = 10


class PlainPerson(CellAgent):
    """A person as Mesa's users write it."""

    state = "susceptible"
    steps_left = 0

    def step(self) -> None:
        """Catch the infection, or recover."""
        if self.state == "susceptible":
            infected = sum(other.state == "infected" for cell in self.cell.neighborhood for other in cell.agents)
            if infected and self.random.random() < 1 - math.exp(-BETA * infected):
                self.infect()
        elif self.state == "infected":
            self.steps_left -= 1
            if self.steps_left <= 0:
                self.state = "recovered"

    def infect(self) -> None:
        """Become infected, for an exponential time."""
        self.state, self.steps_left = "infected", math.ceil(self.random.expovariate(1 / MEAN))


class PlainEpidemic(mesa.Model):
    """The same world as that of ours."""

    def __init__(self, n: int, rng: int = 42) -> None:
        super().__init__(rng=rng)
        graph = nx.watts_strogatz_graph(n, 6, 0.1, seed=1)
        for cell in Network(graph, layout=None, random=self.random).all_cells:
            PlainPerson(self).cell = cell
        for person in list(self.agents)[:5]:
            person.infect()
        self.collector = mesa.DataCollector({"infected": count_infected})

    def step(self) -> None:
        """Let all agents step."""
        self.agents.do("step")
        self.collector.collect(self)


class ColumnPerson(StatechartAgent, mesa.Agent):
    """A person whose infected neighbours are a column."""

    beta = BETA
    infected_neighbours = column(0)
    chart = Person.chart


class ColumnEpidemic(mesa.Model):
    """The same world, without cells."""

    def __init__(self, n: int, rng: int = 42) -> None:
        super().__init__(rng=rng)
        graph = nx.watts_strogatz_graph(n, 6, 0.1, seed=1)
        self.ends = np.array(graph.edges).T
        self.people = ColumnPerson.create_agents(self, n)
        for person in list(self.people)[:5]:
            person.state = "infected"
        self.collector = mesa.DataCollector({"shares": state_shares})

    def step(self) -> None:
        """Count infected neighbours, and tick."""
        infected = get_column(self.people, "state") == 1
        counts = [np.bincount(here, infected[there], len(infected)) for here, there in (self.ends, self.ends[::-1])]
        set_column(self.people, "infected_neighbours", sum(counts))
        tick_all(self.people)
        self.collector.collect(self)


def count_infected(model: mesa.Model) -> int:
    """Return the number of infected agents of plain Mesa."""
    return sum(agent.state == "infected" for agent in model.agents)


def measure(make: type[Any], n: int, steps: int) -> tuple[float, Times, float]:
    """Return the seconds of building, those of each step, and the share of agents that were infected at some time."""
    made: list[Any] = []
    building = cpu_s(lambda: made.append(make(n, 2)))
    times = Times(warm_up=1)
    for _ in range(steps):
        times.all.append(cpu_s(made[0].step))
    states = [str(getattr(agent.state, "value", agent.state)) for agent in made[0].agents]
    return building, times, 1 - states.count("susceptible") / n


def main() -> None:
    """Measure and print one row for each model."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    options.add_argument("--steps", type=int, default=60)
    options.add_argument("--nodes", type=int, default=10_000)
    options.add_argument("--many", type=int, default=100_000, help="nodes of the third row; 0: none")
    given = options.parse_args()
    print(f"{machine('mesa', 'numpy', 'networkx')}\n")
    print("| model | nodes | building, s | a step, s: median (best) | all steps, s | ever infected |")
    print("|---|--:|--:|--:|--:|--:|")
    models: dict[str, type[mesa.Model]] = {
        "plain Mesa": PlainEpidemic,
        "StatechartAgent": Epidemic,
        "StatechartAgent, column": ColumnEpidemic,
    }
    rows = [(label, given.nodes) for label in models]
    rows += [(label, given.many) for label in models if given.many and models[label] is not PlainEpidemic]
    for label, n in rows:
        building, times, infected = measure(models[label], n, given.steps)
        print(f"| {label} | {n:,} | {building:.3g} | {times} | {sum(times.all):.3g} | {infected:.1%} |")


if __name__ == "__main__":
    main()
