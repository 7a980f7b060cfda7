"""Candidates of a block of readers: the posts of those whom they follow, and what is drawn or found beside these.

The agents that a reader follows lie anywhere in memory. So a block is taken through passes that do one thing each
without looking at what they read (who has posts, where they lie, what they are): the processor has many reads under
way at a time. The cut into blocks changes nothing.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import lean_kernel, part_of_kernels, step_of_kernels
from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.kernels.feeds.outbox import BITS_32, BITS_33, LOWER, Audience, Outbox, writer_index
from prism_mesa.kernels.feeds.scoring import READERS, RankScratch, Scoring
from prism_mesa.kernels.lanes import LANES, prefetch
from prism_mesa.kernels.ordering import is_among

NOBODY: Final = -1


@part_of_kernels
def n_extras(scoring: Scoring) -> Any:
    """Return how many candidates each reader has at most beside posts of agents that it follows."""
    return scoring.outsiders + scoring.two_hops + len(scoring.trending) + scoring.found.shape[1]


@part_of_kernels
def extra_candidate(number: Any, reader: Any, outbox: Outbox, scoring: Scoring, audience: Audience) -> Any:
    """Return the local number of one of these candidates, or `NOBODY`.

    First come posts drawn from the whole platform, then those of two hops, trending posts, and search results. Posts of
    the reader are never shown, and posts of agents that it follows are candidates already.
    """
    local = np.int64(NOBODY)
    hops, trends = scoring.outsiders, scoring.outsiders + scoring.two_hops
    finds = trends + len(scoring.trending)
    if number < hops:
        u = unit(mixed(mixed(scoring.outsider_key, np.uint64(number)), np.uint64(reader)))
        local = np.int64(u * outbox.n)
    elif number < trends:
        local = _of_two_hops(number - hops, reader, outbox, scoring, audience)
    elif number < finds:
        local = np.int64(scoring.trending[number - trends])
    elif scoring.query[reader] >= 0:
        local = np.int64(scoring.found[scoring.query[reader], number - finds])
    if local == NOBODY:
        return local
    author = scoring.author[outbox.first + local]
    if author == reader or is_among(audience.indices, audience.indptr[reader], audience.indptr[reader + 1], author):
        return np.int64(NOBODY)
    return local


@step_of_kernels
def _of_two_hops(draw: Any, reader: Any, outbox: Outbox, scoring: Scoring, audience: Audience) -> Any:
    """Return a post by a followee of a followee of the reader; each step is drawn evenly."""
    key = mixed(mixed(scoring.two_hops_key, np.uint64(draw)), np.uint64(reader))
    at = np.int64(reader)
    for hop in range(2):
        n = audience.indptr[at + 1] - audience.indptr[at]
        if n == 0:
            return np.int64(NOBODY)
        at = np.int64(audience.indices[audience.indptr[at] + np.int64(unit(mixed(key, np.uint64(hop))) * n)])
    if not outbox.has_posts[at >> 6] >> np.uint64(at & 63) & np.uint64(1):
        return np.int64(NOBODY)
    w = writer_index(outbox.has_posts, outbox.writers, at)
    n = np.int64(outbox.start[w + 1]) - np.int64(outbox.start[w])
    place = outbox.start[w] + np.int64(unit(mixed(key, np.uint64(2))) * n)
    return np.int64(outbox.item[place] >> BITS_33)


@part_of_kernels
def is_hidden(author: Any, reader: Any, audience: Audience) -> Any:
    """Return whether an author is hidden from a reader."""
    begin, end = audience.hidden_start[reader], audience.hidden_start[reader + 1]
    return is_among(audience.hidden, begin, end, author)


type Int32 = npt.NDArray[np.int32]


@step_of_kernels
def gather(
    readers: Int32, first: Any, audience: Audience, outbox: Outbox, scoring: Scoring, scratch: RankScratch
) -> Any:
    """Write the candidates of readers from `first` on into `scratch`; return how many readers they are.

    They are as many as a block has and `scratch` holds; 0 if it does not hold one.
    """
    n = _find(readers, first, audience, outbox, scratch)
    more, end, most = n_extras(scoring), np.int64(0), len(scratch.fresh) - LANES
    for j in range(n):
        start, last = scratch.author_ends[j - 1] if j > 0 else 0, scratch.author_ends[j]
        n_posts = _n_items(start, last, scratch)
        kept = _n_kept(n_posts, scoring)
        if max(end + kept + more, n_posts) > most:
            return np.int64(j)
        if kept < n_posts:
            keep_newest(start, last, n_posts, kept, outbox, scratch)
        end = copy_items(start, last, end, outbox, scratch)
        scratch.inside_ends[j] = end
        if more > 0:
            end = _add_extras(readers[first + j], end, audience, outbox, scoring, scratch)
        scratch.ends[j] = end
    return n


@part_of_kernels
def _find(readers: Int32, first: Any, audience: Audience, outbox: Outbox, scratch: RankScratch) -> Any:
    """Write where the items of the followees of readers from `first` on lie; return how many readers these are."""
    n = _block(readers, first, audience, scratch)
    find_authors(readers, first, n, audience, outbox, scratch)
    find_items(scratch.author_ends[n - 1] if n > 0 else 0, outbox, scratch)
    return n


@part_of_kernels
def _block(readers: Int32, first: Any, audience: Audience, scratch: RankScratch) -> Any:
    n, follows = np.int64(0), np.int64(0)
    while n < min(READERS, len(readers) - first):
        reader = readers[first + n]
        follows += audience.indptr[reader + 1] - audience.indptr[reader]
        if follows > (len(scratch.fresh) - LANES):
            break
        n += 1
    return n


@step_of_kernels
def find_authors(readers: Int32, first: Any, n: Any, audience: Audience, outbox: Outbox, scratch: RankScratch) -> None:
    """Write the followees of `n` readers from `first` on that have posts and are not hidden."""
    k, has_hidden = np.int64(0), len(audience.hidden_start) > 0
    for j in range(n):
        reader, begin = readers[first + j], k
        for edge in range(audience.indptr[reader], audience.indptr[reader + 1]):
            author = np.uint64(audience.indices[np.uint64(edge)])
            scratch.author[np.uint64(k)] = author
            k += np.int64(outbox.has_posts[author >> np.uint64(6)] >> (author & np.uint64(63)) & np.uint64(1))
        if has_hidden:
            k = without_hidden(reader, begin, k, audience, scratch)
        scratch.author_ends[j] = k


@part_of_kernels
def without_hidden(reader: Any, first: Any, last: Any, audience: Audience, scratch: RankScratch) -> Any:
    """Move authors that are not hidden from a reader to the front; return their end."""
    at, end, k = audience.hidden_start[reader], audience.hidden_start[reader + 1], first
    if at == end:
        return last
    for i in range(first, last):  # both are ascending
        author = scratch.author[i]
        while at < end and audience.hidden[at] < author:
            at += 1
        scratch.author[k] = author
        k += 0 if at < end and audience.hidden[at] == author else 1
    return k


@step_of_kernels
def find_items(n: Any, outbox: Outbox, scratch: RankScratch) -> None:
    """Find the items of the first `n` authors."""
    for place in range(n):
        i = np.uint64(place)
        writer = writer_index(outbox.has_posts, outbox.writers, scratch.author[i])
        scratch.n_items[i] = writer
        prefetch(outbox.start, writer)
    for place in range(n):
        i = np.uint64(place)
        writer = np.uint64(scratch.n_items[i])
        begin = outbox.start[writer]
        scratch.begin[i] = begin
        scratch.n_items[i] = outbox.start[writer + np.uint64(1)] - begin
        prefetch(outbox.item, np.int64(begin))


@part_of_kernels
def _n_items(first: Any, last: Any, scratch: RankScratch) -> Any:
    n = np.int64(0)
    for i in range(first, last):
        n += scratch.n_items[np.uint64(i)]
    return n


@part_of_kernels
def _n_kept(n: Any, scoring: Scoring) -> Any:
    return n if scoring.followed < 0 else min(n, np.int64(scoring.followed))


@step_of_kernels
def keep_newest(first: Any, last: Any, n: Any, most: Any, outbox: Outbox, scratch: RankScratch) -> None:
    """Limit some authors, who have `n` items together, to the `most` newest of these."""
    at = np.int64(0)
    for i in range(first, last):
        for place in range(scratch.begin[i], scratch.begin[i] + scratch.n_items[i]):
            scratch.key[at] = outbox.item[place] >> BITS_33
            at += 1
    low, high = np.int64(0), np.int64(outbox.n)  # all from `high` on are kept, none below `low`
    while low < high:
        middle, newer = (low + high) >> 1, np.int64(0)
        for k in range(n):
            newer += scratch.key[k] >= np.uint64(middle)
        if newer <= most:
            high = middle
        else:
            low = middle + 1
    for i in range(first, last):
        while scratch.n_items[i] > 0 and np.int64(outbox.item[scratch.begin[i]] >> BITS_33) < high:
            scratch.begin[i] += 1
            scratch.n_items[i] -= 1


@part_of_kernels
def copy_items(first: Any, last: Any, end: Any, outbox: Outbox, scratch: RankScratch) -> Any:
    """Copy the items of some authors to `end` and beyond; return their end.

    Two items are always written, without a branch, since most authors have one or two.
    """
    for i in range(first, last):
        begin, n = np.int64(scratch.begin[np.uint64(i)]), np.int64(scratch.n_items[np.uint64(i)])
        for k in range(2):
            place: Any = min(begin + k, outbox.n)
            item, to = outbox.item[np.uint64(place)], np.uint64(end + k)
            scratch.root[to] = item & LOWER
            scratch.tag[to] = item >> BITS_32
        for k in range(2, n):
            item, to = outbox.item[np.uint64(begin + k)], np.uint64(end + k)
            scratch.root[to] = item & LOWER
            scratch.tag[to] = item >> BITS_32
        end += n
    return end


@step_of_kernels
def _add_extras(
    reader: Any, end: Any, audience: Audience, outbox: Outbox, scoring: Scoring, scratch: RankScratch
) -> Any:
    """Write a reader's other candidates from `end` on; return their end."""
    for number in range(n_extras(scoring)):
        local = extra_candidate(number, reader, outbox, scoring, audience)
        scratch.root[end], scratch.tag[end] = NOBODY, 0
        if local != NOBODY:
            scratch.root[end], scratch.tag[end] = outbox.root[local], local << 1 | 1  # as if it had copies
        end += 1
    return end


@lean_kernel
def count_candidates(readers: Int32, audience: Audience, outbox: Outbox, scoring: Scoring, scratch: RankScratch) -> Any:
    """Return how many candidates some readers have together, known ones included.

    It is -1 if `scratch` does not hold whom one of them follows.
    """
    total, first = np.int64(0), np.int64(0)
    while first < len(readers):
        n = _find(readers, first, audience, outbox, scratch)
        if n == 0:
            return np.int64(-1)
        for j in range(n):
            n_posts = _n_items(scratch.author_ends[j - 1] if j > 0 else 0, scratch.author_ends[j], scratch)
            total += _n_kept(n_posts, scoring) + n_extras(scoring)
        first += n
    return total


@lean_kernel
def list_candidates(
    readers: Int32,
    audience: Audience,
    outbox: Outbox,
    scoring: Scoring,
    scratch: RankScratch,
    reader: Int32,
    post: Int32,
    inside: npt.NDArray[np.bool_],
) -> Any:
    """Write all candidates of some readers, in the order in which `ranking.rank` scores them; return their number.

    `reader` gets the reader of each candidate, `post` its id or `NOBODY`, `inside` whether the reader follows its
    author. Returns -1 if `scratch` does not hold the candidates of one reader.
    """
    at, first = np.int64(0), np.int64(0)
    while first < len(readers):
        n, place = gather(readers, first, audience, outbox, scoring, scratch), np.int64(0)
        if n == 0:  # `count_candidates` had other scratch memory
            return np.int64(-1)
        for j in range(n):
            while place < scratch.ends[j]:
                is_post = scratch.root[place] != NOBODY
                reader[at] = readers[first + j]
                post[at] = outbox.first + np.int64(scratch.tag[place] >> np.uint32(1)) if is_post else NOBODY
                inside[at] = place < scratch.inside_ends[j]
                at += 1
                place += 1
        first += n
    return at
