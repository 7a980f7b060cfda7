"""What a transition changes when it is taken, and which time it is given."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from fired_agents import (
    COMPOSING,
    EVALUATING,
    IDLE,
    NOON,
    SCROLLING,
    a_chart,
    an_agent,
    as_it_was,
    broken,
    entries,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.errors import ChartError
from prism_mesa.statechart import Statechart, StateTransition, Transition

# What a transition changes


def test_taking_a_transition_sets_the_state_resets_the_ticks_and_is_remembered():
    agent = an_agent()
    assert a_chart((COMPOSING,)).fire(agent, "decides", now=NOON) is COMPOSING
    assert (agent.state, agent.ticks_in_state) == (COMPOSING, 0)
    assert entries(agent) == [(EVALUATING, COMPOSING, "decides", NOON, None)]
    assert isinstance(agent.state_history[0], StateTransition)


def test_the_action_runs_once_before_the_state_changes_and_is_given_agent_and_context():
    seen = []
    agent, post = an_agent(), {"post_id": 3}
    chart = a_chart((COMPOSING, None, lambda a, p: seen.append((a, p, a.state, a.ticks_in_state))))
    chart.fire(agent, "decides", post)
    assert seen == [(agent, post, EVALUATING, 3)]


def test_an_action_that_raises_propagates_and_leaves_the_agent_as_it_was():
    chart, agent = a_chart((COMPOSING, None, broken)), an_agent()
    with pytest.raises(RuntimeError, match="no such luck"):
        chart.fire(agent, "decides")
    with pytest.raises(RuntimeError, match="no such luck"):
        chart.apply(agent, "decides", COMPOSING)
    assert as_it_was(agent)
    assert not chart.guard_errors


@pytest.mark.parametrize(
    ("fields", "now", "message"),
    [
        ({}, NOON.replace(tzinfo=None), "is not in UTC"),
        ({"now": NOON.replace(tzinfo=None)}, None, "is not in UTC"),
        ({"depth": -1}, NOON, r"max_history_depth is -1; give 0 \(no history\) or a whole number above 0"),
    ],
)
def test_what_is_wrong_with_a_fire_is_found_before_its_action_runs(fields, now, message):
    ran = []
    acts = (COMPOSING, None, lambda agent, post: ran.append(post))
    chart, agent = a_chart(acts), an_agent(**fields)
    with pytest.raises(ChartError, match=message):
        chart.fire(agent, "decides", now=now)
    with pytest.raises(ChartError, match=message):
        chart.apply(agent, "decides", COMPOSING, now=now)
    assert as_it_was(agent)
    assert not ran


@pytest.mark.parametrize("action", [None, lambda agent, post: None])
@pytest.mark.parametrize("target", [COMPOSING, EVALUATING])
@pytest.mark.parametrize("depth", [0, 1])
def test_a_history_is_cut_by_the_next_fire_after_its_depth_was_lowered(depth, target, action):
    agent = an_agent(depth=5)
    chart = a_chart((target, None, action))
    entry = StateTransition(SCROLLING, EVALUATING, "sees_post", NOON)
    agent.state_history = [entry] * 4
    agent.max_history_depth = depth
    chart.fire(agent, "decides", now=NOON)
    assert len(agent.state_history) == depth
    assert agent.state is target


def test_a_self_transition_runs_its_action_and_resets_the_ticks_but_is_not_recorded():
    ran = []
    agent = an_agent()
    chart = a_chart((EVALUATING, None, lambda a, p: ran.append(1)))
    assert chart.fire(agent, "decides") is EVALUATING
    assert (agent.state, agent.ticks_in_state, agent.state_history, ran) == (EVALUATING, 0, [], [1])


@settings(deadline=None)
@given(depth=st.integers(0, 6), n=st.integers(0, 20))
def test_the_history_is_the_last_entries_first_in_first_out(depth, n):
    ring = [IDLE, SCROLLING, EVALUATING]
    chart = Statechart(ring, [Transition("next", s, t) for s, t in zip(ring, ring[1:] + ring[:1], strict=True)], IDLE)
    agent = an_agent(IDLE, depth)
    every = []
    for i in range(n):
        now = NOON + timedelta(seconds=i)
        every.append((ring[i % 3], ring[(i + 1) % 3], "next", now, None))
        chart.fire(agent, "next", now=now)
    assert entries(agent) == every[max(0, n - depth) :]


@pytest.mark.parametrize(
    ("context", "kept"),
    [
        (None, None),
        ({"post_id": 3, "why": "seen"}, {"post_id": 3, "why": "seen"}),
        ({}, {}),
        (SimpleNamespace(post_id=7, text="long"), {"post_id": 7}),
        (SimpleNamespace(text="long"), None),
    ],
)
def test_the_entry_keeps_a_mapping_or_the_id_of_a_post(context, kept):
    agent = an_agent()
    a_chart((COMPOSING,)).fire(agent, "decides", context)
    assert agent.state_history[0].context == kept


# Time


def test_the_time_is_the_one_given_else_the_agents_own_else_the_clock_in_utc():
    chart = a_chart((COMPOSING,))
    given_time, own, clock = an_agent(now=NOON), an_agent(now=NOON), an_agent()
    chart.fire(given_time, "decides", now=NOON + timedelta(1))
    chart.fire(own, "decides")
    before = datetime.now(UTC)
    chart.fire(clock, "decides")
    after = datetime.now(UTC)
    assert given_time.state_history[0].timestamp == NOON + timedelta(1)
    assert own.state_history[0].timestamp == NOON
    assert before <= clock.state_history[0].timestamp <= after
    assert clock.state_history[0].timestamp.utcoffset() == timedelta(0)
