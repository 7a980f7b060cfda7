"""Callables as guards: over many rows each gives what it gives for every row alone, and the run names it."""

from dataclasses import fields

import numpy as np
import pytest
from worlds import differing, named, plain, ran, small

from prism_mesa.domain import Post
from prism_mesa.runs.social import run
from prism_mesa.social.behavior import IS_INTERESTED, build_chart
from prism_mesa.social.round.columns import PostColumns
from prism_mesa.statechart import NEEDS_ORACLE, AgentState, Statechart, Transition
from prism_mesa.view.summaries import run_lines

EVALUATING, COMPOSING, SCROLLING = AgentState.EVALUATING, AgentState.COMPOSING, AgentState.SCROLLING
LABEL = "evaluating --decides--> composing"


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
    assert vars(view).keys() == {field.name for field in fields(Post)}
