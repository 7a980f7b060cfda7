"""Ranking feeds: the visible posts by author, and the best of them for each reader. The platform is only read.

Most of a round is spent here, and most of that on waiting for memory: who is followed lies anywhere. So a block of
readers is taken through passes that do one thing each without looking at what they find (whose authors have anything
to show, where their posts lie, what these are), and the processor has many reads under way at a time. The cut into
blocks changes no feed.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, part_of_kernels
from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.kernels.walk import match_of, relevance_at

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Keys = npt.NDArray[np.uint64]
type Floats = npt.NDArray[np.float64]

RANDOM, CHRONOLOGICAL, PREFERENCE, X_ALGO = range(4)

READERS: Final = 64
"""Readers taken through the passes at a time."""

_FEW: Final = 48
_32: Final = np.uint64(32)
_33: Final = np.uint64(33)
_LOW: Final = np.uint64(0xFFFFFFFF)


class Outbox(NamedTuple):
    """The visible posts by author, with local numbers from 0 in the order of their ids.

    It is small, so that most of it stays in the processor's caches.

    Attributes:
        first: Id of local number 0.
        n: Number of visible posts.
        wrote: A bit for each agent: whether it has any.
        writers: How many have any among the agents of all words of `wrote` before, int32.
        start: The w-th agent who has any has items ``start[w]`` .. ``start[w + 1] - 1``, oldest first.
        item: Each a number: ``local number << 33 | whether several visible posts have its root << 32 | root's id``;
            and one more, which counts for nothing.
    """

    first: int
    n: int
    wrote: Keys
    writers: Int32
    start: Int32
    item: Keys


class Scoring(NamedTuple):
    """What posts are ranked by.

    Attributes:
        mode: `RANDOM`, `CHRONOLOGICAL`, `PREFERENCE` or `X_ALGO`.
        key: Of the draws of the feed's order (random), with round and tick mixed in.
        post_key: Keys of all posts.
        interests: Of all agents; `text_id` of all posts, `vectors` of all texts.
        unit_length: Similarity of two equal topic vectors.
        outsiders: Posts drawn from the whole platform for each reader (x_algo); `outsider_key` of these draws.
        good: What of a visible post's score grows with relevance; `bad` what shrinks with it, one for all.
        factor: Of each visible post's score; below 0 the score is divided by it.
        outsider_factor: Of the score of a post by somebody who is not followed.
        diversity: Factor of the score with 0, 1, 2, ... better-ranked posts of its author; the last stands for more.
        author: Authors of all posts.
    """

    mode: int
    key: np.uint64
    post_key: Keys
    interests: npt.NDArray[np.int8]
    text_id: Int32
    vectors: npt.NDArray[np.int8]
    unit_length: float
    outsiders: int
    outsider_key: np.uint64
    good: Floats
    bad: float
    factor: Floats
    outsider_factor: float
    diversity: Floats
    author: Int32


@kernel
def fill_outbox(author: Int32, root: Int32, start: Int32, wrote: Keys, writers: Int32, item: Keys) -> None:
    """Fill an outbox; `author` and `root` have one entry per visible post, `start` one per agent and two more."""
    n, n_writers = len(author), np.int64(0)
    for i in range(n):
        wrote[author[i] >> 6] |= np.uint64(1) << np.uint64(author[i] & 63)
    for word in range(len(wrote)):
        writers[word] = n_writers
        n_writers += np.int64(_ones(wrote[word]))
    for i in range(n):
        start[_writer(wrote, writers, author[i]) + 2] += 1
    for w in range(2, n_writers + 2):
        start[w] += start[w - 1]
    least = root.min()
    copies = np.zeros(root.max() - least + 1, np.uint8)
    for i in range(n):
        copies[root[i] - least] = min(2, copies[root[i] - least] + 1)
    for i in range(n):
        w = _writer(wrote, writers, author[i]) + 1
        copied = np.uint64(copies[root[i] - least] >> 1)
        item[start[w]] = np.uint64(i) << _33 | copied << _32 | np.uint64(root[i])
        start[w] += 1


@part_of_kernels
def _ones(word: Any) -> Any:
    """Return how many bits of a word are set (Warren 2012, Hacker's Delight, 5-1)."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return (word * np.uint64(0x0101010101010101)) >> np.uint64(56)


@part_of_kernels
def _writer(wrote: Keys, writers: Int32, author: Any) -> Any:
    """Return the place of an agent among those who have a visible post."""
    below = (np.uint64(1) << np.uint64(author & 63)) - np.uint64(1)
    return np.int64(writers[author >> 6]) + np.int64(_ones(wrote[author >> 6] & below))


@part_of_kernels
def is_among(values: Int32, first: Any, last: Any, wanted: Any) -> bool:
    """Return whether ascending ``values[first:last]`` hold a number."""
    while last - first > 8:
        middle = (first + last) >> 1
        if values[middle] <= wanted:
            first = middle
        else:
            last = middle
    found = False
    for i in range(first, last):
        found |= values[i] == wanted
    return found


@part_of_kernels
def _rising(score: float) -> np.uint64:
    """Return a whole number, below 2**32, in the order of a score as float32."""
    held = np.float32(score)
    bits = np.uint64(np.float32(0.0 if held == 0.0 else held).view(np.uint32))  # -0 is 0
    return ~bits & _LOW if bits >> np.uint64(31) else bits | np.uint64(1 << 31)


@part_of_kernels
def _lowered(score: float, factor: float) -> float:
    """Return a score times a factor of at most 1; one below 0 is divided by it, so that it too goes down."""
    return score / factor if score < 0.0 else score * factor


@part_of_kernels
def _scored(reader: Any, local: Any, is_outsider: bool, first: int, scoring: Scoring) -> float:
    """Return the score of a visible post for a reader; more is better."""
    post = first + local
    if scoring.mode == RANDOM:
        return unit(mixed(mixed(scoring.key, scoring.post_key[post]), np.uint64(reader)))
    if scoring.mode == CHRONOLOGICAL:
        return 0.0
    match = match_of(scoring.interests, scoring.vectors, reader, scoring.text_id[post])
    if scoring.mode == PREFERENCE:
        return np.float64(match)
    relevance = relevance_at(match, scoring.unit_length)
    score = 2.0 * (relevance * scoring.good[local] + (1.0 - relevance) * scoring.bad)
    if scoring.outsiders > 0:
        score = _lowered(score, scoring.outsider_factor if is_outsider else 1.0)
    return _lowered(score, scoring.factor[local])


@part_of_kernels
def _key(score: Any, local: Any) -> np.uint64:
    """Return a number that sorts by score, then by age: the newer post has the larger one."""
    return _rising(score) << _32 | np.uint64(local)


@kernel
def _score_block(
    readers: Int32, first: int, ends: Int64, begin: Int32, count: Int32, keys: Keys, outbox: Outbox, scoring: Scoring
) -> None:
    """Write the key of each candidate of a block of readers."""
    at, i = 0, 0
    for j in range(len(ends)):
        while i < ends[j]:
            for place in range(begin[i], begin[i] + count[i]):
                local = np.int64(outbox.item[place] >> _33)
                keys[at] = _key(_scored(readers[first + j], local, False, outbox.first, scoring), local)
                at += 1
            i += 1


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

    Candidates that drop out are written over by the next one: what happens does not hang on what is found, so the
    processor need not guess.
    """
    n, met = 0, np.uint64(0)
    few = known_last - known_first <= _FEW
    for i in range(first_author, last_author):
        for place in range(begin[i], begin[i] + count[i]):
            one = item[place]
            root = np.int32(one & _LOW)
            key = one >> _33
            if is_scored:
                key = keys[at]
                at += 1
            drops = root < first_id and author[root] == reader  # which then may have been forgotten
            if few:
                for j in range(known_first, known_last):
                    drops |= known[j] == root
            else:
                drops |= is_among(known, known_first, known_last, root)
            best[n] = key
            roots[n] = root
            bit = (one >> _32 & np.uint64(1)) << np.uint64(root & 63)
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
def _show(best: Keys, n: Any, feed: Int32, reader: Any, first: Any) -> None:
    """Write posts into a feed by falling key; the place of each is counted, nothing is swapped."""
    size = feed.shape[1]
    if n > _FEW:
        order = np.sort(best[:n])
        for place in range(min(n, size)):
            feed[reader, place] = first + np.int64(order[n - 1 - place] & _LOW)
        return
    for i in range(n):
        place = 0
        for j in range(n):
            place += best[j] > best[i]
        if place < size:
            feed[reader, place] = first + np.int64(best[i] & _LOW)


@kernel
def _by_key(keys: Keys, order: Int64, n: int) -> None:
    """Write the places of keys into `order`, the largest first."""
    if n > _FEW:
        order[:n] = np.argsort(keys[:n])[::-1]
        return
    for i in range(n):
        place = i
        while place > 0 and keys[order[place - 1]] < keys[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i


@kernel
def _best_diverse(
    reader: int,
    begin: Int32,
    count: Int32,
    first_author: int,
    last_author: int,
    most: int,
    outbox: Outbox,
    scoring: Scoring,
    known: Int32,
    known_first: int,
    known_last: int,
    indptr: Int64,
    indices: Int32,
    feed: Int32,
) -> Any:
    """Write the best of a reader's candidates and of posts from outside into its feed; return how many there are.

    Each further post of one author has a lower score.
    """
    n_visible = outbox.n
    most += scoring.outsiders
    score, key = np.empty(most, np.float64), np.empty(most, np.uint64)
    local, root, writer = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    n = 0
    for i in range(first_author, last_author):
        for place in range(begin[i], begin[i] + count[i]):
            local[n], root[n] = np.int64(outbox.item[place] >> _33), np.int64(outbox.item[place] & _LOW)
            if scoring.author[root[n]] == reader or is_among(known, known_first, known_last, root[n]):
                continue
            writer[n] = scoring.author[outbox.first + local[n]]
            score[n] = _scored(reader, local[n], False, outbox.first, scoring)
            n += 1
    for draw in range(scoring.outsiders):
        u = unit(mixed(mixed(scoring.outsider_key, np.uint64(draw)), np.uint64(reader)))
        drawn = np.int64(u * n_visible)
        author = scoring.author[outbox.first + drawn]
        if author == reader or is_among(indices, indptr[reader], indptr[reader + 1], author):
            continue
        place = outbox.start[_writer(outbox.wrote, outbox.writers, author)]
        while np.int64(outbox.item[place] >> _33) != drawn:
            place += 1
        local[n], root[n], writer[n] = drawn, np.int64(outbox.item[place] & _LOW), author
        if scoring.author[root[n]] == reader or is_among(known, known_first, known_last, root[n]):
            continue
        score[n] = _scored(reader, drawn, True, outbox.first, scoring)
        n += 1
    for i in range(n):
        key[i] = _key(score[i], local[i])
    order = np.empty(n, np.int64)
    _by_key(key, order, n)
    kept = 0
    for i in range(n):  # each root once, its best copy, and each author's posts counted from the best
        one = order[i]
        before, is_new = 0, True
        for j in range(kept):
            other = order[j]
            if root[other] == root[one]:
                is_new = False
                break
            if writer[other] == writer[one]:
                before += 1
        if is_new:
            order[kept] = one
            kept += 1
            factor = scoring.diversity[min(before, len(scoring.diversity) - 1)]
            key[one] = _key(_lowered(score[one], factor), local[one])
    final = np.empty(kept, np.uint64)
    for i in range(kept):
        final[i] = key[order[i]]
    places = np.empty(kept, np.int64)
    _by_key(final, places, kept)
    shown = min(feed.shape[1], kept)
    for i in range(shown):
        feed[reader, i] = outbox.first + np.int64(final[places[i]] & _LOW)
    return shown


@kernel
def _rank_diverse(
    readers: Int32,
    first: int,
    ends: Int64,
    item_ends: Int64,
    begin: Int32,
    count: Int32,
    outbox: Outbox,
    scoring: Scoring,
    known_start: Int64,
    known: Int32,
    indptr: Int64,
    indices: Int32,
    feed: Int32,
    n_feed: npt.NDArray[np.uint8],
) -> None:
    """Write the feeds of a block of readers, with posts from outside and fewer of one author."""
    at, before = 0, 0
    for j in range(len(ends)):
        reader = readers[first + j]
        known_first, known_last = known_start[reader], known_start[reader + 1]
        n_feed[reader] = _best_diverse(
            reader,
            begin,
            count,
            at,
            ends[j],
            item_ends[j] - before,
            outbox,
            scoring,
            known,
            known_first,
            known_last,
            indptr,
            indices,
            feed,
        )
        at, before = ends[j], item_ends[j]


@kernel
def rank(
    readers: Int32,
    indptr: Int64,
    indices: Int32,
    outbox: Outbox,
    scoring: Scoring,
    known_start: Int64,
    known: Int32,
    feed: Int32,
    n_feed: npt.NDArray[np.uint8],
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
        feed: Shape (agents, size): gets ids of posts.
        n_feed: Gets the number of posts in each feed.
    """
    keys, best, roots = np.empty(1 << 12, np.uint64), np.empty(1 << 12, np.uint64), np.empty(1 << 12, np.int32)
    wrote, writers, start, item = outbox.wrote, outbox.writers, outbox.start, outbox.item
    first_id, mode, author_of = outbox.first, scoring.mode, scoring.author
    touched = np.int64(0)
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
            ends[j] = k
        total = np.int64(0)
        for j in range(n):
            for i in range(0 if j == 0 else ends[j - 1], ends[j]):
                w = _writer(wrote, writers, authors[i])
                begin[i] = start[w]
                count[i] = start[w + 1] - begin[i]
                total += count[i]
            item_ends[j] = total
        for i in range(k):  # so that many reads are under way before the first is needed
            touched += np.int64(item[begin[i]])
        if total > len(keys):
            keys, best, roots = (
                np.empty(2 * total, np.uint64),
                np.empty(2 * total, np.uint64),
                np.empty(2 * total, np.int32),
            )
        if mode == X_ALGO:
            _rank_diverse(
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
                indptr,
                indices,
                feed,
                n_feed,
            )
            continue
        if mode != CHRONOLOGICAL:
            _score_block(readers, first, ends[:n], begin, count, keys, outbox, scoring)
        at, before = np.int64(0), np.int64(0)
        for j in range(n):
            reader = readers[first + j]
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
                known_start[reader],
                known_start[reader + 1],
                best,
                roots,
            )
            _show(best, kept, feed, reader, first_id)
            n_feed[reader] = min(kept, feed.shape[1])
            at, before = ends[j], item_ends[j]
    return touched
