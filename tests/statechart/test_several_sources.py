"""A transition from several states, or from any, is read as one from each: in all that a chart does."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa import ANY as PUBLIC_ANY
from prism_mesa.errors import ChartError
from prism_mesa.statechart import (
    ANY,
    NEEDS_ORACLE,
    STATES,
    AgentState,
    ArrayColumns,
    F,
    Statechart,
    Transition,
    mermaid,
)

IDLE, SCROLLING, EVALUATING, COMPOSING, LIKE, REPLY, RESHARE, RESTING = STATES
HIGH = F.post.x > 2


def a_chart(*transitions, states=STATES, **settings_):
    return Statechart(states, transitions, IDLE, **settings_)


def triples(chart):
    return [(t.trigger, t.source, t.target) for t in chart.transitions]


# What is given


def test_several_sources_are_one_transition_from_each_in_the_order_of_the_states_at_their_place():
    chart = a_chart(
        Transition("wakes", IDLE, SCROLLING),
        Transition("tires", (RESTING, "composing", SCROLLING), IDLE, HIGH),
        Transition("wakes", RESTING, SCROLLING),
    )
    assert triples(chart) == [
        ("wakes", IDLE, SCROLLING),
        ("tires", SCROLLING, IDLE),
        ("tires", COMPOSING, IDLE),
        ("tires", RESTING, IDLE),
        ("wakes", RESTING, SCROLLING),
    ]
    assert all(t.guard is HIGH for t in chart.transitions[1:4])
    assert all(type(t.source) is AgentState for t in chart.transitions)


@pytest.mark.parametrize("kind", [list, tuple, set, frozenset, iter])
def test_any_collection_of_sources_will_do(kind):
    assert triples(a_chart(Transition("tires", kind([RESTING, IDLE]), SCROLLING))) == [
        ("tires", IDLE, SCROLLING),
        ("tires", RESTING, SCROLLING),
    ]


def test_any_is_every_state_of_the_chart_but_the_target():
    assert triples(a_chart(Transition("ends", ANY, IDLE))) == [("ends", state, IDLE) for state in STATES[1:]]
    few = a_chart(Transition("ends", ANY, SCROLLING), states=[IDLE, RESTING, SCROLLING])
    assert triples(few) == [("ends", IDLE, SCROLLING), ("ends", RESTING, SCROLLING)]
    assert PUBLIC_ANY is ANY


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ((), "no source"),
        (("idle", "scroling"), "idle, scroling --tires--> resting: 'scroling'"),
        ("idle,scrolling", "'idle,scrolling'"),
        ((IDLE, "idle"), "'idle' is a source twice"),
        ((ANY, IDLE), "any state, idle --tires--> resting: ANY"),
        ((IDLE, None), "None is not a state"),
        (b"idle", "b'idle'"),
    ],
)
def test_what_are_no_sources_is_one_clear_line(source, says):
    with pytest.raises(ChartError, match=says) as error:
        a_chart(Transition("tires", source, RESTING))
    assert "\n" not in str(error.value)


def test_a_source_that_is_not_in_the_chart_is_one_clear_line():
    with pytest.raises(ChartError, match="chart: idle, composing --tires--> idle: 'composing'"):
        a_chart(Transition("tires", (IDLE, COMPOSING), IDLE), states=[IDLE, RESTING])
    with pytest.raises(ChartError, match="chart: any state --ends--> idle"):
        a_chart(Transition("ends", ANY, IDLE), states=[IDLE])


# The transition as a thing


# The chart, against the one that is written out


TRIGGERS = ["first", "second", "timeout"]
GUARDS = st.none() | st.sampled_from([HIGH, F.post.x < 1, lambda agent, post: NEEDS_ORACLE, 1 / F.post.x > 0.4])
SOURCES = st.just(ANY) | st.sets(st.sampled_from(STATES), min_size=1)
PARTS = st.lists(
    st.tuples(st.sampled_from(TRIGGERS), SOURCES, st.none() | st.sampled_from(STATES), GUARDS), min_size=1, max_size=6
)


def in_short_and_written_out(parts, *, oracle_enabled=True):
    """Return a chart of sources as they are given, and one of a transition for each, by a rule of this test's own."""
    out = [
        Transition(trigger, state, target, guard)
        for trigger, source, target, guard in parts
        for state in AgentState
        if (state is not target if source is ANY else state in source)
    ]
    return (
        a_chart(*(Transition(*part) for part in parts), oracle_enabled=oracle_enabled, name="one"),
        a_chart(*out, oracle_enabled=oracle_enabled, name="one"),
    )


@settings(deadline=None)
@given(PARTS, st.booleans())
def test_a_chart_fires_as_if_it_were_written_out(parts, oracle_enabled):
    short, long = in_short_and_written_out(parts, oracle_enabled=oracle_enabled)
    assert short.transitions == long.transitions
    places = [(state, trigger, x) for state in STATES for trigger in TRIGGERS for x in (0.0, 0.5, 3.0)]
    for state, trigger, x in places:
        agents = [
            SimpleNamespace(state=state, state_history=[], ticks_in_state=1, max_history_depth=0) for _ in range(2)
        ]
        assert short.fire(agents[0], trigger, {"x": x}) == long.fire(agents[1], trigger, {"x": x})
        assert agents[0] == agents[1]
        assert short.valid_targets(state, trigger) == long.valid_targets(state, trigger)
    posts = ArrayColumns({"x": np.array([x for *_, x in places])})
    codes = np.array([state.code for state, *_ in places])
    for trigger in TRIGGERS:
        one, other = (chart.fire_many(codes, trigger, ArrayColumns({}), posts) for chart in (short, long))
        assert one.transition_indices.tolist() == other.transition_indices.tolist()
        assert one.option_indices.tolist() == other.option_indices.tolist()
        assert (one.option_sets, one.row_by_row_guards) == (other.option_sets, other.row_by_row_guards)
    assert short.guard_errors == long.guard_errors


@settings(max_examples=20, deadline=None)
@given(PARTS)
def test_a_chart_is_checked_and_written_as_if_it_were_written_out(parts):
    short, long = in_short_and_written_out(parts)
    assert short.check(fired=["first"], fields=["post.y"]) == long.check(fired=["first"], fields=["post.y"])
    assert mermaid(short) == mermaid(long)
