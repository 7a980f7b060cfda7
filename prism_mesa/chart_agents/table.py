"""The columns of a model's chart agents: states, ticks, and declared fields, with one row for each agent."""

from collections.abc import Iterable, Sequence
from copy import copy
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Ints, UInt8
from prism_mesa.errors import AgentError
from prism_mesa.statechart import StateTransition
from prism_mesa.streams import Streams

_NAME: Final = "_chart_agents"
_START: Final = datetime(2000, 1, 1, tzinfo=UTC)
_MAX_SEED: Final = 2**63


class ChartColumns:
    """The agents' state in one of their charts.

    Attributes:
        codes: The code of each agent's state.
        made: Number of ticks that the agent has made.
        entered: Number of ticks that the agent had made when it entered its state.
        histories: The last changes of each agent.
    """

    def __init__(self, n: int) -> None:
        self.codes, self.made, self.entered = bytearray(n), np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.histories: list[list[StateTransition]] = [[] for _ in range(n)]

    @property
    def states(self) -> UInt8:
        """The memory of `codes` as an array."""
        return np.frombuffer(self.codes, np.uint8)

    def take(self, rows: Sequence[int]) -> "ChartColumns":
        """Return columns of some rows; from the end of these columns on, rows are those of new agents."""
        taken = ChartColumns(len(rows))
        for name in ("states", "made", "entered"):
            getattr(taken, name)[:] = getattr(self, name).take(rows, mode="clip")
        taken.histories = [self.histories[row] if row < len(self.histories) else [] for row in rows]
        return taken

    def record(self, rows: Iterable[int], change: StateTransition, depth: int) -> None:
        """Add a change to the histories of some agents, of which the last `depth` are kept."""
        for row in rows:
            history = self.histories[row]
            history.append(change)
            if len(history) > depth:
                del history[:-depth]


class AgentTable:
    """The rows of a model's chart agents.

    Attributes:
        charts: The columns by the name of the chart; the name of a single chart is empty.
        fields: The columns of declared fields by name.
        ids: Each agent's `unique_id`.
        groups: What `tick_all` keeps until an agent joins or leaves; `is_ticking` is true while it runs.
    """

    def __init__(self, model: Any) -> None:
        self.model, self.streams = model, Streams(_model_seed(model))
        self.charts: dict[str, ChartColumns] = {}
        self.fields: dict[str, npt.NDArray[Any]] = {}
        self.ids = np.zeros(16, np.int64)
        self.groups: dict[Any, Any] = {}
        self.is_ticking, self._n, self._free = False, 0, list[int]()

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {"groups": {}}

    def add(self, agent: Any) -> int:
        """Give an agent a row, in the initial states of its charts and with the defaults of its fields."""
        self.groups.clear()
        if self._free and not self.is_ticking:  # a tick still refers to the rows of agents that have left
            row = self._free.pop()
        else:
            row, self._n = self._n, self._n + 1
            if self._n > len(self.ids):
                self._take(range(2 * len(self.ids)))
        self.ids[row] = agent.unique_id
        for name, chart in agent._charts.items():
            columns = self.charts.get(name)
            if columns is None:
                columns = self.charts[name] = ChartColumns(len(self.ids))
            chart.warns_of_guards = True
            columns.codes[row], columns.histories[row] = chart.codes[chart.initial], []
            columns.made[row] = columns.entered[row] = 0
        for name, field in declared_columns(agent.__class__).items():
            if name not in self.fields:
                self.fields[name] = np.zeros(len(self.ids), field.dtype)
            self.fields[name][row] = field.default
        return row

    def _take(self, rows: Sequence[int]) -> None:
        """Keep these rows; from the end of the columns on, rows are those of new agents, which `add` fills."""
        self.charts = {name: columns.take(rows) for name, columns in self.charts.items()}
        self.ids = self.ids.take(rows, mode="clip")
        self.fields = {name: array.take(rows, mode="clip") for name, array in self.fields.items()}

    def free(self, agent: Any) -> None:
        """Give an agent that leaves the model a table of its own, and free its row."""
        row, table = agent._row, copy(self)
        table.groups, table.is_ticking = {}, False
        table._take([row])
        agent._table, agent._row = table, 0
        self.groups.clear()
        self._free.append(row)


def table_of(model: Any) -> AgentTable:
    """Return the table of a model; the first call makes it."""
    table: AgentTable | None = vars(model).get(_NAME)
    if table is None:
        table = AgentTable(model)
        setattr(model, _NAME, table)
    return table


def _model_seed(model: Any) -> int:
    """Return the integer given as `rng`, or else one drawn from `model.rng`."""
    seed: Any = getattr(model, "_seed", None)
    is_given = isinstance(seed, int | np.integer) and seed >= 0
    if is_given and np.random.default_rng(seed).bit_generator.state == getattr(model, "_rng", None):
        return int(seed)
    return int(model.rng.integers(_MAX_SEED))


@lru_cache(maxsize=16)
def time_at(time: float) -> datetime:
    """Return the time of a change of state: one second after the start of 2000 for each unit of Mesa's time."""
    return _START + timedelta(seconds=time)


class column:  # noqa: N801 - reads like a function in class bodies
    """A field that all agents of a class store in one array, so `tick_all` reads it without asking each agent.

    >>> class Person:
    ...     energy = column(1.0)

    Args:
        default: The value of new agents: a number or a boolean.
    """

    def __init__(self, default: float | bool) -> None:
        if not isinstance(default, bool | int | float):
            raise AgentError(f"column({default!r}): give a number or a boolean as the default")
        self.default = default
        self.dtype = np.array(default).dtype

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, agent: Any, owner: type) -> Any:
        return self if agent is None else agent._table.fields[self._name][agent._row].item()

    def __set__(self, agent: Any, value: Any) -> None:
        agent._table.fields[self._name][agent._row] = value


@cache
def declared_columns(kind: Any) -> dict[str, column]:
    """Return the declared columns of a class by name."""
    fields = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    return {name: value for name, value in fields.items() if isinstance(value, column)}


def get_column(agents: Iterable[Any], name: str, chart: str = "") -> npt.NDArray[Any]:
    """Return a declared column of some agents, or the codes of their states (``"state"``), in their order.

    Several charts have names: ``get_column(agents, "state", chart="work")``.
    """
    members = list(agents)
    if not members:
        return np.zeros(0)
    charts = members[0]._table.charts
    if name == "state" and chart not in charts:
        raise AgentError(f"get_column: no chart {chart!r}; give chart={' or '.join(map(repr, charts))}")
    values = charts[chart].states if name == "state" else _column(members, name)
    return np.asarray(values[_rows(members)])


def set_column(agents: Iterable[Any], name: str, values: Any) -> None:
    """Set a declared column of some agents to `values`: a number, or one for each agent."""
    if members := list(agents):
        _column(members, name)[_rows(members)] = values


def _rows(members: list[Any]) -> Ints:
    return np.fromiter((agent._row for agent in members), np.int64, len(members))


def _column(members: list[Any], name: str) -> npt.NDArray[Any]:
    table: AgentTable = members[0]._table
    if name not in table.fields:
        raise AgentError(f"{name!r} is not a column; write {name} = column(0.0) in the class of the agents")
    return table.fields[name]
