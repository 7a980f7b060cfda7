"""Degrees at both ends of follows and the friendship paradox, against networkx and by hand."""

import math
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from prism_mesa.social.state.network import from_edges
from prism_mesa.streams import generator
from prism_mesa.studies.estimators.graphs import (
    clustering,
    degree_assortativity,
    degree_correlation,
    friendship_paradox,
    mutual_follows,
)

GRAPHS = Path(__file__).parents[4] / "shared" / "data" / "follow_graph"


def drawn():
    rng = generator("follows of a test")
    popular = rng.zipf(2.0, 60) % 50
    edges = {(int(a), int(b)) for a, b in zip(popular[rng.integers(0, 60, 400)], rng.integers(0, 60, 400), strict=True)}
    return np.array(sorted(edge for edge in edges if edge[0] != edge[1])).T


def test_assortativity_is_that_of_networkx():
    src, dst = drawn()
    graph = nx.DiGraph(list(zip(src.tolist(), dst.tolist(), strict=True)))
    assert degree_assortativity(src, dst, 60) == pytest.approx(nx.degree_assortativity_coefficient(graph))


def test_who_follows_a_star_has_fewer_followers_than_it():
    star = np.zeros(5, int), np.arange(1, 6)  # all follow 0, who follows nobody and is not counted
    assert friendship_paradox(*star, 6) == 1
    ring = np.arange(5), (np.arange(5) + 1) % 5
    assert friendship_paradox(*ring, 5) == 0
    assert math.isnan(degree_assortativity(*ring, 5))
    assert math.isnan(friendship_paradox(np.zeros(0, int), np.zeros(0, int), 3))


def test_the_paradox_compares_means_as_they_are_by_hand():
    # followers: 0 has 2, 1 has 1, 2 has 1; 2 follows 0 and 1: a mean of 1.5 above 1; 1 follows 0: 2 above 1
    src, dst = np.array([0, 0, 1, 2]), np.array([1, 2, 2, 0])
    assert friendship_paradox(src, dst, 3) == pytest.approx(2 / 3)  # 0 follows 2, who has fewer


@pytest.mark.skipif(not GRAPHS.exists(), reason="shared/data is not here")
@pytest.mark.parametrize(("graph", "published"), [("verizoncareers", -0.246), ("bofa_careers", -0.245)])
def test_real_graphs_are_as_disassortative_as_was_published(graph, published):
    edges = pd.read_csv(GRAPHS / f"{graph}_edges.csv.gz").to_numpy()
    src, dst = edges.T
    assert degree_assortativity(src, dst, int(edges.max()) + 1) == pytest.approx(published, abs=0.0006)


def test_returned_follows_and_degrees_at_both_ends_are_those_of_networkx():
    src, dst = drawn()
    network, graph = from_edges(src, dst, 60), nx.DiGraph(list(zip(src.tolist(), dst.tolist(), strict=True)))
    assert mutual_follows(network)[0] == pytest.approx(nx.overall_reciprocity(graph))
    degrees = np.array([(graph.in_degree(node), graph.out_degree(node)) for node in graph])
    both = degrees[(degrees > 0).all(axis=1)]
    assert degree_correlation(network) == pytest.approx(np.corrcoef(np.log(both.T))[0, 1])
    possible = degrees.min(axis=1).sum()
    returned = nx.overall_reciprocity(graph) * graph.number_of_edges()
    assert mutual_follows(network)[1] == pytest.approx(returned / possible)


def test_clustering_is_the_mean_share_of_pairs_of_followees_with_a_follow_between_them():
    # 0 follows 1, 2, 3, of whom 1 and 2 follow each other: one pair of three; 1 and 2 follow one each
    src, dst = np.array([1, 2, 3, 1, 2]), np.array([0, 0, 0, 2, 1])
    assert clustering(from_edges(src, dst, 4)) == pytest.approx(1 / 3, abs=0.006)
    src, dst = drawn()
    graph = nx.DiGraph(list(zip(dst.tolist(), src.tolist(), strict=True)))  # who follows -> who is followed
    shares = []
    for node in graph:
        pairs = list(combinations(graph.successors(node), 2))
        shares += [np.mean([graph.has_edge(a, b) or graph.has_edge(b, a) for a, b in pairs])] if pairs else []
    assert clustering(from_edges(src, dst, 60)) == pytest.approx(np.mean(shares), abs=0.006)


def test_of_nobody_who_follows_two_or_is_followed_back_nothing_can_be_said():
    none = from_edges(np.zeros(0, int), np.zeros(0, int), 3)
    assert all(map(math.isnan, (*mutual_follows(none), degree_correlation(none), clustering(none))))
    ring = from_edges(np.arange(5), (np.arange(5) + 1) % 5, 5)
    assert mutual_follows(ring) == (0, 0)
    assert math.isnan(degree_correlation(ring))
