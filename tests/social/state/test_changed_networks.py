"""Networks that change are those of sets of pairs."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from prism_mesa.social.state.network import FollowNetwork, from_edges
from prism_mesa.social.state.relations import Relations, is_in_keys, pair_keys, split_keys

N = 9
pairs = st.sets(st.tuples(st.integers(0, N - 1), st.integers(0, N - 1)).filter(lambda pair: pair[0] != pair[1]))


def network_of(follows, close=()):
    agents, others = np.array(sorted(follows), np.int64).reshape(-1, 2).T
    made = from_edges(others, agents, N)
    ties = from_edges(*np.array(sorted(close), np.int64).reshape(-1, 2).T[::-1], N)
    return FollowNetwork(made.indptr, made.indices, (), (), ties.indptr, ties.indices)


def keys(found):
    return pair_keys(*np.array(sorted(found), np.int64).reshape(-1, 2).T)


def rows(indptr, indices):
    return [indices[indptr[i] : indptr[i + 1]].tolist() for i in range(N)]


@settings(max_examples=150, deadline=None)
@given(pairs, pairs, pairs, pairs)
def test_follows_are_added_and_ended_as_sets_would_have_it(follows, close, added, removed):
    close &= follows
    added -= removed  # what is there already, and what is not, among them
    before = network_of(follows, close)
    kept = [column.copy() for column in (before.indptr, before.indices)]
    after = before.with_changes(keys(added), keys(removed))
    expected, ties = (follows | added) - removed, close - removed
    assert rows(after.indptr, after.indices) == [sorted(b for a, b in expected if a == i) for i in range(N)]
    assert rows(after.close_indptr, after.close_indices) == [sorted(b for a, b in ties if a == i) for i in range(N)]
    assert after.n_followers.tolist() == [sum(b == i for _, b in expected) for i in range(N)]
    assert all(np.array_equal(*two) for two in zip(kept, (before.indptr, before.indices), strict=True))
    everyone = np.arange(N * N)
    held = after.contains(everyone // N, everyone % N)
    assert {(a, b) for a, b in zip(*divmod(np.flatnonzero(held), N), strict=True)} == expected


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(pairs, pairs), max_size=4))
def test_who_sees_nothing_of_whom_is_as_sets_would_have_it(steps):
    relations, muted, blocked = Relations(), set(), set()
    for more_muted, more_blocked in steps:
        before = {*muted, *blocked, *((b, a) for a, b in blocked)}
        new = relations.add_pairs(
            muted=keys(more_muted - muted), blocked=keys(more_blocked - blocked), reported=keys(())
        )
        muted, blocked = muted | more_muted, blocked | more_blocked
        hidden = {*muted, *blocked, *((b, a) for a, b in blocked)}
        assert set(zip(*map(np.ndarray.tolist, split_keys(new)), strict=True)) == hidden - before
        start, others = relations.hidden_rows(N)
        if hidden:
            assert rows(start, others) == [sorted(b for a, b in hidden if a == i) for i in range(N)]
        assert is_in_keys(relations.blocked, keys(blocked)).all()
    assert len(Relations().hidden_rows(N)[0]) == 0
