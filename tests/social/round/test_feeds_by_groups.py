"""Feeds that go by groups of agents, and what is discovered beside those who are followed."""

import numpy as np
import pandas as pd
import pytest
from worlds import Memory

from prism_mesa.errors import ConfigError
from prism_mesa.runs.config import make_config
from prism_mesa.social.model import SocialModel
from prism_mesa.social.state.attributes import Attribute
from prism_mesa.social.state.groups import GroupCounts, assign_groups

WORLD = {"agents.n": 60, "rounds": 8, "network.mean_degree": 10, "agents.activity": 0.8, "agents.post_rate": 0.6}
DECLARED = {
    "leaning": {"of": "agent", "range": [-1, 1]},
    "party": {"of": "agent", "values": ["left", "right", "none"]},
    "many": {"of": "agent", "values": list(range(11))},
}


def world(**more):
    return make_config(
        {**WORLD, "attributes": DECLARED} | {key.replace("__", "."): value for key, value in more.items()}
    )


@pytest.mark.parametrize("begins", [0, 3])
def test_what_groups_read_and_engage_with_is_counted_from_the_first_round_of_a_bridging_feed(begins):
    bridging = {"feed.mode": "bridging", "feed.attribute": "party"}
    if begins:
        config = world(interventions=[{"at": begins, "set": bridging}])
    else:
        config = world(feed__mode="bridging", feed__attribute="party")
    memory = Memory()
    model = SocialModel(config, recorder=memory)
    model.run_model()
    counts = model.platform.group_counts
    group = model.population.attributes[:, 1].astype(int)
    for table, has in (("impressions", counts.impressions), ("engagements", counts.engagements)):
        rows = pd.DataFrame(memory.tables[table])
        later = rows[rows["round"] >= begins]
        found = np.zeros((len(model.posts), 3), np.int64)
        np.add.at(found, (later["root"].to_numpy(), group[later["agent"].to_numpy()]), 1)
        assert len(later) > 50
        assert np.array_equal(found[: len(has)], has)
        assert not found[len(has) :].any()


def test_a_post_that_both_groups_engage_with_comes_before_one_that_more_of_one_group_do():
    counts, group = GroupCounts(2), np.array([0] * 50 + [1] * 50, np.int16)
    everybody = np.arange(100)
    read = np.concatenate([everybody, everybody]), np.repeat([0, 1], 100)
    of_one, of_both = np.arange(20), np.concatenate([np.arange(8), 50 + np.arange(8)])
    counts.count(2, group, read, (np.concatenate([of_one, of_both]), np.repeat([0, 1], [20, 16])))
    partisan, bridging = counts.consensus(np.array([0, 1]), 20.0)
    assert counts.engagements.sum(axis=1).tolist() == [20, 16]
    assert bridging > 1.5 * partisan


@pytest.mark.parametrize(
    ("values", "kept", "groups"),
    [
        ((3, 1, 2), [1.0, 2.0, 3.0], [1, 2, 0]),
        ((True, False), [0.0, 1.0], [1, 0]),
        (("a", "b"), [1.0, 0.0], [1, 0]),
    ],
)
def test_each_value_is_a_group_in_the_order_in_which_they_are_declared(values, kept, groups):
    assert assign_groups(Attribute("x", values=values), np.array(kept)).tolist() == groups


def test_a_diverse_feed_shows_more_authors_and_both_groups_sooner_than_the_most_relevant_posts():
    shown = {}
    for mode, by in (("preference", None), ("diverse", "leaning")):
        model = SocialModel(world(feed__mode=mode, feed__attribute=by, agents__n=150, network__mean_degree=25))
        for _ in range(5):
            model.step()
        people, posts = model.population, model.posts
        tops = [people.feed[i, :8] for i in range(150) if people.n_feed[i] >= 16]
        upper = people.attributes[:, 0] > 0
        alternates = [np.diff(upper[posts.author[posts.root[top[:3]]]].astype(int)).any() for top in tops]
        shown[mode] = np.mean([len(set(posts.author[top].tolist())) for top in tops]), np.mean(alternates)
        assert len(tops) > 10
    assert shown["diverse"][0] > shown["preference"][0] + 1
    assert shown["diverse"][1] == 1.0 > shown["preference"][1]


def test_who_follows_nobody_is_shown_what_is_trending_and_what_a_search_finds():
    model = SocialModel(world(feed__slots__trending=3, feed__slots__search=3, feed__slots__every=2))
    for other in model.network.followees(7).tolist():
        model.agent(7).unfollow(other)
    shown = []
    for _ in range(6):
        model.step()
        shown.append(int(model.population.n_feed[7]))
    assert model.network.n_followees[7] == 0
    assert 3 < max(shown) <= 6


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"feed__mode": "bridging"}, "feed.*bridging"),
        ({"feed__mode": "bridging", "feed__attribute": "leening"}, "'leening'"),
        ({"feed__mode": "diverse", "feed__attribute": "many"}, "many has 11 values"),
        ({"interventions": [{"at": 2, "set": {"feed.attribute": "partie"}}]}, "'partie'"),
        (
            {"interventions": [{"at": 2, "set": {"feed.attribute": "party"}, "agents": "agent.leaning > 0"}]},
            "feed.attribute",
        ),
    ],
)
def test_groups_that_are_not_there_are_refused_in_one_line(more, said):
    with pytest.raises(ConfigError, match=said):
        SocialModel(world(**more))


def test_a_feed_distinguishes_up_to_ten_groups():
    ten = {"ten": {"of": "agent", "values": list(range(10))}}
    feeds = SocialModel(world(feed__mode="diverse", feed__attribute="ten", attributes=ten)).platform.feeds
    assert feeds.n_groups == 10
