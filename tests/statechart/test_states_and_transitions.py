"""What a chart is made of, and what it refuses at construction."""

import pickle
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime, timedelta, timezone

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


@pytest.mark.parametrize("value", ["sleeping", "IDLE", "", None, 3])
def test_a_value_that_is_no_state_is_a_value_error_that_lists_the_states(value):
    with pytest.raises(ValueError, match=r"is not a state \(allowed: idle, scrolling, .*resting\)"):
        AgentState(value)


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


def test_a_chart_has_the_states_transitions_and_initial_state_it_was_given():
    transitions = [Transition("feed_ready", IDLE, SCROLLING), Transition("round_ends", SCROLLING, IDLE)]
    chart = Statechart(states=["idle", SCROLLING], transitions=transitions, initial="idle")
    assert chart.states == {IDLE, SCROLLING}
    assert list(chart.transitions) == transitions
    assert chart.initial is IDLE


FIRST = Transition("feed_ready", IDLE, SCROLLING)


@pytest.mark.parametrize(
    ("make", "names"),
    [
        (lambda: AgentState("scroling"), "scroling.*scrolling"),
        (lambda: Transition("", IDLE, SCROLLING), "trigger"),
        (lambda: Transition(7, IDLE, SCROLLING), "trigger is 7"),
        (
            lambda: Statechart(AgentState, [Transition("feed_ready", "idel", SCROLLING)], IDLE),
            "idel --feed_ready--> .*idle",
        ),
        (lambda: Statechart(AgentState, [Transition("feed_ready", IDLE, "scroling")], IDLE), "--> scroling.*scrolling"),
        (lambda: Transition("feed_ready", None, SCROLLING), "None is not a state"),
        (lambda: Transition("feed_ready", IDLE, SCROLLING, "needs_oracle"), "guard"),
        (lambda: Transition("feed_ready", IDLE, SCROLLING, None, 3), "action"),
        (lambda: StateTransition(IDLE, "idle", "round_ends", NOON), "'idle' to itself"),
        (lambda: StateTransition(IDLE, "sleeping", "round_ends", NOON), "'sleeping'"),
        (lambda: StateTransition("idle", 3, "round_ends", NOON), "to_state is 3"),
        (lambda: StateTransition(IDLE, SCROLLING, "x", NOON.replace(tzinfo=None)), "UTC"),
        (lambda: StateTransition(IDLE, SCROLLING, "x", NOON.astimezone(timezone(timedelta(hours=1)))), "UTC"),
        (lambda: Statechart({IDLE}, [], "idel"), "chart: initial: 'idel'"),
        (lambda: Statechart({IDLE}, [], SCROLLING), "chart: initial: 'scrolling'"),
        (lambda: Statechart({IDLE, "sleeping"}, [], IDLE), "'sleeping'"),
        (lambda: Statechart({IDLE}, [FIRST], IDLE, name="social"), "social: idle --feed_ready--> scrolling"),
        (lambda: Statechart({IDLE}, ["feed_ready"], IDLE), "transitions: 'feed_ready'"),
        (lambda: Statechart({IDLE}, [], IDLE, timeouts={IDLE: 0}), "timeouts: idle is 0"),
        (lambda: Statechart({IDLE}, [], IDLE, timeouts={IDLE: 2.5}), "timeouts: idle is 2.5"),
        (lambda: Statechart({IDLE}, [], IDLE, timeouts={SCROLLING: 2}), "timeouts: 'scrolling'"),
    ],
)
def test_what_cannot_be_is_a_value_error_that_names_the_place(make, names):
    with pytest.raises(ValueError, match=names):
        make()


@pytest.mark.parametrize("value", [FIRST, StateTransition("idle", "scrolling", "feed_ready", NOON, {"post_id": 3})])
def test_transitions_and_entries_cannot_be_changed_and_survive_pickling(value):
    assert pickle.loads(pickle.dumps(value)) == value
    with pytest.raises(FrozenInstanceError):
        value.trigger = "other"
