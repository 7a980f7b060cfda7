"""Taking a transition: its action runs, the change is remembered, the target entered."""

from datetime import UTC, datetime
from typing import Any

from prism_mesa.errors import ChartError
from prism_mesa.statechart.transitions import Transition, recorded
from prism_mesa.statechart.users_code import add_place


def take(transition: Transition, agent: Any, context: Any, now: datetime | None) -> None:
    """Run the action, remember the change, enter the target: what can be wrong is found before the action runs."""
    target, depth = transition.target, agent.max_history_depth or 0
    if depth < 0:
        raise ChartError(f"{transition}: max_history_depth is {depth!r}; give whole numbers from 0, which keeps none")
    history, entry = agent.state_history, None
    if depth and target is not transition.source:
        entry = recorded(transition, now or getattr(agent, "now", None) or datetime.now(UTC), context)
    if transition.action is not None:
        if entry is not None and hasattr(history, "check"):
            history.check(entry)
        act(transition, agent, context)
        history = agent.state_history
    if entry is not None:
        history.append(entry)
    while len(history) > depth:
        del history[0]
    agent.state = target
    agent.ticks_in_state = 0


def act(transition: Transition, agent: Any, context: Any) -> None:
    """Run the action of a transition; if it raises, the agent is as before, and a note on the error says where it was.

    As before are its state, its history if that is a list, and what its attributes are; not what these hold in turn.
    """
    if transition.action is None:
        return
    attributes = dict(getattr(agent, "__dict__", ()))
    history, state, ticks = agent.state_history, agent.state, agent.ticks_in_state
    entries = list(history) if isinstance(history, list) else None
    try:
        transition.action(agent, context)
    except BaseException as error:
        if attributes:
            vars(agent).clear()
            vars(agent).update(attributes)
        if entries is not None:
            history[:] = entries
        agent.state, agent.ticks_in_state = state, ticks
        add_place(error, "action", transition, agent)
        raise
