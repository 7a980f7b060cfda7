"""Fire triggers on many agents at once, in column arrays, by the same rule as `Statechart.fire` but without actions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, Protocol, Self

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Ints, Rows
from prism_mesa.statechart.definition import ChartDefinition
from prism_mesa.statechart.guards import Expression
from prism_mesa.statechart.selection import Cell, ErrorSink, Node, Outcome, evaluate_guards
from prism_mesa.statechart.states import State
from prism_mesa.statechart.transitions import Transition


class Columns(Protocol):
    """The fields of many agents or posts, as columns for expressions and as rows for callable guards."""

    def take(self, rows: Rows) -> Self:
        """Return columns of the given rows, in the given order."""
        ...

    def column(self, name: str) -> Any:
        """Return the values of a field; raise AttributeError if it has no column."""
        ...

    def row(self, i: int) -> Any:
        """Return row `i` as an object for callable guards."""
        ...


class ArrayColumns:
    """Columns in a mapping of arrays of equal length, and the `model` that ``F.model`` reads.

    >>> posts = ArrayColumns({"relevance": np.array([0.2, 0.9])})
    >>> posts.row(1).relevance
    0.9
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]], model: Any = None) -> None:
        self.arrays, self.model = arrays, model

    def take(self, rows: Rows) -> "ArrayColumns":
        """Return columns of the given rows."""
        return ArrayColumns({name: array[rows] for name, array in self.arrays.items()}, self.model)

    def column(self, name: str) -> Any:
        """Return one array."""
        if name == "model" and self.model is not None:
            return self.model
        if name not in self.arrays:
            raise AttributeError(f"no column {name!r}")
        return self.arrays[name]

    def row(self, i: int) -> SimpleNamespace:
        """Return a row as plain Python values."""
        return SimpleNamespace(model=self.model, **{name: array[i].item() for name, array in self.arrays.items()})


class ColumnReader:
    """Reads columns as attributes: floats in double precision, integers and booleans in 64 bits."""

    __slots__ = ("__columns",)

    def __init__(self, columns: Columns) -> None:
        self.__columns = columns

    def __getattr__(self, name: str) -> Any:
        values = self.__columns.column(name)
        kind = values.dtype.kind if isinstance(values, np.ndarray) else ""
        if kind == "f":
            return values.astype(np.float64, copy=False)
        return values.astype(np.int64, copy=False) if kind and kind in "biu" else values


NOTHING = -1
_MAX_GUARDS_TO_COUNT = 8
_ROWS_AT_ONCE: Final = 1 << 15
"""Number of rows whose values fit into the processor's cache."""
BLOCK: Final = 1024
"""Number of rows that are prepared together for callable guards."""


@dataclass(frozen=True)
class FireResult:
    """The result of firing; the first three attributes have one entry per row.

    Attributes:
        transition_indices: Index into `transitions`, or -1 if nothing fires or the choice is open.
        option_indices: Index into `option_sets` if the choice is open, else -1.
        keys: The key of the guards' answers if the choice is open (see `Statechart.resolve_key`), else 0.
        row_by_row_guards: Labels of the guards evaluated row by row: callables, and expressions that these columns do
            not support.
    """

    transition_indices: npt.NDArray[np.int16]
    option_indices: npt.NDArray[np.int16]
    keys: npt.NDArray[Any]
    transitions: tuple[Transition, ...]
    option_sets: tuple[tuple[State, ...], ...]
    row_by_row_guards: frozenset[str]


def fire_many(
    chart: ChartDefinition, states: Rows, triggers: Rows | str, agents: Columns, contexts: Columns
) -> FireResult:
    """Select a transition, or the options of an open choice, for each row; nothing changes.

    Args:
        chart: The chart.
        states: State codes (`ChartDefinition.codes`), one per row.
        triggers: One index into ``chart.triggers`` per row (-1: no trigger), or the name of one trigger for all rows.
        agents: The columns that expressions read as ``F.agent``.
        contexts: The columns that expressions read as ``F.post``.
    """
    states = np.asarray(states)
    if isinstance(triggers, str):
        code = chart.triggers.index(triggers) if triggers in chart.triggers else NOTHING
        triggers = np.full(len(states), code)
    indices = np.full(len(states), NOTHING, np.int16)
    open_sets = np.full(len(states), NOTHING, np.int16)
    fits_int64 = all(cell.fits_int64 for _, _, cell in chart.all_cells())
    open_keys: npt.NDArray[Any] = np.zeros(len(states), np.int64 if fits_int64 else object)
    index = {id(t): i for i, t in enumerate(chart.transitions)}
    option_sets: dict[tuple[State, ...], int] = {}
    row_by_row: set[str] = set()
    n_states = len(chart.members)
    cell_codes = np.asarray(triggers).astype(np.int32) * n_states + states
    for first in range(0, len(states), _ROWS_AT_ONCE):
        part = cell_codes[first : first + _ROWS_AT_ONCE]
        for cell_code in np.flatnonzero(np.bincount(part[part >= 0], minlength=1)):
            cell = chart.cells[chart.triggers[cell_code // n_states]].get(chart.members[cell_code % n_states])
            if cell is None:
                continue
            rows = first + np.flatnonzero(part == cell_code)
            keys = guard_keys(chart, cell, agents.take(rows), contexts.take(rows), len(rows), row_by_row)
            for key, is_key, outcome in outcomes_of(cell, keys):
                key_rows = rows[is_key]
                if isinstance(outcome, Transition):
                    indices[key_rows] = index[id(outcome)]
                elif outcome is not None:
                    open_sets[key_rows], open_keys[key_rows] = option_sets.setdefault(outcome, len(option_sets)), key
    return FireResult(indices, open_sets, open_keys, chart.transitions, tuple(option_sets), frozenset(row_by_row))


def outcomes_of(cell: Cell, keys: npt.NDArray[Any]) -> Iterator[tuple[int, Any, Outcome]]:
    """Yield each key that occurs, an index of the rows that have it, and its outcome."""
    if not cell.guards:
        yield 0, slice(None), cell.outcomes[0]
        return
    distinct = np.flatnonzero(np.bincount(keys)) if len(cell.guards) <= _MAX_GUARDS_TO_COUNT else np.unique(keys)
    for key in distinct.tolist():
        yield key, keys == key, cell.outcomes[key]


def guard_keys(
    chart: ChartDefinition, cell: Cell, agents: Columns, contexts: Columns, n_rows: int, row_by_row: set[str]
) -> Ints:
    """Return the key of the guards' answers in each row."""
    keys = zero_keys(cell, n_rows)
    for weight, transition, guard in cell.guards:
        values = column_values(guard, agents, contexts, n_rows) if isinstance(guard, Expression) else None
        n_failed = 0
        if values is None:
            row_by_row.add(str(transition))
            values, n_failed = row_values(transition, agents, contexts, n_rows, chart)
        if transition in cell.untried and n_failed < n_rows:
            cell.mark_tried([transition])
        keys += weight * values.astype(keys.dtype, copy=False)
    return keys


def zero_keys(cell: Cell, n: int) -> npt.NDArray[Any]:
    """Return the key of all-false answers, `n` times, in a type that can hold every key of the cell."""
    return np.zeros(n, np.int64 if cell.fits_int64 else object)


def column_values(guard: Expression, agents: Columns, contexts: Columns, n: int) -> Ints | None:
    """Return an expression's value (0 or 1) in each of `n` rows.

    It is None if a field has no column or a row would raise (division by zero); the guard then runs row by row.
    """
    try:
        with np.errstate(all="ignore"):
            values = guard.function(ColumnReader(agents), ColumnReader(contexts))
    except (AttributeError, TypeError, ArithmeticError):
        return None
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        return np.asarray(values != 0, np.int64)
    return np.full(n, int(bool(values))) if isinstance(values, bool | int | float | np.generic) else None


def row_values(
    transition: Transition, agents: Columns, contexts: Columns, n: int, failures: ErrorSink
) -> tuple[Ints, int]:
    """Return a guard's answer in each of `n` rows (as in `selection`), and the number of rows in which it raised."""
    cell = Cell((transition,), oracle_enabled=True)
    nodes: list[Node] = []
    for start in range(0, n, BLOCK):
        rows = np.arange(start, min(start + BLOCK, n))
        block_agents, block_contexts = agents.take(rows), contexts.take(rows)
        nodes += [evaluate_guards(cell, block_agents.row(i), block_contexts.row(i), failures) for i in range(len(rows))]
    return np.array([node.key for node in nodes], np.int64), sum(node.raised != () for node in nodes)
