"""Profiles: drawn with the measured means, each agent's own, and overwritten from a file."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from worlds import plain_group, ran, small

from prism_mesa.domain import BIG_FIVE
from prism_mesa.errors import DataError, format_count
from prism_mesa.social.params import AgentsParams, SocialParams
from prism_mesa.social.state.topics import quantised
from prism_mesa.social.world.profiles import (
    TRAIT_CORRELATIONS,
    TRAIT_MEANS,
    TRAIT_SDS,
    draw_profiles,
    draw_traits,
    personality,
)
from prism_mesa.streams import Streams

# Oldemburgo de Mello, Cheung, Inzlicht 2024, as in shared/data/targets.json
MEANS = {"extraversion": 3.1, "agreeableness": 3.86, "conscientiousness": 3.64, "neuroticism": 2.68, "openness": 3.91}
SDS = {"extraversion": 0.78, "agreeableness": 0.59, "conscientiousness": 0.77, "neuroticism": 0.87, "openness": 0.7}
NEUROTICISM_WITH = {"extraversion": -0.44, "agreeableness": -0.44, "conscientiousness": -0.52, "openness": -0.2}


def drawn(n=20_000, seed=1, start=0, **agents):
    rows = np.arange(start, start + n)
    params = SocialParams(agents=AgentsParams(**plain_group("agents") | agents))
    return draw_profiles(rows, [str(i) for i in rows], np.zeros((n, 4), np.int8), params, Streams(seed))


def test_traits_are_the_published_ones():
    target = Path(__file__).parents[4] / "shared" / "data" / "targets.json"
    if not target.exists():
        pytest.skip("shared/data is not here")
    big5 = json.loads(target.read_text())["big5_mean_sd_corr"]
    assert dict(zip(BIG_FIVE, TRAIT_MEANS, strict=True)) == big5["mean"] == MEANS
    assert dict(zip(BIG_FIVE, TRAIT_SDS, strict=True)) == big5["sd"] == SDS
    assert [list(row) for row in TRAIT_CORRELATIONS] == big5["corr"]


def test_traits_have_the_published_means_spread_and_correlations():
    traits = draw_traits(np.arange(20_000), Streams(3))
    assert traits.min() >= 1
    assert traits.max() <= 5
    correlations = np.corrcoef(traits.T)
    for k, name in enumerate(BIG_FIVE):
        assert traits[:, k].mean() == pytest.approx(MEANS[name], abs=0.05)  # the ends of the scale cost a little
        assert traits[:, k].std() == pytest.approx(SDS[name], abs=0.06)
        if name != "neuroticism":
            assert correlations[3, k] == pytest.approx(NEUROTICISM_WITH[name], abs=0.04)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 30), st.integers(1, 30))
def test_more_agents_shift_nobodys_draws(seed, few, more):
    small_one, big = drawn(few, seed), drawn(few + more, seed)
    alone = drawn(1, seed, start=few - 1)
    for name in ("traits", "engagement_threshold", "activity", "post_rate", "propensities"):
        column = getattr(big, name).tolist()
        assert column[:few] == getattr(small_one, name).tolist(), name
        assert column[few - 1 : few] == getattr(alone, name).tolist(), name
    assert big.names[:few] == small_one.names


def test_with_scheduled_posts_agents_like_what_they_and_those_they_follow_post(tmp_path):
    rng = np.random.default_rng(4)
    edges = {(a, b) for a, b in rng.integers(0, 40, (150, 2)).tolist() if a != b}
    words = ["music", "science", "cats", "dogs", "war", "peace", "rain"]
    posts = [(" ".join(rng.choice(words, 5)), int(rng.integers(0, 25))) for _ in range(60)]
    (tmp_path / "edges.csv").write_text("src,dst\n" + "".join(f"{a},{b}\n" for a, b in sorted(edges)))
    (tmp_path / "posts.csv").write_text("text,author\n" + "".join(f"{text},{author}\n" for text, author in posts))
    params = {"network_edges": str(tmp_path / "edges.csv")}
    model, plain = small(posts_file=str(tmp_path / "posts.csv"), **params), small(**params)
    without, ids = 0, list(model.population.ids)
    vectors = model.topics.vectors[model.schedule.text_id].astype(int)
    for row, agent in enumerate(ids):
        sources = {agent} | {str(a) for a, b in edges if str(b) == agent}
        read = [v for author, v in zip(model.schedule.author, vectors, strict=True) if ids[author] in sources]
        total = np.sum(read, axis=0) if read else np.zeros(vectors.shape[1])
        if not total.any():
            without += 1
            continue
        assert model.population.interests[row].tolist() == quantised(total / len(read)).tolist()
    assert f"{format_count(without, 'agent')}: interests are drawn" in " ".join(model.notes) or not without
    assert 0 < without < len(ids) == len(plain.population)


@pytest.mark.parametrize("mean", [0.01, 0.15, 0.5, 0.9])
@pytest.mark.parametrize("sigma", [0.0, 0.5, 1.6, 2.5])
def test_rates_capped_at_1_have_the_configured_mean(mean, sigma):
    population = drawn(activity=mean, post_rate=mean / 2, activity_sigma=sigma)
    assert population.activity.mean() == pytest.approx(mean, rel=0.06)
    assert population.post_rate.mean() == pytest.approx(mean / 2, rel=0.06)
    assert population.activity.max() <= 1
    assert population.activity.min() > 0


def test_who_is_often_there_also_posts_more():
    population = drawn(2000, activity=0.2, post_rate=0.1)
    order = np.lexsort((population.post_rate, population.activity))  # those who are always there write most
    assert (np.diff(population.post_rate[order]) >= 0).all()


def test_thresholds_have_the_configured_mean_and_spread_and_stay_in_range():
    population = drawn(threshold_mean=0.6, threshold_sd=0.05)
    assert population.engagement_threshold.mean() == pytest.approx(0.6, abs=0.003)
    assert population.engagement_threshold.std() == pytest.approx(0.05, rel=0.03)
    wide = drawn(threshold_mean=0.9, threshold_sd=0.5).engagement_threshold
    assert wide.min() >= 0
    assert wide.max() == 1


def test_propensities_add_up_to_1_around_the_configured_shares():
    population = drawn(like=0.6, reply=0.1, reshare=0.3, propensity_sigma=0.2)
    assert population.propensities.sum(axis=1) == pytest.approx(np.ones(20_000), abs=1e-6)
    assert population.propensities.mean(axis=0) == pytest.approx([0.6, 0.1, 0.3], abs=0.02)
    same = drawn(10, like=3 / 4, reply=0.0, reshare=3 / 4, propensity_sigma=0.0).propensities
    assert same.tolist() == [[0.5, 0.0, 0.5]] * 10


def test_personality_names_what_stands_out():
    assert personality(np.array(TRAIT_MEANS)) == "average in every respect"
    assert personality(np.array([1.0, 3.86, 3.64, 2.68, 3.91])) == "reserved"
    assert personality(np.array([5.0, 3.86, 1.0, 2.68, 5.0])) == "outgoing, spontaneous and curious"


# a file of profiles


def world(tmp_path, text, **params):
    (tmp_path / "profiles.csv").write_text(text)
    return small(agents_profiles=str(tmp_path / "profiles.csv"), **params)


def test_a_file_writes_over_what_was_drawn_and_blank_cells_keep_it(tmp_path):
    plain = small()
    model = world(
        tmp_path,
        "agent,name,interests,engagement_threshold,timeout_threshold,activity,post_rate,extraversion\n"
        "3,Ann Example,science;music,0.7,9,1,0,4.5\n 5 ,,,,2,,,\n",
    )
    ann, other, drawn_other = model.agent(3), model.agent(5), plain.agent(5)
    assert (ann.name, ann.engagement_threshold, ann.timeout_threshold) == ("Ann Example", 0.7, 9)
    assert (ann.activity, ann.post_rate, ann.extraversion) == (1.0, 0.0, 4.5)
    assert set(ann.interests[:2]) == {"science", "music"}
    assert ann.openness == plain.agent(3).openness
    assert (other.name, other.timeout_threshold) == (drawn_other.name, 2)
    assert other.engagement_threshold == drawn_other.engagement_threshold
    assert other.interests == drawn_other.interests
    assert model.agent(4).to_dict() == plain.agent(4).to_dict()
    ran(model, 1)


def test_shares_from_a_file_are_scaled_to_add_up_to_1(tmp_path):
    model = world(tmp_path, "agent,like,reply,reshare\n0,1,1,0\n1,0,0,0.2\n")
    assert model.agent(0).propensities == {"like": 0.5, "reply": 0.5, "reshare": 0.0}
    assert model.agent(1).propensities == {"like": 0.0, "reply": 0.0, "reshare": 1.0}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("agent,activity\n", "no rows below the header"),
        ("user,activity\n0,1\n", r"no column 'agent' \(it has: user, activity\)"),
        ("agent,activty\n0,1\n", r"unknown column 'activty' \(allowed: agent, name, .*\)\. Did you mean 'activity'\?"),
        ("agent,activity\n99,1\n", r"agent '99' is not in the network \(30 agents"),
        ("agent,activity\n1,1\n,1\n", "line 3: the cell 'agent' is blank"),
        ("agent,activity\n1,1\n2,1\n1,0.5\n", "agent '1' is named twice"),
        ("agent,activity\n1,1\n2,1.5\n", r"activity: line 3: 1\.5 is not a number in 0 \.\. 1"),
        ("agent,engagement_threshold\n1,inf\n", r"engagement_threshold: line 2: inf is not a number in 0 \.\. 1"),
        ("agent,timeout_threshold\n1,0\n", "timeout_threshold: line 2: 0 is not a whole number in 1"),
        ("agent,timeout_threshold\n1,2.5\n", r"timeout_threshold: line 2: 2\.5 is not a whole number in 1"),
        ("agent,openness\n1,6\n", r"openness: line 2: 6 is not a number in 1 \.\. 5"),
        (
            "agent,interests\n1,scince\n",
            r"agent 1: there is no topic 'scince' \(topics: .*\)\. Did you mean 'science'\?",
        ),
        ("agent,like,reply,reshare\n1,0,0,0\n", "agent '1': like, reply and reshare are all 0"),
    ],
)
def test_a_bad_file_of_profiles_is_one_line_that_says_where(tmp_path, text, message):
    with pytest.raises(DataError, match=message) as caught:
        world(tmp_path, text)
    assert str(caught.value).startswith("agents.profiles: ")
    assert "\n" not in str(caught.value)
