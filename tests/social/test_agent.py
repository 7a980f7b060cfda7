"""`SocialAgent`: its fields and what they refuse, its history and export, and how it is fired by hand."""

import json
import math
from datetime import UTC, datetime, timedelta

import pytest
from echo_agents import IDLE, SCROLLING
from worlds import ran, small

from prism_mesa.domain import Post
from prism_mesa.errors import AgentError
from prism_mesa.statechart import (
    AgentState,
    Statechart,
    StateTransition,
    Transition,
)

# the validation table of the data model


@pytest.mark.parametrize("state", ["scrolling", None])
def test_a_state_that_is_no_agent_state_is_a_type_error_and_changes_nothing(agent, state):
    with pytest.raises(TypeError, match=r"SocialAgent\.state: .* is not an AgentState"):
        agent.state = state
    assert agent.state is IDLE


@pytest.mark.parametrize("ticks", [-1, 2**31, 1.5, math.nan])
def test_ticks_in_state_below_0_or_not_whole_are_a_value_error(agent, ticks):
    agent.ticks_in_state = 3
    with pytest.raises(ValueError, match=r"SocialAgent\.ticks_in_state: .* is not a whole number from 0"):
        agent.ticks_in_state = ticks
    assert agent.ticks_in_state == 3


@pytest.mark.parametrize("threshold", [0, 2.5, math.nan])
def test_a_timeout_threshold_of_no_whole_tick_is_a_value_error(agent, threshold):
    with pytest.raises(ValueError, match=r"SocialAgent\.timeout_threshold: .* is not a whole number from 1"):
        agent.timeout_threshold = threshold
    assert agent.timeout_threshold == 5


def test_a_pending_action_is_one_of_three_or_none(agent):
    for action in ("like", "reply", "reshare", None):
        agent.pending_action = action
        assert agent.pending_action == action
    with pytest.raises(ValueError, match="pending_action: 'shout' is not one of like, reply, reshare, None"):
        agent.pending_action = "shout"


def test_the_band_lies_half_to_either_side_of_the_threshold():
    agent = small(agents_band=0.3).agent(0)
    agent.engagement_threshold = 0.5
    assert agent.low_threshold == pytest.approx(0.35)
    assert agent.high_threshold == pytest.approx(0.65)


# who it is


def test_an_agent_tells_who_it_is_from_its_columns(agent):
    assert agent.agent_id == "4"
    assert agent.unique_id == 5
    assert sum(agent.propensities.values()) == pytest.approx(1)
    assert agent.traits == {name: getattr(agent, name) for name in agent.traits}
    assert all(1 <= score <= 5 for score in agent.traits.values())
    assert 1 <= len(agent.interests) <= 3
    agent.name = "Zoe Zhang"
    assert agent.name == "Zoe Zhang"


@pytest.mark.parametrize(
    ("relevance", "velocity", "interested", "engages"),
    [
        (0.61, 0, True, True),
        (0.6, 0, False, False),
        (0.5, 101, False, True),
        (0.5, 100, False, False),
        (0.4, 101, False, True),
        (0.39, 500, False, False),
    ],
)
def test_interest_is_above_the_band_and_a_viral_post_inside_it_engages(relevance, velocity, interested, engages):
    agent = small(agents_band=0.2).agent(0)
    agent.engagement_threshold = 0.5
    post = Post(relevance=relevance, velocity=velocity)
    assert (agent.is_interested(post), agent.should_engage(post)) == (interested, engages)


# history and export


@pytest.mark.parametrize("depth", [1, 3, 4])
def test_history_keeps_the_last_entries_first_in_first_out(depth):
    agent = small(statechart_max_history_depth=depth).agent(0)
    agent.fire("feed_ready")
    for length in range(1, 8):
        assert len(agent.state_history) == min(depth, length)
        agent.fire("round_ends" if agent.state is SCROLLING else "feed_ready")
    walk_agents = [(IDLE, SCROLLING), (SCROLLING, IDLE)] * 4
    assert [(e.from_state, e.to_state) for e in agent.state_history] == walk_agents[:8][-depth:]


@pytest.mark.parametrize("depth", [51, -1, 2.5])
def test_a_depth_beyond_that_of_the_chart_is_refused(agent, depth):
    with pytest.raises(AgentError, match=r"SocialAgent\.max_history_depth: "):
        agent.max_history_depth = depth
    assert agent.max_history_depth == 50


def test_an_entry_can_be_appended_and_comes_back_whole():
    model = ran(small(), 1)
    time = model.now
    entry = StateTransition(IDLE, SCROLLING, "feed_ready", time, {"post_id": 0})
    model.agent(0).state_history.append(entry)
    assert model.agent(0).state_history[-1] == entry


def test_timestamps_are_simulated_time_in_utc():
    start = datetime(2026, 3, 1, 12, tzinfo=UTC)
    model = ran(small(clock_start=start, ticks_per_round=8), 2)
    entries = [entry for agent in model.agents for entry in agent.state_history]
    assert entries
    assert all(entry.timestamp.utcoffset() == timedelta(0) for entry in entries)
    assert {e.timestamp for e in entries if e.trigger == "feed_ready"} <= {start, start + timedelta(hours=1)}
    ends = {e.timestamp for e in entries if e.trigger == "round_ends"}
    assert ends <= {start + timedelta(minutes=54), start + timedelta(minutes=114)}  # tick 9 of 10 equal parts
    for agent in model.agents:
        times = [entry.timestamp for entry in agent.state_history]
        assert times == sorted(times)


def test_the_export_is_the_data_models_json():
    model = small(agents_activity=1.0)
    while not any(e.trigger == "sees_post" for e in model.agent(7).state_history):
        model.step()
    told = model.agent(7).to_dict()
    assert json.loads(json.dumps(told)) == told
    assert list(told) == ["agent_id", "current_state", "ticks_in_state", "state_history"]
    assert (told["agent_id"], told["current_state"]) == ("7", "idle")
    for entry in told["state_history"]:
        assert list(entry) == ["from_state", "to_state", "trigger", "timestamp", "context"]
        assert entry["timestamp"].endswith("Z")
        assert entry["from_state"] in list(AgentState)
    seen = next(entry for entry in told["state_history"] if entry["trigger"] == "sees_post")
    assert (seen["from_state"], seen["to_state"]) == ("scrolling", "evaluating")
    post = model.post(seen["context"]["post_id"], 0)
    assert post.author in model.network.followees(7)
    opened = next(entry for entry in told["state_history"] if entry["trigger"] == "feed_ready")
    assert opened["context"] is None


# firing by hand


def test_firing_by_hand_returns_the_new_state_or_none(agent):
    assert agent.fire("sees_post") is None
    assert agent.fire("no such trigger") is None
    assert agent.fire("feed_ready") is SCROLLING
    assert agent.state is SCROLLING


def test_an_open_choice_fired_by_hand_is_asked_and_counted():
    model = small(agents_band=0.4)
    agent = model.agent(0)
    agent.state, agent.engagement_threshold = AgentState.EVALUATING, 0.5
    assert agent.fire("decides", Post(relevance=0.5)) in (AgentState.COMPOSING, SCROLLING)
    assert (model.counts["open"], model.sources["rule"]) == (1, 1)
    agent.state = AgentState.EVALUATING
    assert agent.fire("decides", Post(relevance=0.9)) is AgentState.COMPOSING
    assert model.counts["open"] == 1


def test_an_action_that_raises_leaves_the_agent_as_it_was():
    def breaks(agent, post):
        raise RuntimeError("out of paper")

    model = small()
    model.chart = Statechart([IDLE, SCROLLING], [Transition("feed_ready", IDLE, SCROLLING, action=breaks)], IDLE)
    agent = model.agent(0)
    agent.ticks_in_state = 2
    with pytest.raises(RuntimeError, match="out of paper"):
        agent.fire("feed_ready")
    assert (agent.state, agent.ticks_in_state, len(agent.state_history)) == (IDLE, 2, 0)
