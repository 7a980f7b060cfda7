"""Hops, reproduction numbers and shapes at equal sizes of trees that are known."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from prism_mesa.streams import generator
from prism_mesa.studies.estimators.graphs import SIZE_CLASSES, hops, matched_difference, reproduction, shapes_by_size


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
    parent = galton_watson(0.6, 20_000, generator("branching"))
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
