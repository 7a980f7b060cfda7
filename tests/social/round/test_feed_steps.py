"""Steps of ranking against plain Python, and rooms that are too small at first."""

from collections import deque

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_feed_differential import MODES, Platform

from prism_mesa.kernels.compiling import lean_kernel
from prism_mesa.kernels.feeds.ranking import MANY
from prism_mesa.kernels.lanes import LANES, count_bits, count_greater, highest_bit, lanes_among
from prism_mesa.kernels.ordering import DIGITS, FEW_CANDIDATES, put_in_order
from prism_mesa.social.params import CandidateParams, FeedParams, XAlgoParams
from prism_mesa.social.round import feeds as ranking


@lean_kernel
def which_are_among(values, at, wanted, first, last):
    return lanes_among(values, np.int64(at), wanted, np.int64(first), np.int64(last))


@lean_kernel
def count_above(keys, at, n, counts):
    count_greater(keys, np.int64(at), np.int64(n), counts)


@lean_kernel
def bits_of(word):
    return count_bits(np.uint64(word)), highest_bit(np.uint64(word))


@lean_kernel
def ordered(keys, n, order, scratch, counts):
    put_in_order(keys, np.int64(n), order, scratch, counts)


numbers = st.integers(-(2**31), 2**31 - 1) | st.integers(-3, 3)
words = st.integers(0, 2**64 - 1) | st.integers(0, 5) | st.integers(2**63 - 2, 2**63 + 2)


@given(st.lists(numbers, max_size=40), st.integers(0, 9), st.lists(numbers, max_size=9), st.data())
def test_of_sixteen_neighbours_those_are_found_that_are_among_others(values, at, wanted, data):
    values = np.array([*values, *[0] * (at + LANES)], np.int32)
    first = data.draw(st.integers(0, len(wanted)))
    last = data.draw(st.integers(first, len(wanted)))
    found = which_are_among(values, at, np.array(wanted, np.int32), first, last)
    assert found == sum(1 << i for i in range(LANES) if values[at + i] in wanted[first:last])


@given(st.lists(words, min_size=1, max_size=40), st.data())
def test_of_sixteen_neighbours_it_is_counted_how_many_keys_are_above_each(keys, data):
    n, at = len(keys), data.draw(st.integers(0, len(keys) - 1))
    counts = np.full(n + LANES, -7, np.int64)
    count_above(np.array([*keys, *[0] * LANES], np.uint64), at, n, counts)
    assert counts[at : at + LANES][: n - at].tolist() == [sum(a > b for a in keys) for b in keys[at : at + LANES]]
    assert (np.delete(counts, range(at, at + LANES)) == -7).all()


@given(words.filter(bool))
def test_bits_of_a_word_are_counted_and_the_last_is_found(word):
    assert bits_of(np.uint64(word)) == (word.bit_count(), word.bit_length() - 1)


@settings(deadline=None)
@given(st.integers(0, 2 * FEW_CANDIDATES), words, st.integers(0, 2**32))
def test_keys_come_into_order_each_once(n, alike, seed):
    draw = np.random.default_rng(seed)
    keys = (draw.integers(0, 2**63, n).astype(np.uint64) & np.uint64(alike)).tolist()  # so some are equal
    order, scratch = np.zeros(n + LANES, np.int64), np.zeros(n + LANES, np.int64)
    ordered(np.array([*keys, *[0] * LANES], np.uint64), n, order, scratch, np.zeros(DIGITS, np.int64))
    kept = [keys[i] for i in order[:n] if i >= 0]
    assert kept == sorted(set(keys), reverse=True)


@pytest.mark.parametrize("mode", MODES)
def test_a_room_that_is_too_small_is_exchanged_and_leaves_no_trace(mode, monkeypatch):
    also, x_algo = CandidateParams(out_of_network=5, two_hops=3, trending=4), XAlgoParams(out_of_network=20)
    params = FeedParams(mode=mode, size=80, window=3, candidates=also, x_algo=x_algo, attribute="side")
    crowd = Platform(
        seed=5,
        n_agents=50,
        n_posts=300,
        n_writers=40,
        follows=0.6,
        reshares=0.4,
        seen=0.9,
        n_texts=12,
        counted=50,
        now=3,
        params=params,
    )
    feeds = crowd.plain()
    monkeypatch.setattr(ranking, "_free_scratch", deque())
    monkeypatch.setattr(ranking, "_MIN_CANDIDATES", 1)
    assert crowd.ranked() == feeds
    (room,) = ranking._free_scratch
    assert len(room.fresh) < 1000
    assert not any(words.any() for words in (room.root_bits, room.post_bits, room.n_better))
    assert crowd.ranked() == feeds
    assert len(ranking._free_scratch) == 1


@pytest.mark.parametrize("mode", MODES)
def test_of_readers_who_know_many_roots_old_ones_too_feeds_are_those_of_the_rules(mode):
    params = FeedParams(mode=mode, size=40, window=3, x_algo=XAlgoParams(out_of_network=5), attribute="side")
    drawn = {"n_writers": 9, "follows": 0.7, "reshares": 0.6, "seen": 0.9, "n_texts": 5, "counted": 9, "now": 3}
    crowd = Platform(seed=3, n_agents=12, n_posts=1200, params=params, **drawn)
    assert crowd.ranked() == crowd.plain()
    assert sorted(map(len, crowd.read))[6] > MANY
    assert any(crowd.posts.round[crowd.posts.root[crowd.posts.round > 0]] == 0)  # shown by copies alone


def test_a_room_whose_bits_are_as_many_as_the_visible_posts_holds_them():
    """What stands behind the last word of bits is somebody else's."""
    drawn = {"n_writers": 9, "follows": 0.9, "reshares": 0.0, "seen": 0.1, "n_texts": 4, "counted": 9, "now": 3}
    params = FeedParams(mode="chronological", size=255, window=9, attribute="side")
    crowd = Platform(seed=2, n_agents=12, n_posts=256, params=params, **drawn)
    room = ranking.make_scratch(1 << 13, 255, 0, 0, 0)
    words = {name: np.full(5, ~np.uint64(0)) for name in ("root_bits", "post_bits")}
    for own in words.values():
        own[:4] = 0
    assert len(room.root_bits) == 4
    ranking._free_scratch.append(room._replace(**{name: own[:4] for name, own in words.items()}))
    assert crowd.ranked() == crowd.plain()
    assert all(own[4] == ~np.uint64(0) for own in words.values())


def test_candidates_are_listed_whatever_room_is_free_when_they_have_been_counted(monkeypatch):
    params = FeedParams(mode="preference", size=20, window=9, attribute="side")
    drawn = {"n_writers": 9, "follows": 0.9, "reshares": 0.2, "seen": 0.1, "n_texts": 4, "counted": 9, "now": 3}
    crowd = Platform(seed=1, n_agents=20, n_posts=300, params=params, **drawn)

    def newest_first(readers, posts, inside):
        return posts * 1.0

    monkeypatch.setattr(ranking, "_MIN_CANDIDATES", 1)
    monkeypatch.setattr(ranking, "_free_scratch", deque())
    feeds = crowd.ranked(scorer=newest_first)
    count = ranking.RankInputs.count

    def counted_elsewhere(self, readers):
        found = count(self, readers)
        ranking._free_scratch.append(ranking.make_scratch(1, 0, 0, 0, 0))  # another thread gives back a small one
        return found

    monkeypatch.setattr(ranking.RankInputs, "count", counted_elsewhere)
    assert crowd.ranked(scorer=newest_first) == feeds
