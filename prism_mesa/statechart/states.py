"""The eight states of an agent, and counts of agents by state."""

from collections.abc import Iterable
from enum import Enum
from typing import Any, Final, NoReturn

from prism_mesa.errors import ChartError, did_you_mean


class AgentState(str, Enum):  # noqa: UP042 - the contract asks for a `str` enum whose str() is the member
    """The state of an agent. The values are lowercase, for JSON and tables."""

    IDLE = "idle"
    SCROLLING = "scrolling"
    EVALUATING = "evaluating"
    COMPOSING = "composing"
    ENGAGING_LIKE = "engaging_like"
    ENGAGING_REPLY = "engaging_reply"
    ENGAGING_RESHARE = "engaging_reshare"
    RESTING = "resting"

    @property
    def code(self) -> int:
        """The state's index in this enum, 0..7, which columns store."""
        return _CODES[self]

    @classmethod
    def _missing_(cls, value: object) -> NoReturn:
        names = [state.value for state in cls]
        raise ChartError(f"{value!r} is not a state (allowed: {', '.join(names)}).{did_you_mean(str(value), names)}")


STATES: Final = tuple(AgentState)
STATE_COLORS: Final = {
    AgentState.IDLE: "#e6e6e6",
    AgentState.RESTING: "#a5a5a5",
    AgentState.SCROLLING: "#7fcaff",
    AgentState.EVALUATING: "#2652ac",
    AgentState.COMPOSING: "#732860",
    AgentState.ENGAGING_LIKE: "#e6093d",
    AgentState.ENGAGING_REPLY: "#06975a",
    AgentState.ENGAGING_RESHARE: "#ff6f15",
}
"""Colors of states in all pictures, at least 23 apart in CIE Lab, also for color-blind readers."""

_CODES = {state: code for code, state in enumerate(STATES)}


def agents_in_state(state: AgentState, agents: Iterable[Any]) -> int:
    """Return the number of `agents` in `state`.

    Args:
        state: An `AgentState` or its value.
        agents: Objects with a `state`, or an object with a method `state_counts`, such as a `SocialModel`. Agents with
            a true `has_left` are not counted.
    """
    return state_distribution(agents)[AgentState(state)]


def state_distribution(agents: Iterable[Any]) -> dict[AgentState, int]:
    """Return the number of agents in each of the eight states, zeros included; see `agents_in_state`.

    >>> from types import SimpleNamespace as Agent
    >>> state_distribution([Agent(state=AgentState.IDLE)])[AgentState.IDLE]
    1
    """
    if hasattr(agents, "state_counts"):
        return dict(agents.state_counts())
    counts = dict.fromkeys(STATES, 0)
    for agent in agents:
        if not getattr(agent, "has_left", False):
            counts[agent.state] += 1
    return counts


def export_agent(agent: Any) -> dict[str, Any]:
    """Return an agent in JSON types: id, state, ticks in the state, and the history, oldest first.

    In contexts NaN becomes None, infinities become strings, sets become sorted lists, and other objects become strings.
    """
    return {
        "agent_id": str(getattr(agent, "agent_id", getattr(agent, "unique_id", ""))),
        "current_state": AgentState(agent.state).value,
        "ticks_in_state": int(agent.ticks_in_state),
        "state_history": [entry.to_dict() for entry in agent.state_history],
    }
