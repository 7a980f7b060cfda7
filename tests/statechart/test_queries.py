"""Counting agents by state, and one agent as JSON."""

import json
import math
from datetime import UTC, date, datetime
from enum import Enum
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.statechart import (
    AgentState,
    Statechart,
    StateTransition,
    Transition,
    agents_in_state,
    export_agent,
    state_distribution,
)

IDLE, SCROLLING, EVALUATING = AgentState.IDLE, AgentState.SCROLLING, AgentState.EVALUATING


def in_states(*states):
    return [SimpleNamespace(state=state) for state in states]


def test_the_distribution_has_every_state_in_order_zeros_included():
    gone = SimpleNamespace(state=IDLE, has_left=True)
    counts = state_distribution([*in_states(SCROLLING, IDLE, SCROLLING), gone])
    assert list(counts) == list(AgentState)
    assert counts == dict.fromkeys(AgentState, 0) | {IDLE: 1, SCROLLING: 2}
    assert state_distribution([]) == dict.fromkeys(AgentState, 0)


def test_something_that_counts_its_own_states_is_asked():
    model = SimpleNamespace(state_counts=lambda: {IDLE: 5, SCROLLING: 2})
    assert agents_in_state(SCROLLING, model) == 2
    assert state_distribution(model) == {IDLE: 5, SCROLLING: 2}


@settings(deadline=None)
@given(st.lists(st.sampled_from(list(AgentState))))
def test_the_counts_add_up_to_the_agents_in_any_order(states):
    counts = state_distribution(in_states(*states))
    assert sum(counts.values()) == len(states)
    assert counts == state_distribution(in_states(*reversed(states)))
    assert all(agents_in_state(state, in_states(*states)) == n == states.count(state) for state, n in counts.items())


# The JSON of the data model.

CONTRACT = """
{
  "agent_id": "agent_001",
  "current_state": "evaluating",
  "ticks_in_state": 2,
  "state_history": [
    {
      "from_state": "idle",
      "to_state": "scrolling",
      "trigger": "feed_ready",
      "timestamp": "2026-01-30T10:00:00Z",
      "context": null
    },
    {
      "from_state": "scrolling",
      "to_state": "evaluating",
      "trigger": "sees_post",
      "timestamp": "2026-01-30T10:00:01Z",
      "context": {"post_id": "post_123"}
    }
  ]
}
"""


def an_agent(**fields):
    return SimpleNamespace(state=IDLE, ticks_in_state=0, state_history=[], max_history_depth=50, **fields)


def test_an_agent_that_was_fired_exports_as_in_the_contract():
    chart = Statechart(
        AgentState,
        [Transition("feed_ready", IDLE, SCROLLING), Transition("sees_post", SCROLLING, EVALUATING)],
        IDLE,
    )
    agent = an_agent(agent_id="agent_001")
    chart.fire(agent, "feed_ready", now=datetime(2026, 1, 30, 10, 0, 0, tzinfo=UTC))
    chart.fire(agent, "sees_post", {"post_id": "post_123"}, now=datetime(2026, 1, 30, 10, 0, 1, tzinfo=UTC))
    agent.ticks_in_state = 2
    assert json.loads(json.dumps(export_agent(agent))) == json.loads(CONTRACT)


def test_an_agent_of_mesa_is_called_by_its_unique_id():
    assert export_agent(an_agent(unique_id=17))["agent_id"] == "17"
    assert export_agent(an_agent())["agent_id"] == ""


class Colour(Enum):
    RED = (1, 2)


ODD_VALUES = {
    "nan": (math.nan, None),
    "infinity": (math.inf, "Infinity"),
    "less than all": (np.float64("-inf"), "-Infinity"),
    "an array": (np.array([[1.5, np.nan], [np.inf, 2.0]]), [[1.5, None], ["Infinity", 2.0]]),
    "numbers of numpy": ((np.array(5), np.bool_(True), np.int64(3), np.float32(0.5)), [5, True, 3, 0.5]),
    "a date": (date(2026, 1, 30), "2026-01-30"),
    "a date of numpy": (np.datetime64("2026-01-30T12:00"), "2026-01-30T12:00"),
    "days": (np.timedelta64(3, "D"), "3 days"),
    "a mixed set": (frozenset([("a", 1), "b", math.nan]), ["b", ["a", 1], None]),
    "an enum": (Colour.RED, [1, 2]),
    "a key": ({Colour.RED: {math.nan}, IDLE: 1, 2.5: 3}, {"[1, 2]": [None], "idle": 1, "2.5": 3}),
    "bytes": (b"x", "b'x'"),
}


@pytest.mark.parametrize("name", ODD_VALUES)
def test_an_exported_agent_is_valid_json_whatever_its_contexts_hold(name):
    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    given, expected = ODD_VALUES[name]
    agent = an_agent()
    agent.state_history = [
        StateTransition(IDLE, SCROLLING, "feed_ready", datetime(2026, 1, 30, tzinfo=UTC), {name: given})
    ]
    again = json.loads(json.dumps(export_agent(agent)), parse_constant=refuse)
    assert again["state_history"][0]["context"] == {name: expected}
