"""SIR on a network: an infection at a rate, and recovery after an exponential time. Run it to draw the figure."""

from enum import Enum

import mesa
import networkx as nx
from mesa.discrete_space import CellAgent, Network

from prism_mesa import F, Statechart, StatechartAgent, Transition, after, exponential, rate, state_shares, tick_all


class Health(Enum):
    S = "susceptible"
    I = "infected"  # noqa: E741
    R = "recovered"


class Person(StatechartAgent, CellAgent):
    beta = 0.1
    chart = Statechart(
        Health,
        [
            Transition(rate(F.agent.beta * F.agent.infected_neighbours), Health.S, Health.I),
            Transition(after(exponential(10)), Health.I, Health.R),
        ],
        initial=Health.S,
        name="SIR",
    )

    @property
    def infected_neighbours(self):
        return sum(other.state is Health.I for cell in self.cell.neighborhood for other in cell.agents)


class Epidemic(mesa.Model):
    def __init__(self, n=500, rng=42):
        super().__init__(rng=rng)
        graph = nx.watts_strogatz_graph(n, 6, 0.1, seed=1)
        for cell in Network(graph, layout=None, random=self.random).all_cells:
            Person(self).cell = cell
        for person in list(self.agents)[:5]:
            person.state = Health.I
        self.datacollector = mesa.DataCollector({"shares": state_shares})

    def step(self):
        tick_all(self.agents)
        self.datacollector.collect(self)


def draw():
    """Return a figure of the shares of states over time."""
    import pandas as pd

    from prism_mesa.figure import NotebookFigure

    model = Epidemic()
    model.run_for(80)
    shares = pd.DataFrame(model.datacollector.get_model_vars_dataframe()["shares"].tolist())
    figure = NotebookFigure(figsize=(6, 3))
    axes = figure.subplots()
    for state, color in Person.chart.colors.items():
        axes.plot(shares[state.value], color=color, label=state.value)
    axes.set(xlabel="step", ylabel="share of people", ylim=(0, 1))
    axes.legend(frameon=False)
    return figure


if __name__ == "__main__":
    draw().savefig("sir.png", dpi=150, bbox_inches="tight")
