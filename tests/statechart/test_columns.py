"""The rule, `fire` and `fire_many` agree on every row of random charts."""

import operator
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from column_rows import by_columns
from hypothesis import given, settings
from hypothesis import strategies as st
from random_guards import AGENTS, COMPARISONS, POSTS, TERMS, TEXTS, constant, decided, field, joined

from prism_mesa.statechart import NEEDS_ORACLE, AgentState, ArrayColumns, F, Statechart, Transition

# The rule, written from the text of the design and from nothing else.


def expected_outcome(transitions, values, oracle_enabled):
    """Return ("takes", target, index or None), ("asks", options) or ("nothing",).

    Args:
        transitions: The candidates of (trigger, state) in list order: pairs (target or None, has a guard).
        values: True, False or "needs_oracle" for each; of an unguarded one it is not looked at.
    """
    left = [i for i, (_, is_guarded) in enumerate(transitions) if not is_guarded or values[i] is not False]
    is_else = [not guard or (values[i] == "needs_oracle" and not to) for i, (to, guard) in enumerate(transitions)]
    if any(transitions[i][0] and transitions[i][1] for i in left):
        left = [i for i in left if not is_else[i]]
    if not left:
        return ("nothing",)
    is_open = any(transitions[i][0] is None or (transitions[i][1] and values[i] == "needs_oracle") for i in left)
    options = []
    for i in range(len(transitions)) if is_open else left:
        if transitions[i][0] is not None and transitions[i][0] not in options:
            options.append(transitions[i][0])
    if len(options) == 1 and not is_open:
        return ("takes", options[0], left[0])
    if not options:
        return ("nothing",)
    return ("asks", tuple(options)) if oracle_enabled else ("takes", options[0], None)


MISSPELLED = st.sampled_from(
    [
        joined(operator.gt, field(("post", "relevence")), constant(0.5)),  # no such field: always raises
        joined(operator.gt, field(("agent", "mood")), constant(0.5)),  # a text is not above a number: always raises
        (F.agent.mood & (F.post.views > 0), lambda a, p: bool(a.mood) and p.views > 0),  # no column for its truth
    ]
)


EXPRESSIONS = decided(COMPARISONS | TERMS | TEXTS | MISSPELLED)


def plainly(function):
    return function, function


CALLABLES = st.sampled_from(
    [
        plainly(lambda agent, post: True),
        plainly(lambda agent, post: False),
        plainly(lambda agent, post: None),
        plainly(lambda agent, post: post.views > 1),
        plainly(lambda agent, post: np.bool_(agent.is_bot)),
        plainly(lambda agent, post: NEEDS_ORACLE),
        plainly(lambda agent, post: NEEDS_ORACLE if agent.energy > 0.3 else agent.limit),
        plainly(lambda agent, post: 1 / post.views),
        plainly(lambda agent, post: {"calm": True, "angry": False}[agent.mood]),
        plainly(lambda agent, post: post.no_such_field),
        plainly(lambda agent, post: bool(np.array([1, 2]))),
    ]
)


GUARDS = st.none() | EXPRESSIONS | CALLABLES
ROWS = st.tuples(
    st.sampled_from([0, 0, 0, 1, 2]),
    st.sampled_from([1, 1, 1, 2, 0]),
    AGENTS,
    POSTS,
)


@st.composite
def scenes(draw, guards=GUARDS):
    """Return a chart whose actions note which transition ran, what its guards mean, and rows to fire it on.

    A row is (state, index of the trigger or -1, fields of the agent, fields of the post).
    """
    states = draw(st.lists(st.sampled_from(list(AgentState)), min_size=2, max_size=4, unique=True))
    meanings, transitions = [], []
    for i in range(draw(st.sampled_from([3, 4, 5, 6, 7, 2, 1, 0]))):
        guard, meaning = draw(guards) or (None, None)
        source = states[draw(st.sampled_from([0, 0, 0, 1]))]  # few places: several transitions at each
        target = draw(st.sampled_from([*states, None]))
        trigger = draw(st.sampled_from(["decides", "decides", "timeout"]))
        meanings.append(meaning)
        transitions.append(Transition(trigger, source, target, guard, lambda a, p, i=i: a.ran.append(i)))
    chart = Statechart(states, transitions, states[0], oracle_enabled=draw(st.booleans()))
    elsewhere = [state for state in AgentState if state not in states[:2]]
    rows = [
        ([*states[:2], elsewhere[0]][place], min(trigger, len(chart.triggers)) - 1, agent, post)
        for place, trigger, agent, post in draw(st.lists(ROWS, min_size=1, max_size=6))
    ]
    return chart, meanings, rows


TYPES = st.fixed_dictionaries(
    {
        "energy": st.sampled_from([np.float64, np.float32, np.float16]),
        "limit": st.sampled_from([np.int64, np.int8]),
        "relevance": st.sampled_from([np.float64, np.float32]),
        "views": st.sampled_from([np.int64, np.uint8, np.float64]),
    }
)


def columns(rows, types):
    return ArrayColumns({name: np.array([row[name] for row in rows], types.get(name)) for name in rows[0]})


def by_rule(chart, meanings, state, trigger, agent, post, errors):
    """Return the expected outcome for one row, with indices into the chart's transitions; count guard errors."""
    places = [i for i, t in enumerate(chart.transitions) if (t.trigger, t.source) == (trigger, state)]
    values = []
    for i in places:
        try:
            value = meanings[i](agent, post) if meanings[i] else True
            values.append("needs_oracle" if isinstance(value, str) and value == "needs_oracle" else bool(value))
        except Exception as error:
            values.append(False)
            errors[str(chart.transitions[i]), type(error).__name__] += 1
    transitions = [(chart.transitions[i].target, meanings[i] is not None) for i in places]
    outcome = expected_outcome(transitions, values, chart.oracle_enabled)
    if outcome[0] == "takes":
        return outcome[:2], None if outcome[2] is None else places[outcome[2]]
    return outcome, None


def by_fire(chart, state, trigger, agent, post):
    who = SimpleNamespace(state=state, state_history=[], ticks_in_state=1, max_history_depth=5, ran=[], **agent)
    result = chart.fire(who, trigger, post)
    if isinstance(result, AgentState):
        assert who.state is result
        assert who.ticks_in_state == 0
        return ("takes", result), who.ran[0]
    assert (who.state, who.ticks_in_state, who.state_history, who.ran) == (state, 1, [], [])
    assert result is None or isinstance(result, list)
    return (("nothing",) if result is None else ("asks", tuple(result))), None


def counted(chart):
    """Return the guard errors by (transition, kind of error)."""
    counts = Counter()
    for key, n in chart.guard_errors.items():
        label = next(str(t) for t in chart.transitions if key.startswith(f"{t}: "))
        counts[label, key.removeprefix(f"{label}: ").split(":")[0]] += n
    return counts


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(scenes(), TYPES)
def test_the_rule_and_fire_and_fire_many_agree_on_every_row(scene, types):
    chart, meanings, rows = scene
    many = chart.with_settings(oracle_enabled=chart.oracle_enabled)
    fired = many.fire_many(
        np.array([state.code for state, *_ in rows], np.int8),
        np.array([trigger for _, trigger, *_ in rows], np.int8),
        columns([agent for *_, agent, _ in rows], types),
        columns([post for *_, post in rows], types),
    )
    errors = Counter()
    for row, (state, code, agent, post) in enumerate(rows):
        trigger = chart.triggers[code] if code >= 0 else "nothing happens"
        who, what = SimpleNamespace(**agent), SimpleNamespace(**post)
        expected, index = by_rule(chart, meanings, state, trigger, who, what, errors)
        scalar = by_fire(chart, state, trigger, agent, what)
        assert scalar[0] == expected
        assert index is None or scalar[1] == index
        assert by_columns(fired, row) == scalar
    assert counted(chart) == counted(many) == errors
