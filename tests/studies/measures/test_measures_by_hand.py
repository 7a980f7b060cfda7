"""Measures of runs so small that they can be worked out by hand, or held against networkx and scipy."""

from math import exp, isnan, log, log2

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy, kurtosis, skew, spearmanr
from small_measured_runs import AGENTS, CASCADES, IMPRESSIONS, POSTS, finished

from prism_mesa.errors import ConfigError, RunError
from prism_mesa.studies.measures.catalogue import compute_measures, find_measure
from prism_mesa.studies.measures.exposure import (
    assortativity,
    effective_numbers,
    external_internal,
    measures_by_attribute,
)
from prism_mesa.studies.measures.measure import count_pairs
from prism_mesa.studies.measures.treatment import measures_of_treatment


def value(name, run=None, **how):
    return compute_measures(run or finished(**how), [name])[name]


BLOCKS = {"network": {"kind": "stochastic_block", "blocks": 2}, "agents": {"n": 4}}
NOTHING_READ = dict.fromkeys(("agent", "post", "root"), np.zeros(0, np.int32))


def test_engagements_are_counted_per_impression():
    expected = {"likes": 6, "engagements": 8, "likes_per_impression": 6 / 16, "reshares_per_impression": 1 / 16}
    expected["engagement_per_impression"] = 0.5
    assert compute_measures(finished(), list(expected)) == expected
    assert isnan(value("engagement_per_impression", summary={"impressions": 0}))


def test_decisions_to_engage_are_counted_by_whether_they_were_left_open():
    moves = {"to_state": ["composing", "scrolling", "composing", "composing", "resting"], "open": [1, 1, 0, 1, 0]}
    assert value("open_engagement_share", transitions=moves) == pytest.approx(2 / 3)
    assert isnan(value("open_engagement_share", transitions={"to_state": ["scrolling"], "open": [True]}))


def test_means_of_cascades_are_of_posts_and_not_of_replies():
    assert [value("cascade_depth_mean"), value("cascade_breadth_mean")] == [0.5, 1]
    only_replies = {name: column[2:] for name, column in CASCADES.items()}
    assert isnan(value("cascade_depth_mean", cascades=only_replies))


def test_what_the_summary_does_not_say_for_want_of_cascades_is_not_a_number():
    without = finished(summary={"cascades": {"n": 0}})
    assert value("cascades", without) == 0
    assert all(isnan(value(name, without)) for name in ("cascade_mean", "cascade_max", "cascade_tail_10"))
    tail = {"n": 60, "tail_exponents": {"above_10": {"exponent": 2.1, "se": 0.1, "n": 50}}}
    assert value("cascade_tail_10", summary={"cascades": tail}) == 2.1
    assert isnan(value("cascade_tail_100", summary={"cascades": tail}))


def test_followers_and_reshares_are_shared_unequally():
    assert value("gini_followers") == pytest.approx(0.625)  # of 0, 0, 1, 3: the mean difference 10 / 8 over 2 means
    assert value("top_10_followers") == 0.75
    assert value("gini_reshares") == 0.75  # all are of one of four
    assert value("top_10_reshares") == 1


def test_readers_read_effectively_as_many_authors_as_would_give_the_same_entropy():
    # agent 0 read agent 1; agent 1 read agent 0; agents 2 and 3 read agent 0 twice and agent 1 once
    twice_and_once = exp(log(3) - 2 / 3 * log(2))
    assert value("exposure_authors") == pytest.approx((1 + 1 + 2 * twice_and_once) / 4)
    assert value("exposure_topics") == pytest.approx((1 + 1 + 2 * twice_and_once) / 4)
    assert isnan(value("exposure_authors", impressions=NOTHING_READ))
    assert isnan(value("exposure_topics", impressions=NOTHING_READ))


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9)), min_size=1, max_size=60))
def test_effective_numbers_are_the_exponential_of_the_entropy_of_scipy(pairs):
    whose, what = np.array(pairs).T
    found = effective_numbers(whose, what, 10)
    expected = [exp(entropy(np.bincount(what[whose == one]))) for one in sorted(set(whose.tolist()))]
    assert found == pytest.approx(expected)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=30), st.booleans())
def test_pairs_are_counted_the_same_whether_there_is_room_for_all_or_not(pairs, far):
    first, second = (np.array([pair[i] for pair in pairs], np.int64) for i in (0, 1))
    step = 10**9 if far else 1
    found = count_pairs(first * step, second, 10)
    expected = sorted({pair: pairs.count(pair) for pair in pairs}.items())
    assert [tuple(row) for row in np.array(found).T.tolist()] == [(a * step, b, n) for (a, b), n in expected]


def test_a_topic_reaches_who_read_anything_of_it_among_those_whose_impressions_are_recorded():
    # tea reached agents 1, 2, 3 of four, jazz 0, 2, 3
    assert value("topic_reach") == 0.75
    unread = POSTS | {"topic": ["tea", "tea", "jazz", "rain"]}
    assert value("topic_reach", posts=unread) == 0.5
    some = finished(
        agents=AGENTS | {"recorded_impressions": [True, True, False, False]},
        impressions={"agent": [0, 1], "post": [2, 0], "root": [2, 0]},
    )
    assert value("topic_reach", some) == 0.5


def test_the_entropy_of_topics_is_of_all_impressions_in_bits():
    assert value("topic_entropy") == pytest.approx(-(5 / 8 * log2(5 / 8) + 3 / 8 * log2(3 / 8)))
    assert isnan(value("topic_entropy", posts=POSTS | {"impressions": [0, 0, 0, 0]}))
    one_topic = POSTS | {"topic": ["tea", "tea", None, None]}  # the others count for none
    names = ("exposure_topics", "topic_reach", "topic_entropy")
    assert compute_measures(finished(posts=one_topic), names) == dict(zip(names, (1, 0.75, 0), strict=True))
    assert all(map(isnan, compute_measures(finished(posts=POSTS | {"topic": [None] * 4}), names).values()))


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=60), st.integers(1, 4))
def test_assortativity_is_that_of_networkx(pairs, kinds):
    graph = nx.DiGraph([pair for pair in pairs if pair[0] != pair[1]])
    for node in graph:
        graph.nodes[node]["kind"] = node % kinds
    if not graph.number_of_edges():
        return
    with np.errstate(invalid="ignore"):
        expected = nx.attribute_assortativity_coefficient(graph, "kind")
    kind = np.array(graph.edges) % kinds
    assert assortativity(*kind.T) == pytest.approx(expected, nan_ok=True)


def test_indices_of_pairs_leave_out_who_is_of_no_kind():
    one, other = np.array([0, 0, 1, -1, 1]), np.array([0, 1, 1, 0, -1])
    assert external_internal(one, other) == pytest.approx(-1 / 3)
    assert assortativity(one, other) == pytest.approx((2 / 3 - (2 / 3 * 1 / 3 + 1 / 3 * 2 / 3)) / (1 - 4 / 9))
    none = np.array([-1])
    assert isnan(external_internal(none, none))
    assert isnan(assortativity(none, none))


def test_communities_are_main_interests_and_in_a_block_model_its_blocks():
    # agents 0 and 1 like tea best, 2 jazz, 3 nothing; the blocks are 0, 1 and 2, 3
    assert value("follow_ei") == pytest.approx(-1 / 3)  # 0-1 and 1-0 within, 0-2 between, 0-3 not known
    assert value("follow_ei", config=BLOCKS) == 0
    assert value("impression_ei") == pytest.approx(1 / 5)  # 2 within: by 0 and 1; 3 between: by 2; those of 3 not known
    assert value("engagement_ei") == pytest.approx(-1 / 3)
    assert value("impression_ei", config=BLOCKS) == pytest.approx((6 - 2) / 8)


def test_assortativity_of_follows_is_by_blocks_or_by_interests():
    inside = {"src": [0, 1, 2, 3], "dst": [1, 0, 3, 2]}
    assert value("follow_assortativity", config=BLOCKS, follows=inside) == 1
    assert value("follow_assortativity", config=BLOCKS, follows={"src": [0, 2], "dst": [2, 0]}) == -1
    interests = finished(config=BLOCKS, follows={"src": [0, 2], "dst": [2, 0]})
    assert value("follow_interest_assortativity", interests) == -1
    assert isnan(value("follow_interest_assortativity", follows={"src": [0, 1], "dst": [1, 0]}))


def test_a_post_reaches_communities_in_which_anybody_read_it_or_a_reshare_of_it():
    # the first was read by both, the second by both; of main interests, without agent 3, too
    assert value("cascade_communities", config=BLOCKS) == 1
    one_block = IMPRESSIONS | {"agent": [0, 0, 1, 1, 1, 2, 3, 3]}
    assert value("cascade_communities", config=BLOCKS, impressions=one_block) == 0.5
    assert isnan(value("cascade_communities", posts=POSTS | {"impressions": [0, 0, 0, 0]}))


def test_what_a_sample_cannot_say_is_not_a_number():
    sampled = finished(
        config=BLOCKS,
        summary={
            "recorded": {"impressions": {"share": 0.5}, "engagements": {"share": 1.0}},
            "seeded": [{"post": 2, "round": 0, "author": 1, "followers": 1, "share_across": 0.25}],
        },
    )
    assert isnan(value("cascade_communities", sampled))
    assert isnan(value("seeded_communities", sampled))
    assert value("impression_ei", sampled) == 0.5


SEEDED = [
    {"post": 0, "round": 0, "author": 0, "followers": 3, "share_across": 0.5},
    {"post": 2, "round": 1, "author": 1, "followers": 1, "share_across": 0.25},
]


def test_measures_of_seeded_posts_are_means_over_them_and_nan_without_any():
    expected = {"cascade_mean": 1.5, "impressions": 4, "communities": 1, "followers": 2, "bridging": 0.375}
    expected = {f"seeded_{name}": number for name, number in expected.items()}
    assert compute_measures(finished(config=BLOCKS, summary={"seeded": SEEDED}), list(expected)) == expected
    assert all(map(isnan, compute_measures(finished(), list(expected)).values()))


DECLARED = {
    "party": {"of": "agent", "values": ["left", "right"]},
    "leaning": {"of": "agent", "range": [-1, 1]},
    "veracity": {"of": "post", "values": [True, False]},
}
HELD = {"party": ["left", "left", "right", "right"], "leaning": [-0.5, -1.0, 0.25, 0.75], "present": [True] * 4}


def held_value(name, follows=None, **held):
    run = finished({"attributes": DECLARED}, follows=follows, agents=AGENTS | HELD | held)
    return compute_measures(run, [name])[name]


@pytest.mark.parametrize("attribute", ["party", "leaning"])
def test_sides_are_values_or_lie_below_and_above_the_middle(attribute):
    # follows 0->1 within; 0->2, 0->3 between; 1->0 within
    assert held_value(f"follow_ei@{attribute}") == 0
    # who read root 0, by agent 0: agents 1, 2, 2, 3, 3; root 2, by agent 1: agents 0, 2, 3
    assert held_value(f"cross_cutting@{attribute}") == 6 / 8
    assert held_value(f"impression_ei@{attribute}") == (6 - 2) / 8
    # engagements: agent 1 with 0, agent 0 with 2 (of agent 1), agent 2 with 0
    assert held_value(f"engagement_ei@{attribute}") == pytest.approx((1 - 2) / 3)


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
    found = compute_measures(
        run, ["follow_modularity@party", "follow_assortativity@party", "follow_assortativity@leaning"]
    )
    groups = [{i for i in range(40) if given["party"][i] == side} for side in ("left", "right")]
    assert found["follow_modularity@party"] == pytest.approx(nx.community.modularity(graph, groups))
    mixing = nx.attribute_assortativity_coefficient(graph, "party")
    assert found["follow_assortativity@party"] == pytest.approx(mixing)
    numeric = nx.numeric_assortativity_coefficient(graph, "leaning")
    assert found["follow_assortativity@leaning"] == pytest.approx(numeric)


def test_the_correlation_with_followers_is_of_ranks():
    assert held_value("followers_correlation@leaning") == pytest.approx(
        spearmanr(HELD["leaning"], AGENTS["followers"])[0]
    )
    assert isnan(held_value("followers_correlation@leaning", leaning=[0.5] * 4))


def test_opinions_are_those_of_agents_who_are_there():
    camps = {"leaning": [-1.0, 1.0, 1.0, 0.5], "present": [True, True, True, False]}
    assert held_value("opinion_mean@leaning", **camps) == pytest.approx(1 / 3)
    assert held_value("opinion_variance@leaning", **camps) == pytest.approx(8 / 9)
    assert held_value("opinion_bimodality@leaning", **camps) == pytest.approx(1)
    draw = np.random.default_rng(5).normal(size=4)
    expected = (skew(draw) ** 2 + 1) / kurtosis(draw, fisher=False)
    assert held_value("opinion_bimodality@leaning", leaning=list(draw)) == pytest.approx(expected)
    assert isnan(held_value("opinion_bimodality@leaning", leaning=[0.1] * 4))
    assert all(isnan(held_value(f"opinion_{name}@leaning", present=[False] * 4)) for name in ("mean", "variance"))
    with pytest.raises(RunError, match="opinion_mean@party: party: give it a range"):
        held_value("opinion_mean@party")


OF_OTHERS = {"matched_depth", "matched_breadth", "matched_virality"}  # of posts
OF_OTHERS |= {measure.name for measure in measures_of_treatment("x", "exposure_ATTRIBUTE")}


@pytest.mark.parametrize("base", sorted(measures_by_attribute("x").keys() - OF_OTHERS))
def test_each_says_of_what_it_is_and_lies_in_its_range(base):
    own = find_measure(f"{base}@leaning")
    assert own.name == f"{base}@leaning"
    assert "`leaning`" in own.meaning
    assert own.low <= held_value(f"{base}@leaning") <= own.high


def test_an_attribute_or_a_measure_that_is_not_there_is_named():
    for name, fault in (("follow_ei@", "''"), ("follow_ei@veracity", r"'veracity' .*party, leaning")):
        with pytest.raises(RunError, match=f"no attribute {fault}"):
            held_value(name)
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
        assert compute_measures(run, [f"matched_{name}@{attribute}" for name in ("depth", "breadth", "virality")]) == {
            f"matched_depth@{attribute}": 3,
            f"matched_breadth@{attribute}": -8,
            f"matched_virality@{attribute}": 0.5,
        }
    with pytest.raises(RunError, match="three: give it two values"):
        compute_measures(run, ["matched_depth@three"])
    with pytest.raises(RunError, match=r"posts have no attribute 'party' \(attributes of posts: veracity"):
        compute_measures(run, ["matched_depth@party"])
