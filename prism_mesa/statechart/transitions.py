"""Transitions of a chart (`Transition`), and entries of an agent's history (`StateTransition`)."""

import json
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from math import isfinite, isnan
from typing import Any, Final, Literal

import numpy as np

from prism_mesa.errors import ChartError, one_line
from prism_mesa.statechart.guards import Expression
from prism_mesa.statechart.states import State, enum_members, find_state, state_name
from prism_mesa.statechart.timing import After, Rate, Timing, When

type Guard = Expression | Callable[[Any, Any], bool | Literal["needs_oracle"]]
type Action = Callable[[Any, Any], None]


class AnyState(Enum):
    """The type of `ANY`, the source of a transition from every state but its target."""

    ANY = "any state"

    def __str__(self) -> str:
        return self.value


ANY: Final = AnyState.ANY
"""Every state except the target (every state, if the target is None): ``Transition("round_ends", ANY, "idle")``."""


@dataclass(frozen=True, eq=False)
class Placement:
    """What a chart adds to a transition of one of its states.

    Attributes:
        level: 0 for a transition of the state itself, 1 for one of its parent, and so on. A lower level comes first.
        source: The parent that the transition leaves; empty if it leaves the state itself. `target` is the parent that
            it enters.
        exits: Functions that run before the action.
        entries: Functions that run after the state has changed, by the state that is entered.
        remembers: The parents with history that are left.
        recalled: The parent with history that is entered.
    """

    level: int = 0
    source: str = ""
    target: str = ""
    exits: tuple[Action, ...] = ()
    entries: Mapping[State, tuple[Action, ...]] = field(default_factory=dict)
    remembers: tuple[str, ...] = ()
    recalled: str = ""


_PLAIN: Final = Placement()


@dataclass(frozen=True, eq=False, repr=False)
class Transition:
    """A transition of a chart from one state, or the same transition from several states; immutable.

    Args:
        trigger: The name of the event, not empty; or `after`, `rate`, `probability` or `when`, which `timing` holds.
        source: The state to leave (a member of an enum or its value), several states, or `ANY`. In
            `Statechart.transitions`, every transition has a single source: the chart splits transitions with several.
            The chart looks up values.
        target: The state to enter; None lets the oracle choose among the declared targets.
        guard: Expression over `F`, or callable ``(agent, context) -> bool | NEEDS_ORACLE`` that changes nothing. None
            means *else*.
        action: Callable ``(agent, context)`` that runs before the state changes.
        placement: Set by the chart.

    Attributes:
        has_effects: Whether taking the transition runs a function, or its target depends on the past.

    Raises:
        ChartError: (a ValueError) If the trigger is empty, a source is missing or repeated, or a guard or an
            action cannot be called.
    """

    trigger: Any
    source: Any
    target: State | None
    guard: Guard | None = None
    action: Action | None = None
    timing: Timing | None = field(default=None, kw_only=True)
    placement: Placement = field(default=_PLAIN, kw_only=True)
    has_effects: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        place = self.placement
        has_effects = any((self.action, place.exits, place.entries, place.recalled, place.remembers))
        object.__setattr__(self, "has_effects", has_effects)
        if isinstance(self.trigger, After | Rate | When):
            object.__setattr__(self, "timing", self.trigger)
            object.__setattr__(self, "trigger", str(self.trigger))
        is_single = isinstance(self.source, str | bytes | AnyState) or not isinstance(self.source, Iterable)
        declared_sources = [self.source] if is_single else list(self.source)
        if isinstance(self.source, Set):
            declared_sources.sort(key=lambda state: str(state_name(state)))
        *sources, target = (str(state_name(state)) for state in (*declared_sources, self.target))
        label = f"transition {', '.join(sources)} --{self.trigger}--> {target}"
        if isinstance(self.timing, Rate) and self.target is None:
            raise ChartError(f"{label}: a rate needs a target")
        if not isinstance(self.trigger, str) or not self.trigger.strip():
            raise ChartError(f"{label}: the trigger is {self.trigger!r}; give a non-empty string")
        for name, function in (("guard", self.guard), ("action", self.action)):
            if function is not None and not callable(function):
                raise ChartError(f"{label}: the {name} is {function!r}; give a callable (agent, context) or None")
        if fault := _source_fault(self.source, declared_sources, sources, self.target):
            raise ChartError(f"{label}: {fault}")
        object.__setattr__(self, "source", declared_sources[0] if len(sources) == 1 else tuple(declared_sources))

    @property
    def sources(self) -> tuple[State, ...]:
        """The source states; empty for `ANY`."""
        if self.source is ANY:
            return ()
        return self.source if isinstance(self.source, tuple) else (self.source,)

    def between(
        self, source: State, target: State | None, placement: Placement = _PLAIN, trigger: str = ""
    ) -> "Transition":
        """Return this transition from one state to another, with a placement."""
        is_plain = placement is _PLAIN and self.placement is _PLAIN and trigger in ("", self.trigger)
        if target is self.target and source is self.source and is_plain:
            return self
        return replace(self, source=source, target=target, placement=placement, trigger=trigger or self.trigger)

    def __eq__(self, other: object) -> bool:
        """Compare all fields; compare guards and actions by identity."""
        if not isinstance(other, Transition):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.trigger, self.source, self.target, id(self.guard), id(self.action), id(self.timing))

    @property
    def guard_label(self) -> str:
        """The guard as a string: the expression, the function's name, or empty without a guard."""
        if self.guard is None or isinstance(self.guard, Expression):
            return "" if self.guard is None else str(self.guard)
        name = function_name(self.guard)
        return name if name == "lambda" else f"{name}()"

    def __str__(self) -> str:
        guard = f" [{self.guard_label}]" if self.guard is not None else ""
        sources = ", ".join(state_name(state) for state in self.sources) or str(ANY)
        return f"{sources} --{self.trigger}--> {state_name(self.target) if self.target else '?'}{guard}"

    @one_line
    def __repr__(self) -> str:
        return f"<Transition {self}>"


def _source_fault(source: Any, states: list[Any], names: list[str], target: Any) -> str:
    """Return what is wrong with the sources of a transition, which are `states` with `names`, or with its target."""
    if not states:
        return "it has no source; give a state, several, or ANY"
    if ANY in states and source is not ANY:
        return "ANY cannot be combined with other sources: it means every state but the target"
    for state in states if target is None else (*states, target):
        if not isinstance(state, Enum | str):
            return f"{state!r} is not a state; give a member of an Enum of strings, or its value"
    repeated = [name for name in names if names.count(name) > 1]
    return f"{repeated[0]!r} is a source twice" if repeated else ""


def function_name(function: Any) -> str:
    """Return the name of a function, or of the class of another callable."""
    return str(getattr(function, "__name__", type(function).__name__)).replace("<lambda>", "lambda")


class _UncheckedEntry:
    """A `StateTransition` that `history_entry` is filling in: it is not frozen yet, so plain assignments work."""

    from_state: State
    to_state: State | None
    trigger: str
    timestamp: datetime
    context: Mapping[str, Any] | None


@dataclass(frozen=True)
class StateTransition(_UncheckedEntry):
    """A change of state in an agent's history. The states must differ, and the timestamp must be in UTC."""

    from_state: State
    to_state: State
    trigger: str
    timestamp: datetime
    context: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        states = self.from_state, self.to_state
        members = next((enum_members(state) for state in states if isinstance(state, Enum)), ())
        for name, state in zip(("from_state", "to_state"), states, strict=True):
            if members:
                object.__setattr__(self, name, find_state(state, members))
            elif not isinstance(state, str):
                raise ChartError(f"StateTransition: {name} is {state!r}; give a member of an Enum, or its value")
        if self.from_state == self.to_state:
            raise ChartError(f"a StateTransition from {state_name(self.from_state)!r} to itself is not recorded")
        _require_utc(self.timestamp)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as JSON types; the timestamp ends in ``Z``."""
        return {
            "from_state": state_name(self.from_state),
            "to_state": state_name(self.to_state),
            "trigger": self.trigger,
            "timestamp": self.timestamp.isoformat().replace("+00:00", "Z"),
            "context": _json_value(self.context),
        }


def history_entry(transition: Transition, target: State, timestamp: datetime, context: Any) -> StateTransition:
    """Return the history entry of a transition, without repeating the chart's checks.

    A context that is a mapping is copied; of other contexts, only the `post_id` is stored. The constructor of a frozen
    dataclass would take three times as long.

    Raises:
        ChartError: If `timestamp` is not in UTC.
    """
    if timestamp.tzinfo is not UTC:
        _require_utc(timestamp)
    entry = _UncheckedEntry()
    entry.from_state = transition.source
    entry.to_state = target
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
        raise ChartError(f"the timestamp {timestamp!r} of a transition is not in UTC; write datetime.now(UTC)")


def _json_value(value: Any) -> Any:
    match value:
        case Enum():
            return _json_value(value.value)
        case Mapping():
            return {str(_json_value(key)): _json_value(entry) for key, entry in value.items()}
        case list() | tuple():
            return [_json_value(entry) for entry in value]
        case Set():
            return sorted(map(_json_value, value), key=lambda entry: json.dumps(entry, sort_keys=True))
        case np.ndarray():
            return [_json_value(entry) for entry in value] if value.ndim else _json_value(value.item())
        case np.bool_() | np.integer() | np.floating() if not isinstance(value, np.timedelta64):
            return _json_value(value.item())
        case float() if not isfinite(value):
            return None if isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case None | bool() | int() | float() | str():
            return value
    return str(value)
