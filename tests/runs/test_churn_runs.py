"""Runs in which agents come and go, with all else on: their table, what is told, and that they repeat and branch."""

import numpy as np
import pytest
from killed_runs import all_bytes, images
from small_runs import small, table_bytes

from prism_mesa import measure, open_run, replay
from prism_mesa.analysis.explain.report import report_lines
from prism_mesa.analysis.explain.why import why
from prism_mesa.api.runs import branch, resume, run
from prism_mesa.errors import PrismWarning
from prism_mesa.runs.archive import RunRecords
from prism_mesa.social.model import SocialModel
from prism_mesa.statechart import F
from prism_mesa.studies.measures.curves import run_curves
from prism_mesa.studies.measures.finished import finished_run
from prism_mesa.view.summaries import run_lines

QUIET = {"pictures": False}
RATES = {"follow": 0.2, "follow_back": 0.4, "triad": 0.2, "unfollow": 0.1, "mute": 0.02, "block": 0.02, "report": 0.1}
CHURN = {"waiting": 0.4, "join": 0.3, "leave": 0.2, "back": 0.3}
ROUNDS = 6
near_in_leaning = F.post.relevance + F.post.author_leaning * F.agent.leaning - 0.05 * F.post.age


def world(**more):
    on = {"network.mean_degree": 6, "network.dynamics": "live"} | {f"network.rates.{k}": v for k, v in RATES.items()}
    on |= {"feed.mode": f"{__name__}:near_in_leaning", "feed.candidates.out_of_network": 3}
    on |= {f"agents.churn.{name}": rate for name, rate in CHURN.items()}
    beside = {
        "attributes": {"leaning": {"of": "agent", "range": [-1, 1]}},
        "interventions": [{"at": 2, "until": 3, "set": {"agents.churn.leave": 0.5, "network.rates.follow": 0.9}}],
    }
    return small(**{"network": {}, "agents.n": 40, "rounds": ROUNDS, **on, **more}) | beside


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A whole run, and the folder of the same as it was killed after five rounds."""
    out, to = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("to")
    whole = run(world(checkpoint_every=2), out=out, on_round=images(out, to, (5,)), **QUIET)
    return whole, to / "killed-5"


def test_with_all_of_it_on_a_run_repeats_goes_on_and_branches_with_the_same_bytes(made, tmp_path):
    whole, killed = made
    assert replay(whole.run_dir).equal
    assert all_bytes(resume(killed, **QUIET).run_dir) == all_bytes(whole.run_dir)
    assert all_bytes(branch(whole, 3, out=tmp_path, **QUIET).run_dir) == all_bytes(whole.run_dir)
    two = run(world(threads=2), out=tmp_path, **QUIET)
    assert table_bytes(two.run_dir) == table_bytes(whole.run_dir)


def test_a_branch_may_let_agents_leave_where_nobody_did(tmp_path):
    quiet = small(checkpoint_every=1, rounds=4)
    leaves = {"agents.churn.leave": 0.3}
    before = run(quiet, out=tmp_path, **QUIET)
    found = branch(before, 2, leaves, out=tmp_path, **QUIET)
    usual = run(quiet | {"interventions": [{"at": 2, "set": leaves}]}, out=tmp_path, **QUIET)
    assert all_bytes(found.run_dir) == all_bytes(usual.run_dir)
    assert found.summary["churn"] == usual.summary["churn"]
    assert found.table("churn")["round"].unique().tolist() == [2, 3]
    assert "churn" not in before.summary
    assert "churn.parquet" not in all_bytes(before.run_dir)


def stays_by_hand(table, present, rounds):
    """Return (how long, whether it has ended) of each stay, one agent after the other."""
    found = []
    for agent, is_there in enumerate(present):
        own = [(row.round, row.event) for row in table[table["agent"] == agent].itertuples()]
        if not own:
            found += [(rounds, False)] if is_there else []
            continue
        began = None if own[0][1] == "join" else 0
        for round_, event in own:
            if event in ("join", "back"):
                began = round_
            else:
                found.append((round_ - began, True))
                began = None
        found += [(rounds - began, False)] if began is not None else []
    return found


def test_measures_and_the_summary_say_what_the_table_says(made):
    whole = made[0]
    table, agents, summary = whole.table("churn"), whole.table("agents"), whole.summary
    counts = table["event"].value_counts()
    churn, ticks = summary["churn"], whole.table("ticks").groupby("round").first().drop(columns="tick").sum(axis=1)
    assert churn["events"] == {"join": counts["join"], "leave": counts["leave"], "back": counts["back"], "removed": 0}
    assert (churn["present_first"], churn["present_last"], churn["rows"]) == (ticks[0], ticks[ROUNDS - 1], 40)
    assert summary["agents"] == agents["present"].sum() == ticks[ROUNDS - 1]
    found = measure(whole, ["share_there", "joined_per_round", "median_stay", "gini_followers", "followees_mean"])
    assert found["share_there"] == pytest.approx(ticks.mean() / 40)
    assert found["joined_per_round"] == pytest.approx(counts["join"] / ROUNDS)
    stays = stays_by_hand(table, agents["present"], ROUNDS)
    share, lasts = 1.0, {}
    for at in sorted({length for length, ended in stays if ended}):
        share *= 1 - sum(one == (at, True) for one in stays) / sum(length >= at for length, _ in stays)
        lasts[at] = share
    assert found["median_stay"] == min(at for at, share in lasts.items() if share <= 0.5)
    curve = run_curves(finished_run(whole)).query("curve == 'stays'")
    assert dict(zip(curve["x"], curve["y"], strict=True)) == pytest.approx(lasts)
    joined = agents["present"] | agents["agent"].isin(table["agent"])
    assert 0 < churn["never_joined"] == (~joined).sum()
    assert found["followees_mean"] == pytest.approx(agents["followees"].sum() / joined.sum())
    assert not agents["followers"][~joined].any()
    assert RunRecords(whole.run_dir).users.tolist() == joined.tolist()
    follows = finished_run(whole).follows()
    assert np.bincount(follows["src"], minlength=40).tolist() == agents["followers"].tolist()
    [told] = [text for what, text in run_lines(summary) if what == "churn"]
    assert f"{counts['join']} joined, {counts['leave']} left, {counts['back']} came back, 0 removed" in told
    assert summary["decisions"]["rates"]["open"] == pytest.approx(summary["decisions"]["open"] / ticks.sum())


def test_why_tells_when_an_agent_came_and_went(made):
    table = open_run(made[0]).table("churn")
    agent = int(table["agent"].value_counts().idxmax())
    own = table[table["agent"] == agent]
    text = "\n".join(report_lines(why(made[0].run_dir, str(agent))))
    did = {"join": "joined", "leave": "left", "back": "came back"}
    for row in own.itertuples():
        chance = 0.5 if (row.event, row.round) == ("leave", 2) else CHURN[row.event]
        assert f"{did[row.event]} as round {row.round} opened (its draw 0." in text
        assert f"lay below {chance:g})" in text
    absent = int(own[own["event"] == "leave"]["round"].iloc[0])
    assert text.count(" opened (") == len(own)
    assert f"Round {absent}: it was not on the platform." in list(
        report_lines(why(made[0].run_dir, str(agent), absent))
    )


def test_keys_without_an_effect_are_said():
    with pytest.warns(PrismWarning, match="agents.churn.join: no effect"):
        SocialModel(small(**{"agents.churn.join": 0.5}))
    with pytest.warns(PrismWarning, match="agents.churn.back: no effect"):
        SocialModel(small(**{"agents.churn.back": 0.5}))
