"""The eight states of an agent, and questions about the states of many agents."""

from collections.abc import Iterable, Set
from enum import Enum
from typing import Any, Final, NoReturn

from prism_mesa.errors import ChartError, did_you_mean


class AgentState(str, Enum):  # noqa: UP042 - the contract asks for a `str` enum whose str() is the member
    """What an agent is doing now. The values are lowercase, for JSON and tables."""

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
        """The state's place in this enum, 0..7: what the columns hold."""
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
"""One colour per state for all pictures, from the least to the most that an agent can do.

Any two are told apart by whoever sees no red, no green or no blue: in CIE Lab they are at least 23 apart to them.
"""

_CODES = {state: code for code, state in enumerate(STATES)}


def state_of_chart(chart: str, states: Set[AgentState], state: AgentState, where: object) -> AgentState:
    """Return a state, or its value, as a state of a chart.

    Args:
        chart: What messages call the chart.
        states: Its states.
        state: What was given.
        where: Where it was given; written out if it is wrong.

    Raises:
        ChartError: If it is no state, or none of this chart.
    """
    try:
        found = AgentState(state)
    except ChartError as error:
        raise ChartError(f"{chart}: {where}: {error}") from None
    if found not in states:
        names = sorted(s.value for s in states)
        raise ChartError(
            f"{chart}: {where}: {found.value!r} is not a state of this chart "
            f"({', '.join(names)}).{did_you_mean(found.value, names)}"
        )
    return found


def agents_in_state(state: AgentState, agents: Iterable[Any]) -> int:
    """Return how many of `agents` are in `state`.

    Args:
        state: An `AgentState` or its value.
        agents: Objects with a `state`; or something with a method `state_counts`, such as a `SocialModel`,
            which answers from its columns. Agents that say `has_left` are not counted.
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
    """Return one agent as plain JSON values: id, state, ticks in it, and the history, oldest first.

    Of a context, NaN and missing dates are None, infinities are text, sets sorted lists, and what else JSON does not
    know, dates among it, is text.
    """
    return {
        "agent_id": str(getattr(agent, "agent_id", getattr(agent, "unique_id", ""))),
        "current_state": AgentState(agent.state).value,
        "ticks_in_state": int(agent.ticks_in_state),
        "state_history": [entry.to_dict() for entry in agent.state_history],
    }
