"""One agent in one of its charts: firing, ticking, taking transitions, and open choices."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from prism_mesa.chart_agents.table import ChartColumns, time_at
from prism_mesa.errors import ChartError
from prism_mesa.reasoner.question import PlacedQuestion
from prism_mesa.statechart import State, Statechart, Transition
from prism_mesa.statechart.selection import FALSE, Cell, Node, evaluate_guards
from prism_mesa.statechart.timing import Exponential, Rate, pick, waiting_ticks
from prism_mesa.statechart.transitions import history_entry
from prism_mesa.statechart.users_code import entered_state, run_effects, with_note


class Slot:
    """An agent in one of its charts; `name` is empty for a single chart."""

    def __init__(self, agent: Any, name: str, chart: Statechart) -> None:
        self.agent, self.name, self.chart = agent, name, chart

    @property
    def _columns(self) -> ChartColumns:
        columns: ChartColumns = self.agent._table.charts[self.name]
        return columns

    @property
    def state(self) -> State:
        """The agent's state."""
        return self.chart.members[self._columns.codes[self.agent._row]]

    @property
    def ticks_in_state(self) -> int:
        """Number of ticks since the agent entered its state."""
        row, columns = self.agent._row, self._columns
        return int(columns.made[row] - columns.entered[row])

    def enter(self, target: State) -> None:
        """Set the state, and start its ticks again."""
        columns, row = self._columns, self.agent._row
        columns.codes[row] = self.chart.codes[target]
        columns.entered[row] = columns.made[row]

    def fire(self, trigger: str, context: Any = None) -> State | None:
        """Fire a trigger, ask about an open choice, and return the new state, or None."""
        cell = self.chart.cells.get(trigger, {}).get(self.state)
        return None if cell is None else self._follow(cell, self._evaluate(cell, context), context)

    def tick(self, context: Any = None) -> State | None:
        """Make a tick, and return the new state, or None if nothing fired."""
        self._columns.made[self.agent._row] += 1
        for cell, node in self._timed_cells(context):
            if node.transition is not None or node.options:
                return self._follow(cell, node, context)
        return None

    def _timed_cells(self, context: Any) -> Iterator[tuple[Cell, Node]]:
        """Yield the cells of the triggers that apply in this tick, in order, and their guards' values."""
        state, table, ticks_in_state = self.state, self.agent._table, self.ticks_in_state
        timers, cells = self.chart.timed[state], self.chart.cells
        for trigger, ticks in timers.waits.items():
            if ticks_in_state >= self._ticks_to_wait(trigger, ticks):
                yield cells[trigger][state], self._evaluate(cells[trigger][state], context)
        for trigger, condition in timers.conditions.items():
            if self._evaluate(condition, context).key != FALSE:
                yield cells[trigger][state], self._evaluate(cells[trigger][state], context)
        if timers.rates:
            rated = [(rate, cells[trigger][state]) for trigger, rate in timers.rates.items()]
            nodes = [self._evaluate(cell, context) for _, cell in rated]
            hazards = [self._hazard(*rated[i], node, context) for i, node in enumerate(nodes)]
            made = int(self._columns.made[self.agent._row])
            index = pick(hazards, table.streams.uniform_one(f"{self.name}/rate", self.agent.unique_id, made))
            if index >= 0:
                yield rated[index][1], nodes[index]

    def _hazard(self, rate: Rate, cell: Cell, node: Node, context: Any) -> float:
        if node.transition is None and not node.options:
            return 0.0
        value: Any = rate.value
        if callable(value):
            value = with_note(value, "rate", cell.candidates[0], self.agent, context)
        return rate.hazard_at(value, cell.label)

    def _evaluate(self, cell: Cell, context: Any) -> Node:
        return evaluate_guards(cell, self.agent, context, self.chart)

    def _ticks_to_wait(self, trigger: str, ticks: int | Exponential | None) -> int:
        if ticks is None:
            return timeout_threshold(self.agent, self.chart)
        if isinstance(ticks, int):
            return ticks
        purpose, entered = wait_purpose(self.name, self.state, trigger), int(self._columns.entered[self.agent._row])
        return waiting_ticks(self.agent._table.streams.uniform_one(purpose, self.agent.unique_id, entered), ticks.mean)

    def _follow(self, cell: Cell, node: Node, context: Any) -> State | None:
        transition = node.transition
        if transition is None and node.options:
            [transition] = ask([OpenChoice(self, cell, node.key, context)])
        return None if transition is None else self.take(transition, context)

    def take(self, transition: Transition, context: Any = None) -> State:
        """Take a transition and return the new state."""
        if not transition.has_effects:
            self._record(transition, transition.target, context)
            return transition.target
        memory = f"_last_states {self.name}"
        target = entered_state(transition, self.agent, memory)
        enter = partial(self._record, transition, target, context)
        run_effects(transition, self.agent, context, enter, self._restore_point(), memory)
        return target

    def _record(self, transition: Transition, target: State, context: Any) -> None:
        """Enter a state, and add the change to the history."""
        self.enter(target)
        agent, depth = self.agent, self.agent.max_history_depth
        if target is not transition.source and depth:
            entry = history_entry(transition, target, time_at(agent.model.time), context)
            self._columns.record([agent._row], entry, depth)

    def _restore_point(self) -> Callable[[], None]:
        """Return a function that restores the agent's row and history."""
        columns, row, table = self._columns, self.agent._row, self.agent._table
        code, entered, history = columns.codes[row], columns.entered[row], [*columns.histories[row]]
        values = {name: array[row] for name, array in table.fields.items()}

        def restore() -> None:
            columns = table.charts[self.name]
            columns.codes[row], columns.entered[row], columns.histories[row] = code, entered, history
            for name, value in values.items():
                table.fields[name][row] = value

        return restore


@dataclass(frozen=True)
class OpenChoice:
    """An agent's open choice; `key` is the key of the guards' answers (see `Statechart.resolve_key`)."""

    slot: Slot
    cell: Cell
    key: int
    context: Any

    @property
    def options(self) -> tuple[State, ...]:
        """The states to choose from."""
        options: Any = self.cell.outcomes[self.key]
        return tuple(options)

    def place(self, reasoner: Any) -> PlacedQuestion:
        """Return the question with the agent's draw."""
        agent, first = self.slot.agent, self.cell.candidates[0]
        ticks = int(self.slot._columns.made[agent._row])
        draw = agent._table.streams.uniform_one(f"{self.slot.name}/choice/{first.trigger}", agent.unique_id, ticks)
        question = reasoner.question(agent, first.source, first.trigger, self.options, self.context)
        return PlacedQuestion(question, round=ticks, agent=agent.unique_id, draw=draw)


def ask(choices: Sequence[OpenChoice]) -> list[Transition | None]:
    """Return the transition of each choice; None if the answer is to stay. Equal questions are asked once.

    Raises:
        ChartError: If the model has no reasoner.
    """
    if not choices:
        return []
    first = choices[0]
    reasoner: Any = getattr(first.slot.agent.model, "reasoner", None)
    if not hasattr(reasoner, "answer"):
        options = " or ".join(option.value for option in first.options)
        advice = "set model.reasoner = Reasoner(function or client), or Statechart(..., oracle_enabled=False)"
        raise ChartError(f"{first.slot.chart.name}: {first.cell.label} {options}: the choice is open; {advice}")
    placed = [choice.place(reasoner) for choice in choices]
    answers = reasoner.answer(placed)
    for choice, question, answer in zip(choices, placed, answers, strict=True):
        vars(choice.slot.agent).setdefault("_answers", {})[choice.slot.name] = question, answer  # for `why`
    return [
        None if answer.choice is None else choice.cell.transition_to(answer.choice, choice.cell.enabled(choice.key))
        for choice, answer in zip(choices, answers, strict=True)
    ]


def wait_purpose(name: str, state: State, trigger: str) -> str:
    """Return the purpose of the draws of a waiting time."""
    return f"{name}/wait/{state.value}/{trigger}"


def timeout_threshold(agent: Any, chart: Statechart) -> int:
    """Return the ticks after which an agent times out in states without a number of their own."""
    ticks = getattr(agent, "timeout_threshold", None)
    if ticks is None:
        advice = "give the chart timeouts={state: ticks}, or the agent a timeout_threshold"
        raise ChartError(f"{chart.name}: a timeout without a number of ticks; {advice}")
    return int(ticks)
