"""Roots that are shown again (`feed.repeats`): independent cascades, thresholds, and which showing it was."""

from collections import Counter
from math import log

import numpy as np
import pytest
from lively_worlds import LIVELY
from worlds import ran, small

from prism_mesa.social.state.outcomes import cascades
from prism_mesa.social.state.posts import POST, RESHARE

EDGES = {
    "agents_activity": 1.0,
    "agents_activity_sigma": 0.0,
    "agents_post_rate": 0.0,
    "agents_threshold_sd": 0.0,
    "agents_band": 0.0,
    "agents_like": 0.0,
    "agents_reply": 0.0,
    "agents_reshare": 1.0,
    "utility_weight": 0.0,
    "utility_sensitivity": 0.02,
    "utility_appeal_sigma": 0.0,
    "utility_gamma": 1.0,
    "utility_theta": 0.0,
    "utility_closeness": None,
    "utility_reshared": 0.0,
    "utility_mood": 1.0,
    "feed_size": 200,
    "feed_glances": 200,
    "feed_window": 60,
}
"""A world in which a reader passes on what it reads with one probability, whatever it is: each follow has a chance."""
OFTEN = LIVELY | {
    "agents_n": 60,
    "agents_band": 0.1,
    "agents_post_rate": 0.1,
    "agents_reshare": 0.9,
    "agents_threshold_mean": 0.4,
    "feed_repeats": True,
    "network_mean_degree": 20,
    "utility_reshared": 0.0,
    "utility_sensitivity": 0.05,
    "utility_weight": 0.5,
}
"""A world with many reshares."""
pytestmark = pytest.mark.filterwarnings("ignore::prism_mesa.errors.NotedWarning")


def spread(chance, authors, last, **params):
    """Return a world in which some agents post once, in the first round, and each showing is passed on by `chance`."""
    model = small(**EDGES | {"agents_threshold_mean": 0.02 * log((1 - chance) / chance)} | params)
    model.population.post_rate[authors] = 1.0
    ran(model, 1)
    model.population.post_rate[:] = 0.0
    return ran(model, last - 1)


def shared(model):
    """Return which agents have passed something on."""
    return np.isin(np.arange(len(model.population)), model.posts.author[model.posts.kind == RESHARE])


def many(shape, n, tmp_path):
    """Write `n` copies of a small graph, pairs of who is followed and who follows, each of four agents."""
    rows = [f"{4 * i + src},{4 * i + dst}" for i in range(n) for src, dst in shape]
    file = tmp_path / "edges.csv"
    file.write_text("\n".join(["src,dst", *rows]), encoding="utf-8")
    return str(file)


# -- known answers -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("repeats", "wanted"), [(True, 0.4375), (False, 0.375)])
def test_the_far_node_of_a_diamond_is_reached_as_in_an_independent_cascade(repeats, wanted, tmp_path):
    edges = many([(0, 1), (0, 2), (1, 3), (2, 3)], 2500, tmp_path)
    model = spread(0.5, slice(None, None, 4), 4, network_edges=edges, feed_repeats=repeats)
    near, other, far = (shared(model)[i::4] for i in (1, 2, 3))
    assert near.mean() == pytest.approx(0.5, abs=0.03)
    assert (near & other).mean() == pytest.approx(0.25, abs=0.03)
    assert far.mean() == pytest.approx(wanted, abs=0.03)
    assert not far[~near & ~other].any()


@pytest.mark.parametrize("needed", [1, 2, 3])
def test_with_log_odds_per_source_agents_have_thresholds(needed, tmp_path):
    edges = many([(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)], 100, tmp_path)
    model = small(**EDGES, network_edges=edges, feed_repeats=True, utility_per_source=20.0)
    model.population.engagement_threshold[:] = -1.0  # the others pass on whatever they read
    model.population.engagement_threshold[3::4] = 0.02 * (20 * needed - 30)
    model.population.post_rate[0::4] = 1.0
    ran(model, 1)
    model.population.post_rate[:] = 0.0
    ran(model, 4)
    seen = Counter((row["agent"], row["root"]) for row in model.recorder.tables["impressions"])
    readers = [n for (agent, _), n in seen.items() if agent % 4 == 3]
    assert readers == [needed] * 100
    assert shared(model)[3::4].all()


def test_complex_contagion_spreads_farther_in_clustered_networks_and_simple_in_random_ones():
    def reach(rewire, chance, per_source):
        own = {"agents_n": 400, "network_mean_degree": 8, "network_kind": "watts_strogatz", "network_rewire": rewire}
        own |= {"feed_repeats": True, "utility_per_source": per_source, "rounds": 30, "rng": 1}
        model = spread(chance, slice(None, None, 40), 30, **own)
        return cascades(model.posts.parent, model.posts.root, model.posts.kind)["size"].mean()

    assert reach(1.0, 0.2, 0.0) > 3 * reach(0.0, 0.2, 0.0)
    assert reach(0.0, 0.05, 3.0) > 3 * reach(1.0, 0.05, 3.0)


# -- what is shown again -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more", [{}, {"feed_mode": "preference"}, {"feed_mode": "x_2023"}, {"feed_slots_trending": 3}, {"feed_size": 200}]
)
def test_a_copy_is_read_once_and_nothing_more_of_a_root_after_engaging(more):
    model = ran(small(**OFTEN | more), 14)
    read, engaged = model.recorder.tables["impressions"], model.recorder.tables["engagements"]
    assert max(Counter((row["agent"], row["post"]) for row in read).values()) == 1
    assert max(Counter((row["agent"], row["root"]) for row in read).values()) > 2
    first = {}
    for row in engaged:
        first.setdefault((row["agent"], row["root"]), row["round"])
    assert first
    assert all(row["round"] <= first.get((row["agent"], row["root"]), 99) for row in read)
    author = model.posts.author
    assert all(author[row["root"]] != row["agent"] for row in read)
    assert model.totals["repeated"] == 0


def test_impressions_tell_the_source_where_roots_are_shown_again_and_only_there():
    model = ran(small(**OFTEN), 10)
    before = Counter()
    for row in model.recorder.tables["impressions"]:  # by round
        before[row["agent"], row["root"]] += 1
        assert row["source"] == before[row["agent"], row["root"]]
    assert max(before.values()) > 2
    once = ran(small(**LIVELY), 3).recorder.tables["impressions"]
    assert "source" not in once[0]


# -- what it is worth --------------------------------------------------------------------------------------


def test_each_source_has_a_mood_of_its_own_and_the_root_the_one_that_it_has_without():
    again, once = (ran(small(**OFTEN | {"feed_repeats": on}, rng=4), 6) for on in (True, False))
    roots = np.flatnonzero((again.posts.kind == POST) & (again.posts.round < 2)).tolist()
    for post in roots[:10]:
        assert again.platform.log_odds(7, post)["its mood"] == once.platform.log_odds(7, post)["its mood"]
    copies = np.flatnonzero(again.posts.kind == RESHARE).tolist()
    moods = {(post, reader): again.platform.log_odds(reader, post)["its mood"] for post in copies for reader in (3, 7)}
    assert len(set(moods.values())) > 0.9 * len(moods) > 20


def test_parts_of_utility_add_up_and_have_log_odds_for_each_showing_before():
    model = ran(small(**OFTEN, utility_per_source=1.5), 8)
    own, before = model.params.utility, set()
    met = Counter((row["agent"], row["root"]) for row in model.recorder.tables["impressions"])
    for post_id in range(max(0, len(model.posts) - 300), len(model.posts), 2):
        for reader in (0, 7, 19):
            parts, post = model.platform.log_odds(reader, post_id), model.post(post_id, reader)
            if (root := int(model.posts.root[post_id])) >= model.posts.first_visible(
                model.round + 1, model.params.feed.window
            ):
                assert parts["shown before"] == 1.5 * met[reader, root]
            before.add(parts["shown before"])
            whole = own.weight * post.relevance + own.sensitivity * sum(parts.values())
            assert whole == pytest.approx(post.utility, abs=1e-12)
    assert {0, 1.5, 3.0} <= before
    assert "shown before" not in ran(small(**LIVELY, utility_sensitivity=0.05), 2).platform.log_odds(0, 0)


# -- how it is told ----------------------------------------------------------------------------------------
