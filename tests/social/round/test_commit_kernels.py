"""The kernels of a commit do what plain Python does: orders, what counts, counters, and lists of what was seen."""

from bisect import insort
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from prism_mesa.domain import ACTIONS
from prism_mesa.kernels.commit import orders, posts
from prism_mesa.kernels.commit.seen import Pairs, mark_posts
from prism_mesa.social.state.events import Events
from prism_mesa.social.state.exposure import NO_PAIRS, Exposure, sort_pairs
from prism_mesa.streams import Streams

TICKS = 5
EVENTS = st.lists(st.tuples(st.integers(0, TICKS + 1), st.integers(0, 6), st.integers(0, 9), st.integers(0, 2)))
ROOT = np.array([0, 1, 0, 3, 1, 0, 6, 6, 3, 9], np.int32)


def columns(rows, n):
    return [np.array(column, np.int32) for column in np.array(rows, np.int64).reshape(-1, n).T]


def by_agent(rows):
    return sorted(rows, key=lambda row: row[1])


@given(EVENTS, st.booleans())
def test_events_are_ordered_by_agent_and_by_tick_and_what_is_alike_keeps_its_order(rows, is_ordered):
    rows = by_agent(rows) if is_ordered else rows
    tick, agent, _, _ = columns(rows, 4)
    places = range(len(rows))
    assert orders.is_ascending(agent) == (rows == by_agent(rows))
    assert orders.order_by_agent(agent, 7).tolist() == sorted(places, key=lambda i: rows[i][1])
    wanted = sorted(places, key=lambda i: rows[i][:2])
    assert orders.order_by_tick(tick, agent, TICKS + 2, 7).tolist() == wanted


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1))))
def test_random_bits_are_ordered_within_each_tick(rows):
    tick, bits = np.array([t for t, _ in rows], np.int32), np.array([b for _, b in rows], np.uint64)
    assert orders.order_by_bits(tick, bits, 4).tolist() == sorted(range(len(rows)), key=lambda i: rows[i])


@example(rows=[(TICKS, 1, 0, 0), (TICKS - 1, 1, 0, 0), (TICKS + 1, 1, 0, 0)], is_ordered=False)
@given(EVENTS, st.booleans())
def test_engagements_are_ordered_by_what_counts_once_and_then_by_when_it_was_done(rows, is_ordered):
    rows = by_agent(rows) if is_ordered else rows
    tick, agent, post, action = columns(rows, 4)
    about = [p if ACTIONS[a] == "reply" else ROOT[p] for _, _, p, a in rows]
    numbers = [(row[1] << 33) + (int(to) << 2) + row[3] for row, to in zip(rows, about, strict=True)]
    found = orders.engagement_keys(agent, post, action, ROOT)
    assert found.tolist() == numbers
    order = orders.engagement_order(found, tick, agent, TICKS, 7)
    when = [row[0] if row[0] <= TICKS else 0 for row in rows]
    assert order.tolist() == sorted(range(len(rows)), key=lambda i: (numbers[i], when[i]))
    suspects = np.arange(7) % 3 == 0
    wanted = [i for i, to in enumerate(about) if to < 3 or suspects[rows[i][1]]]
    assert orders.possible_repeats(found, 3, suspects).tolist() == wanted


def test_what_is_passed_on_has_the_key_that_the_streams_draw():
    streams, key = Streams(3), np.arange(10, dtype=np.uint64) * np.uint64(2**60)
    tick, agent, post, kind = columns([(1, 5, 2, 1), (3, 0, 9, 2), (4, 5, 2, 2)], 4)
    found = orders.new_post_keys(streams.key("reshare", 7), tick, agent, post, kind.astype(np.int64), key)
    parent = key[post] ^ kind.astype(np.uint64)
    assert found.tolist() == streams.bits("reshare", agent, round_=7, tick=tick, index=parent).tolist()


@given(EVENTS, st.integers(0, 4))
def test_counters_count_at_roots(rows, most):
    _, _, post, action = columns(rows, 4)
    kind = np.array([0, 1, 2, 0, 2, 2, 0, 2, 2, 0], np.uint8)
    counters = posts.Counters(*(np.zeros(10, np.int32) for _ in range(3)), kind)
    roots, likes, replies, joined, begun, largest = posts.count_engagements(post, action, ROOT, counters, 0, most)
    told = Counter((int(ROOT[p]), ACTIONS[a]) for _, _, p, a in rows)
    for name, counter in zip(ACTIONS, counters[:3], strict=True):
        assert counter.tolist() == [told[post, name] for post in range(10)]
    reshared = [told[root, "reshare"] for root in range(10) if kind[root] == 0]
    assert roots.tolist() == ROOT[post].tolist()
    assert (likes, replies) == tuple(sum(ACTIONS[row[3]] == name for row in rows) for name in ("like", "reply"))
    assert (joined, begun, largest) == (sum(reshared), sum(map(bool, reshared)), max(most, *reshared))
    seen = np.zeros(10, np.int32)
    assert posts.count_by_root(post, ROOT, seen).tolist() == roots.tolist()
    assert seen.tolist() == np.bincount(roots, minlength=10).tolist()
    posts.add(seen, roots, -1)
    assert not seen.any()


# -- what was seen


pairs = st.lists(st.tuples(st.integers(0, 6), st.integers(0, 39)), max_size=40)
rounds = st.lists(st.tuples(pairs, pairs, st.sets(st.integers(0, 39)), st.lists(st.integers(1, 6))), max_size=4)


@pytest.mark.parametrize("threads", [1, 2])
@given(rounds)
def test_lists_of_what_was_seen_are_the_same_in_any_parts(threads, rounds):
    seen, lists = Exposure(7), [[] for _ in range(7)]
    for read, beside, gone, cuts in rounds:
        ordered = sorted(read, key=lambda pair: pair[0])
        bounds = sorted({0, 7, *cuts})
        parts = [[pair for pair in ordered if a <= pair[0] < b] for a, b in pairwise(bounds)]
        shown = np.zeros(5, np.uint8)
        mark_posts(np.array([root for root in range(40) if root not in gone], np.int32), shown)
        seen.update_lists(
            [Pairs(*columns(part, 2)) for part in parts if part], sort_pairs(*columns(beside, 2), 7), shown, threads
        )
        for agent, root in read + beside:
            insort(lists[agent], root)
        lists = [[root for root in own if root not in gone] for own in lists]
        assert [seen.agent_roots(agent).tolist() for agent in range(7)] == lists
        assert len(seen) == sum(map(len, lists))


many = st.lists(st.integers(0, 79), min_size=16, max_size=70)


@given(st.lists(many, max_size=3), st.sets(st.integers(0, 79)))
def test_long_lists_of_new_roots_ascend_with_repetitions(reads, gone):
    seen, known = Exposure(2), []
    shown = np.zeros(10, np.uint8)
    mark_posts(np.array([root for root in range(80) if root not in gone], np.int32), shown)
    for read in reads:
        seen.update_lists([Pairs(np.ones(len(read), np.int32), np.array(read, np.int32))], NO_PAIRS, shown)
        known += [root for root in read if root not in gone]
        assert [seen.agent_roots(agent).tolist() for agent in range(2)] == [[], sorted(known)]


@given(st.lists(st.lists(st.tuples(st.integers(1, TICKS), st.integers(0, 6), st.integers(0, 9)), max_size=8)))
def test_impressions_are_put_in_order_of_agents_and_parts_that_are_stay(parts):
    given_parts = [tuple(columns(part, 3)) for part in parts]
    events = Events(impressions=list(given_parts))
    events.sort_impressions(7)
    agents = [agent.tolist() for _, agent, _ in events.impressions]
    flat = [row for part in parts for row in part]
    assert all(one[-1] < other[0] for one, other in pairwise(agents))
    put = [tuple(map(int, row)) for part in events.impressions for row in zip(*part, strict=True)]
    assert put == by_agent(flat)
