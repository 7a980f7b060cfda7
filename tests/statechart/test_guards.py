"""Expressions as guards: what they mean, how they read, what they refuse."""

import copy
import operator
import pickle
from collections import ChainMap, OrderedDict, UserDict
from types import MappingProxyType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.statechart import AgentState, ArrayColumns, Expression, F, Statechart, Transition, column_values
from prism_mesa.statechart.guards import NEEDS_ORACLE

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


@pytest.mark.parametrize(
    ("term", "value"),
    [
        (F.agent.energy + 1, 4),
        (1 + F.agent.energy, 4),
        (F.agent.energy - 1, 2),
        (10 - F.agent.energy, 7),
        (F.agent.energy * 2, 6),
        (2 * F.agent.energy, 6),
        (F.agent.energy / 2, 1.5),
        (12 / F.agent.energy, 4),
        (10 - (F.agent.energy - 1), 8),
        ((F.agent.energy > 1) + (F.post.velocity > 1), 2),
    ],
)
def test_arithmetic_works_from_both_sides(term, value):
    assert term(AGENT, POST) == value


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("right", [True, False])
def test_and_or_not_follow_their_truth_tables(left, right):
    agent = SimpleNamespace(a=left, b=right)
    assert (F.agent.a & F.agent.b)(agent) is (left and right)
    assert (F.agent.a | F.agent.b)(agent) is (left or right)
    assert (~F.agent.a)(agent) is (not left)
    assert (F.agent.a & ~(F.agent.b | F.agent.a))(agent) is (left and not (right or left))


@pytest.mark.parametrize("value", [None, "", "text", 0, 0.0, 2, -1.5, [], [0]])
def test_a_field_is_as_true_as_python_says_alone_or_negated_or_joined(value):
    agent = SimpleNamespace(x=value)
    assert (~F.agent.x)(agent) is (not value)
    assert (F.agent.x & True)(agent) is bool(value)
    assert (F.agent.x | False)(agent) is bool(value)


def test_both_sides_are_evaluated():
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        ((F.post.views > 0) & (1 / F.post.views > 0.1))(AGENT, POST)


def test_comparing_expressions_compares_their_values():
    assert ((F.agent.energy > 1) == (F.post.velocity > 1))(AGENT, POST) is True


def test_a_chained_comparison_is_refused_with_the_way_to_write_it():
    with pytest.raises(TypeError, match=r"write \(a < F.post.x\) & \(F.post.x < b\)"):
        0.2 < F.post.relevance < 0.8  # noqa: B015


@pytest.mark.parametrize(
    "attempt",
    [
        lambda: (F.post.x > 1) and (F.post.x < 2),
        lambda: (F.post.x > 1) or (F.post.x < 2),
        lambda: not F.post.x,
        lambda: F.post.x in ("a", "b"),
        lambda: F.post.x > F.agent.a & F.post.y > 1,
        lambda: 1 if F.post.x else 2,
    ],
    ids=["and", "or", "not", "in", "precedence of &", "if"],
)
def test_what_python_would_decide_at_once_is_refused(attempt):
    with pytest.raises(TypeError, match="has no truth value until it is evaluated"):
        attempt()


def test_a_number_beside_an_ampersand_is_refused():
    with pytest.raises(TypeError, match="unsupported operand"):
        F.post.x > 1 & F.post.y > 2  # noqa: B015


@pytest.mark.parametrize("value", [None, [1], float("nan"), float("inf"), object(), 1j])
def test_an_expression_holds_only_finite_numbers_and_strings(value):
    with pytest.raises(ValueError, match=r"cannot hold .*; use fields of F, finite numbers and strings"):
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
    assert guard.constants == {2.0, 100.0}
    assert guard.texts == {"calm"}


@pytest.mark.parametrize(
    "name",
    ["_root", "_items", "_columns", "tree", "fields", "agent", "post", "function", "self", "items", "class", "größe"],
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
    with pytest.raises(AttributeError, match=r"F has no 'user'; write F.agent.user, or F.post.user for the context"):
        F.user.age > 3  # noqa: B015
    with pytest.raises(AttributeError, match="__wrapped__"):
        F.agent.__wrapped__  # noqa: B018


MAPPINGS = [dict, OrderedDict, UserDict, ChainMap, MappingProxyType, lambda items: {"default": 1} | items]
CLASHING = ["items", "keys", "get", "pop", "data", "maps", "parents", "move_to_end"]


@pytest.mark.parametrize("mapping", MAPPINGS)
@pytest.mark.parametrize("name", ["relevance", *CLASHING])
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


def test_a_mapping_without_the_key_says_so():
    with pytest.raises(AttributeError, match="the context has no key 'items'"):
        (F.post.items > 1)(AGENT, {})


def test_an_expression_survives_pickling_and_copying_also_after_it_has_run():
    guard = (F.post.relevance > F.agent.high) & ~(F.agent.mood == "sad")
    guard(AGENT, POST)
    for twin in (pickle.loads(pickle.dumps(guard)), copy.deepcopy(guard)):
        assert str(twin) == str(guard)
        assert twin(AGENT, POST) is True


def test_expressions_are_kept_apart_in_sets():
    one, other = F.post.x > 1, F.post.x > 1
    assert {one, other} - {one} == {other}


def test_needs_oracle_is_the_string_of_the_contract():
    assert NEEDS_ORACLE == "needs_oracle"


# The same expression built twice: from F, and from Python's own operators.

NUMBERS = ("energy", "limit", "views", "flag")


def _field(root, name):
    return getattr(getattr(F, root), name), lambda a, p: getattr({"agent": a, "post": p}[root], name)


def _constant(value):
    return value, lambda a, p: value


def _joined(pair, symbol):
    (left, mean_left), (right, mean_right) = pair
    return symbol(left, right), lambda a, p: symbol(mean_left(a, p), mean_right(a, p))


def _logic(pair, symbol):
    (left, mean_left), (right, mean_right) = pair
    return symbol(left, right), lambda a, p: symbol(bool(mean_left(a, p)), bool(mean_right(a, p)))


def _negated(pair):
    return ~pair[0], lambda a, p: not pair[1](a, p)


FIELDS = st.builds(_field, st.sampled_from(["agent", "post"]), st.sampled_from(NUMBERS))
CONSTANTS = st.sampled_from([-1, 0, 1, 2, 0.5, True]).map(_constant)
ARITHMETIC = st.sampled_from([operator.add, operator.sub, operator.mul, operator.truediv])
COMPARISONS = st.sampled_from([operator.gt, operator.ge, operator.lt, operator.le, operator.eq, operator.ne])


LOGIC = st.sampled_from([operator.and_, operator.or_])


def _calculated(terms):
    symbols = ARITHMETIC | COMPARISONS
    return st.builds(_joined, st.tuples(terms, terms | CONSTANTS), symbols) | st.builds(
        _joined, st.tuples(CONSTANTS, terms), symbols
    )


def _decided(terms):
    return st.builds(_logic, st.tuples(terms, terms), LOGIC) | terms.map(_negated)


EXPRESSIONS = st.recursive(FIELDS, lambda terms: _calculated(terms) | _decided(terms), max_leaves=8)
DECISIONS = st.recursive(st.recursive(FIELDS, _calculated, max_leaves=3), _decided, max_leaves=4)
FINITE = [-2.0, -1.0, 0.0, 0.5, 1.0, 1.5, 3.0]


def _rows(floats):
    return st.fixed_dictionaries({"energy": floats, "limit": floats, "views": st.integers(0, 3), "flag": st.booleans()})


def _truth(meaning, agent, post):
    try:
        return bool(meaning(agent, post))
    except ArithmeticError as error:
        return type(error)


ANY_ROWS = _rows(st.sampled_from([*FINITE, float("inf"), float("nan")]))
FINITE_ROWS = _rows(st.sampled_from(FINITE))


@settings(deadline=None)
@given(EXPRESSIONS, ANY_ROWS, ANY_ROWS)
def test_an_expression_means_what_python_means(pair, agent, post):
    guard, meaning = pair
    assert isinstance(guard, Expression)
    mapping, agent, post = post, SimpleNamespace(**agent), SimpleNamespace(**post)
    expected = _truth(meaning, agent, post)
    assert _truth(guard, agent, post) == expected
    assert _truth(guard, agent, mapping) == expected


@settings(deadline=None)
@given(DECISIONS, FINITE_ROWS, FINITE_ROWS)
def test_the_label_read_as_python_gives_the_same(pair, agent, post):
    guard, _ = pair
    agent, post = SimpleNamespace(**agent), SimpleNamespace(**post)
    value = _truth(guard, agent, post)
    if not isinstance(value, type):  # Python's `and` may stop before a division by zero
        assert _truth(lambda a, p: eval(str(guard), {"agent": a, "post": p}), agent, post) == value


@settings(deadline=None)
@given(EXPRESSIONS, st.lists(st.tuples(ANY_ROWS, ANY_ROWS), min_size=1, max_size=5))
def test_over_columns_an_expression_has_the_value_of_each_row_unless_a_row_raises(pair, rows):
    guard, meaning = pair
    agents, posts = (
        ArrayColumns({name: np.array([row[side][name] for row in rows]) for name in NUMBERS}) for side in (0, 1)
    )
    expected = [_truth(meaning, SimpleNamespace(**agent), SimpleNamespace(**post)) for agent, post in rows]
    values = column_values(guard, agents, posts, len(rows))
    assert (values is None) == (ZeroDivisionError in expected)
    if values is not None:
        assert values.tolist() == expected
