"""`tick_all`: a tick of many agents at once, by the same rules as `StatechartAgent.tick`."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.chart_agents.questions import OpenChoice, ask
from prism_mesa.chart_agents.slot import timeout_threshold, wait_purpose
from prism_mesa.chart_agents.table import AgentTable, Rows
from prism_mesa.errors import AgentError
from prism_mesa.statechart import Expression, State, Statechart, Transition
from prism_mesa.statechart.batch import Codes, ColumnReader, column_values, row_values
from prism_mesa.statechart.selection import Cell
from prism_mesa.statechart.timing import Exponential, Rate, When, picks, waiting_ticks

type Mask = npt.NDArray[np.bool_]
type Floats = npt.NDArray[np.float64]

_NOTHING: Final = -1
_MAX_CACHED: Final = 3


@dataclass
class _Group:
    """Agents with the same charts.

    Attributes:
        span: Their rows as a slice if they have no gaps, because that is faster to index with, or else `rows`.
        places: Their places among all agents of the tick.
    """

    table: AgentTable
    charts: list[tuple[str, Statechart]]
    agents: list[Any]
    rows: Rows
    span: Any
    places: Rows


class _AgentColumns:
    """The agents of a group in some positions, for expressions and callable guards."""

    def __init__(self, group: _Group, name: str, chart: Statechart, positions: Codes) -> None:
        self._group, self._name, self._chart, self._positions = group, name, chart, positions

    def take(self, rows: Codes) -> "_AgentColumns":
        return _AgentColumns(self._group, self._name, self._chart, self._positions[rows])

    def row(self, i: int) -> Any:
        return self._group.agents[self._positions[i]]

    def column(self, name: str) -> Any:
        group = self._group
        rows, table = group.rows[self._positions], group.table
        if name == "model":
            return table.model
        if name == "state" and not self._name:
            values = np.array([state.value for state in self._chart.members])
            return values[table.charts[""].states[rows]]
        if name == "ticks_in_state" and not self._name:
            return table.charts[""].made[rows] - table.charts[""].entered[rows]
        if name in table.fields:
            return table.fields[name][rows]
        agents = group.agents
        return np.array([getattr(agents[i], name) for i in self._positions.tolist()])


class _SharedContext:
    """One context for all agents."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def take(self, rows: Codes) -> "_SharedContext":
        return self

    def row(self, i: int) -> Any:
        return self._context

    def column(self, name: str) -> Any:
        return self._context[name] if isinstance(self._context, dict) else getattr(self._context, name)


class _ChartTick:
    """A tick of a group in one chart: what each agent does, before anything changes.

    Attributes:
        taken: Index of each agent's transition, or -1.
        choices: Open choices by the agent's position.
    """

    def __init__(self, group: _Group, name: str, chart: Statechart, context: Any) -> None:
        self.group, self.name, self.chart, self._context = group, name, chart, context
        self._contexts = _SharedContext(context)
        self.columns = group.table.charts[name]
        self.taken = np.full(len(group.rows), _NOTHING, np.int64)
        self.choices: dict[int, OpenChoice] = {}
        self._index = {id(transition): i for i, transition in enumerate(chart.transitions)}
        self.columns.made[group.span] += 1
        self._made = self.columns.made[group.span]
        states, self._in_state = self.columns.states[group.span], self._made - self.columns.entered[group.span]
        for code in np.flatnonzero(np.bincount(states, minlength=1)).tolist():
            self._tick_state(chart.members[code], np.flatnonzero(states == code))

    def _tick_state(self, state: State, left: Rows) -> None:
        """Let agents in a state find their transition; `left` are the positions of those that have found none."""
        timers = self.chart.timed[state]
        for trigger, ticks in timers.waits:
            left = self._fire(state, trigger, left, self._are_due(state, trigger, ticks, left))
        for trigger, when in timers.conditions:
            left = self._fire(state, trigger, left, self._hold(self.chart.cells[trigger][state], when, left))
        if timers.rates and len(left):
            self._fire_rates(state, timers.rates, left)

    def _fire(self, state: State, trigger: str, left: Rows, applies: Mask) -> Rows:
        """Fire a trigger on those of `left` to whom it applies; return those for whom nothing is enabled."""
        if not applies.any():
            return left
        positions = left[applies]
        taken, open_sets = self._select(state, trigger, positions)
        self._note(state, trigger, positions, taken, open_sets)
        is_left = np.ones(len(left), np.bool_)
        is_left[np.flatnonzero(applies)] = (taken < 0) & (open_sets == 0)
        return left[is_left]

    def _select(self, state: State, trigger: str, positions: Rows) -> tuple[Rows, npt.NDArray[Any]]:
        """Return the transition of each agent (or -1), and the key of its guards + 1 if the choice is open (or 0)."""
        cell = self.chart.cells[trigger][state]
        outcome = cell.outcomes[0] if not cell.guards else None
        if isinstance(outcome, Transition):
            return np.full(len(positions), self._index[id(outcome)]), np.zeros(len(positions), np.int64)
        agents = _AgentColumns(self.group, self.name, self.chart, positions)
        states = np.full(len(positions), self.chart.codes[state])
        result = self.chart.fire_many(states, trigger, agents, self._contexts)
        return result.transition_indices.astype(np.int64), np.where(result.option_indices >= 0, result.keys + 1, 0)

    def _note(self, state: State, trigger: str, positions: Rows, taken: Rows, open_keys: npt.NDArray[Any]) -> None:
        self.taken[positions] = taken
        cell = self.chart.cells[trigger][state]
        for i in np.flatnonzero(open_keys).tolist():
            key, position = int(open_keys[i]) - 1, int(positions[i])
            options = cell.outcomes[key]
            if isinstance(options, tuple):
                agent = self.group.agents[position]
                choice = OpenChoice(agent, self.name, self.chart, cell, options, key, self._context)
                self.choices[position] = choice

    def _are_due(self, state: State, trigger: str, ticks: int | Exponential | None, left: Rows) -> Mask:
        if ticks is None:
            agents = self.group.agents
            limits = np.array([timeout_threshold(agents[i], self.chart) for i in left.tolist()], np.int64)
            return np.asarray(self._in_state[left] >= limits)
        if isinstance(ticks, Exponential):
            rows, table = self.group.rows[left], self.group.table
            purpose = wait_purpose(self.name, state, trigger)
            draws = table.streams.uniform(purpose, table.ids[rows], round_=self.columns.entered[rows])
            waits = [waiting_ticks(draw, ticks.mean) for draw in draws.tolist()]
            return np.asarray(self._in_state[left] >= np.array(waits, np.int64))
        return np.asarray(self._in_state[left] >= ticks)

    def _hold(self, cell: Cell, when: When, left: Rows) -> Mask:
        agents, condition = _AgentColumns(self.group, self.name, self.chart, left), when.condition
        values = None
        if isinstance(condition, Expression):
            values = column_values(condition, agents, self._contexts, len(left))
        if values is None:
            values, _ = row_values(_condition(cell, condition), agents, self._contexts, len(left), self.chart)
        return np.asarray(values != 0)

    def _fire_rates(self, state: State, rates: Sequence[tuple[str, Rate]], left: Rows) -> None:
        hazards: list[float | Floats] = []
        selections = [self._select(state, trigger, left) for trigger, _ in rates]
        for (trigger, rate), (taken, open_keys) in zip(rates, selections, strict=True):
            cell, hazard = self.chart.cells[trigger][state], rate.constant
            is_enabled = (taken >= 0) | (open_keys != 0) if cell.guards else None
            if is_enabled is not None:
                column = np.zeros(len(left))
                hazards.append(column)
                column[is_enabled] = rate.hazards(self._values(rate, left[is_enabled]), cell.label)
            else:
                hazards.append(rate.hazards(self._values(rate, left), cell.label) if hazard is None else hazard)
        rows, table = self.group.rows[left], self.group.table
        draws = table.streams.uniform(f"{self.name}/rate", table.ids[rows], round_=self._made[left])
        index = picks(hazards, draws)
        for i, (trigger, _) in enumerate(rates):
            picked = np.flatnonzero(index == i)
            self._note(state, trigger, left[picked], selections[i][0][picked], selections[i][1][picked])

    def _values(self, rate: Rate, positions: Rows) -> Floats:
        """Return the values of a rate for the agents in some positions."""
        if not callable(rate.value):
            return np.full(len(positions), float(rate.value))
        agents = _AgentColumns(self.group, self.name, self.chart, positions)
        if isinstance(rate.value, Expression):
            try:
                with np.errstate(all="ignore"):
                    values = rate.value.function(ColumnReader(agents), ColumnReader(self._contexts))
                return np.broadcast_to(np.asarray(values, np.float64), len(positions))
            except (AttributeError, TypeError, ArithmeticError):
                pass  # row by row, where an error names its agent
        values = [rate.value(self.group.agents[i], self._context) for i in positions.tolist()]
        return np.array(values, np.float64)

    def answer(self) -> None:
        """Ask about all open choices together."""
        positions = sorted(self.choices)
        for position, transition in zip(positions, ask([self.choices[i] for i in positions]), strict=True):
            self.taken[position] = _NOTHING if transition is None else self._index[id(transition)]

    def moves(self) -> list[tuple[int, Callable[[], None]]]:
        """Return the places of agents whose transitions have effects, with functions that take them."""
        acting = [i for i, transition in enumerate(self.chart.transitions) if transition.has_effects]
        positions = np.flatnonzero(np.isin(self.taken, acting)) if acting else ()
        return [(int(self.group.places[i]), self._mover(int(i))) for i in positions]

    def _mover(self, position: int) -> Callable[[], None]:
        def move() -> None:
            agent = self.group.agents[position]
            if agent._table is self.group.table:  # else an earlier agent has removed it
                agent._slot(self.name).take(self.chart.transitions[self.taken[position]], self._context)

        return move

    def enter(self, first: int, last: int) -> None:
        """Let the agents in places `first` to `last` - 1 take their transitions without effects."""
        start, end = np.searchsorted(self.group.places, [first, last])
        positions = start + np.flatnonzero(self.taken[start:end] >= 0)
        if not len(positions):
            return
        targets, moves, is_change = self._tables()
        taken, rows = self.taken[positions], self.group.rows[positions]
        is_plain = targets[taken] >= 0
        taken, rows = taken[is_plain], rows[is_plain]
        self.columns.states[rows] = targets[taken]
        self.columns.entered[rows] = self.columns.made[rows]
        depth = int(self.group.agents[0].max_history_depth)
        if depth:
            changed = is_change[taken]
            table = self.group.table
            self.columns.history.add(table.ids[rows[changed]], moves[taken[changed]], table.model.time)
            self.columns.history.trim(depth)

    def _tables(self) -> tuple[Rows, npt.NDArray[Any], Mask]:
        """Return for each transition its target (-1 if it has effects), its packed move, and whether it is a change."""
        plain = [(t, t.target is not None and not t.has_effects) for t in self.chart.transitions]
        targets = np.array([self.chart.codes[t.target] if is_plain else -1 for t, is_plain in plain])
        packed = [self.chart.pack(t.trigger, t.source, t.target) if is_plain else 0 for t, is_plain in plain]
        is_change = np.array([t.source is not t.target for t, _ in plain])
        return targets, np.array(packed, self.chart.move_type), is_change


def _condition(cell: Cell, condition: Any) -> Transition:
    first = cell.candidates[0]
    return Transition(first.trigger, first.source, first.target, condition)


def tick_all(agents: Iterable[Any], context: Any = None) -> None:
    """Make a tick of many chart agents at once, as `StatechartAgent.tick` does for each.

    Guards, conditions and rates read the values at the start (with several charts, at the start of each chart's turn).
    Open choices are asked together. Then exits, actions and entries run in the order of `agents`; if one raises, later
    agents stay as they were. Where guards read only the agent itself, the result equals that of ``agents.do("tick")``.

    Args:
        agents: Chart agents of one model, such as ``model.agents``.
        context: One context for all agents.

    Raises:
        AgentError: If an agent is not a chart agent of this kind, or of another model.
    """
    groups = _groups(agents)
    if not groups:
        return
    table = groups[0].table
    table.begin_tick()
    try:
        for turn in range(max(len(group.charts) for group in groups)):
            _tick_charts(groups, turn, context)
    finally:
        table.end_tick()


def _tick_charts(groups: list[_Group], turn: int, context: Any) -> None:
    ticks = [_ChartTick(group, *group.charts[turn], context) for group in groups if turn < len(group.charts)]
    for tick in ticks:
        tick.answer()
    done, end = 0, 1 + max(int(group.places[-1]) for group in groups)
    for place, move in sorted((entry for tick in ticks for entry in tick.moves()), key=lambda entry: entry[0]):
        for tick in ticks:
            tick.enter(done, place)
        move()
        done = place + 1
    for tick in ticks:
        tick.enter(done, end)


def _groups(agents: Iterable[Any]) -> list[_Group]:
    """Return the agents by their charts; the result for the same agents is kept until one joins or leaves."""
    members = list(agents)
    if not members:
        return []
    first = members[0]
    if not isinstance(getattr(first, "_table", None), AgentTable):
        raise AgentError(f"tick_all: {type(first).__name__} is not a StatechartAgent with a chart of its own")
    table: AgentTable = first._table
    key = (id(first), len(members))
    groups: list[_Group]
    n_changes, known, groups = table.cache.get(key, (-1, [], []))
    if n_changes != table.n_changes or known != members:
        groups = _make_groups(members)
        table.cache = {**dict(list(table.cache.items())[-_MAX_CACHED:]), key: (table.n_changes, members, groups)}
    return groups


def _make_groups(members: list[Any]) -> list[_Group]:
    first = members[0]
    by_charts: dict[tuple[int, ...], list[int]] = {}
    for i, agent in enumerate(members):
        if getattr(agent, "_table", None) is not first._table:
            raise AgentError(f"tick_all: {type(agent).__name__} is not a chart agent of the same model")
        by_charts.setdefault((id(agent.chart), id(agent.charts)), []).append(i)
    groups = []
    for places in by_charts.values():
        agents = [members[i] for i in places]
        rows = np.array([agent._row for agent in agents], np.int64)
        span = slice(rows[0], rows[-1] + 1) if (np.diff(rows) == 1).all() else rows
        groups.append(
            _Group(first._table, list(agents[0]._charts.items()), agents, rows, span, np.array(places, np.int64))
        )
    return groups
