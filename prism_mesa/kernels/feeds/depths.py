"""Chronological feeds that continue where each reader stopped, for readers with many candidates.

A feed takes posts round by round, from the newest round, until it is full. In each round, the reader has passed all
posts from its depth on. So a feed visits few posts that the reader knows, and no posts that are too old. Depths replace
lists of read roots; lists contain only the roots that an agent has read as a copy.
"""

from typing import Annotated, Any, Final, NamedTuple

import numpy as np

from prism_mesa.arrays import Int32, Ints, UInt16, UInt64
from prism_mesa.kernels.commit.seen import Lists
from prism_mesa.kernels.compiling import Table, inline_kernel, kernel, kernel_step, lean_kernel
from prism_mesa.kernels.feeds.gathering import drop_hidden
from prism_mesa.kernels.feeds.outbox import Audience, Outbox, number_writers, root_place, writer_index
from prism_mesa.kernels.feeds.ranking import get_bit, mark_known, set_bit
from prism_mesa.kernels.feeds.scoring import RankScratch
from prism_mesa.kernels.lanes import highest_bit, lowest_bit, prefetch
from prism_mesa.kernels.ordering import is_among

NOTHING_PASSED: Final = np.iinfo(np.uint16).max

ROOT: Final = np.dtype([(name, np.int32) for name in ("id", "author", "row", "step")])
"""A root, in adjacent memory: its id, its author, the row of its round, and its local number in steps of a depth."""


class Rounds(NamedTuple):
    """The posts of the last rounds, by round and author; round r is in row ``r % rows``.

    Attributes:
        first: Id of the first post of each round.
        n: Number of posts of each round. A post's local number is its position in its round.
        has_posts: A bit for each agent that is 1 if the agent has posts; shape (rows, words).
        writers: Number of bits set in all earlier words of `has_posts`; shape (rows, words).
        start: The w-th agent with posts has items ``start[row, w]`` .. ``start[row, w + 1] - 1`` in `item`.
        item: Local numbers of posts, ascending for each agent.
        root: The root of each post by local number, of type `ROOT`.
    """

    first: Int32
    n: Int32
    has_posts: UInt64
    writers: Int32
    start: Int32
    item: Int32
    root: Annotated[Table[np.void], ROOT]


class DepthTables(NamedTuple):
    """Arrays from which kernels find the roots that agents have passed.

    Attributes:
        depth: Shape (agents, rows of `rounds`). An agent has passed the posts of its followees in a round from this
            local number on, in steps of `_step_size`.
        rounds: The posts of these rounds.
        window: Number of visible rounds.
        old: Roots of earlier rounds that agents may have passed but lists may lack, ascending.
        author, round: Author and round of all posts.
    """

    depth: UInt16
    rounds: Rounds
    window: int
    old: Int32
    author: Int32
    round: Int32


def make_rounds(rows: int, n_agents: int, max_posts: int) -> Rounds:
    """Return `Rounds` with room for `max_posts` posts in each round."""
    words, integers = n_agents // 64 + 1, np.int32
    return Rounds(
        first=np.zeros(rows, integers),
        n=np.zeros(rows, integers),
        has_posts=np.zeros((rows, words), np.uint64),
        writers=np.zeros((rows, words), integers),
        start=np.zeros((rows, max_posts + 2), integers),
        item=np.zeros((rows, max_posts), integers),
        root=np.zeros((rows, max_posts), ROOT),
    )


@lean_kernel
def add_round(
    first: int, stop: int, post_root: Int32, post_author: Int32, post_round: Int32, row: int, rounds: Rounds
) -> None:
    """Write the posts `first` .. `stop` - 1, which are those of a round, into a row."""
    has_posts, writers, start, item = rounds.has_posts[row], rounds.writers[row], rounds.start[row], rounds.item[row]
    author = post_author[first:stop]
    rounds.first[row], rounds.n[row] = first, len(author)
    has_posts[:] = 0
    start[: len(author) + 2] = 0  # the rest is never read
    for i in range(len(author)):
        set_bit(author[i], has_posts)
    n = number_writers(has_posts, writers)
    for i in range(len(author)):
        start[writer_index(has_posts, writers, author[i]) + 2] += 1
    for w in range(n):
        start[w + 2] += start[w + 1]
    for i in range(len(author)):  # here `start[w + 1]` is the position of the next post of author w
        w = writer_index(has_posts, writers, author[i])
        item[start[w + 1]] = i
        start[w + 1] += 1
    for i in range(len(author)):
        entry, root = rounds.root[row, i], np.int64(post_root[first + i])
        entry.id, entry.author, entry.row = root, post_author[root], post_round[root] % len(rounds.n)
        entry.step = (root - rounds.first[entry.row]) // _step_size(rounds.n[entry.row])


@inline_kernel
def _step_size(n: Any) -> Any:
    """Return the posts per step of a depth, for a round of `n` posts: 1 unless depths would need more than 16 bits."""
    return 1 + np.int64(n) // NOTHING_PASSED


@lean_kernel
def rank_by_depth(
    readers: Int32,
    n_ranked: int,
    max_posts: Int32,
    now: int,
    tables: DepthTables,
    is_active: UInt64,
    audience: Audience,
    recent: Lists,
    outbox: Outbox,
    scratch: RankScratch,
    feed: Int32,
    n_feed: UInt16,
) -> Any:
    """Write the feed of each reader, newest posts first; return the number of readers with a feed.

    The first `n_ranked` readers already have their feeds. Ranking stops at a reader with more followees than `scratch`
    has room for. `max_posts` has the maximum length of each feed; `is_active` has the bits of agents with visible
    posts, and `recent` has seen roots that `audience` lacks.
    """
    n, words = np.int64(n_ranked), ((outbox.n + len(outbox.old_roots)) >> 6) + 1
    while n < len(readers):
        reader = readers[n]
        if audience.indptr[reader + 1] - audience.indptr[reader] > len(scratch.author):
            break
        if n + 1 < len(readers):
            _fetch(readers[n + 1], max_posts[n + 1], tables, audience, recent, feed)
        n_active = _list_active(reader, is_active, audience, scratch)
        n_feed[reader] = _fill_feed(
            reader, max_posts[n], now, n_active, tables, audience, recent, outbox, scratch, feed
        )
        for edge in range(audience.indptr[reader], audience.indptr[reader + 1]):
            scratch.agent_bits[np.uint64(audience.indices[np.uint64(edge)]) >> np.uint64(6)] = 0
        scratch.root_bits[:words] = 0
        n += 1
    return n


@inline_kernel
def _fetch(reader: Any, max_posts: Any, tables: DepthTables, audience: Audience, recent: Lists, feed: Int32) -> None:
    """Prefetch the data that the next reader needs first."""
    for k in range(audience.indptr[reader], min(audience.indptr[reader + 1], audience.indptr[reader] + 1024), 16):
        prefetch(audience.indices, k)
    for k in range(0, tables.depth.shape[1], 32):
        prefetch(tables.depth, np.int64(reader) * tables.depth.shape[1] + k)
    for k in range(0, min(max_posts, 256), 16):
        prefetch(feed, np.int64(reader) * feed.shape[1] + k)
    for lists in (Lists(audience.seen_start, audience.seen_roots), recent):
        end = lists.start[reader + 1]
        for k in range(max(end - 256, lists.start[reader]), end, 16):
            prefetch(lists.roots, k)


@inline_kernel
def _list_active(reader: Any, is_active: UInt64, audience: Audience, scratch: RankScratch) -> Any:
    """Write the followees with visible posts into `RankScratch.best`, and mark all followees; return their number."""
    n = np.int64(0)
    for edge in range(audience.indptr[reader], audience.indptr[reader + 1]):
        agent = np.uint64(audience.indices[np.uint64(edge)])
        scratch.author[np.uint64(n)] = agent
        set_bit(agent, scratch.agent_bits)
        n += get_bit(agent, is_active)
    if len(audience.hidden_start) > 0:
        n = drop_hidden(reader, 0, n, audience, scratch)
    for k in range(n):
        scratch.best[np.uint64(k)] = scratch.author[np.uint64(k)]
    return n


@kernel_step
def _fill_feed(
    reader: Any,
    max_posts: Any,
    now: Any,
    n_active: Any,
    tables: DepthTables,
    audience: Audience,
    recent: Lists,
    outbox: Outbox,
    scratch: RankScratch,
    feed: Int32,
) -> Any:
    rounds, rows = tables.rounds, len(tables.rounds.n)
    n_shown, old_end, recent_old_end = np.int64(0), np.int64(-1), np.int64(-1)
    begin, recent_begin = audience.seen_start[reader], recent.start[reader]
    for age in range(min(tables.window, now + 1)):
        row = (now - age) % rows
        end = np.int64(tables.depth[reader, row]) * _step_size(rounds.n[row])
        if end == 0 or not _list_round(row, end, n_active, rounds, scratch):
            continue
        if old_end < 0:
            old_end = mark_known(audience.seen_roots, begin, audience.seen_start[reader + 1], outbox, scratch)
            recent_old_end = mark_known(recent.roots, recent_begin, recent.start[reader + 1], outbox, scratch)
        first = np.int64(rounds.first[row])
        for group in range((rounds.n[row] - 1) >> 12, -1, -1):
            words, scratch.word_bits[np.uint64(group)] = scratch.word_bits[np.uint64(group)], 0
            while words:
                word = group << 6 | highest_bit(words)
                words ^= np.uint64(1) << np.uint64(word & 63)
                bits, scratch.post_bits[np.uint64(word)] = scratch.post_bits[np.uint64(word)], 0
                while bits and n_shown < max_posts:
                    local = word << 6 | highest_bit(bits)
                    bits ^= np.uint64(1) << np.uint64(local & 63)
                    root = rounds.root[np.uint64(row), np.uint64(local)]
                    place = root_place(root.id, outbox.first, outbox.n, outbox.old_roots)
                    is_known = get_bit(place, scratch.root_bits)
                    if root.id < outbox.first and not is_known:
                        is_known += root.author == reader or is_among(audience.seen_roots, begin, old_end, root.id)
                        is_known |= is_among(recent.roots, recent_begin, recent_old_end, root.id)
                    if root.id < first + local and not is_known:
                        is_known += _has_passed(reader, root, outbox.first, tables, scratch)
                    set_bit(place, scratch.root_bits)
                    feed[reader, n_shown] = first + local  # the next post overwrites a known one
                    n_shown += 1 - is_known
        if n_shown == max_posts:
            break
    return n_shown


@inline_kernel
def _has_passed(reader: Any, root: Any, first: Any, tables: DepthTables, scratch: RankScratch) -> Any:
    """Return whether an agent follows a root's author and has passed the root; `first` is the first visible post."""
    if root.step < np.int64(tables.depth[reader, root.row]) or not get_bit(root.author, scratch.agent_bits):
        return False
    return root.id >= first or is_among(tables.old, 0, len(tables.old), root.id)


@inline_kernel
def _list_round(row: Any, end: Any, n_active: Any, rounds: Rounds, scratch: RankScratch) -> Any:
    """Mark the posts of a round below `end` in `RankScratch.post_bits`; return whether authors have posts."""
    has_posts, writers, start, item = rounds.has_posts[row], rounds.writers[row], rounds.start[row], rounds.item[row]
    n, roots = np.int64(0), rounds.root[row]
    for k in range(n_active):
        agent = np.uint64(scratch.best[np.uint64(k)])
        scratch.author[np.uint64(n)] = agent
        n += get_bit(agent, has_posts)
    for k in range(n):
        index = np.uint64(k)
        w = np.uint64(writer_index(has_posts, writers, scratch.author[index]))
        scratch.begin[index] = start[w]
        scratch.n_items[index] = start[w + np.uint64(1)]
        prefetch(item, np.int64(start[w]))
    for k in range(n):
        index = np.uint64(k)
        for place in range(scratch.begin[index], scratch.n_items[index]):
            local = np.int64(item[np.uint64(place)])
            prefetch(roots, local)
            word, is_ahead = np.uint64(local >> 6), np.uint64(local < end)
            scratch.post_bits[word] |= is_ahead << np.uint64(local & 63)
            scratch.word_bits[word >> np.uint64(6)] |= is_ahead << (word & np.uint64(63))
    return n > 0


@lean_kernel
def update_depths(
    readers: Int32, max_posts: Int32, now: int, tables: DepthTables, feed: Int32, n_feed: UInt16, n_read: UInt16
) -> None:
    """Update the depths of readers, from the last post that each has read in its feed.

    A reader that has read a whole feed of fewer than `max_posts` posts has passed all visible posts.
    """
    depth, rounds, rows = tables.depth, tables.rounds, len(tables.rounds.n)
    for j in range(len(readers)):
        reader, last_round = readers[j], np.int64(now) - tables.window
        n = np.int64(n_read[reader])
        if n < n_feed[reader] or n == max_posts[j]:
            if n == 0:
                continue
            last = feed[reader, n - 1]
            last_round = np.int64(tables.round[last])
            row = last_round % rows
            step_size = _step_size(rounds.n[row])
            local = np.int64(last) - rounds.first[row] + step_size - 1
            depth[reader, row] = min(np.int64(depth[reader, row]), local // step_size)
        for later in range(last_round + 1, now + 1):
            depth[reader, later % rows] = 0


@kernel
def list_uncovered(agents: Int32, posts: Int32, roots: Int32, is_deep: Any, n_read: UInt16) -> tuple[Int32, Int32]:
    """Return the agents and roots of impressions that depths do not cover.

    Impressions of the same agent must be adjacent. `is_deep` marks agents whose feed was ranked by depth, and `n_read`
    has the number of its posts that they have read. Depths cover such a feed, except for roots that were read by a
    copy.
    """
    out_agents, out_roots, n, begin = np.empty_like(agents), np.empty_like(roots), np.int64(0), 0
    while begin < len(agents):
        agent, end = agents[begin], begin
        while end < len(agents) and agents[end] == agent:
            end += 1
        is_covered = is_deep[agent] and end - begin == n_read[agent]  # otherwise some are from an earlier feed
        for i in range(begin, end):
            out_agents[n], out_roots[n] = agent, roots[i]
            n += np.int64(roots[i] != posts[i] or not is_covered)
        begin = end
    return out_agents[:n], out_roots[:n]


@kernel
def list_passed(agents: Int32, roots: Int32, tables: DepthTables, indptr: Ints, indices: Int32) -> tuple[Int32, Int32]:
    """Return pairs of an agent and a root of `roots` (from the last rounds) that it has passed, ascending by agent."""
    n_agents, rounds = len(indptr) - 1, tables.rounds
    author_bits, start = np.zeros(n_agents // 64 + 1, np.uint64), np.zeros(n_agents + 2, np.int32)
    root_index, row, local = np.empty_like(roots), np.empty_like(roots), np.empty_like(roots)
    for root in roots:
        set_bit(tables.author[root], author_bits)
        start[tables.author[root] + 2] += 1
    for i in range(n_agents):
        start[i + 2] += start[i + 1]
    for i in range(len(roots)):
        k = start[tables.author[roots[i]] + 1]
        root_index[k], row[k] = i, tables.round[roots[i]] % len(rounds.n)
        local[k] = (roots[i] - rounds.first[row[k]]) // _step_size(rounds.n[row[k]])
        start[tables.author[roots[i]] + 1] += 1
    has_passed, max_followees = np.zeros(len(roots) // 64 + 1, np.uint64), np.max(indptr[1:] - indptr[:-1])
    authors = np.empty(max_followees + 1, np.int32)  # the last entry is overwritten
    out_agents, out_roots, n = np.empty(1 << 10, np.int32), np.empty(1 << 10, np.int32), 0
    for agent in agents:
        if tables.depth[agent].min() == NOTHING_PASSED:
            continue
        n_authors = np.int64(0)
        for edge in range(indptr[agent], indptr[agent + 1]):  # avoids branches that are hard to predict
            authors[np.uint64(n_authors)] = indices[np.uint64(edge)]
            n_authors += get_bit(indices[np.uint64(edge)], author_bits)
        for author in authors[:n_authors]:
            for k in range(start[author], start[author + 1]):
                index, place = np.uint64(k), np.uint64(root_index[np.uint64(k)])
                bit = np.uint64(local[index] >= np.int64(tables.depth[agent, np.uint64(row[index])]))
                has_passed[place >> np.uint64(6)] |= bit << (place & np.uint64(63))
        for word in range(len(has_passed)):
            bits, has_passed[word] = has_passed[word], 0
            if n + 64 > len(out_agents):
                out_agents, out_roots = np.append(out_agents, out_agents), np.append(out_roots, out_roots)
            while bits:
                out_agents[n], out_roots[n] = agent, roots[word * 64 + lowest_bit(bits)]
                bits &= bits - np.uint64(1)
                n += 1
    return out_agents[:n], out_roots[:n]
