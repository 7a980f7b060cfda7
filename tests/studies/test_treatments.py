"""The effect of an intervention on a share of the agents, beside its effect on the whole platform."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from prism_mesa import Study, measure, run
from prism_mesa.errors import ConfigError, RunError
from prism_mesa.studies.statistics.cells import Treatment
from prism_mesa.view.study.figures import figures_section

NO_FEED = {"feed.candidates.followed": 0}
WORLD = {"agents.n": 80, "rounds": 6, "network.mean_degree": 10, "agents.activity": 0.6, "agents.post_rate": 0.4}


def act(**more):
    return {"name": "switch", "at": 2, "set": NO_FEED, **more}


ARMS = {
    "half": {"interventions": [act(share=0.5)]},
    "nobody": {},
    "everybody": {"interventions": [act()]},
}


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    study = Study(
        question="Does it?",
        base=WORLD | {"reasoner.kind": "rule"},
        arms=ARMS,
        seeds=3,
        measures=["impressions@switch"],
        out=tmp_path_factory.mktemp("treated"),
    )
    return study.run(workers=1)


def rates(result, arm, seed):
    """Return the agents of a run with their impressions per round from round 2 on, by hand."""
    runs = result.runs
    [name] = runs.loc[(runs["arm"] == arm) & (runs["seed"] == seed), "run"]
    impressions, agents = (
        pd.read_parquet(result.study_dir / "runs" / name / f"{table}.parquet") for table in ("impressions", "agents")
    )
    counts = impressions.loc[impressions["round"] >= 2, "agent"].value_counts()
    return agents.assign(rate=counts.reindex(range(80), fill_value=0).to_numpy() / 4)


def test_a_report_has_treated_minus_control_the_whole_platform_and_their_difference(result):
    within, platform = [], []
    for seed in (1, 2, 3):
        means = rates(result, "half", seed).groupby("switch")["rate"].mean()
        within.append(means["treated"] - means["control"])
        platform.append(rates(result, "everybody", seed)["rate"].mean() - rates(result, "nobody", seed)["rate"].mean())
    expected = {"within": within, "platform": platform, "difference": np.subtract(within, platform)}
    table = result.analysis.treatments.set_index("effect")
    assert set(table.index) == set(expected)
    assert max(table["mean"][["within", "platform"]]) < -0.5
    for effect, values in expected.items():
        low, high = stats.t.interval(0.95, 2, np.mean(values), stats.sem(values))
        assert table.loc[effect, ["mean", "low", "high"]].tolist() == pytest.approx([np.mean(values), low, high])
    report = (result.study_dir / "report.md").read_text("utf-8")
    [picture] = [block for block in figures_section(result).blocks if getattr(block, "name", "") == "treatments"]
    [axes] = picture.draw().axes
    drawn = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "D"]
    assert drawn == pytest.approx([np.mean(expected[effect]) for effect in table.index])
    assert "| (half: treated \u2212 control) \u2212 (everybody \u2212 nobody) |" in report
    assert any("impressions@2: added" in note for note in result.notes)


def test_arms_that_differ_only_in_the_share_are_compared(designed):
    arms = {f"some {share}": {"interventions": [act(share=share, until=3)]} for share in (0.1, 0.5, 1)}
    other = {"name": "other", "at": 1, "set": NO_FEED, "share": 0.5}
    arms |= {"none": {}, "other": {"interventions": [other]}, "else": {"feed.mode": "x_algo"}}
    base = {"agents.n": 20, "rounds": 4, "reasoner.kind": "rule"}
    found = designed(base=base, arms=arms, measures=["posts@switch", "likes@other"])
    assert found.treatments == (Treatment("posts@switch", "posts@2-2", ("some 0.1", "some 0.5"), "some 1", "none"),)
    assert found.params.measures == ["posts@switch", "likes@other", "posts@2-2"]
    assert not designed(base=base, arms=arms, measures=["posts@switch"], paired=False).treatments
    eligible = {
        arm: {"interventions": [act(share=s, agents="agent.activity > 0.1")]} for arm, s in (("a", 0.5), ("b", 1))
    }
    assert not designed(base=base, arms=eligible | {"none": {}}, measures=["posts@switch"]).treatments
    with pytest.raises(ConfigError, match=r"posts: no intervention 'swich' has a share \(with one: other, switch\)"):
        designed(base=base, arms=arms, measures=["posts@swich"])


def test_measures_by_agent_are_treated_minus_control(tmp_path):
    attributes = {"stance": {"of": "agent", "range": [-1, 1]}, "false": {"of": "post", "values": [True, False]}}
    attributes["slant"] = {"of": "post", "range": [-1, 1], "inherits": "stance"}
    live = {"network.dynamics": "live", "network.rates.follow": 0.5, "feed.candidates.out_of_network": 9}
    live |= {"opinions.of": "stance", "opinions.by": "slant", "opinions.confidence": 1}
    shown = {"name": "switch", "at": 2, "until": 5, "share": 0.5, "filter": {"posts": "post.slant > 0.5"}}
    world = {"attributes": attributes, **WORLD, **live, "interventions": [shown]}
    finished = run(world, out=tmp_path, pictures=False)
    names = ["follows@switch", "opinion@switch", "exposure_false@switch", "exposure_slant@2-4"]
    measured = measure(finished, names)
    agents, posts, impressions, follows = (
        finished.table(name) for name in ("agents", "posts", "impressions", "follows")
    )
    late = {name: rows[rows["round"].between(2, 4)] for name, rows in (("read", impressions), ("follows", follows))}
    followed = late["follows"].loc[late["follows"]["event"] == "follow", "agent"].value_counts()
    read = late["read"].join(posts[["false", "slant"]].astype(float), on="post").groupby("agent")
    by_agent = pd.DataFrame({"follows": followed.reindex(agents.index, fill_value=0) / 3, "stance": agents["stance"]})
    means = by_agent.join(read[["false", "slant"]].mean()).groupby(agents["switch"], observed=True).mean()
    expected = means.loc["treated"] - means.loc["control"]
    by_hand = [*expected[["follows", "stance", "false"]], read["slant"].mean().mean()]
    assert measured.tolist() == pytest.approx(by_hand)
    assert all(by_hand)
    with pytest.raises(RunError, match="no attribute 'fals'"):
        measure(finished, ["exposure_fals@switch"])
