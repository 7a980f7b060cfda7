"""Close ties: drawn beside other follows, or chosen among the mutual follows of a file."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_follows import follows
from worlds import plain_group, small

from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.params import NetworkParams
from prism_mesa.social.state.network import FollowNetwork, from_edges
from prism_mesa.social.world.close_ties import with_mutual_ties
from prism_mesa.social.world.random_networks import generate_network
from prism_mesa.streams import Streams

KINDS = ["erdos_renyi", "barabasi_albert", "watts_strogatz", "stochastic_block", "configuration"]


def generated(n=400, seed=1, **params):
    return generate_network(NetworkParams(**plain_group("network") | {"mean_degree": 5} | params), n, Streams(seed))


def close(network):
    """Return the close ties as pairs of who follows whom, and check their form."""
    ties = FollowNetwork(network.close_indptr, network.close_indices)
    assert ties.n_agents == network.n_agents
    for agent in range(ties.n_agents):
        assert (np.diff(ties.followees(agent)) > 0).all()
    assert (ties.indptr.dtype, ties.indices.dtype) == (np.int64, np.int32)
    found = follows(ties)
    assert found == {(b, a) for a, b in found}
    assert found <= follows(network)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_a_drawn_network_has_close_ties_beside_its_other_follows(kind):
    plain, network = generated(kind=kind), generated(kind=kind, close_ties=4)
    ties = close(network)
    assert len(ties) == 4 * 400
    assert follows(network) == follows(plain) | ties
    assert all(network.followees(agent).tolist() == sorted(set(network.followees(agent))) for agent in range(400))
    assert close(plain) == set()
    distance = np.array([min((a - b) % 400, (b - a) % 400) for a, b in ties])
    assert (distance.min(), distance.max()) == (1, 50)


@pytest.mark.parametrize("asked", [1, 3, 5])
def test_an_odd_number_of_close_ties_holds_on_average(asked):
    ties = close(generated(3000, close_ties=asked))
    assert len(ties) / 3000 == pytest.approx(asked, abs=0.06)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 12), st.integers(0, 100), st.integers(0, 9))
def test_among_few_agents_there_are_as_many_as_fit(n, asked, seed):
    ties = close(generated(n, seed, mean_degree=1, close_ties=asked))
    reach = max(1, (n - 1) // 2)
    assert all(1 <= min((a - b) % n, (b - a) % n) <= reach for a, b in ties)
    if asked >= 2 * reach:
        assert ties == {(a, (a + d) % n) for a in range(n) for d in (*range(1, reach + 1), *range(-reach, 0))}


def test_ties_are_of_the_seed_and_no_agents_ties_depend_on_how_many_others_there_are():
    few, many, other = generated(300, close_ties=4), generated(500, close_ties=4), generated(300, 2, close_ties=4)
    assert close(few) != close(other)
    low = {(a, b) for a, b in close(few) if max(a, b) < 240 and min(a, b) > 10}
    assert low == {(a, b) for a, b in close(many) if max(a, b) < 240 and min(a, b) > 10}


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 9)] * 2), max_size=80), st.integers(1, 4))
def test_of_mutual_follows_those_are_close_whose_two_have_the_fewest_followers(edges, most):
    src, dst = np.array(edges, np.int64).reshape(-1, 2).T
    plain = from_edges(src, dst, 10)
    network = with_mutual_ties(plain, most, Streams(3))
    assert (network.indptr.tolist(), network.indices.tolist()) == (plain.indptr.tolist(), plain.indices.tolist())
    ties, mutual = close(network), {(a, b) for a, b in follows(plain) if (b, a) in follows(plain)}
    followers = plain.n_followers
    of = {agent: [followers[a] + followers[b] for a, b in ties if a == agent] for agent in range(10)}
    assert max(map(len, of.values())) <= most
    for a, b in mutual - ties:  # one of its two had enough that come before
        assert any(len(of[end]) == most and max(of[end]) <= followers[a] + followers[b] for end in (a, b))


def test_mutual_follows_that_are_alike_are_chosen_by_the_seed_not_by_number():
    src, dst = np.array([(a, b) for a in range(40) for b in range(40) if a != b]).T
    network = from_edges(src, dst, 40)
    one, other = (close(with_mutual_ties(network, 2, Streams(seed))) for seed in (1, 2))
    assert one != other
    assert len(one) > 70
    assert np.mean([abs(a - b) for a, b in one]) > 8  # in order of numbers they would be neighbours


def test_a_newcomer_has_no_close_ties_and_takes_nobody_elses():
    model = small(network_close_ties=2)
    before = close(model.network)
    agent = SocialAgent(model, follows=[0, 5], followers=[3, 4])
    assert close(model.network) == before
    assert model.network.followees(agent.row).tolist() == [0, 5]


def test_follows_of_files_are_told_to_be_fewer_where_they_are(tmp_path):
    (tmp_path / "e.csv").write_text("src,dst\n1,2\n2,1\n2,3\n3,4\n")
    sensitive = {"utility_sensitivity": 0.04}
    model = small(network_edges=str(tmp_path / "e.csv"), network_close_ties=1, **sensitive)
    assert "network.close_ties: 1 was asked for, 0.5 came out" in model.notes
    assert close(model.network) == {(0, 1), (1, 0)}


def test_the_mean_degree_is_of_the_other_follows_and_told_as_such():
    assert not small(agents_n=3000, network_mean_degree=5, network_close_ties=4).notes
    assert [note for note in small(agents_n=12, network_close_ties=8).notes if "came out" in note]


def test_numbers_of_followees_are_lognormal_where_that_is_said():
    network = generated(20_000, mean_degree=60, followee_sigma=0.8, follower_sigma=0.5)
    logs = np.log(network.n_followees)
    assert network.n_followees.mean() == pytest.approx(60, rel=0.02)
    assert logs.std() == pytest.approx(0.8, rel=0.02)
    assert logs.mean() == pytest.approx(np.log(60) - 0.32, abs=0.02)


def test_of_lognormal_followees_each_agent_has_one_at_least_and_all_others_at_most():
    degrees = generated(60, mean_degree=30, followee_sigma=2.0).n_followees
    assert degrees.min() == 1
    assert degrees.max() == 59
