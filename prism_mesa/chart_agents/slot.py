"""One agent in one of its charts: firing, ticking and taking transitions."""

from collections.abc import Callable, Iterator
from typing import Any

from prism_mesa.chart_agents.questions import OpenChoice, ask
from prism_mesa.chart_agents.table import ChartColumns, time_at
from prism_mesa.errors import ChartError
from prism_mesa.statechart import State, Statechart, StateTransition, Transition
from prism_mesa.statechart.selection import Cell, Node, evaluate_guards
from prism_mesa.statechart.timing import Exponential, Rate, pick, waiting_ticks
from prism_mesa.statechart.users_code import take_transition


class Slot:
    """An agent's state in one chart, with the fields that `statechart.users_code.take_transition` needs.

    Attributes:
        name: The chart's name among the agent's charts; empty for a single chart.
    """

    def __init__(self, agent: Any, name: str, chart: Statechart) -> None:
        self.agent, self.name, self.chart = agent, name, chart
        self._columns: ChartColumns = agent._columns(name)

    @property
    def state(self) -> State:
        """The agent's state."""
        return self.chart.members[self._columns.codes[self.agent._row]]

    @state.setter
    def state(self, state: State) -> None:
        self._columns.codes[self.agent._row] = self.chart.codes[state]

    @property
    def ticks_in_state(self) -> int:
        """Number of ticks since the agent entered its state."""
        row = self.agent._row
        return int(self._columns.made[row] - self._columns.entered[row])

    @ticks_in_state.setter
    def ticks_in_state(self, ticks: int) -> None:
        row = self.agent._row
        self._columns.entered[row] = self._columns.made[row] - ticks

    @property
    def max_history_depth(self) -> int:
        """See `StatechartAgent`."""
        return int(self.agent.max_history_depth)

    @property
    def last_states(self) -> dict[str, State]:
        """The state in which each parent with history was left."""
        remembered: dict[str, dict[str, State]] = vars(self.agent).get("_last_states", {})
        return remembered.get(self.name, {})

    @last_states.setter
    def last_states(self, states: dict[str, State]) -> None:
        self.agent._last_states = vars(self.agent).get("_last_states", {}) | {self.name: states}

    @property
    def state_history(self) -> "_Writer":
        """Appends to the agent's history."""
        return _Writer(self)

    def restore_point(self) -> Callable[[], None]:
        """Return a function that restores the history and the declared columns."""
        log, row, table = self._columns.history, self.agent._row, self.agent._table
        n_recent, fields = len(log.recent), {name: array[row] for name, array in table.fields.items()}

        def restore() -> None:
            del log.recent[n_recent:]
            for name, value in fields.items():
                table.fields[name][row] = value

        return restore

    def fire(self, trigger: str, context: Any = None) -> State | None:
        """Fire a trigger, ask about an open choice, and return the new state, or None."""
        cell = self.chart.cells.get(trigger, {}).get(self.state)
        if cell is None:
            return None
        return self._follow(cell, evaluate_guards(cell, self.agent, context, self.chart), context)

    def tick(self, context: Any = None) -> State | None:
        """Make a tick, and return the new state, or None if nothing fired."""
        self._columns.made[self.agent._row] += 1
        for cell, node in self._timed_cells(context):
            if node.transition is not None or node.options:
                return self._follow(cell, node, context)
        return None

    def _timed_cells(self, context: Any) -> Iterator[tuple[Cell, Node]]:
        """Yield the cells of the triggers that apply in this tick, in order, and their guards' values."""
        timers, state, agent = self.chart.timed[self.state], self.state, self.agent
        for trigger, ticks in timers.waits:
            if self.ticks_in_state >= self.due(trigger, ticks):
                yield self._node(self.chart.cells[trigger][state], context)
        for trigger, when in timers.conditions:
            cell = self.chart.cells[trigger][state]
            if holds(when.condition, cell, agent, context, self.chart):
                yield self._node(cell, context)
        if timers.rates:
            nodes = [self._node(self.chart.cells[trigger][state], context) for trigger, _ in timers.rates]
            hazards = [
                self._hazard(rate, cell, context) if node.transition or node.options else 0.0
                for (_, rate), (cell, node) in zip(timers.rates, nodes, strict=True)
            ]
            index = pick(hazards, agent._table.draw(f"{self.name}/rate", agent.unique_id, self._made))
            if index >= 0:
                yield nodes[index]

    def _hazard(self, rate: Rate, cell: Cell, context: Any) -> float:
        value: Any = rate.value
        return rate.hazard_at(value(self.agent, context) if callable(value) else value, cell.label)

    def _node(self, cell: Cell, context: Any) -> tuple[Cell, Node]:
        return cell, evaluate_guards(cell, self.agent, context, self.chart)

    @property
    def _made(self) -> int:
        return int(self._columns.made[self.agent._row])

    def due(self, trigger: str, ticks: int | Exponential | None) -> int:
        """Return the ticks after which a trigger fires in the agent's state."""
        if ticks is None:
            return timeout_threshold(self.agent, self.chart)
        if isinstance(ticks, Exponential):
            entered = int(self._columns.entered[self.agent._row])
            purpose = wait_purpose(self.name, self.state, trigger)
            return waiting_ticks(self.agent._table.draw(purpose, self.agent.unique_id, entered), ticks.mean)
        return ticks

    def _follow(self, cell: Cell, node: Node, context: Any) -> State | None:
        transition = node.transition
        if transition is None and node.options:
            choice = OpenChoice(self.agent, self.name, self.chart, cell, node.options, node.key, context)
            [transition] = ask([choice])
        return None if transition is None else self.take(transition, context)

    def take(self, transition: Transition, context: Any = None) -> State:
        """Take a transition and return the new state."""
        if transition.has_effects:
            return take_transition(transition, self.agent, context, time_at(self.agent.model.time), self)
        self.enter(transition.target, transition, context)
        return transition.target

    def enter(self, target: State, transition: Transition, context: Any) -> None:
        """Enter a state by a transition without effects."""
        row, columns = self.agent._row, self._columns
        columns.codes[row] = self.chart.codes[target]
        columns.entered[row] = columns.made[row]
        if target is not transition.source and self.agent.max_history_depth:
            move = self.chart.pack(transition.trigger, transition.source, target)
            columns.history.add_one(self.agent.unique_id, move, self.agent.model.time, context)


class _Writer:
    """Appends to an agent's history; it is trimmed elsewhere."""

    def __init__(self, slot: Slot) -> None:
        self._slot = slot

    def __len__(self) -> int:
        return 0

    def append(self, entry: StateTransition) -> None:
        agent, chart = self._slot.agent, self._slot.chart
        move = chart.pack(entry.trigger, entry.from_state, entry.to_state)
        self._slot._columns.history.add_one(agent.unique_id, move, agent.model.time, entry.context)


def holds(condition: Any, cell: Cell, agent: Any, context: Any, chart: Statechart) -> bool:
    """Return whether a condition is true; a condition that raises is false, and counted as the guard's error."""
    try:
        return bool(condition(agent, context))
    except Exception as error:
        chart.record_error(cell.candidates[0], error, agent)
        return False


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
