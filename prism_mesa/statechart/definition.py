"""The parts of a chart, its parameters, and the errors of its guards."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from warnings import warn

from markupsafe import Markup
from pydantic import Field

from prism_mesa.errors import ChartError, DataError, PrismWarning, format_count, one_line
from prism_mesa.markup import card_html, chip_html, html_or_repr, note_html, table_html
from prism_mesa.params import Params
from prism_mesa.snapshot import Plain, Restorable
from prism_mesa.statechart.guards import Expression
from prism_mesa.statechart.nesting import Hierarchy
from prism_mesa.statechart.selection import Cell, build_cells
from prism_mesa.statechart.states import State, find_state, read_states, state_color
from prism_mesa.statechart.timing import After, Exponential, Rate, When
from prism_mesa.statechart.transitions import ANY, Action, Transition
from prism_mesa.statechart.users_code import PACKAGE, FailingGuard, add_location_note, agent_location, user_code_line

TIMEOUT: Final = "timeout"
_FIXED_NAMES: Final = frozenset("states members transitions initial timeouts oracle_enabled triggers cells".split())


class ChartDefinition(Restorable):
    """The states, transitions and settings of a chart, which cannot be set later.

    Attributes:
        members: All members of the states' enum, in order.
        codes: The index of each of `members`, which columns store.
        colors: The color of each of `members` in pictures: its `color`, if the enum has that property, or another one.
        hierarchy: The nested states.
        declared: The transitions as given; `transitions` are between single states.
        timed: The triggers in time of each state.
        warns_of_guards: Whether Python warns once of each guard that raises; `StatechartAgent` sets it.
        triggers: The distinct triggers: those that were passed, so that several charts number them alike, and then
            those of `transitions`, in order.
        cells: The transitions by trigger and state; each cell selects among its transitions.
    """

    warns_of_guards = False

    def __init__(
        self,
        states: Iterable[State],
        transitions: Sequence[Transition],
        initial: State,
        *,
        oracle_enabled: bool = True,
        timeouts: Mapping[State, int] | None = None,
        on_enter: Mapping[State | str, Action] | None = None,
        on_exit: Mapping[State | str, Action] | None = None,
        nested: Mapping[str, Iterable[State | str]] | None = None,
        history: Iterable[str] = (),
        invariant: Expression | None = None,
        strict: bool = False,
        name: str = "chart",
        triggers: Sequence[str] = (),
    ) -> None:
        self.name = name
        try:
            self.members, self.ordered_states = read_states(states)
            self.hierarchy = Hierarchy(self.ordered_states, nested, history, on_enter, on_exit)
        except ChartError as error:
            raise ChartError(f"{name}: {error}") from None
        self.states = frozenset(self.ordered_states)
        self.codes: dict[State, int] = {state: code for code, state in enumerate(self.members)}
        self.colors: dict[State, str] = {state: state_color(state, code) for state, code in self.codes.items()}
        self.initial: State = self.hierarchy.leaves(self._find_node(initial, "initial"))[0]
        self.timeouts = {self.find_state(state, "timeouts"): ticks for state, ticks in (timeouts or {}).items()}
        self.invariant = invariant
        self.oracle_enabled = oracle_enabled
        self.strict = strict
        self._raised: dict[tuple[Transition, str], tuple[str, int, str]] = {}  # first text, times, place
        for state, ticks in self.timeouts.items():
            if not isinstance(ticks, int) or ticks < 1:
                raise ChartError(f"{name}: timeouts: {state.value} is {ticks!r}; give whole ticks, at least 1")
        self.declared = tuple(transitions)
        self.transitions = self._number_rates([part for declared in transitions for part in self._split(declared)])
        self.timed = {state: StateTimers() for state in self.ordered_states}
        for t in self.transitions:
            self.timed[t.source].add(t, self.timeouts.get(t.source))
        self.triggers = tuple(dict.fromkeys([*triggers, *(t.trigger for t in self.transitions)]))
        self.cells = build_cells(self.transitions, oracle_enabled)

    __init__.__qualname__ = "Statechart"  # in a TypeError

    def find_state(self, state: Any, where: object) -> State:
        """Return a state of this chart from the state or its value; messages begin with `where`."""
        try:
            return find_state(state, self.ordered_states)
        except ChartError as error:
            raise ChartError(f"{self.name}: {where}: {error}") from None

    def _split(self, transition: Transition) -> list[Transition]:
        """Return one transition for each source, after a check that all states belong to the chart."""
        if not isinstance(transition, Transition):
            raise ChartError(f"{self.name}: transitions: {transition!r} is not a Transition(trigger, source, target)")
        sources = [self._find_node(state, transition) for state in transition.sources]
        target = None if transition.target is None else self._find_node(transition.target, transition)
        parents = [source for source in sources if self.hierarchy.is_parent(source)]
        if parents and isinstance(transition.timing, After):
            raise ChartError(
                f"{self.name}: {transition}: after() of a parent; write it for each state in {parents[0]!r}"
            )
        if transition.source is ANY:
            sources = [state for state in self.ordered_states if state is not target]
        if not parents:
            sources.sort(key=self.codes.__getitem__)
        transitions = [part for source in sources for part in self.hierarchy.flatten(transition, source, target)]
        if not transitions:
            raise ChartError(f"{self.name}: {transition}: the target is the chart's only state")
        return transitions

    def _find_node(self, state: Any, where: object) -> Any:
        return state if self.hierarchy.is_parent(state) else self.find_state(state, where)

    def _number_rates(self, transitions: list[Transition]) -> tuple[Transition, ...]:
        """Return the transitions, with distinct triggers for equal rates in a state, because each may fire."""
        counts: Counter[tuple[str, State]] = Counter()
        numbered = []
        for t in transitions:
            if isinstance(t.timing, Rate):
                counts[t.trigger, t.source] += 1
                n = counts[t.trigger, t.source]
                t = t.between(t.source, t.target, t.placement, f"{t.trigger} #{n}") if n > 1 else t
            numbered.append(t)
        return tuple(numbered)

    def __setattr__(self, name: str, value: object) -> None:
        if name in _FIXED_NAMES and hasattr(self, name):  # not vars(self), because creating the dict slows every `fire`
            raise ChartError(f"{self.name}: {name} cannot be set; make another chart, or use with_settings()")
        super().__setattr__(name, value)

    @property
    def _size_text(self) -> str:
        return f"{format_count(len(self.states), 'state')}, {format_count(len(self.transitions), 'transition')}"

    @one_line
    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}: {self._size_text}>"

    @html_or_repr
    def _repr_html_(self) -> str:
        sources_by_label: dict[tuple[str, str, State | None], list[State]] = {}
        for t in self.transitions:
            sources_by_label.setdefault((*self.label(t), t.target), []).append(t.source)
        rows = [
            (self._chips(sources), trigger, guard, chip_html(self.colors[target], target.value) if target else "?")
            for (trigger, guard, target), sources in sources_by_label.items()
        ]
        oracle = "" if self.oracle_enabled else "; the oracle is off, so the first of several targets is taken"
        remark = f"begins in {self.initial.value}; ? is the oracle's choice{oracle}. draw_chart(chart) draws it."
        table = table_html(("state", "trigger", "if", "next"), rows)
        return card_html("chart", self.name, table, note_html(remark), remark=self._size_text)

    def _chips(self, sources: Sequence[State]) -> str:
        other_states = self.states - set(sources)
        if len(sources) > 2 and len(other_states) == 1:
            return f"any but {next(iter(other_states)).value}"
        ordered_sources = [state for state in self.ordered_states if state in sources]
        return Markup(" ").join(chip_html(self.colors[state], state.value) for state in ordered_sources)

    def label(self, t: Transition, default: str = "") -> tuple[str, str]:
        """Return a transition's trigger and guard as strings; `default` follows timeouts of states without a number."""
        ticks = self.timeouts.get(t.source)
        waiting_time = default if ticks is None else f" after {format_count(ticks, 'tick')}"
        guard = t.guard_label or ("else" if self.cells[t.trigger][t.source].guards else "")
        return t.trigger + (waiting_time if t.trigger == TIMEOUT else ""), guard

    def all_cells(self) -> Iterator[tuple[str, State, Cell]]:
        """Yield each trigger, state and cell, in list order."""
        for trigger, row in self.cells.items():
            for state, cell in row.items():
                yield trigger, state, cell

    def record_error(self, transition: Transition, error: Exception, agent: Any) -> None:
        """Count a guard's error by transition and kind; a strict chart raises it instead."""
        if self.strict:
            add_location_note(error, "guard", transition, agent)
            raise error
        key = transition, f"{type(error).__module__}.{type(error).__qualname__}"
        if key not in self._raised:
            location = ", ".join(filter(None, (agent_location(agent), user_code_line(error))))
            self._raised[key] = f"{transition}: {type(error).__name__}: {error}", 0, location
            if self.warns_of_guards:
                advice = "it counts as false (chart.guard_errors counts it; Statechart(..., strict=True) lets it raise)"
                text = f"{self.name}: the guard of {self._raised[key][0]}, first for {location}: {advice}"
                warn(text, PrismWarning, skip_file_prefixes=(PACKAGE,))
        text, n_errors, location = self._raised[key]
        self._raised[key] = text, n_errors + 1, location

    @property
    def guard_errors(self) -> Counter[str]:
        """The number of errors of each guard and kind, by the first message of that kind."""
        errors: Counter[str] = Counter()
        for text, n_errors, _ in self._raised.values():
            errors[text] += n_errors
        return errors

    def snapshot(self) -> dict[str, Plain]:
        """Return the guards' errors, and which guards have not returned a value; transitions are saved as indices."""
        index = {t: i for i, t in reversed(list(enumerate(self.transitions)))}
        untried = [sorted(index[t] for t in cell.untried) for _, _, cell in self.all_cells()]
        raised = [[index[t], kind, *entry] for (t, kind), entry in self._raised.items()]
        return {"transitions": list(map(str, self.transitions)), "untried": untried, "raised": raised}

    def restore(self, stored: Mapping[str, Plain]) -> None:
        """Restore a snapshot; raise DataError if it belongs to another chart."""
        if stored["transitions"] != list(map(str, self.transitions)):
            raise DataError(f"{self.name}: differs from the chart of the run")
        for (_, _, cell), untried in zip(self.all_cells(), stored["untried"], strict=True):
            cell.untried = {self.transitions[index] for index in untried}
        self._raised = {
            (self.transitions[index], str(kind)): (str(text), int(n), str(location))
            for index, kind, text, n, location in stored["raised"]
        }

    def failing_guards(self) -> list[FailingGuard]:
        """Return the guards that raised while firing, in list order."""
        untried = {t for _, _, cell in self.all_cells() for t in cell.untried}
        failing = []
        for transition in dict.fromkeys(self.transitions) if self._raised else ():
            entries = [entry for (t, _), entry in self._raised.items() if t == transition]
            if entries:
                errors = tuple(text.removeprefix(f"{transition}: ") for text, _, _ in entries)
                n_errors = sum(n for _, n, _ in entries)
                failing.append(FailingGuard(transition, n_errors, transition in untried, errors, entries[0][2]))
        return failing


@dataclass
class StateTimers:
    """The triggers in time of a state, in list order.

    Attributes:
        waits: The number of ticks of each trigger; None for a timeout after each agent's `timeout_threshold`.
        conditions: The condition of each trigger, as the guard of a cell.
        rates: The rate of each trigger.
    """

    waits: dict[str, int | Exponential | None] = field(default_factory=dict)
    conditions: dict[str, Cell] = field(default_factory=dict)
    rates: dict[str, Rate] = field(default_factory=dict)

    def add(self, t: Transition, timeout: int | None) -> None:
        """Add the trigger of a transition, if it is one in time."""
        match t.timing:
            case After(ticks):
                self.waits[t.trigger] = ticks
            case When(condition):
                guard = Transition(t.trigger, t.source, t.target, condition)
                self.conditions[t.trigger] = Cell((guard,), oracle_enabled=True)
            case Rate():
                self.rates[t.trigger] = t.timing
        if t.trigger == TIMEOUT:
            self.waits[TIMEOUT] = timeout


class StatechartParams(Params):
    """How the chart runs; the chart itself is Python code."""

    default_timeout_ticks: int = Field(5, ge=1, le=1_000_000, description="ticks until an agent times out in a state")
    max_history_depth: int = Field(50, ge=0, le=10_000, description="number of past transitions kept per agent")
    oracle_enabled: bool = Field(True, description="false: open choices take their first option; nobody is asked")
    chart: str | None = Field(None, description="module:object of your own chart; null: the default chart")
    strict: bool = Field(False, description="true: an error in a guard ends the run; false: the guard counts as false")
