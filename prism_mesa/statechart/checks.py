"""Static checks of a chart: what can be known before anything runs. Nothing is fired here."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import did_you_mean
from prism_mesa.statechart.guards import Expression
from prism_mesa.statechart.selection import NEEDS, Cell
from prism_mesa.statechart.states import AgentState
from prism_mesa.statechart.tables import ArrayColumns, column_values
from prism_mesa.statechart.transitions import Transition
from prism_mesa.streams import Streams

if TYPE_CHECKING:
    from prism_mesa.statechart.statechart import Statechart

type Level = Literal["error", "warning", "note"]

N_PROBES: Final = 4096
_MANY_GUARDS: Final = 6
_ORDER: Final = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True)
class Finding:
    """One thing the check found. `kind` is a short fixed word, `where` names states and trigger."""

    level: Level
    kind: str
    where: str
    message: str

    def __str__(self) -> str:
        return f"{self.level}: {self.where}: {self.message}"


def check(chart: "Statechart", fired: Iterable[str] | None = None) -> list[Finding]:
    """Return what is wrong or worth knowing, errors first.

    Guards that are expressions are evaluated on `N_PROBES` made-up agents and posts whose fields take the
    constants of the guards and values around them (those that break the chart's `invariant` are left
    out): what is found that way is certain, what is not found is only unlikely. Plain callables cannot
    be looked into and count as able to give any value.

    Args:
        chart: The chart.
        fired: The triggers that the simulation fires; with them, triggers that no one fires are found.
    """
    found = list(_structure(chart))
    if fired is not None:
        found += _never_fired(chart, set(fired))
    asks: list[str] = []
    for trigger, state, cell in _cells(chart):
        outcomes = _possible(chart, cell)
        found += _cell_findings(cell, f"{state.value} --{trigger}-->", outcomes)
        if state in reachable(chart) and any(isinstance(o, tuple) and len(o) > 1 for o, _ in outcomes.values()):
            asks.append(f"{state.value} --{trigger}-->")
    found.append(_oracle(chart, asks))
    return sorted(found, key=lambda finding: _ORDER[finding.level])


def reachable(chart: "Statechart") -> set[AgentState]:
    """Return the states that some path of transitions leads to from the initial one."""
    seen, border = {chart.initial}, [chart.initial]
    while border:
        source = border.pop()
        for transition in chart.transitions:
            if transition.source is source and transition.target is not None and transition.target not in seen:
                seen.add(transition.target)
                border.append(transition.target)
    return seen


def _cells(chart: "Statechart") -> Iterator[tuple[str, AgentState, Cell]]:
    for trigger, row in chart.cells.items():
        for state, cell in row.items():
            yield trigger, state, cell


def _structure(chart: "Statechart") -> Iterator[Finding]:
    names = {state: state.value for state in chart.states}
    for state in sorted(chart.states - reachable(chart), key=names.__getitem__):
        yield Finding("error", "unreachable", state.value, "no path of transitions leads to this state")
    leaves = {t.source for t in chart.transitions if t.target is not t.source}
    for state in sorted(chart.states - leaves, key=names.__getitem__):
        yield Finding("warning", "dead-end", state.value, "no transition leaves this state")
    timed = {t.source for t in chart.transitions if t.trigger == "timeout"}
    for state in sorted(chart.states - timed - {chart.initial}, key=names.__getitem__):
        yield Finding(
            "warning", "no-timeout", state.value, "no transition on 'timeout': an agent may stay for ever"
        )


def _never_fired(chart: "Statechart", fired: set[str]) -> Iterator[Finding]:
    for trigger in chart.triggers:
        if trigger not in fired:
            hint = did_you_mean(trigger, fired)
            yield Finding("warning", "never-fired", trigger, f"the round never fires this trigger.{hint}")
    for trigger in sorted(fired - set(chart.triggers)):
        yield Finding("warning", "dropped", trigger, "the round fires this trigger, and no state reacts to it")


type _Outcomes = dict[int, tuple[object, str]]


def _possible(chart: "Statechart", cell: Cell) -> _Outcomes:
    """Return the outcomes that can come about: guard key -> (outcome, a probe that gives it, in words)."""
    n = N_PROBES
    names = sorted(_fields(chart, cell))
    columns = _probes(names, chart, cell)
    keep = np.ones(n, bool)
    if chart.invariant is not None:
        held = column_values(chart.invariant, columns["agent"], columns["post"], n)
        keep = keep if held is None else held.astype(bool)
    keys = [(np.zeros(n, np.int64), True)]
    for weight, _, guard in cell.arms:
        values = None
        if isinstance(guard, Expression):
            values = column_values(guard, columns["agent"], columns["post"], n)
        if values is not None:
            keys = [(key + weight * values, known) for key, known in keys]
        elif len(keys) < 3**_MANY_GUARDS:  # a callable may give anything
            keys = [(key + weight * value, False) for key, _ in keys for value in (0, 1, 2)]
    found: _Outcomes = {}
    for key, known in keys:
        values, first = np.unique(key[keep], return_index=True)
        for value, at in zip(values.tolist(), np.flatnonzero(keep)[first], strict=True):
            witness = _witness(columns, names, int(at)) if known else "if its callable guards say so"
            found.setdefault(value, (cell.outcomes[value], witness))
    return found


def _fields(chart: "Statechart", cell: Cell) -> set[str]:
    expressions = [guard for _, _, guard in cell.arms if isinstance(guard, Expression)]
    if chart.invariant is not None:
        expressions.append(chart.invariant)
    return {name for expression in expressions for name in expression.fields}


def _probes(names: list[str], chart: "Statechart", cell: Cell) -> dict[str, ArrayColumns]:
    """Return made-up agents and posts: each field takes values on, between and beside the constants."""
    expressions = [guard for _, _, guard in cell.arms if isinstance(guard, Expression)]
    numbers = {0.0, 0.25, 0.5, 0.75, 1.0}
    for constant in {c for expression in expressions for c in expression.constants}:
        numbers |= {constant - 1.0, constant - 0.01, constant, constant + 0.01, constant + 1.0}
    texts = {text for expression in expressions for text in expression.texts}
    draws = Streams(0)
    arrays: dict[str, dict[str, npt.NDArray[np.generic]]] = {"agent": {}, "post": {}}
    for name in names:
        root, field = name.split(".", 1)
        is_text = any(name in e.fields and e.texts for e in expressions)
        values = np.array(sorted(texts | {"something else"})) if is_text else np.array(sorted(numbers))
        arrays[root][field] = values[draws.integers(name, np.arange(N_PROBES), len(values))]
    return {root: ArrayColumns(columns) for root, columns in arrays.items()}


def _witness(columns: dict[str, ArrayColumns], names: list[str], row: int) -> str:
    shown = [f"{name} = {columns[name.split('.')[0]].arrays[name.split('.')[1]][row]}" for name in names]
    return "for example " + ", ".join(shown) if shown else "always"


def _cell_findings(cell: Cell, where: str, outcomes: _Outcomes) -> Iterator[Finding]:
    lefts = {key: cell.left(cell.values(key)) for key in outcomes}
    alive = {id(t) for left in lefts.values() for t, _ in left}
    for transition in cell.candidates:
        if id(transition) not in alive:
            yield Finding("warning", "shadowed", str(transition), "no agent can ever take this transition")
    for first, second in combinations([t for t in cell.candidates if t.guard is None], 2):
        if first.target is second.target:
            yield Finding("warning", "shadowed", str(second), "an earlier transition leads to the same state")
    if any(t.target is None for t in cell.candidates) and not cell.declared:
        yield Finding("error", "no-options", where, "the oracle is asked, and no concrete target is declared")
    for key, (outcome, witness) in outcomes.items():
        if outcome is None and not lefts[key]:
            yield Finding("note", "gap", where, f"the trigger is dropped, {witness}")
        elif isinstance(outcome, tuple):
            names = ", ".join(state.value for state in outcome)
            kind, why = _openness(lefts[key])
            yield Finding("note", kind, where, f"{why}: the oracle chooses among {names}, {witness}")


def _openness(left: list[tuple[Transition, int]]) -> tuple[str, str]:
    if any(t.target is None or value == NEEDS for t, value in left):
        return "open", "left open by the chart"
    return "overlap", "guards overlap"


def _oracle(chart: "Statechart", asks: list[str]) -> Finding:
    if not chart.oracle_enabled:
        return Finding(
            "note", "oracle", chart.name, "the oracle is disabled: an open choice takes its first option"
        )
    if not asks:
        return Finding("warning", "oracle", chart.name, "the oracle can never be reached")
    return Finding("note", "oracle", chart.name, f"the oracle can be reached: {'; '.join(asks)}")
