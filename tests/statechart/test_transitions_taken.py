"""What a transition changes when it is taken, and which time it is given."""

import pickle
import time
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from fired_agents import (
    COMPOSING,
    EVALUATING,
    IDLE,
    NOON,
    RESTING,
    SCROLLING,
    a_chart,
    an_agent,
    as_it_was,
    broken,
    entries,
    no,
    yes,
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


def test_an_entry_equals_one_made_by_hand():
    agent = an_agent()
    a_chart((COMPOSING,)).fire(agent, "decides", {"post_id": 3}, now=NOON)
    assert agent.state_history == [StateTransition(EVALUATING, COMPOSING, "decides", NOON, {"post_id": 3})]
    assert pickle.loads(pickle.dumps(agent.state_history)) == agent.state_history


def test_the_action_runs_once_before_the_state_changes_and_is_given_agent_and_context():
    seen = []
    agent, post = an_agent(), {"post_id": 3}
    chart = a_chart((COMPOSING, None, lambda a, p: seen.append((a, p, a.state, a.ticks_in_state))))
    chart.fire(agent, "decides", post)
    assert seen == [(agent, post, EVALUATING, 3)]


def test_the_action_of_a_transition_that_is_not_taken_does_not_run():
    chart = a_chart((COMPOSING, no, broken), (SCROLLING, None), (RESTING, no, broken))
    assert chart.fire(an_agent(), "decides") is SCROLLING


def test_an_open_choice_runs_no_action():
    assert a_chart((COMPOSING, yes, broken), (SCROLLING, yes, broken)).fire(an_agent(), "decides")


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
        ({"depth": -1}, NOON, r"max_history_depth is -1; give whole numbers from 0"),
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


def test_a_history_of_depth_0_keeps_nothing():
    agent = an_agent(depth=0)
    assert a_chart((COMPOSING,)).fire(agent, "decides") is COMPOSING
    assert (agent.ticks_in_state, agent.state_history) == (0, [])


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


def test_a_history_that_is_too_long_is_cut_at_the_next_entry():
    agent = an_agent(depth=2)
    agent.state_history = [StateTransition(IDLE, SCROLLING, "feed_ready", NOON)] * 5
    a_chart((COMPOSING,)).fire(agent, "decides", now=NOON)
    assert [entry.trigger for entry in agent.state_history] == ["feed_ready", "decides"]


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


def test_the_entry_keeps_a_copy_of_the_mapping():
    agent, context = an_agent(), {"post_id": 3}
    a_chart((COMPOSING,)).fire(agent, "decides", context)
    context["post_id"] = 4
    assert agent.state_history[0].context == {"post_id": 3}


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


def test_the_clock_is_read_in_utc_wherever_the_machine_stands(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        agent = an_agent()
        a_chart((COMPOSING,)).fire(agent, "decides")
        assert agent.state_history[0].timestamp.utcoffset() == timedelta(0)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "now", [datetime(2026, 1, 30), datetime(2026, 1, 30, tzinfo=timezone(timedelta(hours=2)))], ids=str
)
def test_a_time_that_is_not_utc_is_refused_and_leaves_the_agent_as_it_was(now):
    chart, agent = a_chart((COMPOSING,)), an_agent()
    with pytest.raises(ValueError, match="is not in UTC"):
        chart.fire(agent, "decides", now=now)
    with pytest.raises(ValueError, match="is not in UTC"):
        chart.apply(agent, "decides", COMPOSING, now=now)
    assert as_it_was(agent)
