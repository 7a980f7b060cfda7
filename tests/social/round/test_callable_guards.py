"""Callables as guards: over many rows each gives what it gives for every row alone, and the run names it."""

from collections import Counter
from dataclasses import fields
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import differing, named, plain, ran, small

from prism_mesa.domain import Post
from prism_mesa.runs.social import run
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import IS_INTERESTED, build_chart
from prism_mesa.social.round.columns import PostColumns
from prism_mesa.statechart import NEEDS_ORACLE, STATES, AgentState, ArrayColumns, F, Statechart, Transition
from prism_mesa.statechart.batch import BLOCK
from prism_mesa.view.summaries import run_lines

EVALUATING, COMPOSING, SCROLLING = AgentState.EVALUATING, AgentState.COMPOSING, AgentState.SCROLLING
LABEL = "evaluating --decides--> composing"
N = 48


def meaning(guard, agent, post):
    """Return 0, 1, 2 (the oracle is needed) for one row, or the kind of error that it raises."""
    try:
        value = guard(agent, post)
        return 2 if isinstance(value, str) and value == "needs_oracle" else int(bool(value))
    except Exception as error:
        return type(error)


def a_chart(guard, **settings_):
    transitions = [Transition("decides", EVALUATING, COMPOSING, guard), Transition("decides", EVALUATING, SCROLLING)]
    return Statechart(AgentState, transitions, "idle", **settings_)


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


class Listed:
    """Rows as they are; nothing of them is held as a column."""

    def __init__(self, rows, names):
        self.rows, self.names = rows, names

    def take(self, rows):
        return Listed([self.rows[i] for i in rows], self.names)

    def column(self, name):
        raise AttributeError(name)

    def row(self, i):
        return SimpleNamespace(**{name: self.rows[i][name] for name in self.names})


OUTCOMES = {0: SCROLLING, 1: COMPOSING, 2: (COMPOSING, SCROLLING)}


def assert_what_each_row_gives(guard, rows):
    agents, posts = Listed(rows, AGENT), Listed(rows, ("relevance", "views", "is_pinned"))
    chart = a_chart(guard)
    found = chart.fire_many(np.full(len(rows), EVALUATING.code), "decides", agents, posts)
    expected = [meaning(guard, agents.row(i), posts.row(i)) for i in range(len(rows))]
    raised = Counter(value.__name__ for value in expected if isinstance(value, type))
    for taken, opened, value in zip(found.taken, found.open, expected, strict=True):
        outcome = found.transitions[taken].target if taken >= 0 else found.option_sets[opened]
        assert outcome == OUTCOMES[0 if isinstance(value, type) else value]
    assert {text.split(": ")[1]: count for text, count in chart.guard_errors.items()} == raised
    assert len(found.row_by_row_guards) == 1


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(SOURCES, ROWS)
def test_firing_takes_what_each_row_gives_and_counts_the_rows_that_raise(source, rows):
    assert_what_each_row_gives(eval(f"lambda agent, post: {source}", dict(OUTSIDE)), rows)


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


def loops(agent, post):
    n = 0
    while n < agent.limit:
        n += 1
    return n > 2


class Keen:
    def method(self, agent, post):
        return post.views > 1


@settings(max_examples=25, deadline=None)
@given(ROWS)
def test_a_guard_may_be_anything_that_can_be_called(rows):
    for guard in (by_steps, within(0.2, 0.6), loops, Keen().method, lambda agent, post: {"calm": True}[agent.mood]):
        assert_what_each_row_gives(guard, rows)


@pytest.mark.parametrize("n", [1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK + 1])
def test_rows_are_asked_once_each_and_in_their_order_however_many_there_are(n):
    seen = []
    chart = a_chart(lambda agent, post: seen.append((agent.number, post.views)) or post.views % 3 == 0)
    found = fired(chart, n, ArrayColumns({"number": np.arange(n)}), views=np.arange(n))
    assert seen == [(i, i) for i in range(n)]
    assert found.taken.tolist() == [int(i % 3 > 0) for i in range(n)]


def test_a_guard_whose_name_outside_is_bound_anew_goes_by_the_new_value():
    outside = {"limit": 1}
    chart = a_chart(eval("lambda agent, post: post.views > limit", outside))
    assert fired(chart, 3, views=[3]).taken.tolist() == [0, 0, 0]
    outside["limit"] = 5
    assert fired(chart, 3, views=[3]).taken.tolist() == [1, 1, 1]


# Guards that raise.


def test_rows_that_divide_by_zero_are_counted_and_spoil_only_themselves():
    chart = a_chart(lambda agent, post: post.likes / post.views > 0.4)
    found = fired(chart, N, likes=[1, 1, 0], views=[2, 0, 4])
    assert [found.transitions[taken].target for taken in found.taken[:3]] == [COMPOSING, SCROLLING, SCROLLING]
    assert chart.guard_errors == {f"{LABEL} [lambda]: ZeroDivisionError: division by zero": N // 3}


def test_a_misspelt_field_is_counted_for_every_row_that_reads_it():
    chart = a_chart(lambda agent, post: post.views > 1 and post.relevence > 0.5)
    assert set(fired(chart, N, views=[1, 2, 3]).taken.tolist()) == {1}
    [(text, count)] = chart.guard_errors.items()
    assert "AttributeError" in text
    assert "relevence" in text
    assert count == 2 * N // 3


def test_a_strict_chart_lets_the_exception_of_a_row_pass_as_it_is():
    for guard in (lambda agent, post: 1 / post.views > 0.5, lambda agent, post: post.relevence > 0.5):
        with pytest.raises((ZeroDivisionError, AttributeError), match=r"division by zero|relevence"):
            fired(a_chart(guard, strict=True), N, views=[1, 0])


# In a world.


def interested(agent, post):
    if post.relevance > agent.high_threshold:
        return True
    return NEEDS_ORACLE if post.relevance >= agent.low_threshold else False


def by_method(agent, post):
    return agent.is_interested(post)


def decided_by(guard):
    transitions = [Transition("decides", EVALUATING, COMPOSING, guard), Transition("decides", EVALUATING, SCROLLING)]
    kept = [t for t in build_chart().transitions if t.trigger != "decides"]
    return Statechart(AgentState, [*kept, *transitions], AgentState.IDLE, timeouts={AgentState.RESTING: 2})


def own_chart():
    transitions = [
        Transition("decides", EVALUATING, COMPOSING, interested),
        Transition("decides", EVALUATING, SCROLLING, lambda agent, post: not post.relevance > agent.high_threshold),
        Transition(
            "compose_done",
            COMPOSING,
            "engaging_like",
            lambda agent, post: agent.pending_action == "like" or agent.ticks_in_state // 2 > 3,
        ),
        Transition(
            "compose_done",
            COMPOSING,
            "engaging_reply",
            lambda agent, post: agent.pending_action == "reply" and post.kind != "reply" and agent.state != "idle",
        ),
        Transition("compose_done", COMPOSING, "engaging_reshare"),
    ]
    kept = [t for t in build_chart().transitions if t.trigger not in ("decides", "compose_done")]
    return Statechart(AgentState, [*kept, *transitions], AgentState.IDLE, timeouts={AgentState.RESTING: 2})


WORLD = {"agents_n": 200, "agents_band": 0.3, "agents_activity": 0.9}
SAYS_HOW = "this guard is a Python callable, evaluated agent by agent; write it as an expression over F"


@pytest.mark.slow
def test_callables_do_the_same_whether_agents_step_by_themselves_or_all_together():
    together = ran(small(statechart_chart=named(own_chart(), "together"), **WORLD), 4)
    alone = ran(small(statechart_chart=named(own_chart(), "alone"), scheduler="mesa", **WORLD), 4)
    assert [name for name in differing(together, alone) if name != "guard errors"] == []
    assert together.totals["open"] > 20
    assert together.chart.guard_errors == alone.chart.guard_errors == {}
    assert len(together.row_by_row_guards) == 4


def test_a_callable_does_what_the_same_guard_does_as_an_expression_which_is_not_named():
    compared = lambda agent, post: post.relevance > agent.high_threshold  # noqa: E731 - as a user may write it
    models = [
        ran(small(statechart_chart=named(decided_by(guard), f"way{i}"), **WORLD), 4)
        for i, guard in enumerate((IS_INTERESTED, compared, by_method))
    ]
    assert [differing(models[0], other) for other in models[1:]] == [[], []]
    labels = [set(), {f"{LABEL} [lambda]"}, {f"{LABEL} [by_method()]"}]
    assert [model.row_by_row_guards for model in models] == labels
    assert [[note for note in model.notes if SAYS_HOW in note] != [] for model in models] == [False, True, True]


def test_a_run_names_each_callable_once_and_says_how_to_go_faster(tmp_path):
    result = run(plain({"agents": {"n": 60}, "rounds": 3}), out=tmp_path, chart=decided_by(by_method))
    assert result.summary["guards_by_row"] == [f"{LABEL} [by_method()]"]
    [line] = [line for line in run_lines(result.summary) if "by_method" in str(line)]
    assert SAYS_HOW in str(line)


def test_an_expression_that_reads_what_no_column_holds_is_named_with_the_reason():
    model = small(chart=decided_by(F.agent.agent_id != "none"), agents_activity=1.0)
    for _ in range(3):
        model.step()
    [note] = [note for note in model.notes if LABEL in note]
    assert "this guard was evaluated agent by agent: it reads a field that is no column" in note


def test_a_block_of_posts_holds_what_each_of_them_is_to_its_reader():
    model = ran(small(agents_n=200), 3)
    readers = np.arange(200)
    posts = np.where(readers % 5 == 0, -1, readers % len(model.posts))
    columns = PostColumns(model.platform, readers, posts)
    rows = zip(posts.tolist(), readers.tolist(), strict=True)
    assert [columns.row(i) for i in range(200)] == [model.post(post, reader) for post, reader in rows]
    assert columns.row(0) is None
    view = columns.row(1)
    assert view == Post(**vars(view))
    assert list(vars(view)) == [field.name for field in fields(Post)]


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
    assert model.row_by_row_guards == {"idle --feed_ready--> scrolling [lambda]"}
