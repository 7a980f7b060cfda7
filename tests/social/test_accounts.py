"""Accounts of several kinds: they shift no other draw, follow their own rules or chart, and are counted by kind."""

import sys
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from random_worlds import decider
from worlds import differing, ran, small

from prism_mesa import Config, run
from prism_mesa.analysis.explain.why import why
from prism_mesa.api.runs import branch
from prism_mesa.errors import ConfigError, NotedWarning
from prism_mesa.runs.replay import replay
from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.behavior import IDLE, build_chart
from prism_mesa.social.model import SocialModel
from prism_mesa.statechart import AgentState, Statechart, Transition

SOURCES = {"group": {"of": "agent", "values": ["source", "rest"], "share": [0.3, 0.7]}}
BOTS = {"name": "bots", "n": 6, "activity": 1.0, "post_rate": 0.0, "follows": 12, "followers": 5}
ONLY_SOURCES = {"reshare": "post.author_group == 'source'"}


def world(accounts, **params):
    values = {"agents_n": 60, "agents_activity": 0.6, "agents_post_rate": 0.5, "attributes": SOURCES} | params
    return ran(small(accounts=accounts, **values), 4)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    config = Config(
        rounds=12,
        agents={"n": 80, "activity": 0.5, "post_rate": 0.5},
        reasoner={"kind": "rule"},
        attributes=SOURCES,
        accounts=[
            BOTS | {"engages": ONLY_SOURCES},
            {"name": "fans", "n": 3, "activity": 1.0, "engages": {"like": "post.author_account == 'agent'"}},
        ],
    )
    return run(config, out=tmp_path_factory.mktemp("accounts"))


def table(result, name):
    return pd.read_parquet(result.run_dir / f"{name}.parquet")


def test_accounts_have_the_last_rows_their_rates_and_their_follows(recorded):
    agents, bots = table(recorded, "agents"), table(recorded, "agents").iloc[80:86]
    assert agents["account"].tolist() == ["agent"] * 80 + ["bots"] * 6 + ["fans"] * 3
    assert set(bots["activity"]) == {1.0}
    assert set(bots["post_rate"]) == {0.0}
    assert set(bots["followees"]) == {12}
    assert set(bots["followers"]) == {5}
    assert bots["id"].tolist() == [f"bots {k}" for k in range(1, 7)]


def test_an_account_engages_with_what_its_expression_selects_and_passes_by_all_else(recorded):
    engaged, posts, agents = (table(recorded, name) for name in ("engagements", "posts", "agents"))
    author = posts.set_index("post")["author"][engaged["post"]].to_numpy()
    by_bots = (agents["account"][engaged["agent"]] == "bots").to_numpy()
    assert by_bots.sum() > 20
    assert set(engaged["action"][by_bots]) == {"reshare"}
    assert set(agents["group"][author[by_bots]]) == {"source"}
    seen = table(recorded, "impressions")
    of_bots = seen[seen["agent"].between(80, 85)]
    groups = agents["group"][posts.set_index("post")["author"][of_bots["post"]]]
    reshared = set(zip(engaged["agent"][by_bots], engaged["root"][by_bots], strict=True))
    first = of_bots[(groups == "source").to_numpy()].drop_duplicates(["agent", "root"])
    missed = [pair for pair in zip(first["agent"], first["root"], strict=True) if pair not in reshared]
    assert len(missed) < 0.1 * len(reshared)  # the end of a round breaks off a few


def test_states_are_counted_by_account(recorded):
    by_kind, rounds = table(recorded, "accounts"), table(recorded, "ticks")
    states = [name for name in by_kind.columns if name not in ("round", "account")]
    ticks = rounds["tick"].max()
    members = by_kind.groupby(["round", "account"], observed=True)[states].sum().sum(axis=1)
    assert (members.unstack() == {"agent": 80 * ticks, "bots": 6 * ticks, "fans": 3 * ticks}).all(axis=None)
    assert by_kind.groupby("round")[states].sum().equals(rounds.groupby("round")[states].sum())
    assert by_kind.query("account == 'bots'")["engaging_like"].sum() == 0


def test_no_draw_of_another_agent_shifts():
    alone, beside = world([]), world([BOTS, {"name": "pages", "n": 3}])
    first, second = alone.population, beside.population
    for column in ("interests", "traits", "propensities"):
        assert np.array_equal(getattr(first, column), getattr(second, column)[:60])
    assert np.array_equal(first.numbers, second.numbers[:, :60])
    assert np.array_equal(first.attributes[:, 0], second.attributes[:60, 0])
    followers = beside.network.edges()
    is_other = (followers[0] < 60) & (followers[1] < 60)
    pairs = sorted(zip(*(column[is_other].tolist() for column in followers), strict=True))
    assert pairs == sorted(zip(*(column.tolist() for column in alone.network.edges()), strict=True))


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_a_chart_of_its_own_that_is_the_chart_of_all_changes_nothing(scheduler):
    named = BOTS | {"chart": "prism_mesa.social.behavior:social_chart"}
    assert not differing(world([BOTS], scheduler=scheduler), world([named], scheduler=scheduler))


def test_each_kind_follows_its_own_chart():
    model = world([BOTS | {"chart": "prism_mesa.social.behavior:viral_chart"}], statechart_oracle_enabled=False)
    agents = list(model.agents)
    assert [agents[row].chart.name for row in (0, 59, 60, 65)] == ["social", "social", "viral", "viral"]
    newcomer = SocialAgent(model)
    assert newcomer.chart is agents[0].chart


def test_of_several_true_expressions_propensities_draw_one(tmp_path):
    always, never = "post.likes >= 0", "post.likes < 0"
    config = Config(
        rounds=6,
        agents={
            "n": 60,
            "post_rate": 0.9,
            "activity": 1.0,
            "propensity_sigma": 0,
            "like": 0.3,
            "reply": 0.6,
            "reshare": 0.1,
        },
        reasoner={"kind": "rule"},
        accounts=[BOTS | {"n": 60, "engages": {"like": always, "reply": never, "reshare": always}}],
    )
    engaged = table(run(config, out=tmp_path), "engagements")
    actions = engaged[engaged["agent"] >= 60]["action"].value_counts()
    n = actions["like"] + actions["reshare"]
    assert n == actions.sum() > 500
    assert actions["like"] / n == pytest.approx(0.75, abs=3 * (0.75 * 0.25 / n) ** 0.5)


@pytest.mark.parametrize(
    ("accounts", "where"),
    [
        ([BOTS | {"engages": {"like": "post.likez > 3"}}], "accounts: 0: engages.like: post.likez"),
        ([BOTS, BOTS], "bots"),
        ([BOTS | {"engages": {"share": "post.likes > 3"}}], "engages"),
        ([BOTS | {"chart": "a:b", "engages": {"like": "post.likes > 3"}}], "engages and chart"),
        ([BOTS | {"chart": "nowhere:chart"}], "accounts: 0: chart"),
        ([BOTS | {"engages": {"like": "agent.state == 'idle'"}}], "agent.state"),
    ],
)
def test_what_cannot_be_is_refused_where_it_stands(accounts, where):
    with pytest.raises((ConfigError, ValueError), match=where):
        SocialModel(accounts=accounts, agents_n=30)


def test_more_follows_than_agents_are_warned_about():
    with pytest.warns(match="follows: 12 is more than the 8 other agents"):
        model = SocialModel(accounts=[BOTS | {"followers": 3}], agents_n=8, network_mean_degree=3)
    assert set(model.network.n_followees[8:]) == {8}


def test_accounts_join_a_graph_from_a_file_and_branch_and_replay_alike(tmp_path):
    edges = tmp_path / "edges.csv"
    edges.write_text("src,dst\n" + "\n".join(f"u{k},u{(k * 7 + 1) % 40}" for k in range(40)))
    accounts = [BOTS | {"engages": {"reshare": "post.likes >= 0"}}]
    config = Config(rounds=6, network={"edges": str(edges)}, reasoner={"kind": "rule"}, accounts=accounts)
    whole = run(config, out=tmp_path / "whole", pictures=False)
    assert table(whole, "agents")["followees"].tolist()[-6:] == [12] * 6
    branched = branch(whole.run_dir, 4, ["feed.mode=random"], out=tmp_path / "branched", pictures=False)
    for name in ("impressions", "accounts", "engagements"):
        first, second = (
            rows[rows["round"] < 4].reset_index(drop=True) for rows in (table(whole, name), table(branched, name))
        )
        pd.testing.assert_frame_equal(first, second)
    assert replay(whole.run_dir).equal


@pytest.mark.parametrize("scheduler", ["columns", "mesa"])
def test_effects_above_0_leave_alone_what_expressions_decide(scheduler):
    people = {"agents_threshold_mean": 1, "agents_threshold_sd": 0, "agents_band": 0, "utility_sensitivity": 0.01}
    accounts = [BOTS | {"engages": {"reshare": "post.likes >= 0"}}]
    plain, raised, lowered = (
        world(
            accounts,
            **people,
            agents_hours=None,
            scheduler=scheduler,
            interventions=[{"at": 0, "label": {"effect": e}}],
        )
        for e in ({"reply": -1.0}, {"like": 1.0}, {"reshare": -5.0})
    )
    assert plain.totals["reshares"] > 20
    assert raised.recorder.tables["engagements"] == plain.recorder.tables["engagements"]
    assert lowered.totals["reshares"] < 0.5 * plain.totals["reshares"]


def test_errors_of_guards_of_accounts_are_in_the_summary(tmp_path, monkeypatch):
    module = ModuleType("charts_of_accounts")
    module.raising = build_chart(engages=lambda _, post: 1 / 0 if post.likes > 0 else True)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    agents = {"n": 40, "post_rate": 0.5, "hours": None, "threshold_mean": 0}
    accounts = [BOTS | {"chart": "charts_of_accounts:raising"}]
    config = Config(rounds=6, agents=agents, reasoner={"kind": "rule"}, accounts=accounts)
    with pytest.warns(NotedWarning, match="ZeroDivisionError"):
        result = run(config, out=tmp_path, pictures=False)
    [times] = result.summary["guard_errors"].values()
    assert times > 0


def test_an_attribute_of_your_own_named_account_is_refused():
    for declared in ({"of": "post", "values": ["agent", "x"]}, {"of": "agent", "values": ["agent", "x"]}):
        with pytest.raises(ConfigError, match="attributes: account"):
            SocialModel(accounts=[BOTS], agents_n=30, attributes={"account": declared})


def test_notes_on_files_are_about_the_other_agents(tmp_path):
    edges, profiles = tmp_path / "edges.csv", tmp_path / "profiles.csv"
    edges.write_text("src,dst\n" + "\n".join(f"u{k},u{(k + 1) % 20}" for k in range(20)))
    profiles.write_text("agent,post_rate\n" + "\n".join(f"u{k},0.5" for k in range(20)))
    files = {"network_edges": str(edges), "agents_profiles": str(profiles), "agents_post_rate": 0.2}

    def notes(n, **account):
        return SocialModel(accounts=[{"name": "pages", "n": 4} | account], agents_n=n, **files).notes

    assert not [note for note in notes(20) if note.startswith("agents.")]
    with pytest.warns(NotedWarning, match=r"agents\.n: .* 20 agents; agents\.post_rate: no effect"):
        notes(24, post_rate=0.1)


def test_ids_of_accounts_are_not_those_of_agents(tmp_path):
    edges = tmp_path / "edges.csv"
    edges.write_text("src,dst\nbots 2,u1\nu1,u2\n")
    with pytest.raises(ConfigError, match=r"accounts: .*'bots 2'"):
        SocialModel(accounts=[BOTS], network_edges=str(edges))


def test_an_explanation_draws_the_action_among_those_that_can_be_chosen(recorded):
    engaged = table(recorded, "engagements").query("80 <= agent < 86")
    row = int(engaged["agent"].iloc[0])
    moves = [move for part in why(recorded.run_dir, str(row)).rounds for move in part.moves if move.action]
    assert moves
    assert all(move.action_shares == {"reshare": 1.0} for move in moves)


def test_a_distilled_model_need_not_know_the_charts_of_accounts():
    reasoner = decider(Statechart(AgentState, [Transition("feed_ready", IDLE, AgentState.SCROLLING)], IDLE), share=0)
    model = world([BOTS | {"engages": ONLY_SOURCES}], reasoner=reasoner)
    assert model.totals["reshares"] > 0
