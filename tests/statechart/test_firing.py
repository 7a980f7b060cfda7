"""Which transition fires, guards that raise, and the chart as a thing."""

import copy
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from fired_agents import (
    COMPOSING,
    EVALUATING,
    IDLE,
    RESTING,
    SCROLLING,
    a_chart,
    an_agent,
    as_it_was,
    ask,
    broken,
    no,
    yes,
)

from prism_mesa.errors import ChartError
from prism_mesa.statechart import AgentState, ArrayColumns, F, Statechart, Transition

# Selection


@pytest.mark.parametrize(
    ("transitions", "outcome"),
    [
        ([(COMPOSING,)], COMPOSING),
        ([(COMPOSING, yes)], COMPOSING),
        ([(COMPOSING, no)], None),
        ([(COMPOSING, no), (SCROLLING,)], SCROLLING),
        ([(COMPOSING, yes), (SCROLLING,)], COMPOSING),
        ([(SCROLLING,), (COMPOSING, yes)], COMPOSING),
        ([(COMPOSING, yes), (SCROLLING, yes)], [COMPOSING, SCROLLING]),
        ([(SCROLLING, yes), (COMPOSING, yes), (SCROLLING, yes)], [SCROLLING, COMPOSING]),
        ([(SCROLLING,), (COMPOSING,)], [SCROLLING, COMPOSING]),
        ([(SCROLLING, yes), (SCROLLING, yes)], SCROLLING),
        ([(COMPOSING, no), (SCROLLING, no), (None,)], [COMPOSING, SCROLLING]),
        ([(COMPOSING, yes), (SCROLLING, no), (None,)], COMPOSING),
        ([(COMPOSING, yes), (SCROLLING, no), (None, yes)], [COMPOSING, SCROLLING]),
        ([(COMPOSING, no), (SCROLLING,), (None, yes)], [COMPOSING, SCROLLING]),
        ([(COMPOSING, no), (SCROLLING,), (None, ask)], [COMPOSING, SCROLLING]),
        ([(COMPOSING, no), (SCROLLING, ask), (RESTING,)], [COMPOSING, SCROLLING, RESTING]),
        ([(COMPOSING, yes), (SCROLLING, ask), (COMPOSING,)], [COMPOSING, SCROLLING]),
        ([(COMPOSING, no), (SCROLLING,), (None, no)], SCROLLING),
        ([(COMPOSING, yes), (SCROLLING, no), (None, ask)], COMPOSING),
        ([(None, ask), (COMPOSING, yes), (SCROLLING, yes)], [COMPOSING, SCROLLING]),
        ([(COMPOSING, ask), (RESTING, no), (None, ask)], [COMPOSING, RESTING]),
        ([(COMPOSING, no), (SCROLLING, no), (None, ask)], [COMPOSING, SCROLLING]),
        ([(COMPOSING, yes), (SCROLLING, no), (None, yes), (None, ask)], [COMPOSING, SCROLLING]),
        ([(COMPOSING, ask)], [COMPOSING]),
        ([(COMPOSING, no), (None,)], [COMPOSING]),
        ([(None,)], None),
        ([(None, ask)], None),
    ],
)
def test_selection(transitions, outcome):
    agent = an_agent()
    assert a_chart(*transitions).fire(agent, "decides") == outcome
    assert agent.state is (outcome if isinstance(outcome, AgentState) else EVALUATING)
    if not isinstance(outcome, AgentState):
        assert as_it_was(agent)


def test_a_marker_asks_only_about_what_no_guard_has_settled():
    keen, bored = F.post.relevance > 0.6, F.post.relevance < 0.4
    marked = a_chart((COMPOSING, keen), (SCROLLING, bored), (None, lambda agent, post: "needs_oracle"))
    rows = ArrayColumns({"relevance": np.array([0.9, 0.5, 0.1])})
    fired = marked.fire_many(np.full(3, EVALUATING.code), "decides", rows, rows)
    assert (fired.option_indices >= 0).tolist() == [False, True, False]
    options = marked.fire(an_agent(), "decides", {"relevance": 0.5})
    assert isinstance(options, list)
    assert options == [COMPOSING, SCROLLING]
    options.clear()  # the list is the caller's
    assert marked.fire(an_agent(), "decides", {"relevance": 0.5}) == [COMPOSING, SCROLLING]


@pytest.mark.parametrize("value", [1, "needs oracle", [0], 0, None, ""])
def test_what_a_guard_returns_counts_by_its_truth(value):
    outcome = a_chart((COMPOSING, lambda a, p: value), (SCROLLING,)).fire(an_agent(), "decides")
    assert outcome is (COMPOSING if value else SCROLLING)


def test_of_several_transitions_to_the_one_target_left_the_first_that_holds_fires():
    fired = []
    transitions = [(COMPOSING, guard, lambda a, p, i=i: fired.append(i)) for i, guard in enumerate([no, yes, yes])]
    assert a_chart(*transitions, (COMPOSING, None, lambda a, p: fired.append("else"))).fire(an_agent(), "decides")
    assert fired == [1]


def test_only_transitions_of_the_trigger_and_the_state_are_candidates():
    chart = Statechart(
        AgentState,
        [
            Transition("decides", SCROLLING, RESTING),
            Transition("ignores", EVALUATING, SCROLLING),
            Transition("decides", EVALUATING, COMPOSING),
        ],
        IDLE,
    )
    assert chart.fire(an_agent(EVALUATING), "decides") is COMPOSING
    assert chart.fire(an_agent(EVALUATING), "ignores") is SCROLLING
    assert chart.fire(an_agent(SCROLLING), "ignores") is None
    assert chart.fire(an_agent(IDLE), "decides") is None
    assert chart.fire(an_agent(EVALUATING), "no such trigger") is None


@pytest.mark.parametrize(
    ("transitions", "outcome"),
    [
        ([(SCROLLING, yes), (COMPOSING, yes)], SCROLLING),
        ([(COMPOSING, no), (SCROLLING, yes), (RESTING, yes)], SCROLLING),
        ([(COMPOSING, no), (SCROLLING, no), (None,)], COMPOSING),
        ([(COMPOSING, no), (SCROLLING, ask)], COMPOSING),
        ([(None,), (RESTING, no)], RESTING),
        ([(SCROLLING, no), (COMPOSING,)], COMPOSING),
        ([(None,)], None),
        ([(COMPOSING, no)], None),
    ],
)
def test_without_the_oracle_an_open_choice_takes_its_first_option(transitions, outcome):
    agent = an_agent()
    assert a_chart(*transitions, oracle_enabled=False).fire(agent, "decides") is outcome
    assert agent.state is (outcome or EVALUATING)
    assert len(agent.state_history) == (outcome is not None)


# Guards that raise


def test_errors_whose_messages_differ_are_counted_under_the_first_message():
    chart = a_chart((COMPOSING, lambda agent, post: {}[agent.name]))
    for name in "abc":
        chart.fire(an_agent(name=name), "decides")
    chart.fire(an_agent(), "decides")
    assert list(chart.guard_errors.values()) == [3, 1]
    assert [key.split("]: ")[1].split(":")[0] for key in chart.guard_errors] == ["KeyError", "AttributeError"]


@pytest.mark.parametrize(
    ("guard", "error"),
    [(broken, RuntimeError), (1 / F.post.views > 0.5, ZeroDivisionError)],
    ids=["raises", "divides by zero"],
)
def test_a_strict_chart_lets_the_exception_pass_and_leaves_the_agent_as_it_was(guard, error):
    chart = a_chart((COMPOSING, guard), (SCROLLING,), strict=True)
    agent = an_agent()
    for context in ({"views": 0}, SimpleNamespace(views=0)):
        with pytest.raises(error, match=r"no such luck|division by zero"):
            chart.fire(agent, "decides", context)
    assert as_it_was(agent)
    assert not chart.guard_errors


# The chart as a thing


def test_a_state_times_out_after_its_own_ticks_else_after_the_agents():
    chart = Statechart(AgentState, [Transition("timeout", RESTING, SCROLLING)], IDLE, timeouts={"resting": 2})
    assert chart.timeout_threshold(an_agent(RESTING, timeout_threshold=7)) == 2
    assert chart.timeout_threshold(an_agent(SCROLLING, timeout_threshold=7)) == 7


@pytest.mark.parametrize(
    "twin", [lambda chart: pickle.loads(pickle.dumps(chart)), copy.deepcopy], ids=["pickle", "deepcopy"]
)
@pytest.mark.parametrize("has_fired", [False, True])
def test_a_chart_with_expressions_survives_pickling_and_copying(twin, has_fired):
    chart = a_chart(
        (COMPOSING, F.post.relevance > F.agent.high),
        (SCROLLING, F.post.relevance < F.agent.low),
        (None,),
        timeouts={RESTING: 2},
        name="social",
    )
    if has_fired:
        chart.fire(an_agent(high=0.6, low=0.4), "decides", SimpleNamespace(relevance=0.5))
        chart.fire(an_agent(), "decides", SimpleNamespace(relevance=0.5))
    again = twin(chart)
    agent = an_agent(high=0.6, low=0.4)
    assert again.fire(agent, "decides", SimpleNamespace(relevance=0.5)) == [COMPOSING, SCROLLING]
    assert again.fire(agent, "decides", SimpleNamespace(relevance=0.9)) is COMPOSING
    assert (again.name, again.timeouts, again.guard_errors) == ("social", {RESTING: 2}, chart.guard_errors)
    assert [str(t) for t in again.transitions] == [str(t) for t in chart.transitions]


def test_a_replaced_chart_has_the_same_arrows_its_own_settings_and_its_own_count():
    chart = a_chart((COMPOSING, broken), (SCROLLING,), (RESTING,), timeouts={RESTING: 2}, name="social")
    chart.fire(an_agent(), "decides")
    other = chart.with_settings(oracle_enabled=False)
    assert other.fire(an_agent(), "decides") is SCROLLING
    assert (chart.guard_errors.total(), other.guard_errors.total()) == (1, 1)
    assert (other.transitions, other.timeouts, other.name) == (chart.transitions, chart.timeouts, "social")
    assert chart.with_settings(oracle_enabled=True, strict=True).strict


@pytest.mark.parametrize("name", ["states", "transitions", "initial", "timeouts", "oracle_enabled", "cells"])
def test_what_a_chart_is_made_of_cannot_be_set_later(name):
    chart = a_chart((COMPOSING, yes), (SCROLLING, yes))
    with pytest.raises(ChartError, match=rf"chart: {name} cannot be set"):
        setattr(chart, name, getattr(chart, name))
    chart.strict = True
    assert chart.with_settings(oracle_enabled=False).fire(an_agent(), "decides") is COMPOSING
