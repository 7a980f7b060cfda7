"""A chronological feed that goes on where its reader stopped is the feed that looks at all that is visible."""

import copy
from collections import deque

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_worlds import happenings, populations
from test_feed_differential import Platform, platforms
from worlds import differing, small

from prism_mesa.kernels.commit.seen import Lists
from prism_mesa.kernels.feeds import depths as kernels
from prism_mesa.kernels.feeds.outbox import Audience, Outbox
from prism_mesa.social import start
from prism_mesa.social.params import CandidateParams, FeedParams, SlotParams
from prism_mesa.social.round import feeds as ranking
from prism_mesa.social.round.effects import read_posts
from prism_mesa.social.round.feeds import Depths
from prism_mesa.social.state import exposure
from prism_mesa.social.state.relations import NO_KEYS, Relations, pair_keys

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*posts below an agent:prism_mesa.errors.NotedWarning"),
    pytest.mark.filterwarnings("ignore:.*nobody has close ties:prism_mesa.errors.NotedWarning"),
]
ALWAYS, NEVER = -1, 1 << 40
CHANGES = [
    {"at": 2, "until": 4, "set": {"feed.mode": "random"}},
    {"at": 1, "until": 3, "set": {"agents.session": 1.5}},
    {"at": 1, "until": 3, "set": {"feed.candidates.followed": 2}},
    {"at": 3, "set": {"feed.candidates.out_of_network": 2}, "agents": "agent.openness > 3"},
    {"at": 1, "set": {"feed.mode": "preference"}, "agents": "agent.openness > 3"},
    {"at": 0, "until": 3, "set": {"feed.slots.trending": 1}, "agents": "agent.openness > 3"},
]


def feeds(model):
    people = model.population
    return [people.feed[row, :n].tolist() for row, n in enumerate(people.n_feed)]


def lived(few, happens, params, *, rounds=6, branches=None, resumes=None, shorter=8, spare=16):
    """Return a world after some rounds, and all feeds of each; a copy goes on from `branches`, a new one `resumes`."""
    shown = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(start, "check_chart", lambda *given: ())  # it takes most of the time
        patch.setattr(ranking, "FEW_CANDIDATES", few)
        patch.setattr(ranking, "_SPARE_ROUNDS", spare)
        patch.setattr(exposure, "_MIN_LENGTH_RATIO", shorter)
        model = small(**params)
        for round_ in range(rounds):
            for happening in happens:
                if happening.round == round_:
                    happening.to(model)
            if branches == round_:
                branch = copy.deepcopy(model)
                branch.recorder, model = model.recorder, branch
            if resumes == round_:
                recorder, (model, kept) = model.recorder, (small(**params), model.snapshot())
                model.restore(kept)
                model.recorder = recorder
            model.step()
            shown.append(feeds(model))
    return model, shown


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(populations, happenings(), st.lists(st.sampled_from(CHANGES), max_size=2, unique_by=id), st.data())
def test_worlds_are_the_same_whether_readers_go_on_or_look_at_all(params, happens, changes, data):
    params |= {
        "feed_mode": "chronological",
        "feed_repeats": False,
        "interventions": sorted(changes, key=lambda change: change["at"]),
    }
    params |= {"feed_window": data.draw(st.integers(1, 5)), "threads": data.draw(st.sampled_from([1, 2]))}
    params.pop("utility_per_source", None)
    if data.draw(st.booleans()):
        params |= {"agents_churn_waiting": 0.5, "agents_churn_join": 0.4, "agents_churn_leave": 0.1}
    whole, shown = lived(NEVER, happens, params)
    way = {"branches": data.draw(st.sampled_from([None, 2, 4])), "shorter": data.draw(st.sampled_from([8, 0]))}
    way |= {"spare": data.draw(st.integers(1, 3)), "resumes": None if happens else data.draw(st.integers(2, 5))}
    other, also = lived(ALWAYS, happens, params, **way)
    assert also == shown
    assert [name for name in differing(whole, other) if name != "feed"] == []  # what stands behind the last post


def in_view(platform):
    """Let a platform show what followed agents posted, and nothing else."""
    platform.params = platform.params.model_copy(update={"candidates": CandidateParams(), "slots": SlotParams()})
    return platform


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_a_first_feed_is_that_of_the_rules_whoever_is_hidden(data):
    platform = in_view(data.draw(platforms("chronological")))
    some = st.sets(st.tuples(*[st.integers(0, platform.n - 1)] * 2).filter(lambda two: two[0] != two[1]))
    hidden = data.draw(some)
    agent, other = np.array(sorted(hidden), np.int64).reshape(-1, 2).T
    for row, author in hidden:  # what goes back to them counts as read
        own = platform.posts.root == np.arange(len(platform.posts))
        roots = np.flatnonzero((platform.posts.author == author) & own)
        platform.read[row] |= set(roots.tolist())
        platform.seen.add(np.full(len(roots), row), roots)
    relations = Relations()
    relations.add_pairs(muted=pair_keys(agent, other), blocked=NO_KEYS, reported=NO_KEYS)
    away = relations.hidden_rows(platform.n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "FEW_CANDIDATES", ALWAYS)
        for cut in ({}, {"block": 3, "threads": 2}):
            assert platform.ranked(hidden=away, depths=Depths(), **cut) == platform.plain(hidden)


def test_of_a_round_of_very_many_posts_no_unread_one_is_left_out():
    n = 150_000
    author, root = np.zeros(n, np.int32), np.arange(n, dtype=np.int32)
    rounds = kernels.make_rounds(1, 2, n)
    kernels.add_round(0, n, root, author, np.zeros(n, np.int32), 0, rounds)
    depth = np.full((2, 1), kernels.NOTHING_PASSED, np.uint16)
    follows = np.array([0, 0, 1]), np.zeros(1, np.int32)  # agent 1 follows agent 0
    nothing = np.zeros(3, np.int64), np.zeros(0, np.int32)
    audience = Audience(*follows, *nothing, *ranking.NOBODY_HIDDEN, *nothing)
    places = np.zeros(1, np.uint64), np.zeros(1, np.int32), np.zeros(4, np.int32), np.zeros(1, np.uint64)
    outbox = Outbox(0, n, *places, root[:0], root)
    feed, n_feed, n_read = np.zeros((2, 10), np.int32), np.zeros(2, np.uint16), np.full(2, 7, np.uint16)
    passed = kernels.DepthTables(depth, rounds, 1, root[:0], author, np.zeros(n, np.int32))
    reader, most, read = np.array([1], np.int32), np.full(1, 10, np.int32), []
    for _ in range(3):
        known = np.sort(np.array(read, np.int32))
        audience = audience._replace(seen_start=np.array([0, 0, len(read)]), seen_roots=known)
        room = ranking.make_scratch(1 << 13, n, 0, 0, 2)
        inputs = passed, np.ones(1, np.uint64), audience, Lists(*nothing), outbox, room
        kernels.rank_by_depth(reader, 0, most, 0, *inputs, feed, n_feed)
        assert feed[1].tolist() == [*range(n - 1 - len(read), n - 11 - len(read), -1)]
        read += feed[1, :7].tolist()
        kernels.update_depths(reader, most, 0, passed, feed, n_feed, n_read)
        assert 0 < depth[1, 0] < kernels.NOTHING_PASSED


def test_a_room_that_does_not_hold_whom_a_reader_follows_is_exchanged(monkeypatch):
    drawn = {"n_writers": 40, "follows": 0.6, "reshares": 0.4, "seen": 0.9, "n_texts": 12, "counted": 50, "now": 3}
    params = FeedParams(mode="chronological", size=80, window=3)
    crowd = Platform(seed=5, n_agents=50, n_posts=300, params=params, **drawn)
    monkeypatch.setattr(ranking, "FEW_CANDIDATES", ALWAYS)
    monkeypatch.setattr(ranking, "_free_scratch", deque())
    monkeypatch.setattr(ranking, "_MIN_CANDIDATES", 1)
    assert crowd.ranked(depths=Depths()) == crowd.plain()
    (room,) = ranking._free_scratch
    assert 20 < len(room.fresh) < 200
    assert not any(words.any() for words in (room.root_bits, room.post_bits))


def read_in_part(n_joined, n_recent, n_shown):
    """Return the exposure of one agent who read so many roots, and lately more, of which the last can be shown."""
    seen, n = exposure.Exposure(1), n_joined + n_recent
    old, new = np.arange(n_joined), np.arange(n_joined, n)
    seen.add(np.zeros(n_joined, np.int32), old)
    shown = np.packbits(np.arange(n) >= n - n_shown, bitorder="little")
    recent = exposure.sort_pairs(np.zeros(n_recent, np.int32), new, 1)
    seen.update_lists([recent], exposure.NO_PAIRS, shown, joined=False)
    return seen


def test_roots_are_added_to_those_that_were_read_lately(monkeypatch):
    monkeypatch.setattr(exposure, "_MIN_LENGTH_RATIO", 0)
    seen, remember, last = read_in_part(1, 1000, 1001), exposure.remember, []

    def noting(*given):
        last.append(8 * len(given[-1]) - 1)  # behind it there are no bits that say what can be shown
        return remember(*given)

    monkeypatch.setattr(exposure, "remember", noting)
    seen.add(np.zeros(1, np.int32), np.array([0]))
    assert min(last) >= 1000
    assert np.unique(seen.agent_roots(0)).tolist() == list(range(1001))


def test_looking_at_what_was_read_changes_no_list():
    seen = read_in_part(100, 10, 50)
    before = [column.tolist() for lists in seen.long_and_recent for column in lists]
    assert seen.agent_roots(0).tolist() == list(range(60, 110))
    assert [column.tolist() for lists in seen.long_and_recent for column in lists] == before
    assert len(seen) == 50
    assert seen.agent_roots(0).tolist() == list(range(60, 110))


def test_what_agents_read_between_rounds_is_known_to_both():
    def read_more(few):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ranking, "FEW_CANDIDATES", few)
            model = small(agents_activity=1.0, agents_post_rate=0.9, feed_size=4, feed_window=4, ticks_per_round=3)
            for round_ in range(6):
                for row in range(0, 30, 1 + round_ % 3):
                    read_posts(model.platform, row, 0, 2)
                model.step()
        return model

    whole, other = read_more(NEVER), read_more(ALWAYS)
    assert len(other.platform.depths.depth) == 30
    assert [name for name in differing(whole, other) if name != "feed"] == []
