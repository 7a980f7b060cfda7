"""`tick_all`: a tick of many agents at once, by the same rules as `StatechartAgent.tick`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Ints, Mask, Rows
from prism_mesa.chart_agents.slot import OpenChoice, ask, timeout_threshold, wait_purpose
from prism_mesa.chart_agents.table import AgentTable, time_at
from prism_mesa.errors import AgentError, ChartError
from prism_mesa.statechart import Expression, State, Statechart, Transition
from prism_mesa.statechart.batch import ColumnReader, guard_keys, outcomes_of
from prism_mesa.statechart.selection import FALSE, Cell
from prism_mesa.statechart.timing import Exponential, Rate, picks, waiting_ticks
from prism_mesa.statechart.transitions import history_entry
from prism_mesa.statechart.users_code import with_note

_NOTHING: Final = -1
_OPEN: Final = -2
_MAX_CACHED: Final = 3


@dataclass
class _Group:
    """Agents with the same charts, and their places among all agents of the tick."""

    table: AgentTable
    charts: list[tuple[str, Statechart]]
    agents: list[Any]
    rows: Ints
    places: Ints


class _SharedContext:
    """One context for all agents, as `batch.Columns`."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def take(self, rows: Rows) -> "_SharedContext":
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
        self.columns.made[group.rows] += 1
        self._made = self.columns.made[group.rows]
        states, self._in_state = self.columns.states[group.rows], self._made - self.columns.entered[group.rows]
        for code in np.flatnonzero(np.bincount(states, minlength=1)).tolist():
            self._tick_state(chart.members[code], np.flatnonzero(states == code))

    def _tick_state(self, state: State, left: Ints) -> None:
        """Let agents in a state find their transition; `left` are the positions of those that have found none."""
        timers, cells = self.chart.timed[state], self.chart.cells
        for trigger, ticks in timers.waits.items():
            is_due = self._in_state[left] >= self._ticks_to_wait(state, trigger, ticks, left)
            left = self._fire(cells[trigger][state], left, is_due)
        for trigger, condition in timers.conditions.items():
            left = self._fire(cells[trigger][state], left, self._keys(condition, left) != FALSE)
        if timers.rates and len(left):
            self._fire_rates([(rate, cells[trigger][state]) for trigger, rate in timers.rates.items()], left)

    def _fire(self, cell: Cell, left: Ints, applies: Mask) -> Ints:
        """Fire a trigger on those of `left` to whom it applies; return those for whom nothing is enabled."""
        if not applies.any():
            return left
        taken, keys = self._select(cell, left[applies])
        self._note(cell, left[applies], taken, keys)
        is_left = ~applies
        is_left[applies] = taken == _NOTHING
        return left[is_left]

    def _keys(self, cell: Cell, positions: Ints) -> npt.NDArray[Any]:
        agents = _AgentColumns(self, positions)
        return guard_keys(self.chart, cell, agents, self._contexts, len(positions), set())

    def _select(self, cell: Cell, positions: Ints) -> tuple[Ints, npt.NDArray[Any]]:
        """Return the transition of each agent (-1: none, -2: an open choice), and the keys of the guards' answers."""
        keys, taken = self._keys(cell, positions), np.full(len(positions), _NOTHING)
        for _, rows, outcome in outcomes_of(cell, keys):
            is_single = isinstance(outcome, Transition)
            taken[rows] = self._index[id(outcome)] if is_single else _NOTHING if outcome is None else _OPEN
        return taken, keys

    def _note(self, cell: Cell, positions: Ints, taken: Ints, keys: npt.NDArray[Any]) -> None:
        self.taken[positions] = taken
        for i in np.flatnonzero(taken == _OPEN).tolist():
            slot = self.group.agents[positions[i]]._slot(self.name)
            self.choices[int(positions[i])] = OpenChoice(slot, cell, int(keys[i]), self._context)

    def _ticks_to_wait(self, state: State, trigger: str, ticks: int | Exponential | None, left: Ints) -> int | Ints:
        if isinstance(ticks, int):
            return ticks
        if ticks is None:
            return np.array([timeout_threshold(self.group.agents[i], self.chart) for i in left.tolist()], np.int64)
        rows, table = self.group.rows[left], self.group.table
        purpose, entered = wait_purpose(self.name, state, trigger), self.columns.entered[rows]
        draws = table.streams.uniform(purpose, table.ids[rows], round_=entered)
        return np.array([waiting_ticks(draw, ticks.mean) for draw in draws.tolist()], np.int64)

    def _fire_rates(self, rated: Sequence[tuple[Rate, Cell]], left: Ints) -> None:
        selections = [self._select(cell, left) for _, cell in rated]
        hazards = np.zeros((len(rated), len(left)))
        for (rate, cell), (taken, _), hazard in zip(rated, selections, hazards, strict=True):
            is_enabled = taken != _NOTHING
            hazard[is_enabled] = rate.hazards(self._values(rate, cell, left[is_enabled]), cell.label)
        rows, table = self.group.rows[left], self.group.table
        draws = table.streams.uniform(f"{self.name}/rate", table.ids[rows], round_=self._made[left])
        index = picks(hazards, draws)
        for i, ((_, cell), (taken, keys)) in enumerate(zip(rated, selections, strict=True)):
            picked = np.flatnonzero(index == i)
            self._note(cell, left[picked], taken[picked], keys[picked])

    def _values(self, rate: Rate, cell: Cell, positions: Ints) -> Floats:
        """Return the values of a rate for the agents in some positions."""
        if not callable(rate.value):
            return np.full(len(positions), float(rate.value))
        if isinstance(rate.value, Expression):
            agents = _AgentColumns(self, positions)
            try:
                with np.errstate(all="ignore"):
                    values = rate.value.function(ColumnReader(agents), ColumnReader(self._contexts))
                return np.broadcast_to(np.asarray(values, np.float64), len(positions))
            except (AttributeError, TypeError, ArithmeticError):
                pass  # row by row, where an error names its agent
        call = partial(with_note, rate.value, "rate", cell.candidates[0])
        return np.array([call(self.group.agents[i], self._context) for i in positions.tolist()], np.float64)

    def answer(self) -> None:
        """Ask about all open choices together."""
        positions = sorted(self.choices)
        for position, transition in zip(positions, ask([self.choices[i] for i in positions]), strict=True):
            self.taken[position] = _NOTHING if transition is None else self._index[id(transition)]

    @property
    def has_effects(self) -> bool:
        """Whether an agent takes a transition that runs a function, or whose target depends on the past."""
        acting = [i for i, transition in enumerate(self.chart.transitions) if transition.has_effects]
        return bool(acting) and bool(np.isin(self.taken, acting).any())

    def enter(self) -> None:
        """Let all agents take their transitions, which have no effects."""
        depth, time = int(self.group.agents[0].max_history_depth), time_at(self.group.table.model.time)
        for i in np.unique(self.taken[self.taken != _NOTHING]).tolist():
            transition, rows = self.chart.transitions[i], self.group.rows[self.taken == i]
            self.columns.states[rows] = self.chart.codes[transition.target]
            self.columns.entered[rows] = self.columns.made[rows]
            if depth and transition.target is not transition.source:
                self.columns.record(rows.tolist(), history_entry(transition, transition.target, time, None), depth)

    def take(self, position: int) -> None:
        """Let the agent in a position take its transition."""
        agent = self.group.agents[position]
        if agent._table is self.group.table:  # else an earlier agent has removed it
            agent._slot(self.name).take(self.chart.transitions[self.taken[position]], self._context)


class _AgentColumns:
    """The agents in some positions of a tick, for expressions and callable guards."""

    def __init__(self, tick: _ChartTick, positions: Ints) -> None:
        self._tick, self._positions = tick, positions

    def take(self, rows: Rows) -> "_AgentColumns":
        return _AgentColumns(self._tick, self._positions[rows])

    def row(self, i: int) -> Any:
        return self._tick.group.agents[self._positions[i]]

    def column(self, name: str) -> Any:
        tick, group = self._tick, self._tick.group
        rows, table = group.rows[self._positions], group.table
        if name == "model":
            return table.model
        if name == "state" and not tick.name:
            return np.array([state.value for state in tick.chart.members])[tick.columns.states[rows]]
        if name == "ticks_in_state" and not tick.name:
            return tick.columns.made[rows] - tick.columns.entered[rows]
        if name in table.fields:
            return table.fields[name][rows]
        return np.array([getattr(group.agents[i], name) for i in self._positions.tolist()])


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
    if table.is_ticking:
        raise ChartError("tick_all: called by an action or a guard during tick_all; call it once a step")
    table.is_ticking = True
    try:
        for turn in range(max(len(group.charts) for group in groups)):
            _tick_charts(groups, turn, context)
    finally:
        table.is_ticking = False


def _tick_charts(groups: list[_Group], turn: int, context: Any) -> None:
    ticks = [_ChartTick(group, *group.charts[turn], context) for group in groups if turn < len(group.charts)]
    for tick in ticks:
        tick.answer()
    if not any(tick.has_effects for tick in ticks):
        for tick in ticks:
            tick.enter()
        return
    firing = [(tick, position) for tick in ticks for position in np.flatnonzero(tick.taken != _NOTHING).tolist()]
    for tick, position in sorted(firing, key=lambda pair: pair[0].group.places[pair[1]]):
        tick.take(position)


def _groups(agents: Iterable[Any]) -> list[_Group]:
    """Return the agents by their charts; the result for the same agents is kept until one joins or leaves."""
    members = list(agents)
    if not members:
        return []
    first = next((agent for agent in members if isinstance(getattr(agent, "_table", None), AgentTable)), None)
    if first is None:
        raise AgentError(f"tick_all: {type(members[0]).__name__} is not a StatechartAgent with a chart of its own")
    cache, key = first._table.groups, (id(members[0]), len(members))
    known, groups = cache.get(key, ([], []))
    if known != members:
        groups = _make_groups(members, first)
        if len(cache) >= _MAX_CACHED:
            cache.clear()
        cache[key] = members, groups
    result: list[_Group] = groups
    return result


def _make_groups(members: list[Any], first: Any) -> list[_Group]:
    by_charts: dict[tuple[int, ...], list[int]] = {}
    for i, agent in enumerate(members):
        if getattr(agent, "_table", None) is not first._table:
            advice = f"pass model.agents_by_type[{type(first).__name__}]"
            raise AgentError(f"tick_all: {type(agent).__name__} is not a chart agent of the same model; {advice}")
        by_charts.setdefault((id(agent.chart), id(agent.charts)), []).append(i)
    groups = []
    for places in by_charts.values():
        agents = [members[i] for i in places]
        rows = np.array([agent._row for agent in agents], np.int64)
        groups.append(_Group(first._table, list(agents[0]._charts.items()), agents, rows, np.array(places, np.int64)))
    return groups
