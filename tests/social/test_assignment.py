"""Interventions that treat a random share of the agents, and the effect on those."""

import numpy as np
import pandas as pd
import pytest
from worlds import differing, ran, small

from prism_mesa import measure
from prism_mesa.errors import ConfigError
from prism_mesa.runs.branch import branch
from prism_mesa.runs.config import make_config
from prism_mesa.runs.social import run
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.act_state import CONTROL, NOT_ASSIGNED, NOT_ELIGIBLE, TREATED
from prism_mesa.studies.measures.catalogue import compute_measures
from prism_mesa.studies.measures.finished import finished_run

WORLD = {"agents.n": 120, "rounds": 6, "network.mean_degree": 10, "agents.activity": 0.6, "agents.post_rate": 0.4}
CHURN = {"agents_churn_waiting": 0.3, "agents_churn_join": 0.2, "agents_churn_leave": 0.1, "agents_churn_back": 0.3}
RANDOM = {"feed.mode": "random"}


def act(share, at=2, name="switch", settings=RANDOM, **more):
    return {"name": name, "at": at, "set": settings, "share": share, **more}


def groups(model, name="switch"):
    return model.platform.act_state.groups(name, len(model.population))


def treated(share, **more):
    return set(np.flatnonzero(groups(ran(small(interventions=[act(share)], **more), 3)) == TREATED).tolist())


def test_agents_treated_at_a_small_share_are_among_those_of_a_larger_one():
    few, many, everybody = treated(0.1), treated(0.5), treated(1.0)
    assert few < many < everybody
    assert len(everybody) == 30
    assert 0 < len(few) < len(many) < 30


def test_seed_and_name_decide_who_is_treated():
    assert treated(0.5) == treated(0.5)
    assert treated(0.5) != treated(0.5, rng=9)
    other = ran(small(interventions=[act(0.5, name="other")]), 3)
    assert treated(0.5) != set(np.flatnonzero(groups(other, "other") == TREATED).tolist())


def test_a_share_of_all_is_everybody_and_a_share_of_0_changes_nothing():
    plain = ran(small(), 5)
    assert differing(plain, ran(small(interventions=[act(0.0)]), 5)) == []
    everybody = ran(small(interventions=[{"at": 2, "set": RANDOM}]), 5)
    assert differing(everybody, ran(small(interventions=[act(1.0)]), 5)) == []
    assert differing(plain, everybody) != []


def test_only_treated_agents_get_the_other_feed():
    model = ran(small(interventions=[act(0.5, settings={"feed.mode": "preference"})], feed_mode="random"), 3)
    plain = ran(small(feed_mode="random"), 3)
    control = np.flatnonzero(groups(model) == CONTROL)
    assert len(control)
    assert np.array_equal(model.population.n_feed[control], plain.population.n_feed[control])
    rows = [row for row in control if plain.population.n_feed[row]]
    for row in rows:
        n = plain.population.n_feed[row]
        assert model.population.feed[row, :n].tolist() == plain.population.feed[row, :n].tolist()
    changed = np.flatnonzero(groups(model) == TREATED)
    feeds = [(model.population.feed[row].tolist(), plain.population.feed[row].tolist()) for row in changed]
    assert any(mine != theirs for mine, theirs in feeds)


def test_eligibility_is_fixed_when_it_begins_and_for_newcomers_when_they_join():
    chosen = act(0.5, agents="agent.activity > 0.3")
    model = small(interventions=[chosen], **CHURN)
    ran(model, 2)
    assert groups(model).tolist() == [NOT_ASSIGNED] * 30
    model.step()
    first, joined = groups(model).copy(), model.population.has_joined.copy()
    assert ((first == NOT_ASSIGNED) == ~joined).all()
    is_active = model.population.activity > 0.3
    assert ((first == NOT_ELIGIBLE) == (joined & ~is_active)).all()
    model.population.activity[:] = 0.9
    ran(model, 8)
    later = groups(model)
    assert (later[joined] == first[joined]).all()
    newcomers = model.population.has_joined & ~joined
    assert newcomers.any()
    assert (later[newcomers] >= 0).all()


def test_whole_groups_are_assigned_together():
    attributes = {"side": {"of": "agent", "values": list("abcdefgh")}}
    model = ran(small(interventions=[act(0.5, assign={"by": "side"})], attributes=attributes), 3)
    side = model.population.attributes[:, 0]
    assert all(len(set(groups(model)[side == value].tolist())) == 1 for value in set(side))
    assert set(groups(model).tolist()) == {TREATED, CONTROL}
    blocks = {"network_kind": "stochastic_block", "network_blocks": 5}
    model = ran(small(interventions=[act(0.5, assign={"by": "community"})], **blocks), 3)
    community = np.searchsorted(model.platform.attributes.bounds, np.arange(30), side="right")
    assert all(len(set(groups(model)[community == block].tolist())) == 1 for block in set(community.tolist()))


@pytest.mark.parametrize(
    ("wrong", "key"),
    [
        ({"share": 1.5}, "share"),
        ({"name": None}, "name"),
        ({"name": "Two Words"}, "name"),
        ({"name": "followers"}, "followers"),
        ({"set": {"agents.band": 0.1}}, "agents.band"),
        ({"share": None, "assign": {"by": "community"}}, "share"),
        ({"assign": {"by": "community"}}, "assign.by"),
        ({"assign": {"by": "side"}}, "assign.by"),
    ],
)
def test_what_cannot_be_assigned_is_refused(wrong, key):
    with pytest.raises(ConfigError, match=rf"interventions.*{key}"):
        SocialModel(make_config({**WORLD, "interventions": [act(0.5) | wrong]}))


def test_two_interventions_do_not_share_a_name():
    with pytest.raises(ConfigError, match="switch"):
        make_config({**WORLD, "interventions": [act(0.5), act(0.2, at=3)]})


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return the folder of a run in which half of the agents read no new posts from round 2 on."""
    none = act(0.5, settings={"feed.candidates.followed": 0})
    return run(make_config({**WORLD, "interventions": [none]}), out=tmp_path_factory.mktemp("assigned")).run_dir


def test_the_table_of_agents_and_the_notes_say_who_is_treated(finished):
    agents = pd.read_parquet(finished / "agents.parquet")
    counts = agents["switch"].value_counts()
    assert set(counts.index) == {"treated", "control"}
    assert f"treats {counts['treated']} of 120" in (finished / "manifest.json").read_text("utf-8")


def test_measures_compare_treated_and_control_agents(finished):
    impressions, agents = (pd.read_parquet(finished / f"{name}.parquet") for name in ("impressions", "agents"))
    late = impressions[impressions["round"] >= 2]
    per_agent = np.bincount(late["agent"], minlength=len(agents)) / 4
    expected = per_agent[agents["switch"] == "treated"].mean() - per_agent[agents["switch"] == "control"].mean()
    found = compute_measures(finished_run(finished), ["impressions@switch", "likes@switch", "posts@switch"])
    assert found["impressions@switch"] == pytest.approx(expected)
    assert expected < -0.5
    assert found["likes@switch"] < 0
    with pytest.raises(ConfigError, match="switch"):
        measure(finished, "impressions@other")


def test_a_branch_takes_interventions(finished):
    entry = {"name": "later", "set": RANDOM, "share": 0.5}
    made = branch(finished, 4, {"interventions": [entry]})
    assert set(pd.read_parquet(made.run_dir / "agents.parquet")["later"].unique()) == {"treated", "control"}
    for early in (0, 3):
        with pytest.raises(ConfigError, match=f"at={early}"):
            branch(finished, 4, {"interventions": [entry | {"at": early}]})
