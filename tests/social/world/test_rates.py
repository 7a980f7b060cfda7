"""Activity and posting: how unequal, drawn together or apart, and by how many follow an agent."""

from statistics import NormalDist

import numpy as np
import pytest
from worlds import plain_group, small

from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.params import AgentsParams
from prism_mesa.social.state.network import from_edges
from prism_mesa.social.world.rates import activity_draws, popularity_of_last, popularity_scores, post_rate_draws
from prism_mesa.streams import Streams

ROWS = np.arange(100_000)
PLAIN = plain_group("agents")
RARE = {"activity": 0.001, "post_rate": 0.001, "activity_sigma": 1.0}  # so that no cap is felt


def drawn(scores=None, rows=ROWS, seed=1, **own):
    params = AgentsParams(**PLAIN | own)
    return tuple(of(params, Streams(seed), scores)(rows) for of in (activity_draws, post_rate_draws))


def star_of(*followers, n):
    """Return a network in which agent k has ``followers[k]`` followers."""
    edges = [(agent, n - 1 - i) for agent, count in enumerate(followers) for i in range(count)]
    return from_edges(*np.array(edges).T, n)


def test_posting_of_its_own_has_its_own_spread_and_is_independent_of_activity():
    activity, posting = np.log(drawn(**RARE, post_sigma=0.5))
    assert posting.std() == pytest.approx(0.5, rel=0.02)
    assert activity.std() == pytest.approx(1.0, rel=0.02)
    assert abs(np.corrcoef(activity, posting)[0, 1]) < 0.02


@pytest.mark.parametrize("rho", [0.3, 0.8, 1.0])
def test_logarithms_of_activity_and_posting_are_correlated_with_popularity_and_through_it_with_each_other(rho):
    scores = Streams(5).normal("popularity of a test", ROWS)
    logs = np.log(drawn(scores, **RARE, post_sigma=0.7, popularity=rho))
    for own, sigma in zip(logs, (1.0, 0.7), strict=True):
        assert np.corrcoef(own, scores)[0, 1] == pytest.approx(rho, abs=0.01)
        assert own.std() == pytest.approx(sigma, rel=0.02)
    assert np.corrcoef(logs)[0, 1] == pytest.approx(rho**2, abs=0.015)


def test_popularity_is_the_normal_score_of_the_rank_by_followers():
    scores = popularity_scores(star_of(2, 5, 1, 3, 4, 0, n=12), AgentsParams(**PLAIN | {"popularity": 0.5}), Streams(1))
    place = {0: 8, 1: 11, 2: 7, 3: 9, 4: 10}  # below them are seven with none
    for agent, rank in place.items():
        assert scores[agent] == pytest.approx(NormalDist().inv_cdf((rank + 0.5) / 12))
    assert np.sort(scores).tolist() == pytest.approx([NormalDist().inv_cdf((k + 0.5) / 12) for k in range(12)])


def test_who_has_as_many_followers_is_ranked_by_the_seed_not_by_number():
    own, network = (
        AgentsParams(**PLAIN | {"popularity": 0.5}),
        from_edges(np.arange(400), np.roll(np.arange(400), 1), 400),
    )
    one, other = (popularity_scores(network, own, Streams(seed)) for seed in (1, 2))
    assert sorted(one) == pytest.approx(sorted(other))
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.2
    assert abs(np.corrcoef(one, np.arange(400))[0, 1]) < 0.2


@pytest.mark.parametrize("n", [1, 2, 3, 11, 12, 200])
def test_the_last_to_come_is_ranked_alone_as_among_all(n):
    own = AgentsParams(**PLAIN | {"popularity": 0.5})
    for seed in range(20):
        draw = Streams(seed).integers("followers of a test", np.arange(n), min(n, 6))
        network = star_of(*draw.tolist(), n=n) if n > 5 else from_edges(np.zeros(0, int), np.zeros(0, int), n)
        one, all_ = (of(network, own, Streams(seed)) for of in (popularity_of_last, popularity_scores))
        assert one[-1] == all_[-1]
        assert np.isnan(one[:-1]).all()


@pytest.mark.parametrize("activity", [0.05, 0.5])
@pytest.mark.parametrize("post_sigma", [None, 1.7])
@pytest.mark.parametrize("rho", [0.0, 0.55, 1.0])
def test_posts_of_all_rounds_online_are_the_rate_of_posting(activity, post_sigma, rho):
    scores = Streams(5).normal("popularity of a test", ROWS) if rho else None
    own = {"activity": activity, "activity_sigma": 1.1, "post_rate": 0.2, "post_sigma": post_sigma, "popularity": rho}
    comes, posts = (rates.astype(float) for rates in drawn(scores, **own, posting="online"))
    assert (comes * posts).sum() / comes.sum() == pytest.approx(0.2, rel=0.03)
    assert posts.max() <= 1
    assert comes.mean() == pytest.approx(activity, rel=0.03)


def test_a_newcomer_is_as_active_as_its_followers_make_it():
    shunned, followed = (small(agents_popularity=0.9, rng=4) for _ in range(2))
    one, other = SocialAgent(shunned), SocialAgent(followed, followers=range(30))
    assert other.activity > one.activity
    assert other.post_rate > one.post_rate
    assert followed.population.activity[:30].tolist() == shunned.population.activity[:30].tolist()
