"""Open choices of chart agents, and their answers from the model's reasoner."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from prism_mesa.errors import ChartError
from prism_mesa.reasoner.question import PlacedQuestion
from prism_mesa.statechart import State, Statechart, Transition
from prism_mesa.statechart.selection import Cell


@dataclass(frozen=True)
class OpenChoice:
    """An agent's open choice; `key` is the key of the guards' answers (see `Statechart.resolve_key`)."""

    agent: Any
    name: str
    chart: Statechart
    cell: Cell
    key: int
    context: Any

    @property
    def options(self) -> tuple[State, ...]:
        """The states to choose from."""
        options: Any = self.cell.outcomes[self.key]
        return tuple(options)

    @property
    def trigger(self) -> str:
        """The trigger that left the choice open."""
        return str(self.cell.candidates[0].trigger)

    def place(self, reasoner: Any) -> PlacedQuestion:
        """Return the question with the agent's draw."""
        agent, state = self.agent, self.cell.candidates[0].source
        ticks = int(agent._columns(self.name).made[agent._row])
        draw = agent._table.streams.uniform_one(f"{self.name}/choice/{self.trigger}", agent.unique_id, ticks)
        question = reasoner.question(agent, state, self.trigger, self.options, self.context)
        return PlacedQuestion(question, round=ticks, agent=agent.unique_id, draw=draw)


def ask(choices: Sequence[OpenChoice]) -> list[Transition | None]:
    """Return the transition of each choice; None if the answer is to stay. Equal questions are asked once.

    Raises:
        ChartError: If the model has no reasoner.
    """
    if not choices:
        return []
    reasoner: Any = getattr(choices[0].agent.model, "reasoner", None)
    if not hasattr(reasoner, "answer"):
        first = choices[0]
        options = " or ".join(option.value for option in first.options)
        advice = "set model.reasoner = Reasoner(function or client), or Statechart(..., oracle_enabled=False)"
        raise ChartError(f"{first.chart.name}: {first.cell.label} {options}: the choice is open; {advice}")
    answers = reasoner.answer([choice.place(reasoner) for choice in choices])
    return [
        None if answer.choice is None else choice.cell.transition_to(answer.choice, choice.cell.enabled(choice.key))
        for choice, answer in zip(choices, answers, strict=True)
    ]
