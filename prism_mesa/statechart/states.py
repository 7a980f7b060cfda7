"""The states of charts, which are members of an enum of strings, and counts of agents by state."""

from collections.abc import Iterable, Sequence, Set
from enum import Enum, EnumType
from functools import cache
from inspect import iscoroutine
from typing import Any, Final

from prism_mesa.domain import STATE_COLORS, STATES, AgentState
from prism_mesa.errors import ChartError, did_you_mean

__all__ = ["STATES", "STATE_COLORS", "AgentState"]

type State = Any
"""A member of an enum of strings: `AgentState` on the platform, or your own enum."""

MAX_STATES: Final = 255
_COLORS: Final = tuple(
    "#4477aa #ee6677 #228833 #ccbb44 #66ccee #aa3377 #e69f00 #009e73 #bbbbbb #0072b2 #d55e00 #882255".split()
)
"""Colors of states whose enum has no `color`, for color-blind readers; from the thirteenth state on they repeat."""


class TextState(str, Enum):  # noqa: UP042 - hashes like its value
    """The base of enums that are made from strings. Members are equal to their values, and pickle by them."""

    __str__ = str.__str__
    __repr__ = str.__repr__

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return _member, (tuple(state.value for state in type(self)), self.value)


@cache
def make_states(values: tuple[str, ...]) -> type[TextState]:
    """Return an enum with these values; equal values give the same enum."""
    try:
        return TextState("States", [(value, value) for value in values])  # type: ignore[call-overload, no-any-return]
    except (TypeError, ValueError) as error:
        raise ChartError(f"states: {', '.join(values)}: {error}; choose another name") from None


def _member(values: tuple[str, ...], value: str) -> Any:
    return make_states(values)(value)


def read_states(states: Iterable[Any]) -> tuple[tuple[State, ...], tuple[State, ...]]:
    """Return all members of the enum to which `states` belong, and those that are in `states`, both in order.

    Strings are values of the members' enum; from strings alone an enum is made.

    Raises:
        ChartError: If there is no state, or more than 255, or a state is not text, or two have the same value.
    """
    if isinstance(states, str):
        raise ChartError(f"states: {states!r} is one string; give an Enum of strings, or a list of names")
    items = sorted(states, key=state_name) if isinstance(states, Set) else list(states)
    for item in items:
        if not isinstance(item, Enum | str) or not str(state_name(item)).strip():
            raise ChartError(f"states: {item!r} is not a state; give an Enum of strings, or a list of names")
    enums = list(dict.fromkeys(type(item) for item in items if isinstance(item, Enum)))
    texts = [item for item in items if not isinstance(item, Enum)]
    if not enums and texts:
        _require_distinct(texts)
        enums = [make_states(tuple(texts))]
    members = tuple(member for kind in enums for member in _members(kind))
    members += tuple(item for item in items if isinstance(item, Enum) and item not in members)  # added to the enum
    _require_distinct([member.value for member in members])
    if not 1 <= len(members) <= MAX_STATES:
        raise ChartError(f"states: {len(members)} states; a chart has 1 to {MAX_STATES}")
    chosen = [find_state(item, members) for item in items]
    return members, tuple(member for member in members if any(member is state for state in chosen))


def _members(kind: EnumType) -> list[Any]:
    members: list[Any] = list(kind)
    for member in members:
        if not isinstance(member.value, str):
            advice = f'give it a string, such as {member.name} = "{member.name.lower()}"'
            raise ChartError(f"states: {member!s} has the value {member.value!r}; {advice}")
    for name, member in kind.__members__.items():
        if name != member.name:
            raise ChartError(f"states: {kind.__name__}.{name} and {member.name} are both {member.value!r}; rename one")
    return members


def _require_distinct(values: Sequence[str]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise ChartError(f"states: two states are {value!r}; give each its own value")


def find_state(state: Any, members: Sequence[State]) -> State:
    """Return the member that is `state` or has it as its value.

    Raises:
        ChartError: If there is none.
    """
    if iscoroutine(state):
        state.close()
        raise ChartError("the state is a coroutine: write await reasoner.decide(...), or reasoner.decide_now(...)")
    is_member = isinstance(state, Enum)
    for member in members:
        if member is state or (not is_member and member.value == state):
            return member
    names = [member.value for member in members]
    same = [member for member in members if is_member and member.value == state.value]
    if same:
        raise ChartError(f"{state!s} belongs to another enum, {type(state).__name__}; write {same[0]!s}")
    advice = did_you_mean(str(state_name(state)), names)
    raise ChartError(f"{state_name(state)!r} is not a state of this chart ({', '.join(names)}).{advice}")


def enum_members(state: State) -> tuple[State, ...]:
    """Return all members of a state's enum."""
    members: Any = type(state)
    return tuple(members)


def state_name(state: Any) -> Any:
    """Return the value of a state; other objects are returned unchanged."""
    return state.value if isinstance(state, Enum) else state


def state_color(state: State, code: int) -> str:
    """Return the color of a state in pictures: the `color` of your enum's members, or one by its code."""
    return str(getattr(state, "color", _COLORS[code % len(_COLORS)]))


def agents_in_state(state: State, agents: Iterable[Any]) -> int:
    """Return the number of `agents` in `state`.

    Args:
        state: A state or its value.
        agents: Objects with a `state`, or an object with a method `state_counts`, such as a `SocialModel`. Agents with
            a true `has_left` are not counted.
    """
    counts = state_distribution(agents)
    return counts[find_state(state, list(counts))]


def state_distribution(agents: Iterable[Any]) -> dict[State, int]:
    """Return the number of agents in each state of their charts, zeros included; see `agents_in_state`.

    Agents without a chart count in the states of their enum. Without any agent, these are the states of the platform.

    >>> from types import SimpleNamespace as Agent
    >>> state_distribution([Agent(state=AgentState.IDLE)])[AgentState.IDLE]
    1
    """
    if hasattr(agents, "state_counts"):
        return dict(agents.state_counts())
    counts: dict[State, int] = {}
    for agent in agents:
        if not getattr(agent, "has_left", False):
            state = agent.state
            if state not in counts:
                counts |= dict.fromkeys(enum_members(state), 0)
            counts[state] += 1
    return counts or dict.fromkeys(STATES, 0)


def export_agent(agent: Any) -> dict[str, Any]:
    """Return an agent in JSON types: id, state, ticks in the state, and the history, oldest first.

    In contexts NaN becomes None, infinities become strings, sets become sorted lists, and other objects become strings.
    """
    return {
        "agent_id": str(getattr(agent, "agent_id", getattr(agent, "unique_id", ""))),
        "current_state": state_name(agent.state),
        "ticks_in_state": int(agent.ticks_in_state),
        "state_history": [entry.to_dict() for entry in agent.state_history],
    }
