"""Networks: rows of follows, and random ones of each kind."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_follows import follows
from worlds import plain_group

from prism_mesa.errors import ConfigError
from prism_mesa.kernels.network import draw_block_rows, draw_rows
from prism_mesa.social.params import NetworkParams
from prism_mesa.social.state.network import from_edges
from prism_mesa.social.world.random_networks import generate_network
from prism_mesa.streams import Streams

KINDS = ["erdos_renyi", "barabasi_albert", "watts_strogatz", "stochastic_block", "configuration"]


def generated(kind, n=400, seed=1, **params):
    return generate_network(NetworkParams(**plain_group("network") | {"kind": kind, **params}), n, Streams(seed))


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.lists(st.tuples(*[st.integers(0, n - 1)] * 2)))))
def test_edges_become_follows_once_each_and_the_rest_is_counted(world):
    n, edges = world
    src, dst = (np.array([edge[k] for edge in edges], np.int64) for k in (0, 1))
    network = from_edges(src, dst, n)
    wanted = {(b, a) for a, b in edges if a != b}
    assert follows(network) == wanted
    assert (network.n_agents, network.n_edges) == (n, len(wanted))
    for agent in range(n):
        assert network.followees(agent).tolist() == sorted(b for a, b in wanted if a == agent)
    assert network.n_followees.tolist() == [sum(a == i for a, _ in wanted) for i in range(n)]
    assert network.n_followers.tolist() == [sum(b == i for _, b in wanted) for i in range(n)]
    dropped = dict(network.dropped)
    loops = sum(a == b for a, b in edges)
    assert dropped.get("self-follows", 0) == loops
    assert dropped.get("repeated follows", 0) == len(edges) - loops - len(wanted)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 5)] * 2)), st.lists(st.integers(0, 5)), st.lists(st.integers(0, 5)))
def test_a_network_with_one_more_agent_is_that_of_all_edges(edges, followees, followers):
    more = edges + [(a, 6) for a in followees] + [(6, a) for a in followers]
    before, after = (from_edges(*np.array(e, np.int64).reshape(-1, 2).T, n) for e, n in ((edges, 6), (more, 7)))
    grown = before.with_agent(followees, followers)
    assert (grown.indptr.tolist(), grown.indices.tolist()) == (after.indptr.tolist(), after.indices.tolist())
    assert (grown.indptr.dtype, grown.indices.dtype) == (after.indptr.dtype, after.indices.dtype)


# generated


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_meets_its_mean_degree_and_has_no_self_follows(kind):
    network = generated(kind, n=1000, mean_degree=12)
    assert network.n_edges / 1000 == pytest.approx(12, rel=0.08)
    assert all(a != b for a, b in follows(network))
    assert network.dropped == ()


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.integers(2, 70), st.floats(0.01, 1), st.floats(0, 4), st.integers(0, 99))
def test_nobody_follows_twice_or_itself_and_rows_ascend(kind, n, share, sigma, seed):
    network = generated(kind, n, seed, mean_degree=share * (n - 1), blocks=1, follower_sigma=sigma, rewire=sigma / 4)
    assert (network.indptr.dtype, network.indices.dtype) == (np.int64, np.int32)
    assert network.indptr[-1] == len(network.indices)
    for agent in range(n):
        followees = network.followees(agent).tolist()
        assert followees == sorted(set(followees) - {agent})
        assert all(0 <= other < n for other in followees)


def drawn_in_parts(cuts, chances=(0.5, 0.25, 0.15, 0.1), wanted=2, n=3000):
    """Return rows of `wanted` of four numbers, drawn from one cut to the next."""
    cumulative = np.cumsum(chances)
    guide = np.searchsorted(cumulative, np.arange(len(chances)) / len(chances), side="right").astype(np.int32)
    indptr, found = np.arange(n + 1) * wanted, np.zeros(n, np.int32)
    indices, held = np.zeros(n * wanted, np.int32), (np.zeros(n + 1, np.int64), np.zeros(0, np.int32))
    for first, last in zip([0, *cuts], [*cuts, n], strict=True):
        draw_rows(first, last, Streams(1).key("follow"), cumulative, guide, 500, *held, indptr, indices, found)
    assert (found == wanted).all()
    return indices.reshape(n, wanted)


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(0, 3000), max_size=5))
def test_rows_are_the_same_however_the_work_is_cut(cuts):
    assert drawn_in_parts(sorted(cuts)).tolist() == drawn_in_parts([]).tolist()
    key, bounds, whole = Streams(1).key("follow"), np.array([0, 100, 180, 3000]), np.zeros(3001, np.int64)
    parts, none = whole.copy(), np.zeros(0, np.int32)
    draw_block_rows(0, 3000, key, bounds, -0.1, -0.01, whole, none)
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), 3000], strict=True):
        draw_block_rows(first, last, key, bounds, -0.1, -0.01, parts, none)
    assert parts.tolist() == whole.tolist()


def test_numbers_are_drawn_in_proportion_to_their_chances_without_replacement():
    chances, n = (0.5, 0.25, 0.15, 0.1), 20_000
    rows = drawn_in_parts([], chances, 2, n)[4:]  # rows 0 .. 3 may not hold themselves
    for a in range(4):
        for b in range(a + 1, 4):
            p = chances[a] * chances[b] / (1 - chances[a]) + chances[b] * chances[a] / (1 - chances[b])
            count = ((rows[:, 0] == a) & (rows[:, 1] == b)).sum()
            assert abs(count - n * p) < 4.5 * (n * p * (1 - p)) ** 0.5


@pytest.mark.parametrize("share", [0.0, 0.4, 0.8])
def test_so_large_a_share_of_follows_goes_both_ways_and_degrees_stay(share):
    own = {"n": 4000, "mean_degree": 60, "followee_sigma": 0.8, "correlation": 0.75}
    network, chance = generated("configuration", mutual=share, **own), generated("configuration", mutual=0, **own)
    edges = follows(network)
    followers, followees = network.n_followers, network.n_followees
    both = sum((b, a) in edges for a, b in edges) / np.minimum(followers, followees).sum()
    assert both == pytest.approx(max(share, 0.08), abs=0.08)  # some are returned by chance, some are drawn twice
    assert followees.sum() == pytest.approx(chance.n_edges, rel=0.01)
    assert np.corrcoef(np.log(followees), np.log(chance.n_followees))[0, 1] > 0.99
    some = np.flatnonzero((followers > 0) & (chance.n_followers > 0))
    assert np.log(followers[some]).std() == pytest.approx(np.log(chance.n_followers[some]).std(), rel=0.1)


@pytest.mark.parametrize("asked", [0.0, 0.5, 0.9])
def test_who_is_followed_by_many_follows_many_as_far_as_is_said(asked):
    network = generated("configuration", n=4000, mean_degree=100, followee_sigma=0.8, correlation=asked, mutual=0)
    followers, followees = network.n_followers, network.n_followees
    some = followers > 0
    found = np.corrcoef(np.log(followers[some]), np.log(followees[some]))[0, 1]
    assert found == pytest.approx(asked, abs=0.06)


def test_how_many_an_agent_follows_is_poisson_however_popularity_is_spread():
    even, uneven = (generated("configuration", n=5000, follower_sigma=s, mean_degree=20) for s in (0.0, 4.0))
    assert even.n_followees.tolist() == uneven.n_followees.tolist()  # repetitions cost nothing
    assert abs(even.n_followees.mean() - 20) < 4 * (20 / 5000) ** 0.5
    assert even.n_followees.var() == pytest.approx(20, rel=4 * (2 / 5000) ** 0.5)


@pytest.mark.parametrize(("kind", "blocks"), [("erdos_renyi", 1), ("stochastic_block", 1), ("stochastic_block", 7)])
def test_how_many_agents_follow_and_are_followed_by_is_binomial(kind, blocks):
    network = generated(kind, n=4003, mean_degree=12, blocks=blocks)
    for degrees in (network.n_followees, network.n_followers):
        assert abs(degrees.mean() - 12) < 5 * (12 / 4003) ** 0.5
        assert degrees.var() == pytest.approx(12 * (1 - 12 / 4002), rel=0.12)


@pytest.mark.parametrize("rewire", [0.3, 1.0])
def test_rewiring_keeps_the_number_of_pairs_and_follows_stay_mutual(rewire):
    edges = follows(generated("watts_strogatz", n=500, mean_degree=6, rewire=rewire))
    assert len(edges) == 500 * 6
    assert {(b, a) for a, b in edges} == edges
    kept = sum(min((a - b) % 500, (b - a) % 500) <= 3 for a, b in edges) / len(edges)
    assert kept == pytest.approx(1 - rewire + rewire * 6 / 499, abs=0.05)


def test_barabasi_albert_has_hubs_and_returns_the_given_share_of_follows():
    network = generated("barabasi_albert", n=2000, reciprocity=0.33)
    assert network.n_followers.max() > 10 * network.n_followers.mean()
    edges = follows(network)
    newcomers = [(a, b) for a, b in edges if a > b]
    assert len(newcomers) / (len(newcomers) + sum((b, a) in edges for a, b in newcomers)) == pytest.approx(
        0.75, abs=0.02
    )


def test_watts_strogatz_is_a_ring_that_is_rewired():
    ring = generated("watts_strogatz", n=50, mean_degree=4, rewire=0.0)
    assert follows(ring) == {(i, (i + d) % 50) for i in range(50) for d in (-2, -1, 1, 2)}
    assert follows(generated("watts_strogatz", n=50, mean_degree=4, rewire=0.5)) != follows(ring)


def test_blocks_keep_the_given_share_of_follows_inside():
    edges = follows(generated("stochastic_block", n=1000, mean_degree=20, blocks=4, within=0.8))
    assert sum(a // 250 == b // 250 for a, b in edges) / len(edges) == pytest.approx(0.8, abs=0.02)


def test_blocks_too_small_for_their_follows_are_a_config_error_not_a_thinner_network():
    with pytest.raises(ConfigError, match=r"network\.within: 0\.8 of 20.* 10 agents.*9 others"):
        generated("stochastic_block", n=40, mean_degree=20, blocks=4, within=0.8)
    with pytest.raises(ConfigError, match=r"network\.within: .*outside"):
        generated("stochastic_block", n=40, mean_degree=25, blocks=2, within=0.0)
    with pytest.raises(ConfigError, match=r"network\.blocks: 50 is more than the 40 agents"):
        generated("stochastic_block", n=40, mean_degree=2, blocks=50)


def test_more_follows_than_there_are_others_is_a_config_error_with_the_highest_possible_number():
    with pytest.raises(ConfigError, match=r"network\.mean_degree: 20\.0 .* 19 others .* 20 agents.*mean_degree=19 or"):
        generated("erdos_renyi", n=20, mean_degree=20)


def test_followers_of_the_configuration_model_are_lognormal():
    narrow = generated("configuration", n=4000, follower_sigma=0.0, mean_degree=30)
    wide = generated("configuration", n=4000, follower_sigma=1.5, mean_degree=150)
    assert narrow.n_followers.std() == pytest.approx(30**0.5, rel=0.1)  # as many as chance gives
    low, median, high = np.quantile(wide.n_followers, [0.25, 0.5, 0.9])
    assert high / median == pytest.approx(np.exp(1.2816 * 1.5), rel=0.15)
    assert median / low == pytest.approx(np.exp(0.6745 * 1.5), rel=0.2)
    assert narrow.n_followees.mean() == pytest.approx(30, rel=0.02)
    assert narrow.n_followees.std() == pytest.approx(30**0.5, rel=0.1)
