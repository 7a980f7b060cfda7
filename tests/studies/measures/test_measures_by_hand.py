"""Measures of runs so small that they can be worked out by hand, or held against networkx and scipy."""

from math import exp, isnan, log, log2

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy
from small_measured_runs import AGENTS, CASCADES, IMPRESSIONS, POSTS, finished

from prism_mesa.studies.measures.catalogue import measured
from prism_mesa.studies.measures.exposure import assortativity, effective_numbers, external_internal
from prism_mesa.studies.measures.measure import count_pairs


def value(name, run=None, **how):
    return measured(run or finished(**how), [name])[name]


BLOCKS = {"network": {"kind": "stochastic_block", "blocks": 2}, "agents": {"n": 4}}
NOTHING_READ = dict.fromkeys(("agent", "post", "root"), np.zeros(0, np.int32))


def test_engagements_are_counted_per_impression():
    expected = {"likes": 6, "engagements": 8, "likes_per_impression": 6 / 16, "reshares_per_impression": 1 / 16}
    expected["engagement_per_impression"] = 0.5
    assert measured(finished(), list(expected)) == expected
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
    assert measured(finished(posts=one_topic), names) == dict(zip(names, (1, 0.75, 0), strict=True))
    assert all(map(isnan, measured(finished(posts=POSTS | {"topic": [None] * 4}), names).values()))


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
    assert measured(finished(config=BLOCKS, summary={"seeded": SEEDED}), list(expected)) == expected
    assert all(map(isnan, measured(finished(), list(expected)).values()))
