"""What the static check finds in a chart without running it."""

import re
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.statechart import AgentState, F, Statechart, Transition, after, when

IDLE, SCROLLING, EVALUATING, COMPOSING = list(AgentState)[:4]
RESTING = AgentState.RESTING
HIGH = F.post.relevance > F.agent.high
LOW = F.post.relevance < F.agent.low


def a_chart(*transitions, **settings_):
    """Return a chart of EVALUATING and the targets of transitions (target, guard) on "decides"; all lead back."""
    transitions = [Transition("decides", EVALUATING, *parts) for parts in transitions]
    others = sorted({t.target for t in transitions if t.target not in (None, EVALUATING)})
    transitions += [Transition("timeout", state, EVALUATING) for state in others]
    return Statechart({EVALUATING, *others}, transitions, EVALUATING, **settings_)


def found(chart, kind, **fired):
    return [finding for finding in chart.check(**fired) if finding.kind == kind]


def wheres(chart, kind, **fired):
    return [finding.where for finding in found(chart, kind, **fired)]


def oracle(chart):
    (finding,) = found(chart, "oracle")
    return finding.level, finding.message


def test_a_chart_without_faults_has_nothing_but_a_word_on_the_oracle():
    (finding,) = a_chart((COMPOSING, HIGH), (SCROLLING,)).check()
    assert str(finding) == "warning: chart: the oracle can never be reached"


def test_states_that_no_path_leads_to_are_found_also_if_transitions_lead_to_them():
    chart = Statechart(
        {IDLE, SCROLLING, RESTING, COMPOSING},
        [
            Transition("feed_ready", IDLE, SCROLLING),
            Transition("timeout", RESTING, COMPOSING),
            Transition("timeout", COMPOSING, RESTING),
        ],
        IDLE,
    )
    assert wheres(chart, "unreachable") == ["composing", "resting"]
    assert {finding.level for finding in found(chart, "unreachable")} == {"error"}


def test_states_that_no_transition_leaves_are_found_also_if_they_lead_to_themselves():
    chart = Statechart(
        {IDLE, SCROLLING, RESTING},
        [
            Transition("feed_ready", IDLE, SCROLLING),
            Transition("timeout", IDLE, RESTING),
            Transition("timeout", RESTING, RESTING),
        ],
        IDLE,
    )
    assert wheres(chart, "dead-end") == ["resting", "scrolling"]


def test_triggers_that_nobody_fires_are_found_with_the_nearest_one_that_is():
    chart = a_chart((COMPOSING, HIGH), (SCROLLING,))
    assert wheres(chart, "never-fired", fired=["decides", "timeout"]) == []
    assert wheres(chart, "never-fired", fired=[]) == ["decides", "timeout"]
    (finding,) = found(chart, "never-fired", fired=["decide", "timeout"])
    assert finding.message == "the round never fires this trigger. Did you mean 'decide'?"
    assert wheres(chart, "never-fired") == []


def test_triggers_that_are_fired_at_no_transition_are_found():
    assert wheres(a_chart((COMPOSING,)), "dropped", fired=["decides", "timeout", "decide"]) == ["decide"]


# Guards


@pytest.mark.parametrize(
    ("transitions", "shadowed"),
    [
        ([(COMPOSING,), (COMPOSING,)], ["evaluating --decides--> composing"]),
        ([(COMPOSING,), (SCROLLING,), (COMPOSING,)], ["evaluating --decides--> composing"]),
        (
            [(COMPOSING, F.post.x > 0.5), (COMPOSING, F.post.x > 0.7)],
            ["evaluating --decides--> composing [post.x > 0.7]"],
        ),
        ([(COMPOSING, F.post.x > 0.7), (COMPOSING, F.post.x > 0.5)], []),
        (
            [(COMPOSING, (F.post.x > 5) & (F.post.x < 3)), (SCROLLING,)],
            ["evaluating --decides--> composing [post.x > 5 and post.x < 3]"],
        ),
        ([(COMPOSING, HIGH | ~HIGH), (SCROLLING,)], ["evaluating --decides--> scrolling"]),
        ([(COMPOSING, HIGH), (SCROLLING, ~HIGH), (None,)], ["evaluating --decides--> ?"]),
        ([(COMPOSING, HIGH), (None,)], []),
        ([(COMPOSING, lambda a, p: True), (SCROLLING,), (COMPOSING, lambda a, p: True)], []),
    ],
)
def test_transitions_that_no_agent_takes_are_shadowed(transitions, shadowed):
    assert wheres(a_chart(*transitions), "shadowed") == shadowed


@pytest.mark.parametrize(
    "guard",
    [
        (F.post.x > 0.3) & (F.post.x < 0.3001),
        (F.agent.mood == "calm") & (F.post.x > 0.5),
        (F.post.x == 41) & (F.agent.y == 42) & (F.agent.z == 43),
        (F.post.x == F.agent.y) & (F.agent.y == F.agent.z) & (F.agent.z == 1234),
        F.post.likes / F.post.views > 0.9,
        F.post.x - 12345 == 0,
        F.post.x * F.agent.y > 50,
        F.agent.is_bot & ~F.post.is_pinned,
        F.agent.mood == F.post.mood,
        F.agent.energy,
        ~(F.agent.energy - 7777),
    ],
    ids=str,
)
def test_a_guard_that_can_hold_and_can_fail_is_seen_to_do_both(guard):
    chart = a_chart((COMPOSING, guard), (SCROLLING,))
    assert wheres(chart, "shadowed") == []
    assert oracle(chart) == ("warning", "the oracle can never be reached")


def test_guards_that_overlap_are_found_with_an_example():
    chart = a_chart((COMPOSING, F.post.x > 0.4), (SCROLLING, F.post.x < 0.6))
    (finding,) = found(chart, "overlap")
    assert (finding.level, finding.where) == ("note", "evaluating --decides-->")
    assert finding.message.startswith("guards overlap: the oracle chooses among composing, scrolling, for example")
    x = float(re.search(r"post\.x = (\S+)$", finding.message)[1])
    assert 0.4 < x < 0.6


def test_an_invariant_leaves_out_agents_that_do_not_exist():
    crossing = (COMPOSING, HIGH), (SCROLLING, LOW), (None,)
    assert wheres(a_chart(*crossing), "overlap") == ["evaluating --decides-->"]
    assert wheres(a_chart(*crossing, invariant=F.agent.low <= F.agent.high), "overlap") == []


def test_an_invariant_that_no_probe_meets_is_said_and_nothing_is_claimed():
    chart = a_chart((COMPOSING, HIGH), (SCROLLING,), invariant=F.agent.x > F.agent.x)
    assert set(wheres(chart, "unprobed")) == {
        "evaluating --decides-->", "composing --timeout-->", "scrolling --timeout-->"
    }  # fmt: skip
    assert wheres(chart, "shadowed") == []


def test_a_gap_where_the_trigger_is_dropped_is_found_with_an_example():
    (finding,) = found(a_chart((COMPOSING, F.post.x > 0.6), (SCROLLING, F.post.x < 0.4)), "gap")
    assert (finding.level, finding.where) == ("note", "evaluating --decides-->")
    assert 0.4 <= float(re.search(r"the trigger is dropped, for example post\.x = (\S+)$", finding.message)[1]) <= 0.6


def test_an_oracle_without_options_is_an_error():
    (finding,) = found(a_chart((None,)), "no-options")
    assert str(finding) == ("error: evaluating --decides-->: the oracle is asked, but no concrete target is declared")


# Whether the oracle can ever be reached


def test_the_band_reaches_the_oracle():
    chart = a_chart((COMPOSING, HIGH), (SCROLLING, LOW), (None,), invariant=F.agent.low <= F.agent.high)
    assert oracle(chart) == ("note", "the oracle can be reached: evaluating --decides-->")
    (finding,) = found(chart, "open")
    assert "left open by the chart: the oracle chooses among composing, scrolling, for example" in finding.message


def test_a_chart_whose_guards_settle_everything_never_reaches_the_oracle():
    never = ("warning", "the oracle can never be reached")
    assert oracle(a_chart((COMPOSING, HIGH), (SCROLLING,))) == never
    assert oracle(a_chart((COMPOSING, HIGH), (SCROLLING, ~HIGH), (None,))) == never
    assert oracle(a_chart((COMPOSING, 1 / F.post.views > 0.5), (SCROLLING,))) == never


def test_callables_cannot_be_looked_into_and_that_is_said():
    level, message = oracle(a_chart((COMPOSING, lambda a, p: p.relevance > a.high), (SCROLLING,)))
    assert level == "warning"
    assert message == "the oracle can be reached only if callable guards say so: evaluating --decides-->"


def test_a_chart_without_the_oracle_says_so():
    chart = a_chart((COMPOSING, HIGH), (SCROLLING, LOW), (None,), oracle_enabled=False)
    assert oracle(chart) == ("note", "the oracle is disabled: an open choice takes its first option")


def test_a_chart_of_your_own_that_leaves_nothing_open_and_leaves_its_states_in_time_has_no_warning():
    parts = [Transition("press", "off", "on"), Transition(after(3), "on", "off")]
    assert {finding.level for finding in Statechart(["off", "on"], parts, "off").check()} == {"note"}
    parts = [Transition("press", "off", "on"), Transition(when(F.agent.x > 1), "on", "off")]
    assert wheres(Statechart(["off", "on"], parts, "off"), "no-timeout") == ["on"]
    parts = [Transition("press", "off", "on", HIGH), Transition("press", "off", "on", ~HIGH)]
    closed = Statechart(["off", "on"], [*parts, Transition("press", "off", None)], "off")
    assert oracle(closed)[0] == "warning"  # it has a choice to leave open, and never does


# Laws


FIELDS = st.sampled_from([F.agent.high, F.post.x])
GUARDS = st.builds(
    lambda left, right, above: left > right if above else left <= right,
    FIELDS,
    FIELDS | st.sampled_from([-3, 0, 0.3, 0.5, 20]),
    st.booleans(),
)
TRANSITIONS = st.lists(
    st.tuples(st.sampled_from([COMPOSING, SCROLLING, EVALUATING, None]), st.none() | GUARDS), min_size=1, max_size=5
)
VALUES = st.sampled_from([-4.0, -3.0, -1.0, 0.0, 0.1, 0.3, 0.4, 0.5, 0.9, 20.0, 21.0])


def fired_on(chart, **fields):
    ran = []
    acting = [
        Transition(t.trigger, t.source, t.target, t.guard, lambda agent, post, t=t: ran.append(t))
        for t in chart.transitions
    ]
    chart = Statechart(chart.states, acting, chart.initial, oracle_enabled=chart.oracle_enabled)
    agent = SimpleNamespace(
        state=EVALUATING, state_history=[], ticks_in_state=0, max_history_depth=0, high=fields.get("agent.high", 0)
    )
    return chart.fire(agent, "decides", {"x": fields.get("post.x", 0)}), ran


@settings(max_examples=60, deadline=None)
@given(TRANSITIONS)
def test_every_example_that_is_given_comes_out_as_it_says(transitions):
    chart = a_chart(*transitions)
    for finding in chart.check():
        if finding.where == "evaluating --decides-->" and finding.kind in ("gap", "open", "overlap"):
            example = {name: float(value) for name, value in re.findall(r"(\w+\.\w+) = ([^\s,]+)", finding.message)}
            outcome, _ = fired_on(chart, **example)
            if finding.kind == "gap":
                assert outcome is None
            else:
                assert "chooses among " + ", ".join(state.value for state in outcome) + "," in finding.message


@settings(max_examples=60, deadline=None)
@given(TRANSITIONS, VALUES, VALUES)
def test_what_a_random_agent_meets_was_found(transitions, high, x):
    chart = a_chart(*transitions)
    kinds = {finding.kind for finding in chart.check() if finding.where == "evaluating --decides-->"}
    shadowed = wheres(chart, "shadowed")
    outcome, ran = fired_on(chart, **{"agent.high": high, "post.x": x})
    if isinstance(outcome, list):
        assert kinds & {"open", "overlap"}
    elif outcome is None:
        assert kinds & {"gap", "no-options"}
    else:
        assert shadowed.count(str(ran[0])) < [str(t) for t in chart.transitions].count(str(ran[0]))


def test_a_misspelt_field_is_found_at_its_transition_with_the_nearest_name():
    chart = a_chart((COMPOSING, F.post.x > F.agent.hihg), (SCROLLING,))
    [found] = [finding for finding in chart.check(fields=["agent.high", "post.x"]) if finding.kind == "unknown-field"]
    assert (found.level, found.where) == ("error", "evaluating --decides--> composing [post.x > agent.hihg]")
    assert found.message.startswith("no agent has a field 'agent.hihg'. Did you mean 'agent.high'?")
