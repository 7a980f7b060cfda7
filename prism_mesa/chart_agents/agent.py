"""`StatechartAgent`: statecharts for the agents of any Mesa model."""

from abc import ABCMeta
from collections.abc import Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Final
from warnings import warn

import mesa

from prism_mesa.chart_agents.slot import Slot
from prism_mesa.chart_agents.table import AgentTable, table_of
from prism_mesa.errors import ChartError, PrismWarning
from prism_mesa.statechart import State, Statechart, StateTransition

_INTERFACE: Final = ("chart", "state", "states", "state_history", "ticks_in_state", "fire", "tick")


class StatechartAgent(metaclass=ABCMeta):  # noqa: B024 - for `__subclasshook__`
    """A mixin that gives a Mesa agent a statechart: ``class Person(StatechartAgent, mesa.Agent)``.

    Set `chart`, or `charts` by name, in the class or before ``super().__init__(model)``. The model's chart agents share
    one column store, so `tick_all` ticks all of them at once. Open choices go to ``model.reasoner``. Agents of the
    platform count as chart agents, too.

    Attributes:
        chart: The agent's chart.
        charts: Several charts by name, in the order in which they tick; then `states` has the state in each.
        max_history_depth: Number of changes in `state_history`; 0 for none.

    Raises:
        ChartError: If a subclass defines `state` or another of these members, or comes after `mesa.Agent`.
    """

    chart: Statechart | None = None
    charts: Mapping[str, Statechart] = MappingProxyType({})
    max_history_depth: int = 50

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in _INTERFACE[1:]:
            if name in vars(cls):
                advice = "write your own code in step" if name == "tick" else "choose another name"
                raise ChartError(f"{cls.__name__}.{name}: StatechartAgent defines it; {advice}")
        bases = cls.__mro__
        if mesa.Agent in bases and bases.index(mesa.Agent) < bases.index(StatechartAgent):
            raise ChartError(f"{cls.__name__}: write class {cls.__name__}(StatechartAgent, mesa.Agent), in this order")

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return all(hasattr(other, name) for name in _INTERFACE) if cls is StatechartAgent else NotImplemented

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        is_one_kind = (self.chart is None) is bool(self.charts) and isinstance(self.charts, Mapping)
        if not is_one_kind or not all(isinstance(chart, Statechart) for chart in self._charts.values()):
            raise ChartError(f"{type(self).__name__}: set chart = Statechart(...), or charts = {{name: chart}}")
        self._table = table_of(self.model)  # type: ignore[attr-defined]
        self._row = self._table.add(self)

    @cached_property
    def _table(self) -> AgentTable:  # `__init__` sets it
        raise ChartError(f"{type(self).__name__}: call super().__init__(model) first")

    def remove(self) -> None:
        """Remove the agent from its model; you can still read its state."""
        super().remove()  # type: ignore[misc]
        if self._table is table_of(self._table.model):
            self._table.free(self)

    @property
    def _charts(self) -> Mapping[str, Statechart]:
        return self.charts if self.chart is None else {"": self.chart}

    def _slot(self, name: str) -> Slot:
        return Slot(self, name, self._charts[name])

    @property
    def state(self) -> State:
        """The state; you can set it, which runs no entry or exit and starts its ticks again."""
        if self.chart is None:
            names = ", ".join(map(repr, self.charts))
            raise AttributeError(f"{type(self).__name__} has several charts: use agent.states[name] ({names})")
        return self.chart.members[self._table.charts[""].codes[self._row]]

    @state.setter
    def state(self, state: State) -> None:
        self.states = {"": state}

    @property
    def states(self) -> Mapping[str, State]:
        """The state in each chart by its name; set it to a mapping to change some of them."""
        return MappingProxyType({name: self._slot(name).state for name in self._charts})

    @states.setter
    def states(self, states: Mapping[str, State]) -> None:
        for name, state in states.items():
            if name not in self._charts:
                raise AttributeError(f"{type(self).__name__} has no chart {name!r} ({', '.join(self._charts)})")
            self._slot(name).enter(self._charts[name].find_state(state, f"{type(self).__name__}.state"))

    @property
    def ticks_in_state(self) -> int:
        """Number of ticks since the agent entered its state, or a mapping of them by chart."""
        ticks = {name: self._slot(name).ticks_in_state for name in self._charts}
        return ticks[""] if self.chart is not None else ticks  # type: ignore[return-value]

    @property
    def state_history(self) -> list[StateTransition]:
        """The last changes of state, oldest first; a unit of Mesa's time is a second from the start of 2000."""
        entries = [entry for name in self._charts for entry in self._table.charts[name].histories[self._row]]
        return sorted(entries, key=lambda entry: entry.timestamp)

    def fire(self, trigger: str, context: Any = None) -> Any:
        """Fire a trigger in each chart, and ask the model's reasoner if a choice is open.

        Guards read `context` as ``F.context``. Returns the new state, or None if nothing changed; with several charts,
        the new states by the name of the chart. Warns of a trigger that no chart of the agent has.
        """
        if not any(trigger in chart.cells for chart in self._charts.values()):
            reason = next(chart.why_not(self._slot(name), trigger) for name, chart in self._charts.items())
            warn(f"{type(self).__name__}.fire: {reason}", PrismWarning, stacklevel=2)
        return self._result({name: self._slot(name).fire(trigger, context) for name in self._charts})

    def tick(self, context: Any = None) -> Any:
        """Make a tick, in which each chart takes at most one transition; the result is as that of `fire`.

        The first kind that has something enabled fires: a timeout or `after`, then `when` in list order, then `rate`.
        """
        return self._result({name: self._slot(name).tick(context) for name in self._charts})

    def _result(self, new_states: dict[str, State | None]) -> Any:
        changed = {name: state for name, state in new_states.items() if state is not None}
        return changed.get("") if self.chart is not None else changed
