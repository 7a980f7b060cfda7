"""Applying an answer to an open choice, and explaining what a chart would do."""

import re
from types import SimpleNamespace

import pytest
from fired_agents import (
    COMPOSING,
    EVALUATING,
    IDLE,
    LIKE,
    NOON,
    RESTING,
    SCROLLING,
    a_chart,
    an_agent,
    as_it_was,
    ask,
    broken,
    entries,
    no,
    yes,
)

from prism_mesa.statechart import AgentState, F, Statechart, Transition

# Applying an answer


def test_applying_enters_the_option_as_firing_would_have():
    agent = an_agent()
    chart = a_chart((COMPOSING, yes), (SCROLLING, yes))
    assert chart.fire(agent, "decides", {"post_id": 3}, now=NOON) == [COMPOSING, SCROLLING]
    assert chart.apply(agent, "decides", SCROLLING, {"post_id": 3}, now=NOON) is SCROLLING
    assert (agent.state, agent.ticks_in_state) == (SCROLLING, 0)
    assert entries(agent) == [(EVALUATING, SCROLLING, "decides", NOON, {"post_id": 3})]


@pytest.mark.parametrize(
    ("guards", "ran"),
    [
        ([no, yes, yes], 1),
        ([yes, no, yes], 0),
        ([no, yes], 1),
        ([no, no, ask], 2),
        ([no, no, no], 0),
        ([None, no, yes], 2),
        ([None, no, no], 0),
        ([broken, None, None], 1),
    ],
)
def test_of_several_transitions_to_the_answer_the_first_that_is_left_runs_its_action_else_the_first(guards, ran):
    seen = []
    transitions = [(COMPOSING, guard, lambda a, p, i=i: seen.append(i)) for i, guard in enumerate(guards)]
    chart = a_chart(*transitions, (None, no))
    chart.apply(an_agent(), "decides", COMPOSING)
    assert seen == [ran]


@pytest.mark.parametrize(
    ("trigger", "target", "message"),
    [
        ("decides", RESTING, r"evaluating --decides--> resting: not declared \(targets: composing, scrolling\)"),
        ("ignores", SCROLLING, r"evaluating --ignores--> scrolling: not declared \(targets: none\)"),
        ("decides", "scroling", "'scroling' is not a state.*Did you mean 'scrolling'"),
        ("decides", None, "None is not a state"),
    ],
)
def test_a_target_that_is_not_declared_is_refused_and_leaves_the_agent_as_it_was(trigger, target, message):
    agent = an_agent()
    with pytest.raises(ValueError, match=message):
        a_chart((COMPOSING, no), (SCROLLING,), (None, ask)).apply(agent, trigger, target)
    assert as_it_was(agent)


# Explaining


def test_the_valid_triggers_and_targets_of_a_state_are_those_declared_in_list_order_each_once():
    chart = Statechart(
        AgentState,
        [
            Transition("timeout", SCROLLING, RESTING),
            Transition("decides", EVALUATING, None),
            Transition("decides", EVALUATING, SCROLLING, no),
            Transition("decides", EVALUATING, COMPOSING, broken),
            Transition("decides", EVALUATING, SCROLLING),
            Transition("timeout", EVALUATING, RESTING),
        ],
        IDLE,
    )
    assert chart.triggers == ("timeout", "decides")
    assert chart.valid_triggers(EVALUATING) == ["timeout", "decides"]
    assert chart.valid_triggers(SCROLLING) == ["timeout"]
    assert chart.valid_triggers(IDLE) == []
    assert chart.valid_targets(EVALUATING, "decides") == [SCROLLING, COMPOSING]
    assert chart.valid_targets(EVALUATING, "ignores") == []
    assert chart.valid_targets(IDLE, "decides") == []


def test_enabled_are_the_transitions_that_the_guards_leave():
    chart = a_chart((COMPOSING, yes), (SCROLLING, no), (RESTING, ask), (IDLE,), (LIKE, broken))
    assert chart.enabled(an_agent(), "decides") == [chart.transitions[0], chart.transitions[2]]
    assert a_chart((COMPOSING, no), (SCROLLING,)).enabled(an_agent(), "decides")[0].target is SCROLLING
    assert chart.enabled(an_agent(), "ignores") == []
    assert chart.enabled(an_agent(IDLE), "decides") == []


@pytest.mark.parametrize(
    ("state", "trigger", "reason"),
    [
        (EVALUATING, "decide", r"'decide' is not a trigger of chart\. Did you mean 'decides'\?"),
        (IDLE, "decides", r"idle has no transition on 'decides' \(its triggers: none\)"),
        (EVALUATING, "decides", r"composing \[post.views > agent.limit\]: the guard is false \(agent.limit = 5, "),
        (EVALUATING, "decides", r"post.views = 2\); evaluating --decides--> scrolling"),
        (EVALUATING, "decides", r"scrolling \[broken\(\)\]: the guard raised RuntimeError: no such luck; "),
        (EVALUATING, "decides", r"\[post.x > 0\]: the guard raised AttributeError: .* \(post.x = missing\)$"),
    ],
)
def test_why_not_tells_why_nothing_would_happen(state, trigger, reason):
    chart = a_chart((COMPOSING, F.post.views > F.agent.limit), (SCROLLING, broken), (RESTING, F.post.x > 0))
    for context in ({"views": 2}, SimpleNamespace(views=2)):
        assert re.search(reason, chart.why_not(an_agent(state, limit=5), trigger, context))


@pytest.mark.parametrize("strict", [False, True])
def test_explaining_changes_nothing(strict):
    def fail(agent, post):
        raise AssertionError("an action ran")

    chart = a_chart((COMPOSING, broken, fail), (SCROLLING, yes, fail), strict=strict)
    agent = an_agent()
    chart.enabled(agent, "decides")
    chart.why_not(agent, "decides")
    chart.valid_targets(EVALUATING, "decides")
    chart.valid_triggers(EVALUATING)
    chart.check()
    assert as_it_was(agent)
    assert not chart.guard_errors


@pytest.mark.parametrize(
    ("transitions", "reason"),
    [
        ([(COMPOSING,)], ""),
        ([(COMPOSING, yes), (SCROLLING, yes)], ""),
        ([(None,)], "evaluating --decides--> ?: no concrete target is declared to choose from"),
    ],
)
def test_why_not_knows_open_choices(transitions, reason):
    assert a_chart(*transitions).why_not(an_agent(), "decides") == reason
