"""Posts: counters add up and velocity has a window. Cascades: measured as by hand and as networkx does."""

from collections import Counter
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import ran, small

from prism_mesa.social.state.outcomes import cascades
from prism_mesa.social.state.posts import NO_PARENT, POST, REPLY, RESHARE, Posts
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.corpus import Corpus


def measured(tree):
    """Return the cascades of posts given as (kind, parent)."""
    root = []
    for i, (kind, parent) in enumerate(tree):
        root.append(root[parent] if kind == RESHARE else i)
    parent = np.array([parent for _, parent in tree], np.int64)
    kind = np.array([kind for kind, _ in tree], np.int64)
    return cascades(parent, np.array(root, np.int64), kind).to_dict("records")


def row(root, size, depth, breadth, virality):
    return {"root": root, "size": size, "depth": depth, "breadth": breadth, "structural_virality": virality}


def test_a_broadcast_is_broad_and_a_chain_is_deep():
    star = [(POST, -1)] + [(RESHARE, 0)] * 4
    assert measured(star) == [row(0, 5, 1, 4, pytest.approx(1.6))]  # 4 pairs at distance 1, 6 at 2: 16 / 10
    chain = [(POST, -1)] + [(RESHARE, i) for i in range(4)]
    assert measured(chain) == [row(0, 5, 4, 1, pytest.approx(2.0))]  # (4*1 + 3*2 + 2*3 + 1*4) / 10


@st.composite
def trees(draw):
    tree = [(POST, -1)]
    for i in range(1, draw(st.integers(1, 40))):
        kind = draw(st.sampled_from([POST, REPLY, RESHARE, RESHARE, RESHARE, RESHARE]))
        tree.append((kind, -1 if kind == POST else draw(st.integers(0, i - 1))))
    return tree


@pytest.mark.slow
@settings(max_examples=100, deadline=None)
@given(trees())
def test_cascades_agree_with_networkx(tree):
    graph = nx.Graph()
    graph.add_nodes_from(range(len(tree)))
    graph.add_edges_from((parent, i) for i, (kind, parent) in enumerate(tree) if kind == RESHARE)
    expected = []
    for root in (i for i, (kind, _) in enumerate(tree) if kind != RESHARE):
        depths = nx.single_source_shortest_path_length(graph, root)
        distances = dict(nx.all_pairs_shortest_path_length(graph.subgraph(depths)))
        pairs = [distances[a][b] for a, b in combinations(depths, 2)]
        levels = Counter(depths.values())
        virality = sum(pairs) / len(pairs) if pairs else 0.0
        breadth = max((n for depth, n in levels.items() if depth), default=1)
        expected.append(row(root, len(depths), max(depths.values()), breadth, pytest.approx(virality)))
    assert measured(tree) == expected


def table(window=3, texts=("one", "two")):
    vectors = np.zeros((len(texts), 2), np.int8)
    topics = Topics(vectors, [], np.zeros((0, 2), np.int8), lambda more: np.ones((len(more), 2), np.int8))
    return Posts(Corpus(list(texts)), topics, window)


def add(posts, n, *, round_=0, kind=POST, parent=NO_PARENT, root=None):
    return posts.add(np.arange(n), np.zeros(n, int), round_, kind, parent, root)


def test_posts_get_ids_in_order_and_keep_their_columns_however_many_there_are():
    posts = table()
    for k in range(5):
        assert add(posts, 700, round_=k).tolist() == list(range(700 * k, 700 * (k + 1)))
    assert len(posts) == 3500
    assert posts.round.tolist() == [k for k in range(5) for _ in range(700)]
    assert posts.root.tolist() == list(range(3500))
    assert posts.likes.tolist() == [0] * 3500


def test_velocity_counts_the_engagements_of_the_last_rounds():
    posts = table(window=2)
    add(posts, 2)
    seen = []
    for engaged in ([0, 0, 0], [0, 1], [], [1], []):
        posts.count_velocity(np.array(engaged, int))
        seen.append(posts.velocity.tolist())
    assert seen == [[3, 0], [4, 1], [1, 1], [0, 1], [0, 1]]


def test_written_texts_come_after_the_corpus_and_have_topics():
    posts = table()
    assert posts.add_texts(["three", "four"]).tolist() == [2, 3]
    posts.add(np.array([0]), np.array([3]), 0, POST, NO_PARENT, None)
    assert posts.texts[2:] == ["three", "four"]
    assert posts.vectors(np.array([0])).tolist() == [[1, 1]]
    assert posts.views(np.array([0]), ["Ann"], [0.5], [0.5])[0].text == "four"


def test_a_reader_sees_the_roots_counters_and_its_own_relevance():
    posts = table()
    add(posts, 1)
    posts.add(np.array([4]), np.array([1]), 1, RESHARE, np.array([0]), np.array([0]))
    posts.add(np.array([5]), np.array([1]), 1, REPLY, np.array([0]), None)
    posts.count("likes", np.array([0, 0]))
    posts.count_velocity(np.array([0]))
    first, reshare, reply = posts.views(np.array([0, 1, 2]), ["Ann", "Bo", "Cy"], [0.5, 1.0, 0.0], [0.7, 0.1, 0.0])
    assert (reshare.kind, reshare.parent, reshare.root, reshare.likes, reshare.velocity) == ("reshare", 0, 0, 2, 1)
    assert (reshare.author, reshare.author_name, reshare.relevance, reshare.round) == (4, "Bo", 1.0, 1)
    assert (reply.kind, reply.parent, reply.root, reply.likes, reply.relevance) == ("reply", 0, 2, 0, 0.0)
    assert reply.text == "(in reply to: two)"
    assert first.parent is None


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.sampled_from(["random", "chronological", "x_algo"]),
    st.sampled_from([0.3, 0.55]),
)
def test_the_counters_of_posts_add_up_to_the_engagements(seed, window, mode, threshold):
    model = small(seed=seed, feed_velocity_window=window, feed_mode=mode, agents_threshold_mean=threshold)
    ran(model, 5)
    posts, rounds = model.posts, model.datacollector.get_model_vars_dataframe()
    engaged = model.recorder.tables.get("engagements", [])
    for counter, action in (("likes", "like"), ("replies", "reply"), ("reshares", "reshare")):
        per_root = Counter(row["root"] for row in engaged if row["action"] == action)
        assert getattr(posts, counter).tolist() == [per_root[i] for i in range(len(posts))]
        assert getattr(posts, counter).sum() == rounds[counter].sum() == model.totals[counter]
    moves = model.recorder.tables.get("transitions", [])
    read = Counter(int(posts.root[row["post"]]) for row in moves if row["trigger"] == "sees_post")
    assert posts.impressions.tolist() == [read[i] for i in range(len(posts))]
    assert sum(read.values()) == rounds["impressions"].sum()
    recent = Counter(row["root"] for row in engaged if row["round"] > model.round - window)
    assert posts.velocity.tolist() == [recent[i] for i in range(len(posts))]
    entered = Counter(row["to_state"] for row in moves if row["to_state"].startswith("engaging"))
    assert entered == Counter(f"engaging_{row['action']}" for row in engaged)
    spread = cascades(posts.parent, posts.root, posts.kind)
    assert (spread["size"] - 1).sum() == (posts.kind == RESHARE).sum() == model.totals["reshares"]
    assert (posts.kind == REPLY).sum() == model.totals["replies"]
