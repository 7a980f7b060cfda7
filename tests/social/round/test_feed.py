"""Feeds: every mode against a slow reference in plain Python, and what each weight and factor does."""

from time import process_time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_feed import listed, plain_feed
from worlds import ran, small

from prism_mesa.social.agent import SocialAgent
from prism_mesa.social.params import FeedParams, SocialParams, XAlgoParams
from prism_mesa.social.round import feeds as feed
from prism_mesa.social.state.exposure import Exposure
from prism_mesa.social.state.network import from_edges
from prism_mesa.social.state.posts import POST, REPLY, RESHARE, Posts
from prism_mesa.social.state.topics import Topics
from prism_mesa.social.world.corpus import Corpus
from prism_mesa.social.world.profiles import draw_profiles
from prism_mesa.streams import Streams


def reference_feed(model, agent, now):
    """Return the feed of one agent by the rules; what it has read is taken from the records."""
    seen = {
        int(model.posts.root[row["post"]])
        for row in model.recorder.tables.get("transitions", [])
        if row["trigger"] == "sees_post" and row["agent"] == agent
    }
    world = model.network, model.params.feed, model.streams, now
    return plain_feed(agent, model.population, listed(model.posts), seen, *world)


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


def ranked(model, now):
    """Rank anew for everybody, as at the opening of round `now`, and return all feeds."""
    population = model.population
    agents = np.arange(len(population))
    feed.rank_feeds(
        agents, population, model.posts, model.exposure, model.network, model.params.feed, model.streams, now
    )
    return [population.feed[i, : population.n_feed[i]].tolist() for i in agents]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["random", "chronological", "preference", "x_algo"])
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(worlds, st.integers(1, 4))
def test_every_mode_ranks_as_the_reference_does(mode, params, rounds):
    model = ran(small(feed_mode=mode, **params), rounds)
    assert ranked(model, rounds) == [reference_feed(model, i, rounds) for i in range(len(model.population))]
    assert not model.population.n_read.any()


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


def test_only_followed_agents_are_shown_outside_x_algo():
    for mode in ("random", "chronological", "preference"):
        assert set(by_hand([(1, EAST), (4, EAST), (2, EAST)], FeedParams(mode=mode))) == {0, 2}


def test_a_feed_ends_at_its_size():
    assert by_hand([(1, EAST)] * 9, FeedParams(mode="chronological", size=4)) == [8, 7, 6, 5]


def test_a_reshare_and_its_root_take_one_place_and_the_better_ranked_stays():
    posts = [(1, EAST), (2, EAST), (3, EAST, RESHARE, 0, 0)]
    assert by_hand(posts, FeedParams(mode="chronological")) == [2, 1]


def test_ones_own_post_does_not_come_back_as_a_reshare():
    assert by_hand([(0, EAST), (1, EAST, RESHARE, 0, 0), (2, EAST)], FeedParams(mode="chronological")) == [2]


def test_a_reply_is_shown_beside_what_it_answers():
    assert by_hand([(1, EAST), (2, EAST, REPLY, 0)], FeedParams(mode="chronological")) == [1, 0]


def test_an_agent_that_follows_nobody_has_an_empty_feed():
    assert by_hand([(1, EAST)], FeedParams(mode="chronological"), follows=()) == []


def test_without_posts_feeds_are_empty():
    model = ran(small(agents_post_rate=0.0), 2)
    assert not model.population.n_feed.any()
    assert model.totals["impressions"] == 0


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


def test_a_reply_that_the_author_engages_with_adds_its_weight():
    two, counts = [(1, EAST), (2, EAST)], {"impressions": [100, 100], "replies": [10, 0], "likes": [0, 20]}
    assert by_hand(two, x_algo(weight_like=1.0, weight_reply=1.0), **counts) == [1, 0]
    engaged = x_algo(weight_like=1.0, weight_reply=1.0, weight_reply_engaged=10.0, reply_engaged=0.5)
    assert by_hand(two, engaged, **counts) == [0, 1]


@pytest.mark.parametrize("name", ["good_click", "profile_click", "negative", "report"])
def test_clicks_raise_with_relevance_and_displeasure_with_its_lack(name):
    params = x_algo(**{f"weight_{name}": -1.0 if name in ("negative", "report") else 1.0, f"rate_{name}": 0.5})
    assert by_hand([(1, EAST), (2, NORTH), (3, WEST)], params) == [0, 1, 2]


def test_the_factor_for_outsiders_lowers_them():
    posts = [(1, EAST), (4, EAST)]
    alike = x_algo(weight_like=1.0, out_of_network=50)
    assert by_hand(posts, alike, n=6) == [1, 0]  # the newer one first
    assert by_hand(posts, x_algo(weight_like=1.0, out_of_network=50, out_of_network_factor=0.75)) == [0, 1]
    assert by_hand(posts, x_algo(weight_like=1.0)) == [0]


def test_outsiders_are_neither_followed_nor_oneself():
    posts = [(0, EAST), (4, EAST), (5, EAST), (1, EAST)]
    assert by_hand(posts, x_algo(weight_like=1.0, out_of_network=50), follows=(1,)) == [3, 2, 1]


def test_the_factor_for_replies_lowers_them():
    posts = [(1, EAST), (2, EAST, REPLY, 0)]
    assert by_hand(posts, x_algo(weight_like=1.0)) == [1, 0]
    assert by_hand(posts, x_algo(weight_like=1.0, reply_factor=0.9)) == [0, 1]


def test_a_factor_lowers_a_score_below_0_too():
    displeasing = {"weight_report": -1.0, "rate_report": 0.5}
    reply = [(1, WEST), (2, WEST, REPLY, 0)]
    assert by_hand(reply, x_algo(**displeasing, reply_factor=0.5)) == [0, 1]
    outsider = [(1, WEST), (4, WEST)]
    assert by_hand(outsider, x_algo(**displeasing, out_of_network=50, out_of_network_factor=0.5)) == [0, 1]
    assert by_hand(outsider, x_algo(**displeasing, out_of_network=50, out_of_network_factor=0.0)) == [0, 1]


def test_each_further_post_of_an_author_is_lowered_down_to_the_floor():
    posts = [(1, EAST)] * 4 + [(2, EAST), (3, EAST)]
    likes = {"likes": [90, 88, 86, 84, 40, 20], "impressions": [100] * 6}
    rates = {"weight_like": 1.0, "rate_like": 0.0, "prior_impressions": 0.001}
    assert by_hand(posts, x_algo(**rates), **likes) == [0, 1, 2, 3, 4, 5]
    decaying = x_algo(**rates, author_decay=0.5, author_floor=0.0)  # 90, 44, 21.5, 10.5
    assert by_hand(posts, decaying, **likes) == [0, 1, 4, 2, 5, 3]
    floored = x_algo(**rates, author_decay=0.5, author_floor=0.4)  # factors 1, .7, .55, .475: 90, 61.6, 47.3, 39.9
    assert by_hand(posts, floored, **likes) == [0, 1, 2, 4, 3, 5]


@pytest.mark.parametrize("topic", [EAST, NORTH, WEST])
def test_a_decay_to_nothing_puts_further_posts_last_whatever_their_sign(topic):
    params = x_algo(weight_like=1.0, weight_report=-1.0, rate_report=0.5, author_decay=0.0, author_floor=0.0)
    assert by_hand([(1, topic), (1, topic), (2, topic)], params)[-1] == 0


def crowded(mode, n_authors=1500, each=8):
    """Return what ranks the feed of one reader that follows many who wrote much; `cpu_s` tells how long it took."""
    author = np.repeat(np.arange(1, n_authors + 1), each)
    topics = Topics(
        np.full((1, 3), 60, np.int8), [], np.zeros((0, 3), np.int8), lambda texts: np.zeros((len(texts), 3))
    )
    posts = Posts(Corpus(["tea"]), topics, 3)
    posts.add(author, np.zeros_like(author), 0, POST, -1, np.full(len(author), -1), np.arange(len(author), dtype="u8"))
    network = from_edges(np.arange(1, n_authors + 1), np.zeros(n_authors, np.int64), n_authors + 1)
    params, streams = FeedParams(mode=mode, size=600, window=3), Streams(1)
    ids, interests = [str(i) for i in range(n_authors + 1)], np.full((n_authors + 1, 3), 60, np.int8)
    people = draw_profiles(np.arange(n_authors + 1), ids, interests, SocialParams(feed=params), streams)

    def cpu_s():
        begin = process_time()
        feed.rank_feeds(np.arange(1), people, posts, Exposure(n_authors + 1), network, params, streams, 1)
        assert people.n_feed[0] == 600
        return process_time() - begin

    return cpu_s


def test_many_candidates_are_told_apart_in_about_the_time_that_ordering_them_takes():
    x_algo, preference = crowded("x_algo"), crowded("preference")
    times = [[rank() for _ in range(5)] for rank in (x_algo, preference)]
    assert min(times[0]) < 10 * min(times[1])


def test_one_reshare_of_an_old_root_makes_no_room_for_all_posts_since():
    topics = Topics(np.zeros((1, 3), np.int8), [], np.zeros((0, 3), np.int8), lambda texts: np.zeros((len(texts), 3)))
    posts = Posts(Corpus(["tea"]), topics, 3)
    for round_ in range(50):
        root = np.full(10, 3 if round_ == 49 else -1)
        posts.add(np.arange(10), np.zeros(10, np.int64), round_, POST, -1, root, np.arange(10, dtype="u8"))
    outbox = feed.outbox_of(posts, FeedParams(window=1), 10, 49)
    assert outbox.n == 10
    assert set(outbox.old_roots.tolist()) == {3}
