"""Chronological feeds of readers with many candidates, which resume where each reader stopped.

A feed takes one round after the other, from the newest, until it is full. In each round, a reader has passed all posts
from its depth on. So a feed looks at few posts that the reader knows, and at none that are too old. Roots that a reader
has passed need no list; lists hold the roots that it read by a copy.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.commit.seen import Lists
from prism_mesa.kernels.compiling import kernel, lean_kernel, part_of_kernels, step_of_kernels
from prism_mesa.kernels.feeds.gathering import without_hidden
from prism_mesa.kernels.feeds.outbox import Audience, Outbox, place_of_root, writer_index
from prism_mesa.kernels.feeds.ranking import is_noted, note, note_known
from prism_mesa.kernels.feeds.scoring import RankScratch
from prism_mesa.kernels.lanes import count_bits, highest_bit, lowest_bit, prefetch
from prism_mesa.kernels.ordering import is_among

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type UInt16 = npt.NDArray[np.uint16]

NOTHING_PASSED: Final = np.iinfo(np.uint16).max


class Rounds(NamedTuple):
    """The posts of the last rounds by round and author; round r is row ``r % rows``.

    Attributes:
        first: Id of the first post of each round.
        n: Number of posts of each round. A post's local number is its position among them.
        has_posts: A bit for each agent: whether it has posts; shape (rows, words).
        writers: Number of agents with posts in all earlier words of `has_posts`, shape (rows, words).
        start: The w-th agent with posts has items ``start[row, w]`` .. ``start[row, w + 1] - 1``.
        item: Local numbers, ascending for each agent.
    """

    first: Int32
    n: Int32
    has_posts: npt.NDArray[np.uint64]
    writers: Int32
    start: Int32
    item: Int32


class Passed(NamedTuple):
    """The arrays that say which roots agents have passed.

    Attributes:
        depth: Shape (agents, rows of `rounds`): in each round, an agent has passed the posts of those it follows from
            this local number on (in steps of `_unit`).
        rounds: The posts of these rounds.
        window: Rounds that are visible.
        old: Roots of earlier rounds that agents can have passed and lists may lack, ascending.
        author, round: Author and round of all posts.
    """

    depth: UInt16
    rounds: Rounds
    window: int
    old: Int32
    author: Int32
    round: Int32


def room_for_rounds(rows: int, n_agents: int, most: int) -> Rounds:
    """Return `Rounds` with room for `most` posts in each round."""
    words, integers = n_agents // 64 + 1, np.int32
    return Rounds(
        first=np.zeros(rows, integers),
        n=np.zeros(rows, integers),
        has_posts=np.zeros((rows, words), np.uint64),
        writers=np.zeros((rows, words), integers),
        start=np.zeros((rows, most + 2), integers),
        item=np.zeros((rows, most), integers),
    )


@lean_kernel
def add_round(author: Int32, first: int, row: int, rounds: Rounds) -> None:
    """Write the posts of a round, given their authors, into a row."""
    has_posts, writers, start, item = rounds.has_posts[row], rounds.writers[row], rounds.start[row], rounds.item[row]
    rounds.first[row], rounds.n[row] = first, len(author)
    has_posts[:] = 0
    start[: len(author) + 2] = 0  # unwritten memory behind this is never taken
    for i in range(len(author)):
        note(author[i], has_posts)
    n = np.int64(0)
    for word in range(len(has_posts)):
        writers[word] = n
        n += count_bits(has_posts[word])
    for i in range(len(author)):
        start[writer_index(has_posts, writers, author[i]) + 2] += 1
    for w in range(n):
        start[w + 2] += start[w + 1]
    for i in range(len(author)):  # while filling, `start[w + 1]` is the position of w's next post
        w = writer_index(has_posts, writers, author[i])
        item[start[w + 1]] = i
        start[w + 1] += 1


@part_of_kernels
def _unit(n: Any) -> Any:
    """Return the posts in a step of a depth, in a round of `n`: one, unless there are too many for 16 bits."""
    return 1 + np.int64(n) // NOTHING_PASSED


@part_of_kernels
def _is_behind(agent: Any, root: Any, passed: Passed) -> Any:
    """Return whether an agent has passed the place of a root of the last rounds."""
    rounds = passed.rounds
    row = np.int64(passed.round[root]) % len(rounds.n)
    return np.int64(root) - rounds.first[row] >= np.int64(passed.depth[agent, row]) * _unit(rounds.n[row])


@lean_kernel
def rank_by_depth(
    readers: Int32,
    ranked: int,
    most: Int32,
    now: int,
    passed: Passed,
    audience: Audience,
    recent: Lists,
    outbox: Outbox,
    scratch: RankScratch,
    feed: Int32,
    n_feed: UInt16,
) -> Any:
    """Write the feed of each of `readers`, newest first; return how many have theirs, the first `ranked` included.

    Stops where `scratch` does not hold the authors that the next reader follows. `most` has the length of each feed at
    most, and `recent` roots that agents have seen beside those of `audience`.
    """
    n, words = np.int64(ranked), ((outbox.n + len(outbox.old_roots)) >> 6) + 1
    while n < len(readers):
        reader = readers[n]
        if audience.indptr[reader + 1] - audience.indptr[reader] > len(scratch.author):
            break
        if n + 1 < len(readers):
            _fetch(readers[n + 1], most[n + 1], passed, audience, recent, feed)
        n_feed[reader] = _read_on(reader, most[n], now, passed, audience, recent, outbox, scratch, feed)
        scratch.met[:words] = 0
        n += 1
    return n


@part_of_kernels
def _fetch(reader: Any, most: Any, passed: Passed, audience: Audience, recent: Lists, feed: Int32) -> None:
    """Prefetch what the next reader needs first."""
    for k in range(audience.indptr[reader], min(audience.indptr[reader + 1], audience.indptr[reader] + 1024), 16):
        prefetch(audience.indices, k)
    for k in range(0, passed.depth.shape[1], 32):
        prefetch(passed.depth, np.int64(reader) * passed.depth.shape[1] + k)
    for k in range(0, min(most, 256), 16):
        prefetch(feed, np.int64(reader) * feed.shape[1] + k)
    for lists in (Lists(audience.seen_start, audience.seen_roots), recent):
        end = lists.start[reader + 1]
        for k in range(max(end - 256, lists.start[reader]), end, 16):
            prefetch(lists.roots, k)


@step_of_kernels
def _read_on(
    reader: Any,
    most: Any,
    now: Any,
    passed: Passed,
    audience: Audience,
    recent: Lists,
    outbox: Outbox,
    scratch: RankScratch,
    feed: Int32,
) -> Any:
    rounds, rows = passed.rounds, len(passed.rounds.n)
    shown, old_end, recent_old_end = np.int64(0), np.int64(-1), np.int64(-1)
    begin, recent_begin = audience.seen_start[reader], recent.start[reader]
    for back in range(min(passed.window, now + 1)):
        row = (now - back) % rows
        end = np.int64(passed.depth[reader, row]) * _unit(rounds.n[row])
        if end == 0:
            continue
        highest = _list_round(reader, row, end, rounds, audience, scratch)
        if highest < 0:
            continue
        if old_end < 0:
            old_end = note_known(audience.seen_roots, begin, audience.seen_start[reader + 1], outbox, scratch)
            recent_old_end = note_known(recent.roots, recent_begin, recent.start[reader + 1], outbox, scratch)
        base = np.int64(rounds.first[row]) - outbox.first
        for word in range(highest, -1, -1):
            bits = scratch.listed[np.uint64(word)]
            scratch.listed[np.uint64(word)] = 0
            while bits and shown < most:
                lane = highest_bit(bits)
                bits ^= np.uint64(1) << np.uint64(lane)
                local = base + word * 64 + lane
                root = outbox.root[np.uint64(local)]
                place = place_of_root(root, outbox.first, outbox.n, outbox.old_roots)
                is_known = is_noted(place, scratch.met)
                if root < outbox.first and not is_known:
                    is_known += passed.author[root] == reader or is_among(audience.seen_roots, begin, old_end, root)
                    is_known |= is_among(recent.roots, recent_begin, recent_old_end, root)
                if root < outbox.first + local and not is_known:
                    is_known += _has_passed(reader, root, outbox.first, passed, audience)
                note(place, scratch.met)
                feed[reader, shown] = outbox.first + local  # a known post is overwritten, or lies after the last
                shown += 1 - is_known
        if shown == most:
            break
    return shown


@part_of_kernels
def _has_passed(reader: Any, root: Any, first: Any, passed: Passed, audience: Audience) -> Any:
    """Return whether an agent that follows the author of a root has passed it; `first` is the first visible post."""
    if root < first and not is_among(passed.old, 0, len(passed.old), root):
        return False
    if not _is_behind(reader, root, passed):
        return False
    return is_among(audience.indices, audience.indptr[reader], audience.indptr[reader + 1], passed.author[root])


@part_of_kernels
def _list_round(reader: Any, row: Any, end: Any, rounds: Rounds, audience: Audience, scratch: RankScratch) -> Any:
    """Mark the posts of a round below `end` in `RankScratch.listed`; return the last word with any, or -1."""
    has_posts, writers, start, item = rounds.has_posts[row], rounds.writers[row], rounds.start[row], rounds.item[row]
    n = np.int64(0)
    for edge in range(audience.indptr[reader], audience.indptr[reader + 1]):
        agent = np.uint64(audience.indices[np.uint64(edge)])
        scratch.author[np.uint64(n)] = agent
        n += np.int64(has_posts[agent >> np.uint64(6)] >> (agent & np.uint64(63)) & np.uint64(1))
    if len(audience.hidden_start) > 0:
        n = without_hidden(reader, 0, n, audience, scratch)
    if n == 0:
        return np.int64(-1)
    for k in range(n):
        at = np.uint64(k)
        w = np.uint64(writer_index(has_posts, writers, scratch.author[at]))
        scratch.begin[at] = start[w]
        scratch.n_items[at] = start[w + np.uint64(1)]
    for k in range(n):
        at = np.uint64(k)
        for place in range(scratch.begin[at], scratch.n_items[at]):
            local = np.int64(item[np.uint64(place)])
            scratch.listed[np.uint64(local >> 6)] |= np.uint64(local < end) << np.uint64(local & 63)
    return (min(np.int64(rounds.n[row]), end) - 1) >> 6


@lean_kernel
def deepen(readers: Int32, most: Int32, now: int, passed: Passed, feed: Int32, n_feed: UInt16, n_read: UInt16) -> None:
    """Note the depths of readers, from the last post that each has read of its feed of up to `most` posts.

    A reader that has read all of a feed shorter than that has passed all visible posts.
    """
    depth, rounds, rows = passed.depth, passed.rounds, len(passed.rounds.n)
    for j in range(len(readers)):
        reader, since = readers[j], np.int64(now) - passed.window
        n = np.int64(n_read[reader])
        if n < n_feed[reader] or n == most[j]:
            if n == 0:
                continue
            last = feed[reader, n - 1]
            since = np.int64(passed.round[last])
            row = since % rows
            unit = _unit(rounds.n[row])
            local = np.int64(last) - rounds.first[row] + unit - 1
            depth[reader, row] = min(np.int64(depth[reader, row]), local // unit)
        for later in range(since + 1, now + 1):
            depth[reader, later % rows] = 0


@kernel
def unpassed(agents: Int32, posts: Int32, roots: Int32, is_deep: Any, n_read: UInt16) -> tuple[Int32, Int32]:
    """Return the agents and roots of those impressions that depths do not cover; `agents` are in groups.

    `is_deep` marks agents whose feed was ranked by depth, and `n_read` is how many of its posts they have read. Depths
    cover such a feed, except roots that were read by a copy.
    """
    who, what, n, begin = np.empty_like(agents), np.empty_like(roots), np.int64(0), 0
    while begin < len(agents):
        agent, end = agents[begin], begin
        while end < len(agents) and agents[end] == agent:
            end += 1
        by_depth = is_deep[agent] and end - begin == n_read[agent]  # else some are of the feed of an earlier round
        for i in range(begin, end):
            who[n], what[n] = agent, roots[i]
            n += np.int64(roots[i] != posts[i] or not by_depth)
        begin = end
    return who[:n], what[:n]


@kernel
def list_passed(agents: Int32, roots: Int32, passed: Passed, indptr: Int64, indices: Int32) -> tuple[Int32, Int32]:
    """Return pairs of agents and those of `roots`, from the last rounds, that they have passed, ascending by agent."""
    n_agents, rounds = len(indptr) - 1, passed.rounds
    wrote, start = np.zeros(n_agents // 64 + 1, np.uint64), np.zeros(n_agents + 2, np.int32)
    own, row, local = np.empty_like(roots), np.empty_like(roots), np.empty_like(roots)
    for root in roots:
        note(passed.author[root], wrote)
        start[passed.author[root] + 2] += 1
    for i in range(n_agents):
        start[i + 2] += start[i + 1]
    for i in range(len(roots)):
        k = start[passed.author[roots[i]] + 1]
        own[k], row[k] = i, passed.round[roots[i]] % len(rounds.n)
        local[k] = (roots[i] - rounds.first[row[k]]) // _unit(rounds.n[row[k]])
        start[passed.author[roots[i]] + 1] += 1
    has_passed, most = np.zeros(len(roots) // 64 + 1, np.uint64), np.max(indptr[1:] - indptr[:-1])
    authors = np.empty(most + 1, np.int32)  # the last is overwritten
    who, what, n = np.empty(1 << 10, np.int32), np.empty(1 << 10, np.int32), 0
    for agent in agents:
        if passed.depth[agent].min() == NOTHING_PASSED:
            continue
        n_authors = np.int64(0)
        for edge in range(indptr[agent], indptr[agent + 1]):  # without branches that are hard to predict
            authors[np.uint64(n_authors)] = indices[np.uint64(edge)]
            n_authors += is_noted(indices[np.uint64(edge)], wrote)
        for author in authors[:n_authors]:
            for k in range(start[author], start[author + 1]):
                at, place = np.uint64(k), np.uint64(own[np.uint64(k)])
                bit = np.uint64(local[at] >= np.int64(passed.depth[agent, np.uint64(row[at])]))
                has_passed[place >> np.uint64(6)] |= bit << (place & np.uint64(63))
        for word in range(len(has_passed)):
            bits, has_passed[word] = has_passed[word], 0
            if n + 64 > len(who):
                who, what = np.append(who, who), np.append(what, what)
            while bits:
                who[n], what[n] = agent, roots[word * 64 + lowest_bit(bits)]
                bits &= bits - np.uint64(1)
                n += 1
    return who[:n], what[:n]
