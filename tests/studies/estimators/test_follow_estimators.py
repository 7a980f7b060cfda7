"""Degrees at both ends of follows and the friendship paradox, against networkx and by hand."""

import math
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from prism_mesa.streams import generator
from prism_mesa.studies.estimators.follows import degree_assortativity, friendship_paradox

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
