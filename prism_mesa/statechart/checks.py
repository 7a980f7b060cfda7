"""Static checks of a chart, before anything runs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import ceil, floor, inf, isfinite
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import did_you_mean
from prism_mesa.statechart.batch import ArrayColumns, ColumnReader, column_values, row_values, zero_keys
from prism_mesa.statechart.definition import TIMEOUT, ChartDefinition
from prism_mesa.statechart.guards import Expression
from prism_mesa.statechart.selection import FALSE, OPEN_CHOICE, TRUE, Cell, GuardErrors, Outcome, asks_oracle
from prism_mesa.statechart.states import AgentState, State
from prism_mesa.statechart.timing import After, Rate
from prism_mesa.statechart.transitions import Transition
from prism_mesa.streams import Streams

type Level = Literal["error", "warning", "note"]

N_PROBES: Final = 4096
_MAX_CALLABLES: Final = 5
_LEVEL_ORDER: Final = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True)
class Finding:
    """A finding of the check; `kind` is an identifier, and `where` names the states and the trigger."""

    level: Level
    kind: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.message}"


_USUAL_NUMBERS: Final = (0.0, 0.25, 0.5, 0.75, 1.0)
_USUAL_WHOLE: Final = (0, 1, 2, 5, 10, 100)


@dataclass(frozen=True)
class Values:
    """The possible values of a field: the `names`, if any; else numbers from `low` to `high`, or strings.

    Attributes:
        low: The lowest number; `high` is the highest.
        whole: Whether all values are integers.
        names: All values, for a field with few values such as ``post.kind``.
    """

    low: float = -inf
    high: float = inf
    whole: bool = False
    names: tuple[str | bool | None, ...] = ()

    def values_to_try(self, constants: Iterable[float | str]) -> npt.NDArray[Any]:
        """Return values to try: constants from comparisons, values near and between them, and the range's ends."""
        distinct = set(constants)
        texts = {constant for constant in distinct if isinstance(constant, str)}
        if self.names:
            return np.array(self.names, object if None in self.names else None)
        if texts and not self.is_number:
            return np.array(sorted(texts | {"something else"}))
        compared = sorted(constant for constant in distinct if not isinstance(constant, str))
        nearby = {constant + step for constant in compared for step in (-1.0, -0.01, 0.01, 1.0)}
        middles = {(low + high) / 2 for low, high in pairwise(compared)}
        ends = {end for end in (self.low, self.high) if isfinite(end)}
        usual = {*(_USUAL_WHOLE if self.whole else _USUAL_NUMBERS), *ends, sum(ends) / max(1, len(ends))}
        numbers, constants = self._allowed(usual | set(compared) | nearby | middles), self._allowed(compared)
        n_repeats = len(numbers) // max(1, len(constants))  # constants make up half, because equality is rare
        return np.array(numbers + constants * n_repeats)

    @property
    def is_number(self) -> bool:
        """Whether the field is known to hold numbers."""
        return self.whole or isfinite(self.low) or isfinite(self.high)

    def _allowed(self, numbers: Iterable[float]) -> list[float]:
        if self.whole:
            numbers = {neighbor for number in numbers for neighbor in (floor(number), ceil(number))}
        return sorted(number for number in set(numbers) if self.low <= number <= self.high)


def check(
    chart: ChartDefinition,
    fired: Iterable[str] | None = None,
    fields: Iterable[str] | Mapping[str, Values] | None = None,
) -> list[Finding]:
    """Return faults and notes, errors first.

    Expressions are evaluated on `N_PROBES` made-up agents and posts. Their fields take the guards' constants and nearby
    values, within the chart's `invariant`. An outcome that occurs is possible; an outcome that never occurs is
    unlikely. Callables are assumed to return any value.

    Args:
        chart: The chart.
        fired: The triggers that the simulation fires; all other triggers are reported as never fired.
        fields: The fields of agents and posts, as ``agent.x`` and ``post.y``. Other fields are errors, or warnings if
            an action may set the agent's field or only scripts fire the trigger. A mapping limits each field's values.
    """
    findings = list(_check_structure(chart))
    values = fields if isinstance(fields, Mapping) else {}
    fired = None if fired is None else set(fired)
    if fired is not None:
        findings += _check_triggers(chart, fired)
    if fields is not None:
        findings += _check_fields(chart, fired, set(fields))
    open_cells: dict[str, bool] = {}
    for _, state, cell in chart.all_cells():
        outcomes = _possible_outcomes(chart, state, cell, values)
        findings += _check_cell(cell, outcomes)
        findings += _check_widening(cell, values) if chart.oracle_enabled else ()
        is_certain = [o.example is not None for o in outcomes if isinstance(o.outcome, tuple) and len(o.outcome) > 1]
        if is_certain and state in reachable(chart):
            open_cells[cell.label] = any(is_certain)
    findings.append(_check_oracle(chart, open_cells))
    return sorted(findings, key=lambda finding: _LEVEL_ORDER[finding.level])


def reachable(chart: ChartDefinition) -> set[State]:
    """Return the states that can be reached from the initial state."""
    states, new_states = set[State](), {chart.initial}
    while new_states:
        states |= new_states
        new_states = {t.target for t in chart.transitions if t.source in new_states and t.target is not None} - states
    return states


def _check_structure(chart: ChartDefinition) -> Iterator[Finding]:
    names = {state: state.value for state in chart.states}
    for state in sorted(chart.states - reachable(chart), key=names.__getitem__):
        yield Finding("error", "unreachable", state.value, "no path of transitions leads to this state")
    states_left = {t.source for t in chart.transitions if t.target is not t.source}
    for state in sorted(chart.states - states_left, key=names.__getitem__):
        yield Finding("warning", "dead-end", state.value, "no transition leaves this state")
    with_timeout = {t.source for t in chart.transitions if t.trigger == TIMEOUT or isinstance(t.timing, After | Rate)}
    for state in sorted(chart.states - with_timeout - {chart.initial}, key=names.__getitem__):
        yield Finding("warning", "no-timeout", state.value, f"no transition on {TIMEOUT!r}: an agent may stay for ever")


def _check_triggers(chart: ChartDefinition, fired: set[str]) -> Iterator[Finding]:
    for trigger in chart.triggers:
        if trigger not in fired:
            hint = did_you_mean(trigger, fired)
            yield Finding("warning", "never-fired", trigger, f"the round never fires this trigger.{hint}")
    for trigger in sorted(fired - set(chart.triggers)):
        yield Finding("warning", "dropped", trigger, "the round fires this trigger, and no state reacts to it")


def _check_fields(chart: ChartDefinition, fired: set[str] | None, field_names: set[str]) -> Iterator[Finding]:
    """Yield misspelt fields, as warnings where an action or a script may supply the field."""
    has_actions = any(t.action is not None for t in chart.transitions)
    reported: set[str] = set()
    for transition in chart.transitions:
        if isinstance(transition.guard, Expression):
            for name in sorted(transition.guard.fields - field_names):
                root, _, field = name.partition(".")
                may_exist = has_actions if root == "agent" else fired is not None and transition.trigger not in fired
                condition = ": the guard is false unless an action or a script gives it one" if may_exist else ""
                remedy = f" To declare it: attributes.{field}: {{of: {root}, values: [true, false]}}."
                hints = [hint for hint in (suggest_field(name, field_names), remedy) if hint not in reported]
                reported.update(hints)
                message = f"no {root} has a field {name!r}{condition}.{''.join(hints)}"
                yield Finding("warning" if may_exist else "error", "unknown-field", str(transition), message)


def suggest_field(name: str, field_names: Iterable[str]) -> str:
    """Suggest a similar field of the agent or the post, or else list the existing fields.

    >>> suggest_field("post.velocty", ["post.velocity", "post.kind"])
    " Did you mean 'post.velocity'?"
    >>> suggest_field("post.appeal", ["post.velocity", "post.kind"])
    ' A post has: kind, velocity, and declared attributes.'
    >>> suggest_field("agent.leaning", ["agent.activity", "post.kind"])
    ' An agent has: activity, and declared attributes.'
    """
    root, _, field = name.partition(".")
    names = sorted(field.removeprefix(f"{root}.") for field in field_names if field.startswith(f"{root}."))
    suggestion = did_you_mean(field, names).replace("'", f"'{root}.", 1)
    owner = {"agent": "An agent", "post": "A post"}.get(root)
    return suggestion or (f" {owner} has: {', '.join(names)}, and declared attributes." if owner and names else "")


@dataclass(frozen=True)
class _PossibleOutcome:
    """A possible outcome of a cell, with the enabled transitions; `example` is None if a guard is a callable."""

    outcome: Outcome
    enabled: list[tuple[Transition, int]]
    example: str | None


def _possible_outcomes(
    chart: ChartDefinition, state: State, cell: Cell, values: Mapping[str, Values]
) -> list[_PossibleOutcome]:
    values = {**values, "agent.state": Values(names=(state.value,))}
    expressions = [guard for _, _, guard in cell.guards if isinstance(guard, Expression)]
    columns = _make_probes([*expressions, chart.invariant] if chart.invariant is not None else expressions, values)
    probes = np.arange(N_PROBES) if chart.invariant is None else np.flatnonzero(_evaluate(chart.invariant, columns))
    has_callables = len(expressions) < len(cell.guards)
    fields_read = {name for guard in expressions for name in guard.fields}
    by_key: dict[int, _PossibleOutcome] = {}
    for keys in _probe_keys(cell, columns):
        for key, first in zip(*np.unique(keys[probes], return_index=True), strict=True):
            if int(key) not in by_key:
                example = None if has_callables else _example_text(columns, fields_read, int(probes[first]))
                by_key[int(key)] = _PossibleOutcome(cell.outcomes[int(key)], cell.enabled(int(key)), example)
    return list(by_key.values())


def _check_widening(cell: Cell, values: Mapping[str, Values]) -> Iterator[Finding]:
    """Yield conditions whose only effect is that the oracle decides more choices.

    A guard without a target is such a condition if another guard can be true at the same time. So is a part (joined by
    `&`) of the only guard for a target, if no other guard reads its fields and *else* asks the oracle.
    """
    guards = {t: t.guard for t in cell.candidates if isinstance(t.guard, Expression)}
    columns = _make_probes(list(guards.values()), values)
    else_asks_oracle = any(t.target is None and t not in guards for t in cell.candidates)
    for transition, guard in guards.items():
        if transition.target is None:
            values_of_others = (_evaluate(other, columns) for t, other in guards.items() if t.target is not None)
            if any((_evaluate(guard, columns) & other).any() for other in values_of_others):
                yield _widening(transition, guard, "another guard is true as well")
        elif else_asks_oracle and sum(t.target is transition.target for t in cell.candidates) == 1:
            other_fields = {name for t, other in guards.items() if t is not transition for name in other.fields}
            parts = guard.conjuncts if len(guard.conjuncts) > 1 else ()
            yield from (_widening(transition, part, "it is false") for part in parts if not part.fields & other_fields)


def _widening(transition: Transition, condition: Expression, case: str) -> Finding:
    text = f"'{condition}' only sends more choices to the oracle: if {case}, the choice is open"
    return Finding("note", "widens", str(transition), text)


def _probe_keys(cell: Cell, columns: dict[str, ArrayColumns]) -> list[npt.NDArray[Any]]:
    """Return the keys of all probes, in one array for each combination of callables' answers."""
    keys = [zero_keys(cell, N_PROBES)]
    tries_all_answers = sum(not isinstance(guard, Expression) for _, _, guard in cell.guards) <= _MAX_CALLABLES
    for i, (weight, _, guard) in enumerate(cell.guards):
        if not isinstance(guard, Expression) and tries_all_answers:
            keys = [key + weight * value for key in keys for value in (FALSE, TRUE, OPEN_CHOICE)]
            continue
        if isinstance(guard, Expression):
            values = _evaluate(guard, columns)
        else:  # too many combinations: false in half of the probes, random in the others
            values = Streams(0).integers(f"callable {i}", np.arange(N_PROBES), 3)
            values[: N_PROBES // 2] = FALSE
        keys = [key + weight * values.astype(key.dtype) for key in keys]
    return keys


def _evaluate(guard: Expression, columns: dict[str, ArrayColumns]) -> npt.NDArray[np.int64]:
    """Return a guard's value for each probe; a guard that raises (division by zero) is false."""
    agents, posts = columns["agent"], columns["post"]
    values = column_values(guard, agents, posts, N_PROBES)
    if values is not None:
        return values
    return row_values(Transition("probed", "probed", None, guard), agents, posts, N_PROBES, GuardErrors())[0]


def _make_probes(expressions: list[Expression], values: Mapping[str, Values]) -> dict[str, ArrayColumns]:
    """Return made-up agents and posts, whose fields have values of `Values.values_to_try`."""
    arrays: dict[str, dict[str, npt.NDArray[Any]]] = {"agent": {}, "post": {}, "model": {}}
    for name, constants in sorted(_compared_constants(expressions).items()):
        field_values = values.get(name, Values()).values_to_try(constants)
        root, field = name.split(".", 1)
        arrays[root][field] = field_values[(_probe_draws(name) * len(field_values)).astype(np.int64)]
    model = ColumnReader(ArrayColumns(arrays["model"]))
    return {root: ArrayColumns(arrays[root], model) for root in ("agent", "post")}


@lru_cache(maxsize=256)
def _probe_draws(name: str) -> npt.NDArray[np.float64]:
    """Return a number in [0, 1) for each probe; the numbers are the same for every chart."""
    return Streams(0).uniform(name, np.arange(N_PROBES))


def _compared_constants(expressions: list[Expression]) -> dict[str, set[float | str]]:
    """Return the constants with which each field is compared, directly or through other fields."""
    terms = [term for expression in expressions for term in expression.terms]
    constants: dict[str, set[float | str]] = {name: set() for e in expressions for name in e.fields}
    for _ in constants:  # constants spread along chains of compared fields
        for term in terms:
            shared = term.constants.union(*(constants[name] for name in term.fields))
            for name in term.fields:
                constants[name] |= shared
    return constants


def _example_text(columns: dict[str, ArrayColumns], fields_read: set[str], row: int) -> str:
    """Return a text with a probe's values in the fields that guards read."""
    assignments = [
        f"{root}.{field} = {array[row]}"
        for root, fields in columns.items()
        for field, array in sorted(fields.arrays.items())
        if f"{root}.{field}" in fields_read
    ]
    return "for example " + ", ".join(assignments) if assignments else "always"


def _check_cell(cell: Cell, outcomes: list[_PossibleOutcome]) -> Iterator[Finding]:
    if not outcomes:
        yield Finding("note", "unprobed", cell.label, "no made-up agent meets the chart's invariant")
    taken = {id(t) for possible in outcomes for t in _used_transitions(cell, possible)}
    for transition in cell.candidates if outcomes else ():
        if id(transition) not in taken:
            yield Finding("warning", "shadowed", str(transition), "no made-up agent takes this transition")
    if any(t.target is None for t in cell.candidates) and not cell.targets:
        yield Finding("error", "no-options", cell.label, "the oracle is asked, but no concrete target is declared")
    by_note: dict[tuple[str, str], _PossibleOutcome] = {}
    for possible in outcomes:
        if possible.outcome is None and not possible.enabled:
            by_note.setdefault(("gap", "if no guard is true, nothing happens: the trigger is dropped"), possible)
        elif isinstance(possible.outcome, tuple):
            names = ", ".join(state.value for state in possible.outcome)
            is_open = any(asks_oracle(t, value) for t, value in possible.enabled)
            kind, reason = ("open", "left open by the chart") if is_open else ("overlap", "guards overlap")
            by_note.setdefault((kind, f"{reason}: the oracle chooses among {names}"), possible)
    for (kind, text), possible in by_note.items():
        yield Finding("note", kind, cell.label, f"{text}, {possible.example or 'if its callable guards say so'}")


def _used_transitions(cell: Cell, possible: _PossibleOutcome) -> Iterator[Transition]:
    """Yield the transitions that leave the choice open or may be taken."""
    yield from (t for t, value in possible.enabled if asks_oracle(t, value))
    if isinstance(possible.outcome, Transition):
        yield possible.outcome
    for option in possible.outcome if isinstance(possible.outcome, tuple) else ():
        yield cell.transition_to(option, possible.enabled)


def _check_oracle(chart: ChartDefinition, open_cells: dict[str, bool]) -> Finding:
    is_platform = any(isinstance(state, AgentState) for state in chart.states)
    wants_oracle = is_platform or bool(open_cells) or any(t.target is None for t in chart.transitions)
    is_fine = not chart.oracle_enabled or not wants_oracle or any(open_cells.values())
    level: Level = "note" if is_fine else "warning"
    text = "the oracle can never be reached"
    if not chart.oracle_enabled:
        text = "the oracle is disabled: an open choice takes its first option"
    elif open_cells and level == "note":
        text = f"the oracle can be reached: {'; '.join(place for place, certain in open_cells.items() if certain)}"
    elif open_cells:
        text = f"the oracle can be reached only if callable guards say so: {'; '.join(open_cells)}"
    return Finding(level, "oracle", chart.name, text)
