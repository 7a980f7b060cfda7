"""The code of the contract `statechart_plan`, copied; what it does not define is defined here."""

from types import SimpleNamespace

import pytest

from prism_mesa import AgentState, Statechart, Transition


# Deterministic guard
def high_engagement_guard(agent, post):
    return post.velocity > 100 or agent.is_interested(post)


# Oracle-required transition (no guard, or guard returns "needs_oracle")
transition = (  # the contract's has no name
    Transition(
        trigger="decides",
        source=AgentState.EVALUATING,
        target=None,  # Oracle will decide
        guard=lambda a, p: "needs_oracle",  # Special marker
    )
)


def evaluating(*, interested):
    return SimpleNamespace(
        state=AgentState.EVALUATING,
        state_history=[],
        ticks_in_state=0,
        max_history_depth=50,
        is_interested=lambda post: interested,
    )


def chart_of(*transitions):
    return Statechart(states=set(AgentState), transitions=transitions, initial=AgentState.IDLE)


COMPOSES = Transition("decides", AgentState.EVALUATING, AgentState.COMPOSING, guard=high_engagement_guard)
SCROLLS = Transition("decides", AgentState.EVALUATING, AgentState.SCROLLING)


@pytest.mark.parametrize(("velocity", "interested"), [(101, False), (0, True)])
def test_the_deterministic_guard_decides_alone(velocity, interested):
    chart = chart_of(COMPOSES, SCROLLS)
    agent = evaluating(interested=interested)
    assert chart.fire(agent, "decides", SimpleNamespace(velocity=velocity)) is AgentState.COMPOSING


def test_the_deterministic_guard_leaves_the_rest_to_the_unguarded_transition():
    agent = evaluating(interested=False)
    assert chart_of(COMPOSES, SCROLLS).fire(agent, "decides", SimpleNamespace(velocity=3)) is AgentState.SCROLLING


def test_the_marker_asks_about_all_declared_targets():
    agent = evaluating(interested=False)
    outcome = chart_of(COMPOSES, SCROLLS, transition).fire(agent, "decides", SimpleNamespace(velocity=3))
    assert list(outcome) == [AgentState.COMPOSING, AgentState.SCROLLING]
    assert agent.state is AgentState.EVALUATING
