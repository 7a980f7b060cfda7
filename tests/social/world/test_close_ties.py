"""Close ties: chosen among mutual follows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from network_follows import follows
from worlds import plain_group, small

from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.params import NetworkParams
from prism_mesa.social.state.network import FollowNetwork, from_edges
from prism_mesa.social.world.random_networks import generate_network, with_close_ties
from prism_mesa.streams import Streams

KINDS = ["erdos_renyi", "barabasi_albert", "watts_strogatz", "stochastic_block", "configuration"]


def generated(n=400, seed=1, **params):
    own = NetworkParams(**plain_group("network") | {"mean_degree": 5, "close_ties": 0} | params)
    return with_close_ties(generate_network(own, n, Streams(seed)), own.close_ties, Streams(seed))


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
def test_close_ties_of_a_drawn_network_are_some_of_its_mutual_follows(kind):
    plain, network = (generated(kind=kind, mean_degree=40, mutual=0.8, close_ties=most) for most in (0, 4))
    assert follows(network) == follows(plain)
    ties = close(network)
    assert np.bincount([agent for agent, _ in ties]).max() == 4
    assert len(ties) > 2 * 400
    assert close(plain) == set()


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 9)] * 2), max_size=80), st.integers(1, 4))
def test_of_mutual_follows_those_are_close_whose_two_have_the_fewest_followers(edges, most):
    src, dst = np.array(edges, np.int64).reshape(-1, 2).T
    plain = from_edges(src, dst, 10)
    network = with_close_ties(plain, most, Streams(3))
    assert (network.indptr.tolist(), network.indices.tolist()) == (plain.indptr.tolist(), plain.indices.tolist())
    ties, mutual = close(network), {(a, b) for a, b in follows(plain) if (b, a) in follows(plain)}
    followers = plain.n_followers
    of = {agent: [followers[a] + followers[b] for a, b in ties if a == agent] for agent in range(10)}
    assert max(map(len, of.values())) <= most
    for a, b in mutual - ties:  # one of its two had enough that come before
        assert any(len(of[end]) == most and max(of[end]) <= followers[a] + followers[b] for end in (a, b))


def test_a_newcomer_has_no_close_ties_and_takes_nobody_elses():
    model = small(network_close_ties=2, network_mean_degree=20, utility_sensitivity=0.05)
    before = close(model.network)
    agent = SocialAgent(model, follows=[0, 5], followers=[3, 4])
    assert close(model.network) == before != set()
    assert model.network.followees(agent.row).tolist() == [0, 5]


def test_a_note_says_where_close_ties_are_few(tmp_path):
    (tmp_path / "e.csv").write_text("src,dst\n1,2\n2,1\n2,3\n3,4\n4,5\n")
    sensitive = {"utility_sensitivity": 0.04}
    model = small(network_edges=str(tmp_path / "e.csv"), network_close_ties=1, **sensitive)
    assert any("network.close_ties: the network has 0.4 per agent, not 1" in note for note in model.notes)
    assert close(model.network) == {(0, 1), (1, 0)}
    for kind, degree, are_few in (("erdos_renyi", 5, True), ("erdos_renyi", 100, False), ("watts_strogatz", 6, False)):
        model = small(agents_n=500, network_kind=kind, network_mean_degree=degree, network_close_ties=4, **sensitive)
        assert any("network.close_ties" in note for note in model.notes) == are_few


def test_numbers_of_followees_are_lognormal_where_that_is_said():
    network = generated(20_000, mean_degree=60, followee_sigma=0.8, follower_sigma=0.5)
    logs = np.log(network.n_followees)
    assert network.n_followees.mean() == pytest.approx(60, rel=0.02)
    assert logs.std() == pytest.approx(0.8, rel=0.02)
    assert logs.mean() == pytest.approx(np.log(60) - 0.32, abs=0.02)
