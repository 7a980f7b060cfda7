"""The kernel's feeds are those of `plain_feed` on random platforms, however the readers are cut and ordered."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_feed import listed, plain_feed

from prism_mesa.social.params import CandidateParams, FeedParams, SlotParams, SocialParams, XAlgoParams
from prism_mesa.social.round.feeds import rank_feeds
from prism_mesa.social.state.exposure import NO_PAIRS, Exposure, sort_pairs
from prism_mesa.social.state.groups import GroupCounts, Groups
from prism_mesa.social.state.network import from_edges
from prism_mesa.social.state.posts import POST, REPLY, RESHARE, Posts
from prism_mesa.social.state.relations import NO_KEYS, Relations, pair_keys
from prism_mesa.social.state.topics import UNIT, Topics
from prism_mesa.social.world.corpus import Corpus
from prism_mesa.social.world.profiles import draw_profiles
from prism_mesa.streams import Streams

MODES = ("random", "chronological", "preference", "x_2023", "x_2026_08", "bridging", "diverse")


class Platform:
    """Agents, follows and posts as they stand when round `now` opens, drawn evenly but for what is asked for.

    Args:
        seed: Of everything that is drawn.
        n_agents: Agent 0 follows nobody, agent 1 everybody.
        n_posts: In the rounds up to `now`.
        n_writers: Who wrote them: so few authors.
        follows: Share of the others that an agent follows.
        reshares: Share of the posts that are reshares; the newer half of all roots is never reshared.
        seen: Share of the older roots that an agent has read.
        n_texts: So few topics: with few of them many scores tie.
        counted: Counters lie below it.
    """

    def __init__(self, seed, n_agents, n_posts, n_writers, follows, reshares, seen, n_texts, counted, now, params):
        draw = np.random.default_rng(seed)
        self.n, self.now, self.params, self.streams = n_agents, now, params, Streams(seed)
        follow = draw.random((n_agents, n_agents)) < follows
        follow[0], follow[1] = False, True
        reader, author = np.nonzero(follow)
        self.network = from_edges(author, reader, n_agents)
        self.posts = _posts(draw, n_agents, n_posts, n_writers, reshares, n_texts, counted, now)
        interests = _directions(draw, n_agents)
        ids = [str(i) for i in range(n_agents)]
        own = SocialParams(feed=params)
        self.population = draw_profiles(np.arange(n_agents), ids, interests, own, self.streams)
        old = np.unique(self.posts.root[self.posts.round[self.posts.root] < now])
        readers, read = np.nonzero(draw.random((n_agents, len(old))) < seen * draw.random((n_agents, 1)))
        self.groups = _groups(draw, n_agents, self.posts) if params.mode == "bridging" or seed % 2 else None
        self.read = [set(old[read[readers == i]].tolist()) for i in range(n_agents)]
        own = np.flatnonzero(self.posts.root == np.arange(n_posts))  # what an agent wrote counts as read
        readers, read = np.append(readers, self.posts.author[own]), np.append(old[read], own)
        self.copies, self.shown = [frozenset()] * n_agents, Exposure(0)
        self.seen = Exposure(n_agents)
        for part in np.array_split(draw.permutation(len(read)), 3):  # as if over three rounds
            self.seen.add(readers[part], read[part])

    def plain(self, hidden=frozenset()):
        """Return all feeds, from the rules; `hidden` are pairs of a reader and whom it mutes."""
        world, groups = (self.network, self.params, self.streams, self.now), self.groups
        muted = [{b for a, b in hidden if a == i} for i in range(self.n)]
        own = self.population, listed(self.posts)
        known = [{"hidden": muted[i], "copies": self.copies[i]} for i in range(self.n)]
        return [plain_feed(i, *own, self.read[i], *world, **known[i], groups=groups) for i in range(self.n)]

    def show_again(self, share):
        """Let agents have read a share of the copies that they see, and no root for good; return how many."""
        draw, old = np.random.default_rng(7), np.flatnonzero(self.posts.round < self.now)
        agents, place = np.nonzero(draw.random((self.n, len(old))) < share)
        self.copies = [set(old[place[agents == i]].tolist()) for i in range(self.n)]
        self.shown, self.params = Exposure(self.n), self.params.model_copy(update={"repeats": True})
        self.shown.add(agents, old[place])
        return len(agents)

    def ranked(self, readers=None, **cut):
        """Return the feeds of readers, in the order of rows, from the kernel."""
        p, readers = self.population, np.arange(self.n) if readers is None else readers
        p.feed[:], p.n_feed[:], p.n_read[:] = -7, 99, 99  # what another round has left there
        world = self.seen, self.network, self.params, self.streams, self.now
        rank_feeds(readers, p, self.posts, *world, **cut, groups=self.groups, read_copies=self.shown)
        others = np.setdiff1d(np.arange(self.n), readers)
        assert (p.feed[others] == -7).all()
        assert (p.n_feed[others] == 99).all()
        assert not p.n_read[readers].any()
        return [p.feed[i, : p.n_feed[i]].tolist() for i in sorted(readers)]


def _directions(draw, n):
    """Return random topic vectors of length 127, shape (n, 3)."""
    given = draw.normal(size=(n, 3))
    return np.rint(given / np.linalg.norm(given, axis=1, keepdims=True) * UNIT).astype(np.int8)


def _posts(draw, n_agents, n_posts, n_writers, reshares, n_texts, counted, now):
    names = [f"topic {i}" for i in range(draw.integers(0, 6))]
    topics = Topics(
        _directions(draw, n_texts), names, _directions(draw, len(names)), lambda texts: np.zeros((len(texts), 3))
    )
    posts = Posts(Corpus([f"text {i}" for i in range(n_texts)]), topics, 3)
    writers = draw.permutation(n_agents)[:n_writers]
    for round_, n in enumerate(np.bincount(draw.integers(0, now + 1, n_posts))):
        older = np.flatnonzero(posts.round < round_)
        passed_on = (draw.random(n) < reshares) & (len(older) > 0)
        kind = np.where(passed_on, RESHARE, draw.choice([POST, REPLY], n))
        parent, root, text = np.full(n, -1), np.full(n, -1), draw.integers(0, n_texts, n)
        parent[passed_on] = older[(len(older) * draw.random(passed_on.sum()) ** 2 / 2).astype(int)]
        root[passed_on] = posts.root[parent[passed_on]]
        text[passed_on] = posts.text_id[root[passed_on]]
        keys = draw.integers(0, 2**63, n).astype(np.uint64)
        posts.add(draw.choice(writers, n), text, round_, kind, parent, root, keys)
    for name in ("likes", "replies", "reshares", "impressions", "velocity"):
        getattr(posts, name)[:] = draw.integers(0, counted, n_posts)
    return posts


def _groups(draw, n_agents, posts):
    """Return groups of agents, and what each has read and engaged with of the older posts."""
    n = int(draw.integers(1, 4))
    groups = Groups(draw.integers(0, n, n_agents).astype(np.int16), GroupCounts(n))
    for _ in range(2):  # two rounds
        agents, roots = (
            draw.integers(0, n_agents, 300),
            posts.root[draw.integers(0, max(1, len(posts) // 2), 300)] if len(posts) else None,
        )
        if roots is not None:
            groups.counts.count(len(posts), groups.agent_groups, (agents, roots), (agents[::7], roots[::7]))
    return groups


x_algos = st.builds(
    XAlgoParams,
    out_of_network=st.sampled_from([0, 1, 10, 30]),
    weight_like=st.sampled_from([0.5, 0.0, -1.0]),
    weight_reply=st.sampled_from([27.0, 0.0, -3.0]),
    weight_good_click=st.sampled_from([11.0, 0.0]),
    weight_negative=st.sampled_from([-74.0, 0.0, 5.0]),
    weight_report=st.sampled_from([-369.0, 0.0, -1e6]),
    rate_report=st.sampled_from([0.00001, 0.0, 1.0]),
    prior_impressions=st.sampled_from([20.0, 0.001]),
    out_of_network_factor=st.sampled_from([0.75, 0.0, 1.0]),
    reply_factor=st.sampled_from([0.75, 0.0, 1.0]),
    author_decay=st.sampled_from([0.5, 0.0, 1.0, 0.97]),
    author_floor=st.sampled_from([0.25, 0.0, 1.0]),
)


few = st.sampled_from([0, 0, 1, 12])
candidates = st.builds(
    CandidateParams,
    out_of_network=few,
    two_hops=few,
    trending=few,
    search=few,
    followed=st.sampled_from([None, None, 0, 1, 20]),
)
slots = st.builds(SlotParams, trending=few, search=few, every=st.sampled_from([1, 2, 5]))


@st.composite
def platforms(draw, mode):
    """Platforms of a few agents; some of them with more candidates, copies, or roots read than anything short takes."""
    n = draw(st.integers(2, 60))
    size = draw(st.sampled_from([1, 2, 10, 255]))
    also = draw(candidates)
    more = {"candidates": also, "slots": draw(slots), "x_algo": draw(x_algos), "attribute": "side"}
    params = FeedParams(mode=mode, size=size, window=draw(st.integers(1, 4)), **more)
    return Platform(
        seed=draw(st.integers(0, 2**32)),
        n_agents=n,
        n_posts=draw(st.sampled_from([0, 1, 10, 60, 400])),
        n_writers=draw(st.sampled_from([1, 3, 60])),
        follows=draw(st.sampled_from([0.0, 0.1, 0.5])),
        reshares=draw(st.sampled_from([0.0, 0.3, 0.9])),
        seen=draw(st.sampled_from([0.0, 0.2, 1.0])),
        n_texts=draw(st.sampled_from([1, 4, 30])),
        counted=draw(st.sampled_from([1, 100])),
        now=draw(st.integers(0, 6)),
        params=params,
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=18, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_each_feed_is_that_of_the_rules_however_readers_are_cut_and_ordered(mode, data):
    platform = data.draw(platforms(mode))
    feeds = platform.plain()
    assert platform.ranked() == feeds
    for block, threads in ((1, 1), (3, 2), (64, 2), (1000, 1)):
        assert platform.ranked(block=block, threads=threads) == feeds
    order = np.array(data.draw(st.permutations(range(platform.n))), np.int64)
    assert platform.ranked(order) == platform.ranked(order, block=7, threads=2) == feeds
    some = order[: platform.n // 2]
    assert platform.ranked(some) == [feeds[i] for i in sorted(some)]


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=11, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_nobody_is_shown_who_is_hidden_and_all_else_is_ranked_by_the_rules(mode, data):
    platform = data.draw(platforms(mode))
    n, posts = platform.n, platform.posts
    some = st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda two: two[0] != two[1]))
    hidden = data.draw(some)
    agent, other = np.array(sorted(hidden), np.int64).reshape(-1, 2).T
    for row, author in hidden:  # what goes back to them counts as read
        roots = np.flatnonzero((posts.author == author) & (posts.root == np.arange(len(posts))))
        platform.read[row] |= set(roots.tolist())
        platform.seen.add(np.full(len(roots), row), roots)
    relations = Relations()
    relations.add_pairs(muted=pair_keys(agent, other), blocked=NO_KEYS, reported=NO_KEYS)
    feeds = platform.plain(hidden)
    assert platform.ranked(hidden=relations.hidden_rows(n)) == feeds
    assert platform.ranked(hidden=relations.hidden_rows(n), block=3, threads=2) == feeds


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=11, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_nobody_is_shown_a_copy_again_and_other_copies_are_ranked_by_the_rules(mode, data):
    platform = data.draw(platforms(mode))
    platform.show_again(data.draw(st.sampled_from([0.3, 0.9])))
    feeds = platform.plain()
    assert platform.ranked() == platform.ranked(block=3, threads=2) == feeds


@pytest.mark.parametrize("mode", MODES)
def test_a_platform_of_many_readers_who_follow_many_is_ranked_by_the_rules(mode):
    crowd = Platform(
        seed=8,
        n_agents=140,
        n_posts=500,
        n_writers=100,
        follows=0.6,
        reshares=0.4,
        seen=0.9,
        n_texts=12,
        counted=50,
        now=3,
        params=FeedParams(mode=mode, size=100, window=3, x_algo=XAlgoParams(out_of_network=30), attribute="side"),
    )
    feeds = crowd.plain()
    assert crowd.ranked() == crowd.ranked(block=100, threads=2) == feeds
    assert min(map(len, feeds[1:])) > 40
    assert max(map(len, feeds)) == 100
    assert max(map(len, crowd.read)) > 48
    assert crowd.show_again(0.5) > 10_000
    assert crowd.ranked() == crowd.ranked(block=100, threads=2) == crowd.plain() != feeds


pairs = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 19)), max_size=30)
steps = st.tuples(pairs, st.sets(st.integers(0, 19)), st.sampled_from(["apart", "together", "added"]))


@settings(max_examples=100, deadline=None)
@given(st.lists(steps, max_size=8), st.sampled_from([1, 2, 4]))
def test_what_was_read_is_kept_as_sets_would_keep_it(steps, threads):
    seen, sets = Exposure(5), [set() for _ in range(5)]
    for pairs, gone, how in steps:
        agents, roots = np.array(pairs, np.int64).reshape(-1, 2).T
        shown = np.ones(20, np.bool_)
        shown[list(gone)] = False
        if how == "added":
            seen.add(agents, roots)
            seen.update_lists([], NO_PAIRS, np.packbits(shown, bitorder="little"))
        else:
            bits, own = np.packbits(shown, bitorder="little"), [sort_pairs(agents, roots, 5)]
            seen.update_lists(own, NO_PAIRS, bits, threads, joined=how != "apart")
        for agent, root in pairs:
            sets[agent].add(root)
        sets = [own - gone for own in sets]
        whole = [set(first) | set(last) for first, last in zip(*map(_by_agent, seen.long_and_recent), strict=True)]
        assert [own - gone for own in whole] == sets
    if steps:
        lists = [seen.agent_roots(agent).tolist() for agent in range(5)]
        assert lists == [sorted(own) for own in lists]
        assert [set(own) for own in lists] == sets  # one may stand there twice
    seen.grow(1)
    assert len(seen.agent_roots(5)) == 0


def _by_agent(lists):
    return [lists.roots[first:last].tolist() for first, last in pairwise(lists.start)]
