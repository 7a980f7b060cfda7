"""Firing over columns: single cases that a random chart seldom meets."""

from types import SimpleNamespace

import numpy as np
import pytest
from column_rows import by_columns

from prism_mesa.statechart import AgentState, ArrayColumns, F, Statechart, Transition, column_values, parse_expression

EVALUATING, COMPOSING, SCROLLING = AgentState.EVALUATING, AgentState.COMPOSING, AgentState.SCROLLING


# Single things that a random chart seldom meets.


def a_chart(*transitions, **settings_):
    return Statechart(
        AgentState, [Transition("decides", EVALUATING, *parts) for parts in transitions], "idle", **settings_
    )


def fire_rows(chart, n=1, *, agents=None, **posts):
    states = np.full(n, EVALUATING.code)
    return chart.fire_many(states, "decides", ArrayColumns(agents or {}), ArrayColumns(posts))


def test_rows_without_a_trigger_or_with_an_unknown_one_or_in_another_state_do_nothing():
    chart = a_chart((COMPOSING,))
    states = np.array([EVALUATING.code, EVALUATING.code, SCROLLING.code])
    nothing = ArrayColumns({})
    assert chart.fire_many(states, np.array([0, -1, 0]), nothing, nothing).transition_indices.tolist() == [0, -1, -1]
    assert chart.fire_many(states, "decide", nothing, nothing).transition_indices.tolist() == [-1, -1, -1]
    assert chart.fire_many(states[:0], "decides", nothing, nothing).transition_indices.tolist() == []
    fired = chart.fire_many(states, "decides", nothing, nothing)
    assert (fired.transition_indices.dtype, fired.option_indices.dtype) == (
        np.int16,
        np.int16,
    )  # two bytes for each agent


def test_callables_are_named_and_expressions_that_run_over_columns_are_not():
    def is_dull(agent, post):
        return round(post.relevance, 1) < 0.2

    chart = a_chart(
        (COMPOSING, F.post.relevance > 0.5), (SCROLLING, is_dull), (SCROLLING, lambda agent, post: post.relevance < 0.2)
    )
    fired = fire_rows(chart, 2, relevance=np.array([0.6, 0.1]))
    assert [fired.transitions[i].target for i in fired.transition_indices] == [COMPOSING, SCROLLING]
    label = "evaluating --decides--> scrolling"
    assert fired.row_by_row_guards == {f"{label} [is_dull()]", f"{label} [lambda]"}
    assert fire_rows(a_chart((COMPOSING, F.post.relevance > 0.5)), relevance=np.array([1.0])).row_by_row_guards == set()


def test_a_strict_chart_lets_the_exception_of_a_row_pass():
    for guard in (1 / F.post.views > 0.5, lambda agent, post: 1 / post.views > 0.5):
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            fire_rows(a_chart((COMPOSING, guard), strict=True), 2, views=np.array([1, 0]))


class Same:
    """Columns whose every row has the same fields, held once."""

    def __init__(self, **fields):
        self.fields = fields

    def take(self, rows):
        return self

    def column(self, name):
        return self.fields[name]

    def row(self, i):
        return SimpleNamespace(**self.fields)


@pytest.mark.parametrize(
    ("value", "outcome"), [(1, COMPOSING), (0.0, SCROLLING), ("", SCROLLING), ("needs_oracle", (COMPOSING, SCROLLING))]
)
def test_a_field_held_once_for_all_rows_decides_for_all_rows(value, outcome):
    chart = a_chart((COMPOSING, F.post.x), (SCROLLING,))
    fired = chart.fire_many(np.full(3, EVALUATING.code), "decides", Same(), Same(x=value))
    shown = ("takes", outcome) if isinstance(outcome, AgentState) else ("asks", outcome)
    assert [by_columns(fired, row)[0] for row in range(3)] == [shown] * 3


@pytest.mark.parametrize("likes", [1.0, 0.0, float("nan"), float("inf")])
def test_dividing_by_zero_raises_whatever_is_divided(likes):
    chart = a_chart((COMPOSING, ~(F.post.likes / F.post.views > 0.5)), (SCROLLING,))
    fired = fire_rows(chart, likes=np.array([likes]), views=np.array([0.0]))
    assert fired.transitions[fired.transition_indices[0]].target is SCROLLING
    agent = SimpleNamespace(state=EVALUATING, state_history=[], ticks_in_state=0, max_history_depth=0)
    assert chart.fire(agent, "decides", {"likes": likes, "views": 0}) is SCROLLING
    assert chart.guard_errors.total() == 2


@pytest.mark.parametrize("n_guards", [1, 8, 9, 20, 39, 40, 41, 60])
def test_a_place_may_have_any_number_of_guards(n_guards):
    chart = a_chart(*[(COMPOSING if i % 2 else SCROLLING, F.post.views == i) for i in range(n_guards)], (None,))
    last = n_guards - 1
    target = COMPOSING if last % 2 else SCROLLING
    fired = fire_rows(chart, 2, views=np.array([last, -1]))
    assert fired.transitions[fired.transition_indices[0]].target is target
    assert fired.option_indices.tolist() == [-1, 0]
    agent = SimpleNamespace(state=EVALUATING, state_history=[], ticks_in_state=0, max_history_depth=0)
    assert chart.fire(agent, "decides", {"views": last}) is target


@pytest.mark.parametrize(
    ("guard", "columns", "values"),
    [
        (F.post.x > 0.1, {"x": np.array([0.1], np.float32)}, [1]),  # 0.1 in single precision is above 0.1
        (F.post.a + F.post.b == 300, {"a": np.array([200], np.uint8), "b": np.array([100], np.uint8)}, [1]),
        (F.post.a + F.post.b == 2, {"a": np.array([True, True]), "b": np.array([True, False])}, [1, 0]),
    ],
)
def test_numbers_in_columns_are_those_of_python(guard, columns, values):
    assert column_values(guard, ArrayColumns({}), ArrayColumns(columns), len(values)).tolist() == values


@pytest.mark.parametrize(("text", "value"), [("1 < 2", 1), ("agent.x > 9 or True", 1), ("2 < 1", 0)])
def test_an_expression_without_columns_has_one_value_for_all_rows(text, value):
    columns = ArrayColumns({"x": np.array([0, 1, 2])})
    assert column_values(parse_expression(text), columns, columns, 3).tolist() == [value] * 3
