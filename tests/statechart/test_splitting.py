"""Plain guards over columns: the value of each row's own, or rows decide; nothing runs that might do more than read."""

import itertools
import math
import operator
import random
import time
from collections import Counter
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import differing, named, ran, small

from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import build_chart
from prism_mesa.social.state.population import Categories
from prism_mesa.statechart import NEEDS_ORACLE, STATES, AgentState, ArrayColumns, F, Statechart, Transition
from prism_mesa.statechart.splitting import BY_ROW, FEW, UNABLE, split_values

EVALUATING, COMPOSING, SCROLLING = AgentState.EVALUATING, AgentState.COMPOSING, AgentState.SCROLLING
LABEL = "evaluating --decides--> composing"


def meaning(guard, agent, post):
    """Return 0, 1, 2 (the oracle is needed) for one row, or the kind of error that it raises."""
    try:
        value = guard(agent, post)
        return 2 if isinstance(value, str) and value == "needs_oracle" else int(bool(value))
    except Exception as error:
        return type(error)


def a_chart(guard, **settings_):
    arrows = [Transition("decides", EVALUATING, COMPOSING, guard), Transition("decides", EVALUATING, SCROLLING)]
    return Statechart(AgentState, arrows, "idle", **settings_)


def fired(chart, n, agents=None, **posts):
    agents = agents if agents is not None else ArrayColumns({})
    posts = ArrayColumns({name: np.resize(values, n) for name, values in posts.items()})
    return chart.fire_many(np.full(n, EVALUATING.code), "decides", agents, posts)


# Random guards, written as a user writes them.

ENERGIES = st.sampled_from([0.0, -0.0, 0.25, 0.5, 1.0, -3.0, 1e300, float("nan"), float("inf")])
LIMITS = st.sampled_from([-7, -1, 0, 2, 3, 100])
FIELDS = {
    "energy": ENERGIES,
    "limit": LIMITS,
    "is_bot": st.booleans(),
    "mood": st.sampled_from(["calm", "angry", ""]),
    "state": st.sampled_from(STATES),
    "relevance": ENERGIES,
    "views": LIMITS,
    "is_pinned": st.booleans(),
}
AGENT = ("energy", "limit", "is_bot", "mood", "state")
NUMBERS = st.sampled_from(
    ["agent.energy", "agent.limit", "agent.is_bot", "post.relevance", "post.views", "post.is_pinned"]
)
CONSTANTS = st.sampled_from(["-1", "0", "1", "2", "0.25", "0.5", "True", "LIMIT"])
TEXTS = st.sampled_from(
    [
        "agent.mood == 'calm'",
        "agent.mood != MOOD",
        "'angry' == agent.mood",
        "agent.mood in ('calm', 'sad')",
        "agent.mood not in MOODS",
        "agent.state == AgentState.IDLE",
        "agent.state != 'resting'",
        "agent.state in (AgentState.IDLE, AgentState.SCROLLING)",
    ]
).map("({})".format)
OUTSIDE = {
    "LIMIT": 2,
    "MOOD": "angry",
    "MOODS": ("calm", ""),
    "AgentState": AgentState,
    "NEEDS_ORACLE": NEEDS_ORACLE,
}


def written(template, **parts):
    return st.fixed_dictionaries(parts).map(lambda chosen: template.format(**chosen))


def grown(terms):
    """Return longer terms: any of them may stand where a number or a condition stands."""
    compared = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])
    return st.one_of(
        written("({a} {op} {b})", a=terms, b=terms | CONSTANTS, op=st.sampled_from(["+", "-", "*", "/", "//", "%"])),
        written("({b} {op} {a})", a=terms, b=CONSTANTS, op=st.sampled_from(["+", "-", "*", "/", "//", "%"])),
        written("({a} {op} {b})", a=terms, b=terms | CONSTANTS, op=compared),
        written("({b} {op} {a})", a=terms, b=CONSTANTS, op=compared),
        written(
            "({a} {op} {b} {op2} {c})", a=terms | CONSTANTS, b=terms, c=terms | CONSTANTS, op=compared, op2=compared
        ),
        written("({a} {op} {b})", a=terms, b=terms, op=st.sampled_from(["and", "or"])),
        written("(({a} > 0) {op} ({b} > 0))", a=terms, b=terms, op=st.sampled_from(["&", "|", "^"])),
        written("(not {a})", a=terms),
        written("(-{a})", a=terms),
        written("{f}({a})", f=st.sampled_from(["abs", "bool"]), a=terms),
        written("{f}({a}, {b})", f=st.sampled_from(["min", "max"]), a=terms, b=terms | CONSTANTS),
        written("({a} in ({b}, {c}))", a=terms, b=terms, c=CONSTANTS),
        written("({a} if {c} else {b})", a=terms, b=terms | CONSTANTS, c=terms),
    )


TERMS = st.recursive(NUMBERS | TEXTS, grown, max_leaves=6)
SOURCES = TERMS | written("(NEEDS_ORACLE if {c} else {a})", c=TERMS, a=TERMS)
ROWS = st.lists(st.fixed_dictionaries(FIELDS), min_size=1, max_size=6)


class Typed:
    """Columns with an agent's `state` as codes, as a run holds them; rows have the enum's members."""

    def __init__(self, rows, names, times=1):
        self.rows, self.names = [row for row in rows for _ in range(times)], names

    def take(self, rows):
        return Typed([self.rows[i] for i in rows], self.names)

    def column(self, name):
        if name not in self.names:
            raise AttributeError(name)
        if name == "state":
            return Categories(np.array([row["state"].code for row in self.rows]), tuple(s.value for s in STATES))
        return np.array([row[name] for row in self.rows])

    def row(self, i):
        return SimpleNamespace(**{name: self.rows[i][name] for name in self.names})


def both(rows, times=1):
    return Typed(rows, AGENT, times), Typed(rows, ("relevance", "views", "is_pinned"), times)


@settings(max_examples=400, deadline=None)
@given(SOURCES, ROWS)
def test_a_guard_over_columns_gives_what_each_row_gives_and_leaves_to_rows_only_those_that_raise(source, rows):
    guard = eval(f"lambda agent, post: {source}", dict(OUTSIDE))
    agents, posts = both(rows)
    expected = [meaning(guard, agents.row(i), posts.row(i)) for i in range(len(rows))]
    values = split_values(guard, agents, posts, len(rows), few=1)
    assert values.tolist() == [BY_ROW if isinstance(value, type) else value for value in expected]


OUTCOMES = {0: SCROLLING, 1: COMPOSING, 2: (COMPOSING, SCROLLING)}


@settings(max_examples=100, deadline=None)
@given(SOURCES, ROWS, st.sampled_from([1, FEW - 1, FEW]))
def test_firing_takes_what_each_rows_value_says_and_counts_the_rows_that_raise(source, rows, times):
    guard = eval(f"lambda agent, post: {source}", dict(OUTSIDE))
    agents, posts = both(rows, times)
    n = len(rows) * times
    chart = a_chart(guard)
    found = chart.fire_many(np.full(n, EVALUATING.code), "decides", agents, posts)
    expected = [meaning(guard, agents.row(i), posts.row(i)) for i in range(n)]
    raised = Counter(value.__name__ for value in expected if isinstance(value, type))
    for taken, opened, value in zip(found.taken, found.open, expected, strict=True):
        outcome = found.transitions[taken].target if taken >= 0 else found.option_sets[opened]
        assert outcome == OUTCOMES[0 if isinstance(value, type) else value]
    assert {text.split(": ")[1]: count for text, count in chart.guard_errors.items()} == raised
    assert found.rowwise == set()


# Guards of several lines.


def by_steps(agent, post, margin=0.25):
    gap = post.relevance - agent.energy
    if agent.is_bot:
        gap *= 2
    elif agent.limit < 0:
        return False
    if gap > margin:
        return True
    return NEEDS_ORACLE if gap > 0 else None


def within(low, high):
    return lambda agent, post: low < post.relevance < high


@settings(max_examples=50, deadline=None)
@given(ROWS)
def test_lines_branches_defaults_and_closures_run_over_columns_too(rows):
    agents, posts = both(rows)
    for guard in (by_steps, within(0.2, 0.6)):
        expected = [meaning(guard, agents.row(i), posts.row(i)) for i in range(len(rows))]
        assert split_values(guard, agents, posts, len(rows), few=1).tolist() == expected


def test_python_and_numpy_divide_floats_alike_whatever_they_are():
    edges = [0.0, 0.1, 0.5, 1.0, 3.0, 7.25, 5e-324, 1e300, math.inf, math.nan]
    pairs = list(itertools.product([*edges, *(-x for x in edges)], [x for x in [*edges, *(-x for x in edges)] if x]))
    agents, posts = (ArrayColumns({"x": np.array(side)}) for side in zip(*pairs, strict=True))
    for limit in edges:
        for guard in (
            lambda agent, post, limit=limit: agent.x // post.x > limit,
            lambda agent, post, limit=limit: agent.x % post.x > limit,
            lambda agent, post, limit=limit: agent.x / post.x > limit,
        ):
            expected = [meaning(guard, agents.row(i), posts.row(i)) for i in range(len(pairs))]
            assert split_values(guard, agents, posts, len(pairs)).tolist() == expected


def test_a_field_is_in_a_tuple_with_itself_also_where_it_is_no_number():
    agents = ArrayColumns({"x": np.full(FEW, math.nan)})
    assert split_values(lambda agent, post: agent.x in (1, agent.x), agents, agents, FEW).tolist() == [1] * FEW
    assert split_values(lambda agent, post: agent.x == agent.x, agents, agents, FEW).tolist() == [0] * FEW


# What rows must do.

called = []
MOODS = {"calm": True, "angry": False}
HALF = np.float64(0.5)
HALVES = (0.25, HALF)
MODULE = SimpleNamespace(limit=1)


def counts(agent, post):
    global N_CALLS
    N_CALLS = 1
    return True


def notes(agent, post):
    called.append(1)
    return True


def writes(agent, post):
    agent.limit = 3
    return True


def puts(agent, post):
    MOODS["new"] = True
    return True


def catches(agent, post):
    try:
        return post.views > 1
    except AttributeError:
        return False


def loops(agent, post):
    n = 0
    while n < agent.limit:
        n += 1
    return n > 2


def yields(agent, post):
    yield post.views


def remembers():
    n = 0

    def guard(agent, post):
        nonlocal n
        n += 1
        return n > 1

    return guard


class Keen:
    def __call__(self, agent, post):
        return post.views > 1

    def method(self, agent, post):
        return post.views > 1


NOT_ONLY_READING = {
    "random": lambda agent, post: random.random() < post.relevance,
    "time": lambda agent, post: time.time() > post.views,
    "math": lambda agent, post: math.sqrt(abs(post.views)) > 1,
    "dict": lambda agent, post: MOODS[agent.mood],
    "dict.get": lambda agent, post: MOODS.get(agent.mood),
    "method": lambda agent, post: agent.is_interested(post),
    "is": lambda agent, post: agent.state is AgentState.IDLE,
    "is None": lambda agent, post: post is not None and post.views > 1,
    "f-string": lambda agent, post: f"{post.views}" == "1",
    "format": lambda agent, post: "{}".format(post.views) == "1",  # noqa: UP032
    "comprehension": lambda agent, post: any(post.views == n for n in (1, 2)),
    "lambda": lambda agent, post: (lambda views: views > 1)(post.views),
    "item": lambda agent, post: post["views"] > 1,
    "hidden attribute": lambda agent, post: post._views > 1,
    "inner attribute": lambda agent, post: agent._columns > 1,
    "number of numpy": lambda agent, post: post.relevance > HALF,
    "number of numpy outside": within(HALF, 1),
    "number of numpy by default": lambda agent, post, limit=HALF: post.relevance > limit,
    "number of numpy in a tuple": lambda agent, post: post.relevance in HALVES,
    "object": lambda agent, post: post.views > MODULE.limit,
    "unknown": lambda agent, post: post.views > NO_SUCH_NAME,  # noqa: F821
    "default": lambda agent, post, limits=[1]: post.views > limits[0],
    "invert": lambda agent, post: ~post.views > 1,
    "global": counts,
    "append": notes,
    "attribute": writes,
    "entry": puts,
    "try": catches,
    "loop": loops,
    "generator": yields,
    "nonlocal": remembers(),
    "callable": Keen(),
    "bound": Keen().method,
    "partial": partial(by_steps, margin=1),
    "builtin": operator.eq,
    "other guard": lambda agent, post: F.post.views(agent, post),
}


class Touched(BaseException):
    """Not to be taken for an error of a guard."""


class Untouched:
    """Columns that nobody may look at."""

    def __getattr__(self, name):
        raise AttributeError(name) if name == "overridden" else Touched(name)


@pytest.mark.parametrize("guard", NOT_ONLY_READING.values(), ids=list(NOT_ONLY_READING))
def test_what_might_do_more_than_read_is_never_called_over_columns(guard):
    assert split_values(guard, Untouched(), Untouched(), 100).tolist() == [UNABLE] * 100


def never_bound(agent, post):
    if agent.limit < 0:
        seen = 1
    return seen > 0


N = 3 * FEW
AGENTS = ArrayColumns(
    {
        "mood": np.resize(["calm", "angry", ""], N),
        "limit": np.arange(N),
        "big": np.full(N, 2**32),
        "wide": np.full(N, 0.1, np.longdouble),
    }
)
ONLY_ROWS_KNOW = {
    "misspelt": (lambda agent, post: agent.limmit > 1, AttributeError),
    "text above number": (lambda agent, post: agent.mood > 1, TypeError),
    "power": (lambda agent, post: agent.limit**2 > 9, None),
    "shift": (lambda agent, post: agent.limit << 2 > 9, None),
    "set": (lambda agent, post: agent.mood in {"calm", "sad"}, None),
    "truth of a text": (lambda agent, post: agent.mood, None),
    "text is None": (lambda agent, post: agent.mood == None, None),  # noqa: E711
    "number is None": (lambda agent, post: agent.limit == None, None),  # noqa: E711
    "texts": (lambda agent, post: agent.mood == agent.mood, None),
    "in a text": (lambda agent, post: "c" in agent.mood, None),
    "agent": (lambda agent, post: agent, None),
    "agent's truth": (lambda agent, post: not agent, None),
    "agent == None": (lambda agent, post: agent == None, None),  # noqa: E711
    "percent": (lambda agent, post: "%s" % agent.limit == "3", None),  # noqa: UP031
    "attribute of a number": (lambda agent, post: agent.limit.real > 3, None),
    "method of a column": (lambda agent, post: agent.limit.max, AttributeError),
    "long doubles": (lambda agent, post: agent.wide > 0.1, None),
    "huge constant": (lambda agent, post: agent.limit < 2**60, None),
    "product": (lambda agent, post: agent.limit * 2**49 == 0, None),
    "product of products": (lambda agent, post: agent.big * agent.big > 0, None),
    "text with a zero": (lambda agent, post: agent.mood != "\0", None),
    "sum": (lambda agent, post: agent.limit + (2**53 - 3) == 2**53 + 1, None),
    "called wrongly": (lambda agent: True, TypeError),
    "not bound": (never_bound, UnboundLocalError),
}


@pytest.mark.parametrize(("guard", "error"), ONLY_ROWS_KNOW.values(), ids=list(ONLY_ROWS_KNOW))
@pytest.mark.filterwarnings("ignore")
def test_where_columns_cannot_tell_rows_do_and_the_run_says_so(guard, error):
    assert set(split_values(guard, AGENTS, ArrayColumns({}), N).tolist()) <= {UNABLE, BY_ROW}
    chart = a_chart(guard)
    found = fired(chart, N, AGENTS)
    expected = [meaning(guard, AGENTS.row(i), SimpleNamespace()) for i in range(N)]
    targets = [found.transitions[taken].target for taken in found.taken]
    assert targets == [OUTCOMES[0 if isinstance(value, type) else value] for value in expected]
    assert {value for value in expected if isinstance(value, type)} == ({error} if error else set())
    assert len(found.rowwise) == 1


@pytest.mark.parametrize("column", [np.ones((N, 2)), np.ones(N + 1), np.ones(1), [1.0] * N, np.ones(N, complex), None])
def test_a_column_of_another_shape_or_kind_than_one_number_each_is_left_to_rows(column):
    columns = SimpleNamespace(column=lambda name: column)
    assert split_values(lambda agent, post: agent.x > 0, columns, columns, N).tolist() == [UNABLE] * N


@pytest.mark.parametrize("big", [2**53, -(2**53), 2**63])
def test_whole_numbers_that_double_precision_may_change_are_left_to_rows(big):
    numbers = np.array([1] * N + [big], np.uint64 if big >= 2**63 else np.int64)
    for columns, expected in ((ArrayColumns({"x": numbers}), UNABLE), (ArrayColumns({"x": numbers[:N]}), 1)):
        n = len(columns.arrays["x"])
        assert split_values(lambda agent, post: agent.x > 0.5, columns, columns, n).tolist() == [expected] * n


def test_a_guard_whose_name_outside_is_bound_anew_is_judged_anew():
    outside = {"limit": 1}
    guard = eval("lambda agent, post: post.views > limit", outside)
    posts = ArrayColumns({"views": np.full(N, 3)})
    assert split_values(guard, posts, posts, N).tolist() == [1] * N
    outside["limit"] = 5
    assert split_values(guard, posts, posts, N).tolist() == [0] * N
    outside["limit"] = np.int64(5)
    assert split_values(guard, posts, posts, N).tolist() == [UNABLE] * N


# Firing.


def test_rows_that_divide_by_zero_are_counted_and_spoil_only_themselves():
    chart = a_chart(lambda agent, post: post.likes / post.views > 0.4)
    found = fired(chart, N, likes=[1, 1, 0], views=[2, 0, 4])
    assert [found.transitions[taken].target for taken in found.taken[:3]] == [COMPOSING, SCROLLING, SCROLLING]
    assert chart.guard_errors == {f"{LABEL} [lambda]: ZeroDivisionError: division by zero": FEW}
    assert found.rowwise == set()


def test_a_misspelt_field_is_counted_for_every_row():
    chart = a_chart(lambda agent, post: post.views > 1 and post.relevence > 0.5)
    assert fired(chart, N, views=[1, 2, 3]).rowwise == {f"{LABEL} [lambda]"}
    [(text, count)] = chart.guard_errors.items()
    assert "AttributeError" in text
    assert "relevence" in text
    assert count == 2 * FEW


def test_a_strict_chart_lets_the_exception_of_a_row_pass_as_it_is():
    for guard in (lambda agent, post: 1 / post.views > 0.5, lambda agent, post: post.relevence > 0.5):
        with pytest.raises((ZeroDivisionError, AttributeError), match=r"division by zero|relevence"):
            fired(a_chart(guard, strict=True), N, views=[1, 0])


def test_few_rows_are_asked_one_by_one_without_being_called_unable():
    posts = ArrayColumns({"views": np.full(FEW, 2)})
    assert split_values(lambda agent, post: post.views > 1, posts, posts, FEW - 1).tolist() == [BY_ROW] * (FEW - 1)
    found = fired(a_chart(lambda agent, post: post.views > 1), FEW - 1, views=[1, 2])
    assert found.taken.tolist() == [1, 0] * (FEW // 2 - 1) + [1]
    assert found.rowwise == set()
    assert fired(a_chart(lambda agent, post: MOODS.get(post.views)), 1, views=[1]).rowwise == {f"{LABEL} [lambda]"}


class Lying(ArrayColumns):
    """Columns whose rows say something else."""

    def take(self, rows):
        return Lying(super().take(rows).arrays)

    def row(self, i):
        return SimpleNamespace(views=0)


def test_a_guard_that_rows_contradict_runs_by_row_from_then_on():
    chart = a_chart(lambda agent, post: post.views > 1)
    states, truth = np.full(N, EVALUATING.code), ArrayColumns({"views": np.full(N, 3)})
    for posts, target, labels in ((Lying(truth.arrays), SCROLLING, 1), (truth, COMPOSING, 1)):
        found = chart.fire_many(states, "decides", ArrayColumns({}), posts)
        assert {found.transitions[taken].target for taken in found.taken} == {target}
        assert len(found.rowwise) == labels
    other = chart.replaced(oracle_enabled=True)
    assert other.fire_many(states, "decides", ArrayColumns({}), truth).rowwise == set()


class Partly(ArrayColumns):
    """Agents of whom each third one tells of itself."""

    def take(self, rows):
        return Partly(super().take(rows).arrays)

    def overridden(self):
        return self.arrays["number"] % 3 == 0


def test_agents_that_tell_of_themselves_are_asked_by_row():
    agents = Partly({"number": np.arange(N)})
    values = split_values(lambda agent, post: agent.number > 3, agents, agents, N)
    assert values.tolist() == [BY_ROW if i % 3 == 0 else int(i > 3) for i in range(N)]


# In a world.


def interested(agent, post):
    if post.relevance > agent.high_threshold:
        return True
    return NEEDS_ORACLE if post.relevance >= agent.low_threshold else False


def by_method(agent, post):
    return agent.is_interested(post)


def own_chart(wrap):
    arrows = [
        Transition("decides", EVALUATING, COMPOSING, wrap(interested)),
        Transition(
            "decides", EVALUATING, SCROLLING, wrap(lambda agent, post: not post.relevance > agent.high_threshold)
        ),
        Transition(
            "compose_done",
            COMPOSING,
            "engaging_like",
            wrap(lambda agent, post: agent.pending_action == "like" or agent.ticks_in_state // 2 > 3),
        ),
        Transition(
            "compose_done",
            COMPOSING,
            "engaging_reply",
            wrap(
                lambda agent, post: agent.pending_action == "reply" and post.kind != "reply" and agent.state != "idle"
            ),
        ),
        Transition("compose_done", COMPOSING, "engaging_reshare"),
    ]
    kept = [t for t in build_chart().transitions if t.trigger not in ("decides", "compose_done")]
    return Statechart(AgentState, [*kept, *arrows], AgentState.IDLE, timeouts={AgentState.RESTING: 2})


class Plainly:
    """A guard in an object, which no one looks into."""

    def __init__(self, guard):
        self.guard = guard

    def __call__(self, agent, post):
        return self.guard(agent, post)


WORLD = {"agents_n": 200, "agents_band": 0.3, "agents_activity": 0.9}


def test_a_run_by_columns_is_the_run_by_rows_and_names_no_guard():
    columns = ran(small(statechart_chart=named(own_chart(lambda guard: guard), "own"), **WORLD), 4)
    rows = ran(small(statechart_chart=named(own_chart(Plainly), "plain"), **WORLD), 4)
    assert [name for name in differing(columns, rows) if name != "guard errors"] == []
    assert columns.totals["open"] > 20
    assert columns.chart.guard_errors == rows.chart.guard_errors == {}
    assert columns.rowwise == set()
    assert len(rows.rowwise) == 4


def test_a_run_names_the_guards_that_it_had_to_ask_row_by_row():
    arrows = [Transition("decides", EVALUATING, COMPOSING, by_method), Transition("decides", EVALUATING, SCROLLING)]
    kept = [t for t in build_chart().transitions if t.trigger != "decides"]
    chart = Statechart(AgentState, [*kept, *arrows], AgentState.IDLE, timeouts={AgentState.RESTING: 2})
    assert ran(small(statechart_chart=named(chart, "methods")), 2).rowwise == {f"{LABEL} [by_method()]"}


class Introvert(SocialAgent):
    """Says of itself what the columns do not know."""

    extraversion = 0.0


def test_a_guard_reads_what_an_agent_of_ones_own_class_says_of_itself():
    sociable = Transition("feed_ready", "idle", "scrolling", lambda agent, post: agent.extraversion > 0)
    kept = [t for t in build_chart().transitions if t.trigger != "feed_ready"]
    chart = Statechart(AgentState, [*kept, sociable], AgentState.IDLE, timeouts={AgentState.RESTING: 2})
    model = small(statechart_chart=named(chart, "sociable"), agents_activity=1.0, agents_activity_sigma=0.0)
    for row in (3, 4):
        Introvert(model, row)
    model.step()
    moved = {move["agent"] for move in model.recorder.tables["transitions"] if move["trigger"] == "feed_ready"}
    assert moved == set(range(30)) - {3, 4}
    assert model.rowwise == set()
