"""Questions about many agents' states, and one agent as JSON."""

from collections.abc import Iterable
from typing import Any

from prism_mesa.statechart.states import STATES, AgentState


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
