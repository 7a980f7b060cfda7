"""What a chart is made of, its parameters, and what its guards have raised."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final

from pydantic import Field

from prism_mesa.errors import ChartError, DataError, counted, one_line
from prism_mesa.markup import card_of, chip_of, joined_of, note_of, shown_or_plain, table_of
from prism_mesa.params import Params
from prism_mesa.snapshot import Plain, Restorable
from prism_mesa.statechart.guards import Expression
from prism_mesa.statechart.selection import Cell, build_cells
from prism_mesa.statechart.states import STATE_COLORS, STATES, AgentState, state_of_chart
from prism_mesa.statechart.transitions import Transition
from prism_mesa.statechart.users_code import FailingGuard, Kind, add_place, failing_guards, line_of, whereabouts

TIMEOUT: Final = "timeout"
_FIXED: Final = frozenset("states transitions initial timeouts oracle_enabled triggers cells".split())


class ChartDefinition(Restorable):
    """The part of a `Statechart` that is there before any agent: states, transitions, settings, and their tables.

    What it is made of cannot be set later.

    Attributes:
        triggers: The triggers in list order.
        cells: The transitions by trigger and state, with the rule that picks among them.
        guard_errors: How often guards raised, by transition and kind of error, under the first message.
    """

    def __init__(
        self,
        states: Iterable[AgentState],
        transitions: Sequence[Transition],
        initial: AgentState,
        *,
        oracle_enabled: bool = True,
        timeouts: Mapping[AgentState, int] | None = None,
        invariant: Expression | None = None,
        strict: bool = False,
        name: str = "chart",
    ) -> None:
        self.name = name
        self.states = frozenset(AgentState(state) for state in states)
        own = partial(state_of_chart, name, self.states)
        self.initial = own(initial, "initial")
        self.timeouts: Mapping[AgentState, int] = MappingProxyType(
            {own(state, "timeouts"): ticks for state, ticks in (timeouts or {}).items()}
        )
        self.invariant = invariant
        self.oracle_enabled = oracle_enabled
        self.strict = strict
        self.guard_errors: Counter[str] = Counter()
        self._first_errors: dict[Kind, str] = {}
        self._raised: Counter[Kind] = Counter()
        self._first_places: dict[Transition, str] = {}
        for state, ticks in self.timeouts.items():
            if not isinstance(ticks, int) or ticks < 1:
                raise ChartError(f"{name}: timeouts: {state.value} is {ticks!r}; give whole ticks, at least 1")
        self.transitions = tuple(single for given in transitions for single in self._singles(given))
        self.triggers = tuple(dict.fromkeys(t.trigger for t in self.transitions))
        self.cells = build_cells(self.transitions, oracle_enabled)

    def _singles(self, given: Transition) -> list[Transition]:
        """Return a transition as one for each of its sources, all of whose states are in the chart."""
        if not isinstance(given, Transition):
            raise ChartError(f"{self.name}: transitions: {given!r} is no Transition(trigger, source, target)")
        for state in (*given.sources, given.target):
            if state is not None:
                state_of_chart(self.name, self.states, state, given)
        found = given.singles(self.states)
        if not found:
            raise ChartError(f"{self.name}: {given}: the chart has no state but the target")
        return found

    def __setattr__(self, name: str, value: object) -> None:
        if name in _FIXED and hasattr(self, name):  # not vars(self): the dict that makes slows every `fire`
            raise ChartError(
                f"{self.name}: {name} cannot be set: tables have been made from it. Make another chart, or use "
                "replaced(oracle_enabled=...)"
            )
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"timeouts": dict(self.timeouts)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in (state | {"timeouts": MappingProxyType(state["timeouts"])}).items():
            object.__setattr__(self, name, value)

    @one_line
    def __repr__(self) -> str:
        size = f"{counted(len(self.states), 'state')}, {counted(len(self.transitions), 'transition')}"
        return f"<{type(self).__name__} {self.name}: {size}>"

    @shown_or_plain
    def _repr_html_(self) -> str:
        size = f"{counted(len(self.states), 'state')}, {counted(len(self.transitions), 'transition')}"
        alike: dict[tuple[str, str, AgentState | None], list[AgentState]] = {}
        for t in self.transitions:
            trigger = t.trigger + self._after(t)
            alike.setdefault((trigger, t.guard_label or self._else(t), t.target), []).append(t.source)
        rows = [
            (
                self._chips(sources),
                trigger,
                guard,
                "?" if target is None else chip_of(STATE_COLORS[target], target.value),
            )
            for (trigger, guard, target), sources in alike.items()
        ]
        oracle = "" if self.oracle_enabled else "; the oracle is off: of several targets the first is taken"
        start = f"begins in {self.initial.value}; ? is the oracle's choice{oracle}. draw_chart(chart) draws it."
        table = table_of(("state", "trigger", "if", "next"), rows)
        return card_of("chart", self.name, table, note_of(start), about=size)

    def _after(self, t: Transition) -> str:
        """Return, of a timeout, after how many ticks it comes, if the chart says."""
        ticks = self.timeouts.get(t.source) if t.trigger == TIMEOUT else None
        return "" if ticks is None else f" after {counted(ticks, 'tick')}"

    def _chips(self, sources: Sequence[AgentState]) -> str:
        """Return the sources of transitions that are alike in everything else."""
        rest = self.states - set(sources)
        if len(sources) > 2 and len(rest) == 1:
            return f"any but {next(iter(rest)).value}"
        return joined_of([chip_of(STATE_COLORS[state], state.value) for state in STATES if state in sources])

    def _else(self, t: Transition) -> str:
        return "else" if self.cells[t.trigger][t.source].arms else ""

    def all_cells(self) -> Iterator[tuple[str, AgentState, Cell]]:
        """Yield each trigger and state that have transitions, with these, in list order."""
        for trigger, row in self.cells.items():
            for state, cell in row.items():
                yield trigger, state, cell

    def guard_raised(self, transition: Transition, error: Exception, agent: Any) -> None:
        """Count a guard that raised, under its transition and kind of error; a strict chart lets it raise."""
        if self.strict:
            add_place(error, "guard", transition, agent)
            raise error
        if transition not in self._first_places:
            self._first_places[transition] = ", ".join(filter(None, (whereabouts(agent), line_of(error))))
        kind = transition, f"{type(error).__module__}.{type(error).__qualname__}"
        text = f"{transition}: {type(error).__name__}: {error}"
        self.guard_errors[self._first_errors.setdefault(kind, text)] += 1
        self._raised[kind] += 1

    def snapshot(self) -> dict[str, Plain]:
        """Return what is known of guards, by the places of their transitions in the chart."""
        place = {t: i for i, t in reversed(list(enumerate(self.transitions)))}
        untried = [sorted(place[t] for t in cell.untried) for _, _, cell in self.all_cells()]
        kinds = [[place[t], kind, self._first_errors[t, kind], n] for (t, kind), n in self._raised.items()]
        first = [[place[t], text] for t, text in self._first_places.items()]
        return {"transitions": list(map(str, self.transitions)), "untried": untried, "raised": kinds, "first": first}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Bring back what `snapshot` returned.

        Raises:
            DataError: If it is of another chart.
        """
        if kept["transitions"] != list(map(str, self.transitions)):
            raise DataError(f"{self.name}: is not the chart of the run")
        for (_, _, cell), untried in zip(self.all_cells(), kept["untried"], strict=True):
            cell.untried = {self.transitions[place] for place in untried}
        self._first_errors, self._raised, self.guard_errors = {}, Counter(), Counter()
        self._first_places = {self.transitions[place]: str(text) for place, text in kept["first"]}
        for place, kind, text, times in kept["raised"]:
            known = self.transitions[place], str(kind)
            self._first_errors[known] = str(text)
            self._raised[known] = int(times)
            self.guard_errors[str(text)] += int(times)

    def failing_guards(self) -> list[FailingGuard]:
        """Return the guards that raised when they were asked in firing, in list order; see `statechart.failing`."""
        if not self._raised:
            return []
        untried = {t for _, _, cell in self.all_cells() for t in cell.untried}
        return failing_guards(self.transitions, untried, self._first_errors, self._raised, self._first_places)


class StatechartParams(Params):
    """How charts are run; the chart itself is Python code."""

    default_timeout_ticks: int = Field(
        5, ge=1, le=1_000_000, description="ticks after which an agent times out in a state"
    )
    max_history_depth: int = Field(50, ge=0, le=10_000, description="kept changes of state per agent; 0 keeps none")
    oracle_enabled: bool = Field(True, description="false: an open choice takes its first option, nobody is asked")
    chart: str | None = Field(None, description="a chart of your own, as module:object; null: the default chart")
    strict: bool = Field(False, description="true: a guard that raises ends the run; false: it counts as false")
