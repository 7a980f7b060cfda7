"""What does not matter to an agent does not change its draws, and nobody meets a post twice."""

import numpy as np
import pytest
from worlds import ran, small

from prism_mesa import Statechart, Transition
from prism_mesa.errors import AgentError
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import social_chart
from prism_mesa.social.state.outcomes import cascades
from prism_mesa.statechart import AgentState, F

LIVELY = {"agents_activity": 1.0, "agents_post_rate": 0.4, "agents_threshold_mean": 0.35, "agents_reshare": 1.0}


def with_first(*transitions):
    return Statechart(
        AgentState,
        [*transitions, *social_chart.transitions],
        AgentState.IDLE,
        timeouts=social_chart.timeouts,
        invariant=social_chart.invariant,
    )


@pytest.mark.parametrize("mode", ["chronological", "x_algo"])
def test_no_agent_reads_or_reshares_a_root_twice_however_long_the_run(mode):
    model = ran(small(feed_mode=mode, **LIVELY), 25)
    read = [
        (row["agent"], int(model.posts.root[row["post"]]))
        for row in model.recorder.tables["transitions"]
        if row["trigger"] == "sees_post"
    ]
    assert len(read) == len(set(read)) > 500
    trees = cascades(model.posts.parent, model.posts.root, model.posts.kind)
    assert 3 < trees["size"].max() <= 30
    assert model.posts.likes.max() < 30


def test_a_transition_that_never_fires_changes_nobodys_draws():
    never = Transition("never_fired", AgentState.IDLE, AgentState.RESTING)
    plain, longer = ran(small(agents_band=0.3), 6), ran(small(agents_band=0.3, chart=with_first(never)), 6)
    assert plain.totals == longer.totals
    assert plain.totals["open"] > 20


def test_an_agent_whom_nobody_follows_changes_nobodys_chronological_feed():
    plain, joined = small(), small()
    SocialAgent(joined, post_rate=1.0, activity=0.0)
    for _ in range(6):
        plain.step()
        joined.step()
        texts = [
            [(int(m.posts.author[p]), int(m.posts.text_id[p])) for p in m.population.feed[i, : m.population.n_read[i]]]
            for m in (plain, joined)
            for i in range(30)
        ]
        assert texts[:30] == texts[30:]


def test_scheduled_posts_keep_their_order_within_a_round(tmp_path):
    lines = [f"{i % 5},text number {i},2026-01-01 {i // 60:02}:{i % 60:02}" for i in range(200)]
    (tmp_path / "posts.csv").write_text("\n".join(["author,text,created_at", *reversed(lines)]))
    model = ran(small(posts_file=str(tmp_path / "posts.csv"), agents_post_rate=0.0, rounds=4), 4)
    first = np.flatnonzero((model.posts.kind == 0) & (model.posts.round == 0))
    assert [model.posts.texts[model.posts.text_id[i]] for i in first] == [f"text number {i}" for i in range(50)]


def test_setting_a_trait_counts_in_columns_and_rows_alike():
    chart = with_first(Transition("feed_ready", AgentState.IDLE, AgentState.RESTING, guard=F.agent.extraversion > 4.9))
    model = small(chart=chart, agents_activity=1.0, agents_activity_sigma=0.0)
    model.agent(3).extraversion = 5.0
    model.step()
    assert model.agent(3).traits["extraversion"] == 5.0
    assert model.agent(3).state_history[0].to_state is AgentState.RESTING
    with pytest.raises(AgentError, match=r"extraversion: 6 is not in 1\.\.5"):
        model.agent(3).extraversion = 6


def test_a_class_that_overrides_what_guards_read_is_asked_and_not_its_columns():
    class Picky(SocialAgent):
        @property
        def low_threshold(self):
            return 1.0

    model = small(**LIVELY)
    for row in range(30):
        Picky(model, row)
    ran(model, 3)
    assert model.totals["impressions"] > 50
    assert model.totals["likes"] + model.totals["reshares"] == 0


def test_draws_about_a_written_post_do_not_depend_on_what_others_write():
    def keys(writers):
        model = ran(small(agents_activity=0.0), 1)
        for row in writers:
            for text in ("One", "Two"):
                model.agent(row).write(text)
        model.step()
        own = np.flatnonzero((model.posts.author == 7) & (model.posts.written == 1) & (model.posts.round == 2))
        return model.posts.key[own].tolist()

    alone, among_others = keys([7]), keys([9, 7, 3])
    assert alone == among_others
    assert len(set(alone)) == 2
