"""Ranking feeds: of the visible posts the best for each reader. The platform is only read.

Most of a round is spent here, and most of that on waiting for memory: who is followed lies anywhere. So a block of
readers is taken through passes that do one thing each without looking at what they find (whose authors have anything
to show, where their posts lie, what these are), and the processor has many reads under way at a time. The cut into
blocks changes no feed.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, part_of_kernels
from prism_mesa.kernels.feeds.candidates import keep_newest, n_extras
from prism_mesa.kernels.feeds.diverse import rank_diverse
from prism_mesa.kernels.feeds.outbox import BITS_32, BITS_33, LOWER, Outbox, place_of_root, writer_of
from prism_mesa.kernels.feeds.scoring import CHRONOLOGICAL, DIVERSE, X_ALGO, Scoring, score_block
from prism_mesa.kernels.ordering import DIGITS, FEW, is_among, show

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Keys = npt.NDArray[np.uint64]

READERS: Final = 64
"""Readers taken through the passes at a time."""

MANY: Final = 4 * FEW
"""Candidates beyond which those with the same root are not looked for one after the other."""


@part_of_kernels
def _best(
    reader: Any,
    item: Keys,
    begin: Int32,
    count: Int32,
    first_author: Any,
    last_author: Any,
    keys: Keys,
    at: Any,
    is_scored: Any,
    first_id: Any,
    author: Int32,
    known: Int32,
    known_first: Any,
    known_last: Any,
    best: Keys,
    roots: Int32,
) -> Any:
    """Gather the keys of a reader's candidates in `best`, each root once, its best copy; return how many.

    It is for few candidates. Those that drop out are written over by the next one: what happens does not hang on what
    is found, so the processor need not guess.
    """
    n, met = 0, np.uint64(0)
    for i in range(first_author, last_author):
        for place in range(begin[i], begin[i] + count[i]):
            one = item[place]
            root = np.int32(one & LOWER)
            key = one >> BITS_33
            if is_scored:
                key = keys[at]
                at += 1
            drops = root < first_id and author[root] == reader  # which then may have been forgotten
            for j in range(known_first, known_last):
                drops |= known[j] == root
            best[n] = key
            roots[n] = root
            bit = (one >> BITS_32 & np.uint64(1)) << np.uint64(root & 63)
            if met & bit and not drops:  # seldom: a copy of it, or of one with the same bit, is among them
                same = 0
                while roots[same] != root:
                    same += 1
                if same < n:
                    best[same] = max(best[same], key)
                    drops = True
            met |= np.uint64(0) if drops else bit
            n += 0 if drops else 1
    return n


@part_of_kernels
def _best_of_many(
    reader: Any,
    item: Keys,
    begin: Int32,
    count: Int32,
    first_author: Any,
    last_author: Any,
    keys: Keys,
    at: Any,
    is_scored: Any,
    first_id: Any,
    author: Int32,
    known: Int32,
    known_first: Any,
    known_last: Any,
    best: Keys,
    n_visible: Any,
    old_roots: Int32,
    mark: Int32,
    turn: Any,
) -> Any:
    """Do what `_best` does, for many candidates or known roots: these are looked up in `mark`, by `place_of_root`.

    What stands there is below `turn` where the reader has not met a root, `turn` where it knows it, and above it
    by the candidate's place + 1 where the root is in `best`. So nothing is cleared between readers.
    """
    n = 0
    for j in range(known_first, known_last):
        spot = place_of_root(known[j], first_id, n_visible, old_roots)
        if spot >= 0:
            mark[spot] = turn
    for i in range(first_author, last_author):
        for place in range(begin[i], begin[i] + count[i]):
            one = item[place]
            root = np.int32(one & LOWER)
            key = one >> BITS_33
            if is_scored:
                key = keys[at]
                at += 1
            if root < first_id and author[root] == reader:  # which then may have been forgotten
                continue
            spot = place_of_root(root, first_id, n_visible, old_roots)
            met = mark[spot]
            if met < turn:
                mark[spot] = turn + 1 + n
                best[n] = key
                n += 1
            elif met > turn:
                best[met - turn - 1] = max(best[met - turn - 1], key)
    return n


@kernel
def without_hidden(authors: Int32, first: Any, last: Any, hidden_start: Int64, hidden: Int32, reader: Any) -> Any:
    """Move up, in their place, those of ``authors[first:last]`` who are not hidden from a reader; return their end."""
    begin, end = hidden_start[reader], hidden_start[reader + 1]
    if begin == end:
        return last
    kept = first
    for i in range(first, last):
        author = authors[i]
        if not is_among(hidden, begin, end, author):
            authors[kept] = author
            kept += 1
    return kept


@kernel
def rank(
    readers: Int32,
    indptr: Int64,
    indices: Int32,
    outbox: Outbox,
    scoring: Scoring,
    known_start: Int64,
    known: Int32,
    hidden_start: Int64,
    hidden: Int32,
    feed: Int32,
    n_feed: npt.NDArray[np.uint16],
) -> Any:
    """Write the feed of each of `readers` (each once), best first; what is returned is of no use.

    Args:
        readers: Rows of agents.
        indptr: With `indices`: whom each agent follows, ascending (`social.state.network.FollowNetwork`).
        indices: See `indptr`.
        outbox: The visible posts.
        scoring: What they are ranked by.
        known_start: With `known`: roots that each agent has seen, ascending (`social.state.exposure.Exposure`).
        known: See `known_start`.
        hidden_start: With `hidden`: whose posts are not shown to each agent, ascending; empty if nobody's are.
        hidden: See `hidden_start`.
        feed: Shape (agents, size): gets ids of posts.
        n_feed: Gets the number of posts in each feed.
    """
    keys, best, roots = np.empty(1 << 12, np.uint64), np.empty(1 << 12, np.uint64), np.empty(1 << 12, np.int32)
    wrote, writers, start, item = outbox.wrote, outbox.writers, outbox.start, outbox.item
    first_id, mode, author_of = outbox.first, scoring.mode, scoring.author
    touched = np.int64(0)
    room_to_sort, counts = np.empty(1 << 12, np.uint64), np.empty(DIGITS, np.int64)
    bits = 64
    if mode == CHRONOLOGICAL:  # keys are local numbers
        bits = 1
        while outbox.n >> bits:
            bits += 1
    n_visible, old_roots = outbox.n, outbox.old_roots
    n_roots = n_visible + len(old_roots)
    mark, turn = np.empty(0, np.int32), np.int64(1)
    more = n_extras(scoring)
    is_diverse = mode in (X_ALGO, DIVERSE) or more > 0
    met, met_turn = np.zeros((2, n_roots if is_diverse else 0), np.int64), np.int64(1)
    given_at = np.int64(0)
    ends, item_ends = np.empty(READERS, np.int64), np.empty(READERS, np.int64)
    authors, begin, count = np.empty(1 << 12, np.int32), np.empty(1 << 12, np.int32), np.empty(1 << 12, np.int32)
    for first in range(0, len(readers), READERS):
        n = min(READERS, len(readers) - first)
        room = 0
        for j in range(n):
            room += indptr[readers[first + j] + 1] - indptr[readers[first + j]]
        if room >= len(authors):
            authors, begin, count = (
                np.empty(2 * room, np.int32),
                np.empty(2 * room, np.int32),
                np.empty(2 * room, np.int32),
            )
        k = np.int64(0)
        for j in range(n):
            for edge in range(indptr[readers[first + j]], indptr[readers[first + j] + 1]):
                author = indices[edge]
                authors[k] = author
                k += np.int64(wrote[author >> 6] >> np.uint64(author & 63) & np.uint64(1))
            if len(hidden_start) > 0:
                k = without_hidden(authors, ends[j - 1] if j > 0 else 0, k, hidden_start, hidden, readers[first + j])
            ends[j] = k
        total = np.int64(0)
        for j in range(n):
            for i in range(0 if j == 0 else ends[j - 1], ends[j]):
                w = writer_of(wrote, writers, authors[i])
                begin[i] = start[w]
                count[i] = start[w + 1] - begin[i]
            if scoring.followed >= 0:
                total += keep_newest(begin, count, 0 if j == 0 else ends[j - 1], ends[j], outbox, scoring.followed)
            else:
                for i in range(0 if j == 0 else ends[j - 1], ends[j]):
                    total += count[i]
            item_ends[j] = total
        for i in range(k):  # so that many reads are under way before the first is needed
            touched += np.int64(item[begin[i]])
        if total > len(keys):
            room_to_sort = np.empty(2 * total, np.uint64)
            keys, best, roots = (
                np.empty(2 * total, np.uint64),
                np.empty(2 * total, np.uint64),
                np.empty(2 * total, np.int32),
            )
        if is_diverse:
            met_turn = rank_diverse(
                readers,
                first,
                ends[:n],
                item_ends[:n],
                begin,
                count,
                outbox,
                scoring,
                known_start,
                known,
                hidden_start,
                hidden,
                indptr,
                indices,
                feed,
                n_feed,
                met,
                met_turn,
                given_at,
            )
            given_at += total + n * more
            continue
        if mode != CHRONOLOGICAL:
            score_block(readers, first, ends[:n], begin, count, keys, outbox, scoring, given_at)
            given_at += total
        at, before = np.int64(0), np.int64(0)
        for j in range(n):
            reader = readers[first + j]
            known_first, known_last = known_start[reader], known_start[reader + 1]
            candidates = item_ends[j] - before
            if candidates <= FEW or (known_last - known_first <= FEW and candidates <= MANY):
                kept = _best(
                    reader,
                    item,
                    begin,
                    count,
                    at,
                    ends[j],
                    keys,
                    before,
                    mode != CHRONOLOGICAL,
                    first_id,
                    author_of,
                    known,
                    known_first,
                    known_last,
                    best,
                    roots,
                )
            else:
                if len(mark) == 0 or turn + candidates + 1 >= 1 << 31:
                    mark, turn = np.zeros(n_roots, np.int32), np.int64(1)
                kept = _best_of_many(
                    reader,
                    item,
                    begin,
                    count,
                    at,
                    ends[j],
                    keys,
                    before,
                    mode != CHRONOLOGICAL,
                    first_id,
                    author_of,
                    known,
                    known_first,
                    known_last,
                    best,
                    n_visible,
                    old_roots,
                    mark,
                    turn,
                )
                turn += candidates + 1
            show(best, kept, feed, reader, first_id, bits, room_to_sort, counts)
            n_feed[reader] = min(kept, feed.shape[1])
            at, before = ends[j], item_ends[j]
    return touched
