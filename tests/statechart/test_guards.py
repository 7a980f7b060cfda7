"""Expressions as guards: what they mean, how they read, what they refuse."""

from collections import ChainMap
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_guards import AGENTS, EXPRESSIONS, POSTS

from prism_mesa.statechart import AgentState, ArrayColumns, F, Statechart, Transition, column_values

AGENT = SimpleNamespace(energy=3, high=0.6, low=0.4, is_bot=False, mood="calm", state=AgentState.IDLE)
POST = SimpleNamespace(relevance=0.7, velocity=120, views=0, parent=None, text="")


@pytest.mark.parametrize(
    ("guard", "value"),
    [
        (F.post.relevance > F.agent.high, True),
        (F.post.relevance >= 0.7, True),
        (F.post.relevance < F.agent.low, False),
        (F.post.velocity <= 120, True),
        (F.agent.mood == "calm", True),
        (F.agent.mood != "calm", False),
        (0.5 < F.post.relevance, True),  # noqa: SIM300
        (F.agent.state == AgentState.IDLE, True),
        (F.agent.state == AgentState.RESTING, False),
    ],
)
def test_a_comparison_reads_the_agent_and_the_context(guard, value):
    assert guard(AGENT, POST) is value


def test_both_sides_are_evaluated():
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        ((F.post.views > 0) & (1 / F.post.views > 0.1))(AGENT, POST)


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: (F.post.x > 1) and (F.post.x < 2),
        lambda: (F.post.x > 1) or (F.post.x < 2),
        lambda: not F.post.x,
        lambda: F.post.x in ("a", "b"),
        lambda: F.post.x > F.agent.a & F.post.y > 1,
        lambda: 0.2 < F.post.x < 0.8,
    ],
    ids=["and", "or", "not", "in", "precedence of &", "chained"],
)
def test_what_python_would_decide_at_once_is_refused(attempt):
    with pytest.raises(TypeError, match="has no truth value"):
        attempt()


@pytest.mark.parametrize("value", [None, [1], float("nan"), float("inf"), object(), 1j])
def test_an_expression_holds_only_finite_numbers_and_strings(value):
    with pytest.raises(ValueError, match="cannot contain"):
        F.post.x > value  # noqa: B015


@pytest.mark.parametrize("value", [np.float64(0.5), np.float32(0.5), np.int64(1), np.bool_(True)])
def test_numpy_numbers_become_plain_ones(value):
    guard = F.post.x == value
    assert str(guard) == f"post.x == {value.item()}"
    assert guard(None, {"x": value.item()}) is True


@pytest.mark.parametrize(
    ("guard", "label"),
    [
        (F.post.relevance > F.agent.high, "post.relevance > agent.high"),
        (0.5 < F.post.relevance, "post.relevance > 0.5"),  # noqa: SIM300
        ((F.agent.a + 1) * 2 >= 0, "(agent.a + 1) * 2 >= 0"),
        ((F.agent.a > 1) & ((F.agent.b > 1) | (F.agent.c > 1)), "agent.a > 1 and (agent.b > 1 or agent.c > 1)"),
        (~(F.agent.mood == "calm"), "not agent.mood == 'calm'"),
        (~F.agent.is_bot & F.agent.is_keen, "not agent.is_bot and agent.is_keen"),
        (F.agent.state == AgentState.IDLE, "agent.state == 'idle'"),
    ],
)
def test_the_label_reads_as_python(guard, label):
    assert str(guard) == repr(guard) == label


def test_an_expression_tells_its_fields_and_constants():
    guard = (F.post.relevance * 2 > F.agent.high) & (F.agent.mood == "calm") & (F.post.velocity > 100)
    assert guard.fields == {"post.relevance", "agent.high", "agent.mood", "post.velocity"}
    assert guard.constants == {2.0, 100.0, "calm"}


@pytest.mark.parametrize(
    "name",
    ["_root", "_items", "_columns", "tree", "post", "self", "items", "class"],
)
def test_a_field_may_be_called_anything(name):
    for root, guard in (("agent", getattr(F.agent, name) > 1), ("post", getattr(F.post, name) > 1)):
        assert guard.fields == {f"{root}.{name}"}
        rows = [SimpleNamespace(**{name: value}) for value in (1, 2)]
        assert [guard(row, row) for row in rows] == [False, True]
        columns = ArrayColumns({name: np.array([1, 2])})
        assert column_values(guard, columns, columns, 2).tolist() == [0, 1]
    assert (getattr(F.post, name) > 1)(None, {name: 2}) is True


def test_only_the_agent_and_the_post_have_fields():
    with pytest.raises(AttributeError, match="F has no 'user'"):
        F.user.age > 3  # noqa: B015
    with pytest.raises(AttributeError, match="__wrapped__"):
        F.agent.__wrapped__  # noqa: B018


@pytest.mark.parametrize("mapping", [dict, ChainMap, MappingProxyType])
@pytest.mark.parametrize("name", ["relevance", "items", "maps"])
def test_any_mapping_is_read_by_its_keys_whatever_its_own_attributes_are_called(mapping, name):
    context = mapping({name: 0.7})
    agent = SimpleNamespace(state=AgentState.IDLE, high=0.6)
    equal = getattr(F.post, name) == 0.7
    for guard in (getattr(F.post, name) > F.agent.high, equal):
        assert guard(agent, context) is True
        chart = Statechart(AgentState, [Transition("t", "idle", "resting", guard)], "idle")
        assert chart.enabled(agent, "t", context) == list(chart.transitions)
        assert chart.enabled(agent, "t", mapping({name: 0.6})) == []
    assert not chart.guard_errors


def test_expressions_are_kept_apart_in_sets():
    one, other = F.post.x > 1, F.post.x > 1
    assert {one, other} - {one} == {other}


# The same expression built twice: from F, and from Python's own operators.


def _truth(meaning, agent, post):
    try:
        return bool(meaning(agent, post))
    except ArithmeticError as error:
        return type(error)


@settings(deadline=None)
@given(EXPRESSIONS, AGENTS, POSTS)
def test_an_expression_and_its_label_mean_what_python_means(pair, agent, post):
    guard, meaning = pair
    mapping, agent, post = post, SimpleNamespace(**agent), SimpleNamespace(**post)
    expected = _truth(meaning, agent, post)
    assert _truth(guard, agent, mapping) == _truth(guard, agent, post) == expected
    if not isinstance(expected, type):  # Python's `and` may stop before a division by zero
        assert _truth(lambda a, p: eval(str(guard), {"agent": a, "post": p}), agent, post) == expected


@settings(deadline=None)
@given(EXPRESSIONS, st.lists(st.tuples(AGENTS, POSTS), min_size=1, max_size=5))
def test_over_columns_an_expression_has_the_value_of_each_row_unless_a_row_raises(pair, rows):
    guard, meaning = pair
    agents, posts = (
        ArrayColumns({name: np.array([row[side][name] for row in rows]) for name in rows[0][side]}) for side in (0, 1)
    )
    expected = [_truth(meaning, SimpleNamespace(**agent), SimpleNamespace(**post)) for agent, post in rows]
    values = column_values(guard, agents, posts, len(rows))
    assert (values is None) == (ZeroDivisionError in expected)
    if values is not None:
        assert values.tolist() == expected
