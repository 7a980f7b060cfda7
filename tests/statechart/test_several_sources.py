"""A transition from several states, or from any, is read as one from each: in all that a chart does."""

import copy
import dataclasses
import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from prism_mesa import ANY as PUBLIC_ANY
from prism_mesa.errors import ChartError
from prism_mesa.social.behavior import social_chart
from prism_mesa.statechart import (
    ANY,
    NEEDS_ORACLE,
    STATES,
    AgentState,
    ArrayColumns,
    F,
    Statechart,
    Transition,
    draw_chart,
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
    assert Transition("tires", kind([RESTING, IDLE]), SCROLLING).sources == (IDLE, RESTING)


@pytest.mark.parametrize("source", ["idle", IDLE, ("idle",), [IDLE]])
def test_one_state_is_one_source_and_a_string_is_one_state(source):
    transition = Transition("wakes", source, SCROLLING)
    assert (transition.source, transition.sources) == (IDLE, (IDLE,))
    assert transition == Transition("wakes", IDLE, SCROLLING)
    assert str(transition) == "idle --wakes--> scrolling"
    assert a_chart(transition).transitions[0] is transition


def test_any_is_every_state_of_the_chart_but_the_target():
    assert triples(a_chart(Transition("ends", ANY, IDLE))) == [("ends", state, IDLE) for state in STATES[1:]]
    few = a_chart(Transition("ends", ANY, SCROLLING), states=[IDLE, RESTING, SCROLLING])
    assert triples(few) == [("ends", IDLE, SCROLLING), ("ends", RESTING, SCROLLING)]
    assert PUBLIC_ANY is ANY


def test_without_a_target_any_is_every_state_of_the_chart():
    few = a_chart(Transition("asks", ANY, None), Transition("asks", ANY, IDLE), states=[IDLE, RESTING])
    assert triples(few) == [("asks", IDLE, None), ("asks", RESTING, None), ("asks", RESTING, IDLE)]


def test_a_source_that_is_named_may_be_the_target():
    chart = a_chart(Transition("again", (SCROLLING, IDLE), SCROLLING))
    assert triples(chart) == [("again", IDLE, SCROLLING), ("again", SCROLLING, SCROLLING)]


def test_any_and_a_transition_of_a_states_own_are_both_candidates():
    chart = a_chart(Transition("ends", RESTING, SCROLLING, HIGH), Transition("ends", ANY, IDLE))
    for x, ends_in in ((3, SCROLLING), (1, IDLE)):
        agent = SimpleNamespace(state=RESTING, state_history=[], ticks_in_state=0, max_history_depth=0)
        assert chart.fire(agent, "ends", {"x": x}) is ends_in


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ((), r"^transition  --tires--> resting: it has no source; give a state, several, or ANY$"),
        (
            ("idle", "scroling"),
            r"^transition idle, scroling --tires--> resting: 'scroling' is not a state .*Did you mean 'scrolling'\?$",
        ),
        ("idle,scrolling", r"^transition idle,scrolling --tires--> resting: 'idle,scrolling' is not a state"),
        ((IDLE, "idle"), r"^transition idle, idle --tires--> resting: 'idle' is given twice as a source$"),
        ((ANY, IDLE), r"^transition any state, idle --tires--> resting: ANY is every state but the target; .* alone$"),
        ((IDLE, None), r"^transition idle, None --tires--> resting: None is not a state"),
        ((IDLE, 3), r"3 is not a state"),
        ("any", r"'any' is not a state"),
        (b"idle", r"^transition b'idle' --tires--> resting: b'idle' is not a state"),
        ([["idle"]], r"\['idle'\] is not a state"),
    ],
)
def test_what_are_no_sources_is_one_clear_line(source, says):
    with pytest.raises(ChartError, match=says) as error:
        Transition("tires", source, RESTING)
    assert "\n" not in str(error.value)


def test_a_source_that_is_not_in_the_chart_is_one_clear_line():
    with pytest.raises(
        ChartError, match=r"^chart: idle, composing --tires--> idle: 'composing' is not a state of this"
    ):
        a_chart(Transition("tires", (IDLE, COMPOSING), IDLE), states=[IDLE, RESTING])
    with pytest.raises(ChartError, match=r"^chart: any state --tires--> composing: 'composing' is not a state of this"):
        a_chart(Transition("tires", ANY, COMPOSING), states=[IDLE, RESTING])


def test_any_in_a_chart_of_nothing_but_the_target_is_refused():
    with pytest.raises(ChartError, match=r"^chart: any state --ends--> idle: the chart has no state but the target$"):
        a_chart(Transition("ends", ANY, IDLE), states=[IDLE])


# The transition as a thing


def test_what_is_written_of_several_sources_says_so():
    several, any_ = Transition("tires", (RESTING, IDLE), None, HIGH), Transition("ends", ANY, IDLE)
    assert str(several) == "idle, resting --tires--> ? [post.x > 2]"
    assert repr(several) == "<Transition idle, resting --tires--> ? [post.x > 2]>"
    assert (str(any_), repr(any_), repr(ANY)) == (
        "any state --ends--> idle",
        "<Transition any state --ends--> idle>",
        "ANY",
    )


def test_equal_sources_make_equal_transitions_in_whatever_order():
    one, same = Transition("tires", (RESTING, IDLE), None, HIGH), Transition("tires", ("idle", "resting"), None, HIGH)
    others = [Transition("tires", s, None, HIGH) for s in (IDLE, ANY, (IDLE, RESTING, LIKE))]
    assert one == same
    assert len({one, same, *others}) == 4


@pytest.mark.parametrize(
    ("source", "held", "sources"),
    [(ANY, ANY, ()), ((RESTING, LIKE), (LIKE, RESTING), (LIKE, RESTING)), ("idle", IDLE, (IDLE,))],
)
def test_a_transition_is_taken_apart_and_changed_as_the_dataclass_that_it_is(source, held, sources):
    transition = Transition("ends", source, "scrolling", HIGH)
    match transition:
        case Transition(trigger, from_, target, guard, action):
            assert (trigger, from_, target, guard, action) == ("ends", held, SCROLLING, HIGH, None)
    assert transition.sources == sources
    assert dataclasses.asdict(Transition("ends", source, SCROLLING)) == {
        "trigger": "ends",
        "source": held,
        "target": SCROLLING,
        "guard": None,
        "action": None,
    }
    assert dataclasses.replace(transition, trigger="begins") == Transition("begins", source, SCROLLING, HIGH)
    assert dataclasses.replace(transition, source=COMPOSING).sources == (COMPOSING,)


@dataclasses.dataclass(frozen=True, eq=False)
class Weighed(Transition):
    weight: float = 1.0


def test_a_transition_with_a_field_of_its_own_keeps_it_in_a_chart():
    chart = a_chart(Weighed("ends", (RESTING, IDLE), "scrolling", weight=2.0))
    assert triples(chart) == [("ends", IDLE, SCROLLING), ("ends", RESTING, SCROLLING)]
    assert [t.weight for t in chart.transitions] == [2.0, 2.0]


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda t: pickle.loads(pickle.dumps(t))])
@pytest.mark.parametrize("source", [ANY, (IDLE, RESTING), IDLE])
def test_a_copy_has_the_same_sources(twin, source):
    transition = Transition("ends", source, SCROLLING)
    assert twin(transition) == transition
    assert triples(a_chart(twin(transition))) == triples(a_chart(transition))
    assert twin(ANY) is ANY


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
        assert one.taken.tolist() == other.taken.tolist()
        assert one.open.tolist() == other.open.tolist()
        assert (one.option_sets, one.row_by_row_guards) == (other.option_sets, other.row_by_row_guards)
    assert short.guard_errors == long.guard_errors


@settings(max_examples=20, deadline=None)
@given(PARTS)
def test_a_chart_is_checked_and_written_as_if_it_were_written_out(parts):
    short, long = in_short_and_written_out(parts)
    assert short.check(fired=["first"], fields=["post.y"]) == long.check(fired=["first"], fields=["post.y"])
    assert mermaid(short) == mermaid(long)


def drawn(chart):
    canvas = FigureCanvasAgg(draw_chart(chart))
    canvas.draw()
    return bytes(canvas.buffer_rgba())


def test_a_chart_is_drawn_as_if_it_were_written_out():
    parts = [("first", ANY, IDLE, None), ("second", {IDLE, LIKE}, SCROLLING, HIGH), ("second", {IDLE}, RESTING, None)]
    short, long = in_short_and_written_out(parts)
    assert drawn(short) == drawn(long)


def test_the_default_chart_is_what_it_was_when_each_transition_was_written_out():
    written = [("round_ends", state, IDLE) for state in AgentState if state is not IDLE]
    written = [("timeout", state, SCROLLING) for state in (EVALUATING, COMPOSING, RESTING)] + written
    assert triples(social_chart)[-10:] == written
    assert len(social_chart.transitions) == 27
