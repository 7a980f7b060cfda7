"""Firing one trigger on one agent: what is selected, what changes, what is explained."""

import copy
import pickle
import re
import time
from datetime import UTC, datetime, timedelta, timezone
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.errors import ChartError
from prism_mesa.statechart import NEEDS_ORACLE, AgentState, F, Statechart, StateTransition, Transition

IDLE, SCROLLING, EVALUATING, COMPOSING = list(AgentState)[:4]
LIKE, REPLY, RESHARE, RESTING = list(AgentState)[4:]
NOON = datetime(2026, 1, 30, 12, tzinfo=UTC)


def yes(agent, post):
    return True


def no(agent, post):
    return False


def ask(agent, post):
    return NEEDS_ORACLE


def broken(agent, post):
    raise RuntimeError("no such luck")


def an_agent(state=EVALUATING, depth=50, **fields):
    return SimpleNamespace(state=state, state_history=[], ticks_in_state=3, max_history_depth=depth, **fields)


def a_chart(*arrows, **settings):
    """Return a chart of arrows (target, guard, action) from EVALUATING on "decides"."""
    transitions = [Transition("decides", EVALUATING, *arrow) for arrow in arrows]
    return Statechart(AgentState, transitions, IDLE, **settings)


def as_it_was(agent):
    return (agent.state, agent.ticks_in_state, agent.state_history) == (EVALUATING, 3, [])


def entries(agent):
    return [(e.from_state, e.to_state, e.trigger, e.timestamp, e.context) for e in agent.state_history]


# Selection


@pytest.mark.parametrize(
    ("arrows", "outcome"),
    [
        ([(COMPOSING,)], COMPOSING),
        ([(COMPOSING, yes)], COMPOSING),
        ([(COMPOSING, no)], None),
        ([(COMPOSING, no), (SCROLLING,)], SCROLLING),
        ([(COMPOSING, yes), (SCROLLING,)], COMPOSING),
        ([(SCROLLING,), (COMPOSING, yes)], COMPOSING),
        ([(COMPOSING, yes), (SCROLLING, yes)], (COMPOSING, SCROLLING)),
        ([(SCROLLING, yes), (COMPOSING, yes), (RESTING, no)], (SCROLLING, COMPOSING)),
        ([(SCROLLING, yes), (COMPOSING, yes), (SCROLLING, yes)], (SCROLLING, COMPOSING)),
        ([(SCROLLING, yes), (COMPOSING, yes), (RESTING,)], (SCROLLING, COMPOSING)),
        ([(SCROLLING,), (COMPOSING,)], (SCROLLING, COMPOSING)),
        ([(SCROLLING, yes), (SCROLLING, yes)], SCROLLING),
        ([(SCROLLING,), (SCROLLING,)], SCROLLING),
        ([(COMPOSING, no), (SCROLLING, no), (None,)], (COMPOSING, SCROLLING)),
        ([(COMPOSING, yes), (SCROLLING, no), (None,)], COMPOSING),
        ([(COMPOSING, yes), (SCROLLING, no), (None, yes)], (COMPOSING, SCROLLING)),
        ([(COMPOSING, no), (SCROLLING,), (None, yes)], (COMPOSING, SCROLLING)),
        ([(COMPOSING, no), (SCROLLING,), (None, ask)], (COMPOSING, SCROLLING)),
        ([(COMPOSING, no), (SCROLLING, ask), (RESTING,)], (COMPOSING, SCROLLING, RESTING)),
        ([(COMPOSING, yes), (SCROLLING, ask), (COMPOSING,)], (COMPOSING, SCROLLING)),
        ([(COMPOSING, no), (SCROLLING,), (None, no)], SCROLLING),
        ([(COMPOSING, ask)], (COMPOSING,)),
        ([(COMPOSING, no), (None,)], (COMPOSING,)),
        ([(None,)], None),
        ([(None, ask)], None),
    ],
)
def test_selection(arrows, outcome):
    agent = an_agent()
    assert a_chart(*arrows).fire(agent, "decides") == outcome
    assert agent.state is (outcome if isinstance(outcome, AgentState) else EVALUATING)
    if not isinstance(outcome, AgentState):
        assert as_it_was(agent)


@pytest.mark.parametrize(
    ("relevance", "outcome"),
    [(0.9, COMPOSING), (0.1, SCROLLING), (0.5, (COMPOSING, SCROLLING)), (0.6, (COMPOSING, SCROLLING))],
)
def test_inside_the_band_the_choice_is_open_and_outside_it_is_not(relevance, outcome):
    chart = a_chart((COMPOSING, F.post.relevance > F.agent.high), (SCROLLING, F.post.relevance < F.agent.low), (None,))
    agent = an_agent(high=0.6, low=0.4)
    assert chart.fire(agent, "decides", {"relevance": relevance}) == outcome
    assert not chart.guard_errors


@pytest.mark.parametrize("value", [1, "true", "needs oracle", [0], object()])
def test_what_a_guard_returns_counts_by_its_truth(value):
    assert a_chart((COMPOSING, lambda a, p: value), (SCROLLING,)).fire(an_agent(), "decides") is COMPOSING


@pytest.mark.parametrize("value", [0, None, "", [], 0.0])
def test_a_guard_that_returns_something_empty_is_false(value):
    assert a_chart((COMPOSING, lambda a, p: value), (SCROLLING,)).fire(an_agent(), "decides") is SCROLLING


def test_of_several_transitions_to_the_one_target_left_the_first_that_holds_fires():
    fired = []
    arrows = [(COMPOSING, guard, lambda a, p, i=i: fired.append(i)) for i, guard in enumerate([no, yes, yes])]
    assert a_chart(*arrows, (COMPOSING, None, lambda a, p: fired.append("else"))).fire(an_agent(), "decides")
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


def test_an_agent_whose_state_is_a_plain_string_fires_too():
    agent = an_agent("evaluating")
    assert a_chart((COMPOSING,)).fire(agent, "decides") is COMPOSING
    assert agent.state_history[0].from_state is EVALUATING


@pytest.mark.parametrize(
    ("arrows", "outcome"),
    [
        ([(COMPOSING, yes), (SCROLLING, yes)], COMPOSING),
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
def test_without_the_oracle_an_open_choice_takes_its_first_option(arrows, outcome):
    agent = an_agent()
    assert a_chart(*arrows, oracle_enabled=False).fire(agent, "decides") is outcome
    assert agent.state is (outcome or EVALUATING)
    assert len(agent.state_history) == (outcome is not None)


def test_without_the_oracle_the_action_is_that_of_the_transition_that_holds():
    fired = []
    arrows = [(COMPOSING, guard, lambda a, p, i=i: fired.append(i)) for i, guard in enumerate([no, yes])]
    a_chart(*arrows, (SCROLLING, yes), oracle_enabled=False).fire(an_agent(), "decides")
    assert fired == [1]


def test_one_chart_serves_agents_that_differ_in_their_parameters():
    chart = a_chart((COMPOSING, F.post.relevance > F.agent.high), (SCROLLING,))
    outcomes = [chart.fire(an_agent(high=high), "decides", {"relevance": 0.5}) for high in (0.4, 0.6)]
    assert outcomes == [COMPOSING, SCROLLING]


# Guards that raise


def test_a_guard_that_raises_is_false_and_counted_for_its_transition():
    chart = a_chart((COMPOSING, broken), (SCROLLING,))
    assert [chart.fire(an_agent(), "decides") for _ in range(3)] == [SCROLLING] * 3
    assert chart.guard_errors == {"evaluating --decides--> composing [broken()]: RuntimeError: no such luck": 3}


def test_one_guard_at_two_transitions_is_counted_for_each():
    chart = a_chart((COMPOSING, broken), (SCROLLING, broken), (RESTING, yes))
    assert chart.fire(an_agent(), "decides") is RESTING
    assert chart.guard_errors == {
        "evaluating --decides--> composing [broken()]: RuntimeError: no such luck": 1,
        "evaluating --decides--> scrolling [broken()]: RuntimeError: no such luck": 1,
    }


def test_errors_whose_messages_differ_are_counted_under_the_first_message():
    chart = a_chart((COMPOSING, lambda agent, post: {}[agent.name]))
    for name in "abc":
        chart.fire(an_agent(name=name), "decides")
    chart.fire(an_agent(), "decides")
    assert list(chart.guard_errors.values()) == [3, 1]
    assert [key.split("]: ")[1].split(":")[0] for key in chart.guard_errors] == ["KeyError", "AttributeError"]


@pytest.mark.parametrize("context", [None, {}, SimpleNamespace(), {"views": 0}, SimpleNamespace(views=0)])
def test_an_expression_that_cannot_be_evaluated_is_false_and_counted_once(context):
    chart = a_chart((COMPOSING, 1 / F.post.views > 0.5), (SCROLLING,))
    assert chart.fire(an_agent(), "decides", context) is SCROLLING
    assert chart.guard_errors.total() == 1


def test_a_guard_whose_value_is_neither_true_nor_false_counts_as_raising():
    chart = a_chart((COMPOSING, lambda a, p: F.post.x > 1), (SCROLLING,))
    assert chart.fire(an_agent(), "decides") is SCROLLING
    assert chart.guard_errors.total() == 1


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


def test_guards_of_a_strict_chart_that_do_not_raise_decide_as_ever():
    assert a_chart((COMPOSING, no), (SCROLLING,), strict=True).fire(an_agent(), "decides") is SCROLLING


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


# Applying an answer


def test_applying_enters_the_option_as_firing_would_have():
    agent = an_agent()
    chart = a_chart((COMPOSING, yes), (SCROLLING, yes))
    assert chart.fire(agent, "decides", {"post_id": 3}, now=NOON) == (COMPOSING, SCROLLING)
    assert chart.apply(agent, "decides", SCROLLING, {"post_id": 3}, now=NOON) is SCROLLING
    assert (agent.state, agent.ticks_in_state) == (SCROLLING, 0)
    assert entries(agent) == [(EVALUATING, SCROLLING, "decides", NOON, {"post_id": 3})]


def test_an_answer_may_be_the_value_of_a_state():
    agent = an_agent()
    assert a_chart((COMPOSING,), (SCROLLING,)).apply(agent, "decides", "scrolling") is SCROLLING
    assert agent.state is SCROLLING


def test_applying_the_state_itself_resets_the_ticks_and_records_nothing():
    agent = an_agent()
    assert a_chart((EVALUATING,), (SCROLLING,)).apply(agent, "decides", EVALUATING) is EVALUATING
    assert (agent.ticks_in_state, agent.state_history) == (0, [])


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
    arrows = [(COMPOSING, guard, lambda a, p, i=i: seen.append(i)) for i, guard in enumerate(guards)]
    chart = a_chart(*arrows, (None, no))
    chart.apply(an_agent(), "decides", COMPOSING)
    assert seen == [ran]


def test_the_arrow_to_an_answer_is_told_without_being_taken():
    chart, agent = a_chart((COMPOSING, no), (COMPOSING, yes), (SCROLLING, yes, broken)), an_agent()
    assert chart.resolve(agent, "decides", COMPOSING) is chart.transitions[1]
    assert chart.resolve(agent, "decides", SCROLLING) is chart.transitions[2]
    assert as_it_was(agent)


def test_an_open_choice_that_is_answered_counts_a_raising_guard_once():
    chart, agent = a_chart((COMPOSING, broken), (COMPOSING, yes), (SCROLLING, yes)), an_agent()
    chart.fire(agent, "decides")
    chart.apply(agent, "decides", COMPOSING)
    assert chart.guard_errors.total() == 1


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


def test_a_cell_that_only_asks_declares_nothing():
    with pytest.raises(ValueError, match=r"composing: not declared \(targets: none\)"):
        a_chart((None,)).apply(an_agent(), "decides", COMPOSING)


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
        (EVALUATING, "decide", r"'decide' is no trigger of chart\. Did you mean 'decides'\?"),
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


def test_why_not_lists_the_triggers_that_the_state_has():
    chart = Statechart(AgentState, [Transition("wakes", IDLE, SCROLLING), Transition("rests", SCROLLING, IDLE)], IDLE)
    assert chart.why_not(an_agent(IDLE), "rests") == "idle has no transition on 'rests' (its triggers: wakes)"


@pytest.mark.parametrize("arrows", [[(COMPOSING,)], [(COMPOSING, yes), (SCROLLING, yes)], [(COMPOSING, ask)]])
def test_why_not_is_empty_where_something_would_happen(arrows):
    assert a_chart(*arrows).why_not(an_agent(), "decides") == ""


def test_why_not_tells_of_an_open_choice_without_options():
    reason = a_chart((None,)).why_not(an_agent(), "decides")
    assert reason == "evaluating --decides--> ?: no concrete target is declared to choose from"


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
    assert again.fire(agent, "decides", SimpleNamespace(relevance=0.5)) == (COMPOSING, SCROLLING)
    assert again.fire(agent, "decides", SimpleNamespace(relevance=0.9)) is COMPOSING
    assert (again.name, again.timeouts, again.guard_errors) == ("social", {RESTING: 2}, chart.guard_errors)
    assert [str(t) for t in again.transitions] == [str(t) for t in chart.transitions]


def test_a_replaced_chart_has_the_same_arrows_its_own_settings_and_its_own_count():
    chart = a_chart((COMPOSING, broken), (SCROLLING,), (RESTING,), timeouts={RESTING: 2}, name="social")
    chart.fire(an_agent(), "decides")
    other = chart.replaced(oracle_enabled=False)
    assert other.fire(an_agent(), "decides") is SCROLLING
    assert (chart.guard_errors.total(), other.guard_errors.total()) == (1, 1)
    assert (other.transitions, other.timeouts, other.name) == (chart.transitions, chart.timeouts, "social")
    assert chart.replaced(oracle_enabled=True, strict=True).strict


@pytest.mark.parametrize("name", ["states", "transitions", "initial", "timeouts", "oracle_enabled", "cells"])
def test_what_a_chart_is_made_of_cannot_be_set_later(name):
    chart = a_chart((COMPOSING, yes), (SCROLLING, yes))
    with pytest.raises(ChartError, match=rf"chart: {name} cannot be set: .* Make another chart, or use replaced"):
        setattr(chart, name, getattr(chart, name))
    with pytest.raises(TypeError, match="does not support item assignment"):
        chart.timeouts[RESTING] = 4
    chart.strict = True
    assert chart.replaced(oracle_enabled=False).fire(an_agent(), "decides") is COMPOSING
