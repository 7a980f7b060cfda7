"""Reshare trees and follow networks that are known, or held against networkx and published numbers."""

import math
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.social.state.network import from_edges
from prism_mesa.streams import make_generator
from prism_mesa.studies.estimators.graphs import (
    SIZE_CLASSES,
    clustering,
    degree_assortativity,
    degree_correlation,
    friendship_paradox,
    hops,
    matched_difference,
    mutual_follows,
    reproduction,
    shapes_by_size,
)


def galton_watson(mean, n_roots, rng):
    """Return parents of nodes, -1 for roots, each of which has a Poisson number of children."""
    parents, level = [-1] * n_roots, list(range(n_roots))
    while level:
        children = rng.poisson(mean, len(level))
        level_parents = np.repeat(level, children)
        level = list(range(len(parents), len(parents) + len(level_parents)))
        parents += level_parents.tolist()
    return np.array(parents)


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=30), st.integers(1, 4))
def test_hops_are_distances_to_the_root(draws, n_roots):
    parent = np.array([-1] * n_roots + [int(u * (n_roots + i)) for i, u in enumerate(draws)])
    graph = nx.DiGraph()
    graph.add_nodes_from(range(len(parent)))
    graph.add_edges_from((int(above), i) for i, above in enumerate(parent) if above >= 0)
    found = hops(parent, parent >= 0)
    for root in range(n_roots):
        for node, distance in nx.shortest_path_length(graph, root).items():
            assert found[node] == distance


def test_the_reproduction_number_of_a_branching_process_is_found_at_each_hop():
    parent = galton_watson(0.6, 20_000, make_generator("branching"))
    found = reproduction(hops(parent, parent >= 0))
    assert found[:3] == pytest.approx([0.6, 0.6, 0.6], abs=0.03)
    assert found[-1] == 0


def test_shapes_are_compared_within_classes_of_size():
    frame = pd.DataFrame(
        {
            "size": [1, 2, 3, 4, 99, 100, 5000],
            "depth": [0, 1, 1, 3, 5, 7, 9],
            "breadth": [1, 1, 2, 1, 30, 40, 900],
            "structural_virality": [0.0, 1.0, 1.3, 1.7, 3.0, 4.0, 5.0],
        }
    )
    found = shapes_by_size(frame).set_index("from_size")
    assert found.index.tolist() == [2, 3, 50, 100, 1000]
    assert found.loc[3, ["n", "size", "depth"]].tolist() == [2, 3.5, 2]
    assert found["n"].sum() == 6  # a lone post is of no class
    assert set(found.index) <= set(SIZE_CLASSES)
    assert shapes_by_size(frame.iloc[:1]).empty


def test_groups_are_compared_at_equal_sizes():
    # depths hang on size alone, and the second group has more large cascades: at equal sizes there is no difference
    size = np.array([20] * 10 + [200] * 2 + [20] * 3 + [200] * 8)
    second = np.arange(23) >= 12
    depth = np.where(size == 20, 2.0, 5.0)
    assert depth[second].mean() - depth[~second].mean() > 1
    assert matched_difference(size, depth, second) == 0
    # one deeper at 20, three deeper at 200: 3 and 2 cascades can be matched
    deeper = depth + np.where(second, np.where(size == 20, 1.0, 3.0), 0.0)
    assert matched_difference(size, deeper, second) == pytest.approx((3 * 1 + 2 * 3) / 5)
    assert matched_difference(size, deeper, ~second) == -matched_difference(size, deeper, second)


def test_groups_without_cascades_of_one_size_are_not_compared():
    assert np.isnan(matched_difference(np.array([10, 50]), np.array([1.0, 2.0]), np.array([False, True])))
    assert np.isnan(matched_difference(np.array([10, 50]), np.array([1.0, 2.0]), np.array([True, True])))
    close = matched_difference(np.array([1000, 1040]), np.array([1.0, 2.0]), np.array([False, True]))
    assert close == 1  # within a tenth of each other


GRAPHS = Path(__file__).parents[4] / "shared" / "data" / "follow_graph"


def drawn():
    rng = make_generator("follows of a test")
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
