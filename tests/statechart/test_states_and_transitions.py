"""What a chart is made of, and what it refuses at construction."""

import json
import pickle
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest

from prism_mesa.statechart import AgentState, F, Statechart, StateTransition, Transition

IDLE, SCROLLING, EVALUATING = AgentState.IDLE, AgentState.SCROLLING, AgentState.EVALUATING
NOON = datetime(2026, 1, 30, 12, tzinfo=UTC)


def keen(agent, post):
    return True


def test_there_are_exactly_the_eight_states_of_the_contract_in_its_order():
    assert [(state.name, state.value) for state in AgentState] == [
        ("IDLE", "idle"),
        ("SCROLLING", "scrolling"),
        ("EVALUATING", "evaluating"),
        ("COMPOSING", "composing"),
        ("ENGAGING_LIKE", "engaging_like"),
        ("ENGAGING_REPLY", "engaging_reply"),
        ("ENGAGING_RESHARE", "engaging_reshare"),
        ("RESTING", "resting"),
    ]


def test_a_state_is_a_string_that_compares_hashes_and_serializes_as_its_value():
    assert isinstance(IDLE, str)
    assert IDLE == "idle"
    assert {IDLE: 1}["idle"] == 1
    assert json.dumps([IDLE]) == '["idle"]'
    assert AgentState(json.loads('"resting"')) is AgentState.RESTING


def test_the_codes_of_the_states_are_their_places():
    assert [state.code for state in AgentState] == list(range(8))


@pytest.mark.parametrize("value", ["sleeping", "IDLE", "", None, 3])
def test_a_value_that_is_no_state_is_a_value_error_that_lists_the_states(value):
    with pytest.raises(ValueError, match=r"is not a state \(allowed: idle, scrolling, .*resting\)"):
        AgentState(value)


def test_a_misspelled_state_is_told_the_nearest_one():
    with pytest.raises(ValueError, match=r"'scroling' is not a state.*Did you mean 'scrolling'"):
        AgentState("scroling")


def test_a_transition_has_no_guard_and_no_action_unless_given():
    transition = Transition("feed_ready", IDLE, SCROLLING)
    assert (transition.trigger, transition.source, transition.target) == ("feed_ready", IDLE, SCROLLING)
    assert (transition.guard, transition.action) == (None, None)


def test_a_transition_takes_states_by_value_and_holds_members():
    transition = Transition("feed_ready", "idle", "scrolling")
    assert transition.source is IDLE
    assert transition.target is SCROLLING


def test_a_transition_may_have_no_target_but_not_no_source():
    assert Transition("decides", EVALUATING, None).target is None
    with pytest.raises(ValueError, match="None is not a state"):
        Transition("decides", None, EVALUATING)


@pytest.mark.parametrize("trigger", ["", "  ", None, 7])
def test_a_trigger_must_be_a_non_empty_string(trigger):
    with pytest.raises(ValueError, match="give a non-empty string"):
        Transition(trigger, IDLE, SCROLLING)


def test_an_unknown_source_or_target_is_a_value_error_that_names_the_transition():
    with pytest.raises(ValueError, match=r"transition idel --feed_ready-->.*'idel' is not a state.*mean 'idle'"):
        Transition("feed_ready", "idel", SCROLLING)
    with pytest.raises(ValueError, match="--feed_ready--> scroling: 'scroling' is not a state"):
        Transition("feed_ready", "idle", "scroling")


@pytest.mark.parametrize("part", ["guard", "action"])
def test_a_guard_or_an_action_that_cannot_be_called_is_refused(part):
    with pytest.raises(ValueError, match=rf"the {part} is 'needs_oracle'; give a callable \(agent, context\)"):
        Transition("decides", EVALUATING, SCROLLING, **{part: "needs_oracle"})


def test_a_transition_cannot_be_changed():
    transition = Transition("feed_ready", IDLE, SCROLLING)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'target'"):
        transition.target = EVALUATING


def test_transitions_are_equal_if_all_parts_are_and_hash_alike():
    guard = F.post.relevance > 0.5
    one, same = (Transition("decides", EVALUATING, SCROLLING, guard, keen) for _ in range(2))
    assert one == same
    assert len({one, same}) == 1
    assert one != Transition("decides", EVALUATING, SCROLLING, guard)
    assert one != Transition("decides", EVALUATING, IDLE, guard, keen)
    assert one != "decides"


@pytest.mark.parametrize(
    ("guard", "label"),
    [(None, ""), (F.post.relevance > 0.5, "post.relevance > 0.5"), (keen, "keen()"), (lambda a, p: 1, "lambda")],
)
def test_a_guard_is_labelled_by_its_expression_or_its_name(guard, label):
    transition = Transition("decides", EVALUATING, SCROLLING, guard)
    assert transition.guard_label == label
    assert str(transition) == "evaluating --decides--> scrolling" + (f" [{label}]" if label else "")


def test_an_open_transition_is_written_with_a_question_mark():
    assert str(Transition("decides", EVALUATING, None)) == "evaluating --decides--> ?"


def test_a_state_transition_holds_what_happened():
    entry = StateTransition("idle", "scrolling", "feed_ready", NOON, {"post_id": 3})
    assert entry.from_state is IDLE
    assert entry.to_state is SCROLLING
    assert (entry.trigger, entry.timestamp, entry.context) == ("feed_ready", NOON, {"post_id": 3})
    assert StateTransition(IDLE, SCROLLING, "feed_ready", NOON).context is None


def test_a_state_transition_cannot_be_changed():
    entry = StateTransition(IDLE, SCROLLING, "feed_ready", NOON)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'timestamp'"):
        entry.timestamp = NOON + timedelta(1)


def test_a_state_transition_to_the_same_state_is_refused():
    with pytest.raises(ValueError, match="from 'idle' to itself: self-transitions are not recorded"):
        StateTransition(IDLE, "idle", "round_ends", NOON)


def test_a_state_transition_between_unknown_states_is_refused():
    with pytest.raises(ValueError, match="'sleeping' is not a state"):
        StateTransition(IDLE, "sleeping", "round_ends", NOON)


@pytest.mark.parametrize(
    "timestamp",
    [datetime(2026, 1, 30, 12), datetime(2026, 1, 30, 12, tzinfo=timezone(timedelta(hours=1))), "2026-01-30"],
    ids=["naive", "another zone", "no datetime"],
)
def test_a_timestamp_that_is_not_utc_is_refused(timestamp):
    with pytest.raises(ValueError, match="is not in UTC; give one with tzinfo=UTC"):
        StateTransition(IDLE, SCROLLING, "feed_ready", timestamp)


def test_any_spelling_of_utc_is_accepted():
    spelled = datetime(2026, 1, 30, 12, tzinfo=ZoneInfo("UTC"))
    assert StateTransition(IDLE, SCROLLING, "feed_ready", spelled).timestamp == NOON


def test_a_state_transition_survives_pickling():
    entry = StateTransition(IDLE, SCROLLING, "feed_ready", NOON, {"post_id": 3})
    assert pickle.loads(pickle.dumps(entry)) == entry


def test_a_chart_has_the_states_transitions_and_initial_state_it_was_given():
    transitions = [Transition("feed_ready", IDLE, SCROLLING), Transition("round_ends", SCROLLING, IDLE)]
    chart = Statechart(states=["idle", SCROLLING], transitions=transitions, initial="idle")
    assert chart.states == {IDLE, SCROLLING}
    assert list(chart.transitions) == transitions
    assert chart.initial is IDLE


def test_changing_the_given_list_does_not_change_the_chart():
    states, transitions = {IDLE, SCROLLING}, [Transition("feed_ready", IDLE, SCROLLING)]
    chart = Statechart(states, transitions, IDLE)
    states.clear()
    transitions.clear()
    assert chart.valid_targets(IDLE, "feed_ready") == [SCROLLING]


def test_the_initial_state_must_be_in_the_states():
    with pytest.raises(ValueError, match=r"chart: initial: 'resting' is not a state of this chart \(idle\)"):
        Statechart({IDLE}, [], AgentState.RESTING)
    with pytest.raises(ValueError, match=r"chart: initial: 'idel' is not a state.*Did you mean 'idle'"):
        Statechart({IDLE}, [], "idel")
    with pytest.raises(ValueError, match="initial: 'idle' is not a state of this chart"):
        Statechart(set(), [], IDLE)


def test_every_source_and_target_must_be_in_the_states():
    with pytest.raises(ValueError, match=r"social: evaluating --ignores--> idle: 'evaluating' is not a state of"):
        Statechart({IDLE}, [Transition("ignores", EVALUATING, IDLE)], IDLE, name="social")
    with pytest.raises(ValueError, match=r"idle --feed_ready--> scrolling: 'scrolling' is not.*\(evaluating, idle\)"):
        Statechart({IDLE, EVALUATING}, [Transition("feed_ready", IDLE, SCROLLING)], IDLE)


def test_an_unknown_state_among_the_states_is_refused():
    with pytest.raises(ValueError, match="'sleeping' is not a state"):
        Statechart({IDLE, "sleeping"}, [], IDLE)


def test_something_else_among_the_transitions_is_refused():
    with pytest.raises(ValueError, match=r"\('feed_ready', 'idle', 'scrolling'\) is no Transition"):
        Statechart({IDLE, SCROLLING}, [("feed_ready", "idle", "scrolling")], IDLE)


@pytest.mark.parametrize("ticks", [0, -1, 2.5, "2"])
def test_a_timeout_must_be_a_whole_number_of_ticks(ticks):
    with pytest.raises(ValueError, match=r"timeouts: idle is .*; give whole ticks, at least 1"):
        Statechart({IDLE}, [], IDLE, timeouts={IDLE: ticks})


def test_a_timeout_of_a_state_outside_the_chart_is_refused():
    with pytest.raises(ValueError, match="timeouts: 'resting' is not a state of this chart"):
        Statechart({IDLE}, [], IDLE, timeouts={AgentState.RESTING: 2})
