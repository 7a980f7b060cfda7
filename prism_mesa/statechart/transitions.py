"""What a chart is made of (`Transition`), and what an agent remembers of one taken (`StateTransition`)."""

import json
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from enum import Enum
from math import isfinite, isnan
from numbers import Integral, Real
from typing import Any, Final, Literal

import numpy as np

from prism_mesa.errors import ChartError, one_line
from prism_mesa.statechart.guards import Expression
from prism_mesa.statechart.states import STATES, AgentState

type Guard = Expression | Callable[[Any, Any], bool | Literal["needs_oracle"]]
type Action = Callable[[Any, Any], None]


class AnyState(Enum):
    """What stands for the sources of a transition from every state but its target."""

    ANY = "any state"

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.value


ANY: Final = AnyState.ANY
"""Every state of the chart but the target (every state, if that is None): ``Transition("round_ends", ANY, "idle")``."""


@dataclass(frozen=True, eq=False, repr=False)
class Transition:
    """One transition of a chart, or one from each of several states; immutable.

    Args:
        trigger: Name of the event, not empty.
        source: State it leaves (an `AgentState` or its value); or several, kept as a tuple in the order of the
            states; or `ANY`, every state of the chart but the target (every state, if that is None). A chart reads
            several as one transition from each, at its place in the list: those in `Statechart.transitions` have one.
        target: State it enters; None leaves the choice among the declared targets to the oracle.
        guard: Expression over `F`, or callable ``(agent, context) -> bool | NEEDS_ORACLE``; it only reads.
            None means *else*.
        action: Callable ``(agent, context)`` that runs before the state changes.

    Raises:
        ChartError: (a ValueError) if the trigger is empty, a state is unknown or given twice as a source, there is no
            source, or a guard or an action cannot be called.
    """

    trigger: str
    source: Any
    target: AgentState | None
    guard: Guard | None = None
    action: Action | None = None

    def __post_init__(self) -> None:
        one = isinstance(self.source, str | bytes | AnyState) or not isinstance(self.source, Iterable)
        given = [self.source] if one else list(self.source)
        where = f"transition {', '.join(map(_name, given))} --{self.trigger}--> {_name(self.target)}"
        if not isinstance(self.trigger, str) or not self.trigger.strip():
            raise ChartError(f"{where}: the trigger is {self.trigger!r}; give a non-empty string")
        for name, part in (("guard", self.guard), ("action", self.action)):
            if part is not None and not callable(part):
                raise ChartError(f"{where}: the {name} is {part!r}; give a callable (agent, context) or None")
        try:
            if self.source is not ANY:
                sources = _sources(given)
                object.__setattr__(self, "source", sources[0] if len(sources) == 1 else sources)
            if self.target is not None:
                object.__setattr__(self, "target", AgentState(self.target))
        except ChartError as error:
            raise ChartError(f"{where}: {error}") from None

    @property
    def sources(self) -> tuple[AgentState, ...]:
        """The states it leaves, in the order of the states; none for `ANY`."""
        if self.source is ANY:
            return ()
        return self.source if isinstance(self.source, tuple) else (self.source,)

    def singles(self, states: Set[AgentState]) -> "list[Transition]":
        """Return the transitions with one source that it stands for in a chart of these states."""
        if len(self.sources) == 1:
            return [self]
        sources = self.sources or [state for state in STATES if state in states and state is not self.target]
        return [replace(self, source=state) for state in sources]

    def __eq__(self, other: object) -> bool:
        """Two transitions are equal if all fields are, guards and actions by identity."""
        if not isinstance(other, Transition):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.trigger, self.source, self.target, id(self.guard), id(self.action))

    @property
    def guard_label(self) -> str:
        """The guard in words: the expression, a function's name, or an empty string."""
        if self.guard is None:
            return ""
        return str(self.guard) if isinstance(self.guard, Expression) else _callable_label(self.guard)

    def __str__(self) -> str:
        guard = f" [{self.guard_label}]" if self.guard is not None else ""
        sources = ", ".join(state.value for state in self.sources) or str(ANY)
        return f"{sources} --{self.trigger}--> {self.target.value if self.target else '?'}{guard}"

    @one_line
    def __repr__(self) -> str:
        return f"<Transition {self}>"


def _name(state: object) -> str:
    return str(state.value if isinstance(state, AgentState) else state)


def _sources(given: list[Any]) -> tuple[AgentState, ...]:
    """Return sources as states, in the order of the states."""
    if not given:
        raise ChartError("it has no source; give a state, several, or ANY")
    if ANY in given:
        raise ChartError("ANY is every state but the target; give it alone")
    states = [AgentState(state) for state in given]
    for state in states:
        if states.count(state) > 1:
            raise ChartError(f"{state.value!r} is given twice as a source")
    return tuple(sorted(states, key=STATES.index))


def _callable_label(guard: Callable[..., Any]) -> str:
    name = getattr(guard, "__name__", type(guard).__name__)
    return "lambda" if name == "<lambda>" else f"{name}()"


class _Unchecked:
    """A `StateTransition` while `recorded` fills it in: not frozen yet, so plain assignments do."""

    from_state: AgentState
    to_state: AgentState | None
    trigger: str
    timestamp: datetime
    context: Mapping[str, Any] | None


@dataclass(frozen=True)
class StateTransition(_Unchecked):
    """A change of state that happened.

    Raises:
        ChartError: (a ValueError) if the states are equal (such a transition is not recorded), are no
            states, or the timestamp is not in UTC.
    """

    from_state: AgentState
    to_state: AgentState
    trigger: str
    timestamp: datetime
    context: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "from_state", AgentState(self.from_state))
        object.__setattr__(self, "to_state", AgentState(self.to_state))
        if self.from_state is self.to_state:
            raise ChartError(
                f"a StateTransition from {self.from_state.value!r} to itself: self-transitions are not recorded"
            )
        _require_utc(self.timestamp)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain JSON values; the timestamp ends in ``Z``."""
        return {
            "from_state": self.from_state.value,
            "to_state": self.to_state.value,
            "trigger": self.trigger,
            "timestamp": self.timestamp.isoformat().replace("+00:00", "Z"),
            "context": _plain(self.context),
        }


def recorded(transition: Transition, timestamp: datetime, context: Any) -> StateTransition:
    """Return the entry for a transition that was taken, skipping the checks that its chart has made.

    Of a mapping it keeps a copy, of any other context the `post_id`. A frozen dataclass sets each field
    through ``object.__setattr__``; writing them at once takes a third of the time.

    Raises:
        ChartError: If `timestamp` is not in UTC.
    """
    if timestamp.tzinfo is not UTC:
        _require_utc(timestamp)
    entry = _Unchecked()
    entry.from_state = transition.source
    entry.to_state = transition.target
    entry.trigger = transition.trigger
    entry.timestamp = timestamp
    try:
        entry.context = {"post_id": context.post_id}
    except AttributeError:
        entry.context = dict(context) if isinstance(context, Mapping) else None
    entry.__class__ = StateTransition
    return entry  # type: ignore[return-value]  # mypy does not narrow on `__class__`


def _require_utc(timestamp: datetime) -> None:
    if not isinstance(timestamp, datetime) or timestamp.utcoffset() != timedelta(0):
        what = f"the timestamp {timestamp!r} of a transition is not in UTC"
        raise ChartError(f"{what}; give one with tzinfo=UTC: datetime.now(UTC), not datetime.utcnow()")


def _plain(value: Any) -> Any:
    """Return `value` as JSON knows it; what JSON does not know becomes text."""
    match value:
        case None | bool():
            return value
        case Enum():
            return _plain(value.value)
        case Mapping():
            return {str(_plain(key)): _plain(part) for key, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case Set():
            return sorted(map(_plain, value), key=lambda part: json.dumps(part, sort_keys=True))
        case np.ndarray() if value.ndim:
            return [_plain(part) for part in value]
        case str() | np.timedelta64():  # NumPy counts the latter among its whole numbers
            return str(value)
        case Integral():
            return int(value)
        case Real():
            return _number(float(value))
        case date() | np.datetime64():  # a missing one does not equal itself
            return str(value) if value == value else None
    inner = value.item() if isinstance(value, np.generic | np.ndarray) else value
    return str(value) if inner is value or isinstance(inner, np.generic) else _plain(inner)


def _number(value: float) -> float | str | None:
    if isnan(value):
        return None
    return value if isfinite(value) else "Infinity" if value > 0 else "-Infinity"
