"""Agents that are alike: by communities, and in what they engage with and whom they follow."""

import numpy as np
import pytest
from worlds import ran, small

from prism_mesa.errors import ConfigError
from prism_mesa.runs.config import make_config
from prism_mesa.social.model import SocialModel
from prism_mesa.studies.measures.exposure import external_internal

BLOCKS = {"network.kind": "stochastic_block", "network.blocks": 3, "network.mean_degree": 4, "rounds": 2}


def of_communities(declared, **more):
    """Return the values of an attribute that agents have from three communities, in the order of their rows."""
    keys = BLOCKS | {key.replace("__", "."): value for key, value in more.items()}
    model = SocialModel(make_config({"agents.n": 30, **keys, "attributes": {"own": {"of": "agent", **declared}}}))
    return [model.agent(row).own for row in range(len(model.population))]


@pytest.mark.parametrize(
    ("declared", "values"),
    [
        ({"values": ["left", "middle", "right"]}, ["left", "middle", "right"]),
        ({"values": ["left", "right"], "share": [1, 9]}, ["right", "right", "right"]),
        ({"values": ["left", "right"], "share": [3, 7]}, ["left", "right", "right"]),
        ({"values": [False, True]}, [False, True, True]),
        ({"range": [-3, 3]}, [-2.0, 0.0, 2.0]),
    ],
)
def test_values_are_spread_over_communities_in_their_order(declared, values):
    assert of_communities({**declared, "inherits": "community"}) == np.repeat(values, 10).tolist()


def test_noise_draws_some_values_anew_and_is_added_to_numbers():
    some = of_communities({"values": ["a", "b", "c"], "inherits": "community", "noise": 0.3}, agents__n=3000)
    assert np.mean(np.array(some) != np.repeat(["a", "b", "c"], 1000)) == pytest.approx(0.2, abs=0.03)
    numbers = np.array(of_communities({"range": [-3, 3], "inherits": "community", "noise": 0.2}, agents__n=3000))
    assert (numbers - np.repeat([-2, 0, 2], 1000)).std() == pytest.approx(0.2, abs=0.02)
    assert numbers[:1000].mean() == pytest.approx(-2, abs=0.02)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {"network.kind": "erdos_renyi"},
            "own.inherits: community: agents have a community only with network.kind=stochastic_block",
        ),
        (
            {"attributes": {"own": {"of": "agent", "range": [0, 1], "inherits": "other"}}},
            "only inherit from its community",
        ),
        ({"agents.homophily.by": "party"}, "agents.homophily.by: 'party' is not an attribute of agents (own)"),
        ({"agents.homophily.following": -1}, "agents.homophily.following: Input should be greater than or equal to 0"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(settings, said):
    declared = {"own": {"of": "agent", "range": [0, 1], "inherits": "community"}}
    with pytest.raises(ConfigError) as error:
        make_config({**BLOCKS, "attributes": declared, **settings})
    assert said in str(error.value)
    assert "\n" not in str(error.value)


PARTY = {"attributes": {"party": {"of": "agent", "values": ["left", "right"]}}}
MIXED = PARTY | {
    "agents_n": 300,
    "agents_activity": 0.9,
    "agents_post_rate": 0.3,
    "network_mean_degree": 20,
    "network_dynamics": "live",
    "network_rates_follow": 0.05,
    "feed_candidates_out_of_network": 10,
    "utility_sensitivity": 0.05,
    "utility_weight": 0.5,
    "utility_appeal_sigma": 1.0,
    "agents_threshold_mean": 0.25,
    "rng": 2,
}


def mixing(**more):
    """Return the E-I index of engagements, and of the follows that are new, in a world that was mixed by chance."""
    model = ran(small(**MIXED, **more), 8)
    side, rows = model.population.attributes[:, 0].astype(int), model.recorder.tables
    pairs = [(row["agent"], int(model.posts.author[model.posts.root[row["post"]]])) for row in rows["engagements"]]
    follows = [(row["agent"], row["other"]) for row in rows["follows"] if row["event"] == "follow"]
    assert min(len(pairs), len(follows)) > 200
    return [external_internal(*side[np.array(both).T]) for both in (pairs, follows)]


def test_who_is_unlike_is_engaged_with_and_followed_less_each_by_its_own_key():
    by = {"agents_homophily_by": "party"}
    neither = mixing()
    engaging, then = mixing(**by, agents_homophily_engaging=4.0, agents_homophily_following=0.0)
    without_repeated_warnings, following = mixing(**by, agents_homophily_engaging=0.0, agents_homophily_following=1.1)
    assert np.abs(neither).max() < 0.15
    assert engaging < -0.4
    assert then < -0.1  # who engages follows
    assert abs(without_repeated_warnings) < 0.2
    assert following == pytest.approx((1 - 3) / (1 + 3), abs=0.15)
