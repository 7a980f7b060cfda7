"""Runs whose network moves: their table of it, what is told of it, and that they repeat, go on and branch."""

import math
from pathlib import Path

import pandas as pd
import pytest
from killed_runs import all_bytes, images
from small_runs import small, table_bytes

from prism_mesa import open_run, replay
from prism_mesa.analysis.explain.report import report_lines
from prism_mesa.analysis.explain.why import why
from prism_mesa.api.runs import branch, resume, run
from prism_mesa.errors import PrismWarning
from prism_mesa.social.model import SocialModel
from prism_mesa.studies.measures.finished import finished_run
from prism_mesa.view.summaries import run_lines

QUIET = {"pictures": False}
RATES = {"follow": 0.2, "follow_back": 0.4, "triad": 0.2, "unfollow": 0.1, "mute": 0.02, "block": 0.02, "report": 0.1}
LIVE = {"network.mean_degree": 6, "network.dynamics": "live"} | {f"network.rates.{k}": v for k, v in RATES.items()}
LIVE |= {"attributes": {"party": {"of": "agent", "values": ["left", "right"]}}, "agents.homophily.by": "party"}
ROUNDS = 6


def live(**more):
    return small(**{"network": {}, "rounds": ROUNDS, **LIVE, **more})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A whole run, and the folder of the same as it was killed after five rounds."""
    out, to = tmp_path_factory.mktemp("out"), tmp_path_factory.mktemp("to")
    whole = run(live(checkpoint_every=2), out=out, on_round=images(out, to, (5,)), **QUIET)
    return whole, to / "killed-5"


def test_the_table_leads_from_the_first_network_to_the_counts_of_agents(made):
    run_dir = made[0].run_dir
    follows, agents = (pd.read_parquet(Path(run_dir) / f"{table}.parquet") for table in ("follows", "agents"))
    network = SocialModel(live()).network
    kept = {(a, b) for a in range(network.n_agents) for b in network.followees(a).tolist()}
    for row in follows.itertuples():
        if row.event == "follow":
            assert (row.agent, row.other) not in kept
            kept.add((row.agent, row.other))
        elif row.event == "unfollow":
            kept.remove((row.agent, row.other))
    assert set(follows["event"]) == {"follow", "unfollow", "mute", "block", "report"}
    assert follows["round"].is_monotonic_increasing
    assert agents["followees"].tolist() == [sum(a == row for a, _ in kept) for row in agents["agent"]]
    assert agents["followers"].tolist() == [sum(b == row for _, b in kept) for row in agents["agent"]]
    measured = finished_run(made[0]).follows()
    assert set(zip(measured["dst"].tolist(), measured["src"].tolist(), strict=True)) == kept
    summary, counts = made[0].summary, follows["event"].value_counts()
    changes = summary["network_changes"]
    assert changes["events"] == {event: counts[event] for event in changes["events"]}
    assert (changes["follows_before"], changes["follows_after"]) == (network.n_edges, len(kept))
    assert summary["follows"] == len(kept)
    [told] = [text for what, text in run_lines(summary) if what == "follows"]
    assert f"{network.n_edges:,} at the beginning, {len(kept):,} at the end: {counts['follow']:,} follows, " in told


def test_it_repeats_goes_on_and_branches_with_the_same_bytes(made, tmp_path):
    whole, killed = made
    assert replay(whole.run_dir).equal
    assert all_bytes(resume(killed, **QUIET).run_dir) == all_bytes(whole.run_dir)
    assert all_bytes(branch(whole, 3, out=tmp_path, **QUIET).run_dir) == all_bytes(whole.run_dir)


def test_it_has_the_same_bytes_with_any_number_of_threads(tmp_path):
    one, two = (run(live(threads=n), out=tmp_path / str(n), **QUIET) for n in (1, 2))
    assert table_bytes(one.run_dir) == table_bytes(two.run_dir)


def test_rates_change_in_a_run_from_their_round_on(made, tmp_path):
    off = {f"network.rates.{name}": 0.0 for name in RATES}
    found = branch(made[0], 3, off, out=tmp_path, **QUIET)
    before, after = (open_run(each).table("follows") for each in (made[0], found))
    assert after["round"].max() == 2
    pd.testing.assert_frame_equal(before[before["round"] < 3], after)


def test_keys_without_an_effect_are_said_also_those_of_interventions():
    interventions = [{"at": 1, "set": {"network": {"rates": {"follow": 0.5}}}}]
    told = "network.rates.follow: no effect: .*network.dynamics=live"
    with pytest.warns(PrismWarning, match=r"interventions: 0 \(from round 1 on\): " + told):
        SocialModel(small(rounds=2, interventions=interventions))
    with pytest.warns(PrismWarning, match="^SocialModel: " + told):
        SocialModel(small(**{"network": {}, "network.mean_degree": 6, "network.rates.follow": 0.5}))


def test_why_tells_who_was_followed_and_dropped_and_why(made):
    run_dir = made[0].run_dir
    follows = open_run(made[0]).table("follows")
    known = follows[follows["agent"].isin(follows["other"]) & (follows["why"] == "ignored")]
    agent = int(known["agent"].value_counts().idxmax())
    text = "\n".join(report_lines(why(run_dir, str(agent))))
    own = follows[follows["agent"] == agent]
    assert f"It decided {len(own)} times about others" in text
    for row in own.itertuples():
        assert f"  round {row.round}: it {row.event.removesuffix('e')}" in text
        assert f"(agent {row.other})" in text
    assert "whose value was below its band, and did not engage with it (its draw 0.0" in text
    party, met = open_run(made[0]).table("agents")["party"], own[own["why"] == "exposure"]
    assert (party[met["other"]] != party[agent]).any()
    for row in met.itertuples():
        chance = 0.2 if party[row.other] == party[agent] else 0.2 * math.exp(-1.1)
        [line] = [
            line
            for line in text.splitlines()
            if f"round {row.round}: it followed" in line and f"(agent {row.other})" in line
        ]
        assert float(line.split("lay below ")[1].rstrip(")")) == pytest.approx(chance, rel=1e-4)
    others = follows[(follows["other"] == agent) & (follows["agent"] != agent)]
    assert f"Others decided {len(others)} time" in text


def test_a_run_whose_network_is_fixed_has_none_of_it(tmp_path):
    found = run(small(rounds=1), out=tmp_path, **QUIET)
    assert not (Path(found.run_dir) / "follows.parquet").exists()
    assert "network_changes" not in found.summary
    assert "decided" not in "\n".join(report_lines(why(found.run_dir, "0"))).split("Round")[0]
