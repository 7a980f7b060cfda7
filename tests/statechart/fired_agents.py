"""An agent, a chart and guards for tests that fire."""

from datetime import UTC, datetime
from types import SimpleNamespace

from prism_mesa.statechart import NEEDS_ORACLE, AgentState, Statechart, Transition

IDLE, SCROLLING, EVALUATING, COMPOSING = list(AgentState)[:4]
LIKE, REPLY, RESHARE, RESTING = list(AgentState)[4:]
NOON = datetime(2026, 1, 30, 12, tzinfo=UTC)


def yes(agent, post):
    return True


def no(agent, post):
    return False


def ask(agent, post):
    return NEEDS_ORACLE


def broken(agent, post):
    raise RuntimeError("no such luck")


def an_agent(state=EVALUATING, depth=50, **fields):
    return SimpleNamespace(state=state, state_history=[], ticks_in_state=3, max_history_depth=depth, **fields)


def a_chart(*transitions, **settings):
    """Return a chart of transitions (target, guard, action) from EVALUATING on "decides"."""
    transitions = [Transition("decides", EVALUATING, *parts) for parts in transitions]
    return Statechart(AgentState, transitions, IDLE, **settings)


def as_it_was(agent):
    return (agent.state, agent.ticks_in_state, agent.state_history) == (EVALUATING, 3, [])


def entries(agent):
    return [(e.from_state, e.to_state, e.trigger, e.timestamp, e.context) for e in agent.state_history]
