"""Firing over columns: the same selection as `Statechart.fire`, for as many agents as there are rows.

Selection only: nothing is changed here, and actions are left to whoever applies the result.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.statechart.guards import Expression
from prism_mesa.statechart.selection import Cell
from prism_mesa.statechart.statechart import Statechart, guard_value
from prism_mesa.statechart.states import AgentState
from prism_mesa.statechart.transitions import Guard, Transition

type Codes = npt.NDArray[np.integer]

NOTHING = -1


class Columns(Protocol):
    """Many agents, or the posts before them: a column for expressions, a row for plain callables."""

    def take(self, rows: Codes) -> Self:
        """Return these rows only, in this order."""
        ...

    def column(self, name: str) -> Any:
        """Return the values of a field; raise AttributeError if they are not held as a column."""
        ...

    def row(self, i: int) -> Any:
        """Return row `i` as the object that a plain guard or an action is given."""
        ...


class ArrayColumns:
    """Columns over a mapping of arrays of one length.

    >>> posts = ArrayColumns({"relevance": np.array([0.2, 0.9])})
    >>> posts.row(1).relevance
    0.9
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.arrays = arrays

    def take(self, rows: Codes) -> "ArrayColumns":
        """Return these rows only."""
        return ArrayColumns({name: array[rows] for name, array in self.arrays.items()})

    def column(self, name: str) -> Any:
        """Return one array."""
        if name not in self.arrays:
            raise AttributeError(f"no column {name!r}")
        return self.arrays[name]

    def row(self, i: int) -> SimpleNamespace:
        """Return one row, with plain Python values."""
        return SimpleNamespace(**{name: array[i].item() for name, array in self.arrays.items()})


@dataclass(frozen=True)
class Fired:
    """What firing found, one entry per row.

    Attributes:
        taken: Index into `transitions`, or -1 where nothing fires or the choice is open.
        open: Index into `option_sets` where the choice is open, else -1.
        rowwise: Labels of the guards that could not run over columns.
    """

    taken: npt.NDArray[np.int16]
    open: npt.NDArray[np.int16]
    transitions: tuple[Transition, ...]
    option_sets: tuple[tuple[AgentState, ...], ...]
    rowwise: frozenset[str]


def fire_many(
    chart: Statechart, states: Codes, triggers: Codes | str, agents: Columns, contexts: Columns
) -> Fired:
    """Select a transition, or the options, for each row; nothing is changed.

    Args:
        chart: Whose transitions.
        states: State codes (`AgentState.code`), one per row.
        triggers: Indices into ``chart.triggers`` (-1: none), one per row, or one trigger for all.
        agents: What expressions read as ``F.agent``.
        contexts: What they read as ``F.post``.
    """
    states = np.asarray(states)
    if isinstance(triggers, str):
        code = chart.triggers.index(triggers) if triggers in chart.triggers else NOTHING
        triggers = np.full(len(states), code)
    taken = np.full(len(states), NOTHING, np.int16)
    open_ = np.full(len(states), NOTHING, np.int16)
    index = {id(t): i for i, t in enumerate(chart.transitions)}
    option_sets: dict[tuple[AgentState, ...], int] = {}
    rowwise: set[str] = set()
    width = len(AgentState)
    place = np.asarray(triggers).astype(np.int32) * width + states
    for where in np.flatnonzero(np.bincount(place[place >= 0], minlength=1)):
        state = list(AgentState)[where % width]
        cell = chart.cells[chart.triggers[where // width]].get(state)
        if cell is None:
            continue
        rows = np.flatnonzero(place == where)
        keys = _keys(chart, cell, agents.take(rows), contexts.take(rows), len(rows), rowwise)
        for key in np.flatnonzero(np.bincount(keys)):
            here = rows[keys == key]
            outcome = cell.outcomes[int(key)]
            if isinstance(outcome, Transition):
                taken[here] = index[id(outcome)]
            elif outcome is not None:
                open_[here] = option_sets.setdefault(outcome, len(option_sets))
    return Fired(taken, open_, chart.transitions, tuple(option_sets), frozenset(rowwise))


def _keys(
    chart: Statechart, cell: Cell, agents: Columns, contexts: Columns, n: int, rowwise: set[str]
) -> npt.NDArray[np.int64]:
    """Return the packed guard values of each row, as `Cell.outcome` wants them."""
    keys = np.zeros(n, np.int64)
    for weight, _, guard in cell.arms:
        values = column_values(guard, agents, contexts, n) if isinstance(guard, Expression) else None
        if values is None:
            rowwise.add(next(str(t) for t in cell.candidates if t.guard is guard))
            values = _row_values(chart, cell, guard, agents, contexts, n)
        keys += weight * values
    return keys


def column_values(guard: Expression, agents: Columns, contexts: Columns, n: int) -> npt.NDArray[np.int64] | None:
    """Return an expression's value (0 or 1) in each of `n` rows, or None if it cannot run over these columns.

    Floats are read as float64 and any floating-point fault counts as "cannot": then rows decide, where
    Python raises its own error, and both ways agree to the bit.
    """
    try:
        with np.errstate(all="raise", under="ignore"):
            values = guard.function(Reader(agents), Reader(contexts))
    except (AttributeError, TypeError, ArithmeticError):
        return None
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return np.asarray(values != 0, np.int64)
    return None if isinstance(values, np.ndarray | str) else np.full(n, int(bool(values)))


def _row_values(
    chart: Statechart, cell: Cell, guard: Guard, agents: Columns, contexts: Columns, n: int
) -> npt.NDArray[np.int64]:
    values = np.zeros(n, np.int64)
    for i in range(n):
        try:
            values[i] = guard_value(guard(agents.row(i), contexts.row(i)))
        except Exception as error:  # as in Statechart._key: false, and counted
            if chart.strict:
                raise
            chart.count_guard_error(cell, guard, error)
    return values


class Reader:
    """Columns read by attribute, floats in double precision, as a row's Python floats are."""

    __slots__ = ("_columns",)

    def __init__(self, columns: Columns) -> None:
        self._columns = columns

    def __getattr__(self, name: str) -> Any:
        values = self._columns.column(name)
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            return values.astype(np.float64, copy=False)
        return values.astype(np.int64) if isinstance(values, np.ndarray) and values.dtype.kind in "iu" else values
