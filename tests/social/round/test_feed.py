"""Feeds: every mode against a slow reference in plain Python, and what each weight and factor does."""

import numpy as np
import pytest
from hypothesis import strategies as st
from worlds import ran, small

from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.params import FeedParams, SocialParams, XAlgoParams
from prism_mesa.social.round import feeds as feed
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.social.state.network import from_edges
from prism_mesa.social.state.posts import POST, RESHARE, Posts
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.corpus import Corpus
from prism_mesa.social.world.profiles import draw_profiles
from prism_mesa.streams import Streams

worlds = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10**6),
        "agents_n": st.integers(7, 25),
        "agents_activity": st.sampled_from([0.5, 1.0]),
        "agents_post_rate": st.sampled_from([0.1, 0.8]),
        "agents_threshold_mean": st.sampled_from([0.3, 0.55]),
        "agents_reshare": st.sampled_from([0.25, 1.0]),
        "feed_size": st.integers(1, 12),
        "feed_window": st.integers(1, 4),
    }
)


def test_a_feed_in_a_run_never_shows_a_root_twice_or_what_was_seen_or_ones_own():
    model = small(feed_mode="x_algo", agents_reshare=1.0, agents_activity=1.0, feed_size=30, feed_window=5)
    seen = {i: set() for i in range(30)}
    for _ in range(5):  # as many rounds as the window: nothing is forgotten
        model.step()
        p, posts = model.population, model.posts
        for i in range(30):
            shown = p.feed[i, : p.n_feed[i]]
            roots = posts.root[shown].tolist()
            assert len(set(roots)) == len(roots)
            assert not seen[i] & set(roots)
            assert i not in posts.author[shown].tolist() + posts.author[posts.root[shown]].tolist()
            assert all(posts.round[shown] <= model.round)
            seen[i] |= set(roots[: p.n_read[i]])
    assert sum(map(len, seen.values())) > 100


def test_what_comes_back_after_its_window_is_not_shown_to_who_wrote_it():
    class Archivist(SocialAgent):
        def step(self):
            if (self.model.round, self.model.tick) == (0, 1):
                kept.extend(self.feed)
            if (self.model.round, self.model.tick) == (3, 1):
                for post in kept:
                    self.reshare(post)

    kept = []
    often = {"agents_activity": 1.0, "agents_activity_sigma": 0.0, "agents_post_rate": 0.5, "network_mean_degree": 9}
    model = small(feed_window=1, feed_size=60, **often)
    Archivist(model, int(model.network.n_followers.argmax()))
    for round_ in range(5):
        model.step()
        p, posts = model.population, model.posts
        shown = {(i, int(posts.root[post])) for i in range(30) for post in p.feed[i, : p.n_feed[i]]}
        assert not {(i, root) for i, root in shown if posts.author[root] == i}, round_
    assert len({root for _, root in shown} & {post.root for post in kept}) > 1


def test_two_arms_that_differ_in_the_mode_share_who_comes_and_who_posts():
    arms = [ran(small(feed_mode=mode), 1) for mode in ("random", "preference")]
    assert arms[0].round_row["online"] == arms[1].round_row["online"]
    assert arms[0].posts.author[: arms[0].totals["posts"]].tolist() == (
        arms[1].posts.author[: arms[1].totals["posts"]].tolist()
    )


# worlds by hand: agent 0 reads, the others write; topics are axes of three dimensions

EAST, NORTH, WEST = (127, 0, 0), (0, 127, 0), (-127, 0, 0)


def by_hand(posts, params, follows=(1, 2, 3), interest=EAST, n=6, now=0, **counters):
    """Return agent 0's feed over `posts`: (author, topic, kind, parent, root) or shorter."""
    vectors = np.array([post[1] for post in posts], np.int8)
    topics = Topics(vectors, [], np.zeros((0, 3), np.int8), lambda texts: np.zeros((len(texts), 3), np.int8))
    table = Posts(Corpus([f"text {i}" for i in range(len(posts))]), topics, 3)
    for i, (author, _, *more) in enumerate(posts):
        kind, parent, root = (*more, *(POST, -1, -1)[len(more) :])
        table.add(np.array([author]), np.array([i]), now, kind, parent, np.array([root]))
    for name, values in counters.items():
        getattr(table, name)[:] = values
    streams = Streams(1)
    interests = np.array([interest] * n, np.int8)
    people = draw_profiles(np.arange(n), list("abcdefgh"[:n]), interests, SocialParams(feed=params), streams)
    network = from_edges(np.array(follows, int), np.zeros(len(follows), int), n)
    seen = Exposure(n)
    seen.add(table.author, np.arange(len(table)))  # what one wrote counts as read
    feed.rank_feeds(np.arange(n), people, table, seen, network, params, streams, now)
    return people.feed[0, : people.n_feed[0]].tolist()


def x_algo(**weights):
    """Return parameters of x_algo in which nothing counts and nothing lowers, but for what is given."""
    names = [name for name in XAlgoParams.model_fields if name.startswith("weight_")]
    neutral = {"out_of_network": 0, "out_of_network_factor": 1.0, "reply_factor": 1.0, "author_decay": 1.0}
    return FeedParams(mode="x_algo", x_algo=XAlgoParams(**(dict.fromkeys(names, 0.0) | neutral | weights)))


def test_chronological_is_newest_first():
    assert by_hand([(1, EAST), (3, WEST), (2, EAST)], FeedParams(mode="chronological")) == [2, 1, 0]


def test_preference_is_most_similar_first_and_the_newer_of_two_alike():
    posts = [(1, NORTH), (2, EAST), (3, WEST), (1, EAST), (2, NORTH)]
    assert by_hand(posts, FeedParams(mode="preference")) == [3, 1, 4, 0, 2]


def test_a_reshare_and_its_root_take_one_place_and_the_better_ranked_stays():
    posts = [(1, EAST), (2, EAST), (3, EAST, RESHARE, 0, 0)]
    assert by_hand(posts, FeedParams(mode="chronological")) == [2, 1]


@pytest.mark.parametrize(
    ("weight", "counter"), [("weight_like", "likes"), ("weight_reply", "replies"), ("weight_reshare", "reshares")]
)
def test_each_weight_counts_its_own_observed_rate(weight, counter):
    three = [(1, EAST), (2, EAST), (3, EAST)]
    counts = {"impressions": [100, 100, 100], counter: [9, 50, 1]}
    assert by_hand(three, x_algo(**{weight: 1.0}), **counts) == [1, 0, 2]
    others = {"likes": "replies", "replies": "reshares", "reshares": "likes"}[counter]
    assert by_hand(three, x_algo(**{weight: 1.0}), impressions=[100] * 3, **{others: [9, 50, 1]}) == [2, 1, 0]


def test_with_the_published_weights_one_reply_outweighs_ten_likes_and_a_reshare_two():
    two, n = [(1, EAST), (2, EAST)], {"impressions": [100, 100]}
    params = FeedParams(mode="x_algo", x_algo=XAlgoParams(out_of_network=0))
    assert by_hand(two, params, replies=[1, 0], likes=[0, 10], **n) == [0, 1]
    assert by_hand(two, params, reshares=[6, 0], likes=[0, 10], **n) == [0, 1]
    assert by_hand(two, params, reshares=[4, 0], likes=[0, 10], **n) == [1, 0]


def test_a_rate_of_few_impressions_is_held_to_the_prior():
    two = [(1, EAST), (2, EAST)]
    counts = {"likes": [1, 200], "impressions": [1, 1000]}
    assert by_hand(two, x_algo(weight_like=1.0, prior_impressions=100.0), **counts) == [1, 0]
    assert by_hand(two, x_algo(weight_like=1.0, prior_impressions=0.01), **counts) == [0, 1]


def test_one_reshare_of_an_old_root_makes_no_room_for_all_posts_since():
    topics = Topics(np.zeros((1, 3), np.int8), [], np.zeros((0, 3), np.int8), lambda texts: np.zeros((len(texts), 3)))
    posts = Posts(Corpus(["tea"]), topics, 3)
    for round_ in range(50):
        root = np.full(10, 3 if round_ == 49 else -1)
        posts.add(np.arange(10), np.zeros(10, np.int64), round_, POST, -1, root, np.arange(10, dtype="u8"))
    outbox = feed.make_outbox(posts, FeedParams(window=1), 10, 49)
    assert outbox.n == 10
    assert set(outbox.old_roots.tolist()) == {3}
