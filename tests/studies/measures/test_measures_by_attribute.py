"""Measures by an attribute of agents, worked out by hand or held against networkx and scipy."""

from math import isnan

import networkx as nx
import numpy as np
import pytest
from scipy.stats import kurtosis, skew, spearmanr
from small_measured_runs import AGENTS, finished

from prism_mesa.errors import ConfigError, RunError
from prism_mesa.studies.measures.catalogue import find_measure, measured
from prism_mesa.studies.measures.exposure import measures_by_attribute

DECLARED = {
    "party": {"of": "agent", "values": ["left", "right"]},
    "leaning": {"of": "agent", "range": [-1, 1]},
    "veracity": {"of": "post", "values": [True, False]},
}
HELD = {"party": ["left", "left", "right", "right"], "leaning": [-0.5, -1.0, 0.25, 0.75], "present": [True] * 4}


def value(name, follows=None, **held):
    run = finished({"attributes": DECLARED}, follows=follows, agents=AGENTS | HELD | held)
    return measured(run, [name])[name]


@pytest.mark.parametrize("attribute", ["party", "leaning"])
def test_sides_are_values_or_lie_below_and_above_the_middle(attribute):
    # follows 0->1 within; 0->2, 0->3 between; 1->0 within
    assert value(f"follow_ei@{attribute}") == 0
    # who read root 0, by agent 0: agents 1, 2, 2, 3, 3; root 2, by agent 1: agents 0, 2, 3
    assert value(f"cross_cutting@{attribute}") == 6 / 8
    assert value(f"impression_ei@{attribute}") == (6 - 2) / 8
    # engagements: agent 1 with 0, agent 0 with 2 (of agent 1), agent 2 with 0
    assert value(f"engagement_ei@{attribute}") == pytest.approx((1 - 2) / 3)


def random_follows(seed, n=40):
    draw = np.random.default_rng(seed)
    src, dst = draw.integers(0, n, (2, 300))
    return {"src": src, "dst": dst}, draw


def test_modularity_and_assortativity_are_those_of_networkx():
    follows, draw = random_follows(3)
    agents = {"party": draw.choice(["left", "right"], 40), "leaning": draw.uniform(-1, 1, 40), "followers": range(40)}
    given = {name: list(column) for name, column in agents.items()}
    run = finished({"attributes": DECLARED}, follows=follows, agents=given)
    graph = nx.MultiDiGraph(list(zip(follows["src"].tolist(), follows["dst"].tolist(), strict=True)))
    graph.add_nodes_from(range(40))
    for name, column in given.items():
        nx.set_node_attributes(graph, dict(enumerate(column)), name)
    found = measured(run, ["follow_modularity@party", "follow_assortativity@party", "follow_assortativity@leaning"])
    groups = [{i for i in range(40) if given["party"][i] == side} for side in ("left", "right")]
    assert found["follow_modularity@party"] == pytest.approx(nx.community.modularity(graph, groups))
    mixing = nx.attribute_assortativity_coefficient(graph, "party")
    assert found["follow_assortativity@party"] == pytest.approx(mixing)
    numeric = nx.numeric_assortativity_coefficient(graph, "leaning")
    assert found["follow_assortativity@leaning"] == pytest.approx(numeric)


def test_the_correlation_with_followers_is_of_ranks():
    assert value("followers_correlation@leaning") == pytest.approx(spearmanr(HELD["leaning"], AGENTS["followers"])[0])
    assert isnan(value("followers_correlation@leaning", leaning=[0.5] * 4))


def test_opinions_are_those_of_agents_who_are_there():
    camps = {"leaning": [-1.0, 1.0, 1.0, 0.5], "present": [True, True, True, False]}
    assert value("opinion_mean@leaning", **camps) == pytest.approx(1 / 3)
    assert value("opinion_variance@leaning", **camps) == pytest.approx(8 / 9)
    assert value("opinion_bimodality@leaning", **camps) == pytest.approx(1)
    draw = np.random.default_rng(5).normal(size=4)
    expected = (skew(draw) ** 2 + 1) / kurtosis(draw, fisher=False)
    assert value("opinion_bimodality@leaning", leaning=list(draw)) == pytest.approx(expected)
    assert isnan(value("opinion_bimodality@leaning", leaning=[0.1] * 4))
    assert all(isnan(value(f"opinion_{name}@leaning", present=[False] * 4)) for name in ("mean", "variance"))
    with pytest.raises(RunError, match="opinion_mean@party: party: opinions are numbers of a range, and it has values"):
        value("opinion_mean@party")


@pytest.mark.parametrize("base", [base for base in measures_by_attribute("x") if "matched" not in base])  # of posts
def test_each_says_of_what_it_is_and_lies_in_its_range(base):
    own = find_measure(f"{base}@leaning")
    assert own.name == f"{base}@leaning"
    assert "`leaning`" in own.meaning
    assert own.low <= value(f"{base}@leaning") <= own.high


def test_an_attribute_or_a_measure_that_is_not_there_is_named():
    for name, fault in (("follow_ei@", "''"), ("follow_ei@veracity", r"'veracity' .*party, leaning")):
        with pytest.raises(RunError, match=f"no attribute {fault}"):
            value(name)
    with pytest.raises(ConfigError, match=r"follow_e@leaning: .*Did you mean 'follow_ei'"):
        find_measure("follow_e@leaning")


def test_shapes_of_two_groups_of_posts_are_compared_at_equal_sizes():
    n = 4
    posts = {"author": [0] * n, "kind": ["post"] * n, "round": [0] * n, "root": range(n), "topic": [None] * n}
    posts |= {"veracity": [True, False, True, False], "tone": [-0.5, 0.9, -1.0, 0.2], "three": [1, 2, 3, 1]}
    trees = {"root": range(n), "size": [30, 30, 9, 9], "depth": [2, 5, 1, 8], "breadth": [20, 12, 8, 2]}
    trees |= {"structural_virality": [2.0, 2.5, 1.5, 3.0], "kind": ["post"] * n}
    declared = DECLARED | {"tone": {"of": "post", "range": [-1, 1]}, "three": {"of": "post", "values": [1, 2, 3]}}
    run = finished({"attributes": declared}, posts=posts, cascades=trees)
    for attribute in ("veracity", "tone"):
        assert measured(run, [f"matched_{name}@{attribute}" for name in ("depth", "breadth", "virality")]) == {
            f"matched_depth@{attribute}": 3,
            f"matched_breadth@{attribute}": -8,
            f"matched_virality@{attribute}": 0.5,
        }
    with pytest.raises(RunError, match="three: two groups of posts are compared"):
        measured(run, ["matched_depth@three"])
    with pytest.raises(RunError, match=r"posts have no attribute 'party' \(attributes of posts: veracity"):
        measured(run, ["matched_depth@party"])
