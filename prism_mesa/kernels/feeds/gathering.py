"""Gather the candidates of a block of readers: posts of their followees, and posts from draws, trends and searches.

The followees of a reader may be anywhere in memory. So a block goes through several simple passes: find followees with
posts, then the positions of the posts, then the posts. In each pass, the processor can have many reads under way at a
time. Results do not depend on the blocks.
"""

from typing import Any, Final

import numpy as np

from prism_mesa.arrays import Int32, Mask
from prism_mesa.kernels.compiling import inline_kernel, kernel_step, lean_kernel
from prism_mesa.kernels.draws import mix, uniform
from prism_mesa.kernels.feeds.outbox import BITS_32, BITS_33, LOWER, Audience, Outbox, writer_index
from prism_mesa.kernels.feeds.scoring import READERS, RankScratch, Scoring, hiding_bits
from prism_mesa.kernels.lanes import LANES, prefetch
from prism_mesa.kernels.ordering import is_among

NO_POST: Final = -1
_MAX_DRAWS: Final = 64
"""Maximum number of draws of a post, until one is not taken out for the reader."""


@inline_kernel
def n_extras(scoring: Scoring) -> Any:
    """Return the maximum number of a reader's candidates that are not posts of its followees."""
    return scoring.n_outsiders + scoring.n_two_hops + len(scoring.trending) + scoring.search_results.shape[1]


@inline_kernel
def extra_candidate(number: Any, reader: Any, outbox: Outbox, scoring: Scoring, audience: Audience) -> Any:
    """Return the local number of candidate `number` of these, or `NO_POST`.

    The order is: posts drawn from the whole platform, posts at two hops, trending posts, search results. The result is
    `NO_POST` for posts by the reader, and for posts by its followees, which are candidates already.
    """
    local = np.int64(NO_POST)
    first_two_hops, first_trending = scoring.n_outsiders, scoring.n_outsiders + scoring.n_two_hops
    first_search = first_trending + len(scoring.trending)
    if number < first_two_hops:
        key = mix(mix(scoring.outsider_key, np.uint64(number)), np.uint64(reader))
        for draw in range(_MAX_DRAWS):
            local = np.int64(uniform(mix(key, np.uint64(draw)) if draw else key) * outbox.n)
            if not is_taken_out(local, reader, scoring):
                break
    elif number < first_trending:
        local = _draw_two_hops(number - first_two_hops, reader, outbox, scoring, audience)
    elif number < first_search:
        local = np.int64(scoring.trending[number - first_trending])
    elif scoring.query[reader] >= 0:
        local = np.int64(scoring.search_results[scoring.query[reader], number - first_search])
    if local == NO_POST or is_taken_out(local, reader, scoring):
        return np.int64(NO_POST)
    author = scoring.author[outbox.first + local]
    if author == reader or is_among(audience.indices, audience.indptr[reader], audience.indptr[reader + 1], author):
        return np.int64(NO_POST)
    return local


@kernel_step
def _draw_two_hops(draw: Any, reader: Any, outbox: Outbox, scoring: Scoring, audience: Audience) -> Any:
    """Draw a post by a followee of a followee of the reader; each step is uniform."""
    key = mix(mix(scoring.two_hops_key, np.uint64(draw)), np.uint64(reader))
    agent = np.int64(reader)
    for hop in range(2):
        n = audience.indptr[agent + 1] - audience.indptr[agent]
        if n == 0:
            return np.int64(NO_POST)
        agent = np.int64(audience.indices[audience.indptr[agent] + np.int64(uniform(mix(key, np.uint64(hop))) * n)])
    if not outbox.has_posts[agent >> 6] >> np.uint64(agent & 63) & np.uint64(1):
        return np.int64(NO_POST)
    w = writer_index(outbox.has_posts, outbox.writers, agent)
    n_shown = np.int64(0)
    for item in outbox.item[outbox.start[w] : outbox.start[w + 1]]:
        n_shown += not is_taken_out(np.int64(item >> BITS_33), reader, scoring)
    left = np.int64(uniform(mix(key, np.uint64(2))) * n_shown)
    for item in outbox.item[outbox.start[w] : outbox.start[w + 1]]:
        left -= not is_taken_out(np.int64(item >> BITS_33), reader, scoring)
        if left < 0:
            return np.int64(item >> BITS_33)
    return np.int64(NO_POST)


@inline_kernel
def is_taken_out(local: Any, reader: Any, scoring: Scoring) -> Any:
    """Return whether an act of the platform takes a visible post out of a reader's candidates."""
    return len(scoring.post_bits) > 0 and scoring.post_bits[local] & hiding_bits(reader, scoring) != 0


@inline_kernel
def is_hidden(author: Any, reader: Any, audience: Audience) -> Any:
    """Return whether an author is hidden from a reader."""
    begin, end = audience.hidden_start[reader], audience.hidden_start[reader + 1]
    return is_among(audience.hidden, begin, end, author)


@kernel_step
def gather(
    readers: Int32, first: Any, audience: Audience, outbox: Outbox, scoring: Scoring, scratch: RankScratch
) -> Any:
    """Write the candidates of readers from `first` on into `scratch`; return the number of these readers.

    It takes as many readers as fit into a block and into `scratch`, possibly 0.
    """
    n = _find_block_items(readers, first, audience, outbox, scratch)
    n_more, end, max_candidates = n_extras(scoring), np.int64(0), len(scratch.fresh) - LANES
    for j in range(n):
        start, last = scratch.author_ends[j - 1] if j > 0 else 0, scratch.author_ends[j]
        n_posts, begin = _n_items(start, last, scratch), end
        bits = hiding_bits(readers[first + j], scoring) & ~scoring.common
        n_kept = _n_kept(n_posts, scoring)
        if end + n_posts + n_more > max_candidates:
            return np.int64(j)
        if n_kept < n_posts:
            keep_newest(start, last, n_kept, bits, outbox, scoring, scratch)
        end = copy_items(start, last, end, outbox, scratch)
        if bits:
            end = drop_taken_out(begin, end, bits, scoring, scratch)
        scratch.followed_ends[j] = end
        if n_more > 0:
            end = _add_extras(readers[first + j], end, audience, outbox, scoring, scratch)
        scratch.ends[j] = end
    return n


@inline_kernel
def _find_block_items(readers: Int32, first: Any, audience: Audience, outbox: Outbox, scratch: RankScratch) -> Any:
    """Find the items of the followees of readers from `first` on; return the number of these readers."""
    n = _block_size(readers, first, audience, scratch)
    find_authors(readers, first, n, audience, outbox, scratch)
    find_items(scratch.author_ends[n - 1] if n > 0 else 0, outbox, scratch)
    return n


@inline_kernel
def _block_size(readers: Int32, first: Any, audience: Audience, scratch: RankScratch) -> Any:
    n, n_followees = np.int64(0), np.int64(0)
    while n < min(READERS, len(readers) - first):
        reader = readers[first + n]
        n_followees += audience.indptr[reader + 1] - audience.indptr[reader]
        if n_followees > (len(scratch.fresh) - LANES):
            break
        n += 1
    return n


@kernel_step
def find_authors(readers: Int32, first: Any, n: Any, audience: Audience, outbox: Outbox, scratch: RankScratch) -> None:
    """Write the followees of `n` readers from `first` on into `scratch`, if they have posts and are not hidden."""
    k, has_hidden = np.int64(0), len(audience.hidden_start) > 0
    for j in range(n):
        reader, begin = readers[first + j], k
        for edge in range(audience.indptr[reader], audience.indptr[reader + 1]):
            author = np.uint64(audience.indices[np.uint64(edge)])
            scratch.author[np.uint64(k)] = author
            k += np.int64(outbox.has_posts[author >> np.uint64(6)] >> (author & np.uint64(63)) & np.uint64(1))
        if has_hidden:
            k = drop_hidden(reader, begin, k, audience, scratch)
        scratch.author_ends[j] = k


@inline_kernel
def drop_hidden(reader: Any, first: Any, last: Any, audience: Audience, scratch: RankScratch) -> Any:
    """Move the authors that are not hidden from a reader to the front; return the new end."""
    next_hidden, end, k = audience.hidden_start[reader], audience.hidden_start[reader + 1], first
    if next_hidden == end:
        return last
    for i in range(first, last):  # both lists ascend
        author = scratch.author[i]
        while next_hidden < end and audience.hidden[next_hidden] < author:
            next_hidden += 1
        scratch.author[k] = author
        k += 0 if next_hidden < end and audience.hidden[next_hidden] == author else 1
    return k


@kernel_step
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


@inline_kernel
def _n_items(first: Any, last: Any, scratch: RankScratch) -> Any:
    n = np.int64(0)
    for i in range(first, last):
        n += scratch.n_items[np.uint64(i)]
    return n


@inline_kernel
def _n_kept(n: Any, scoring: Scoring) -> Any:
    return n if scoring.max_followed < 0 else min(n, np.int64(scoring.max_followed))


@kernel_step
def keep_newest(
    first: Any, last: Any, max_items: Any, bits: Any, outbox: Outbox, scoring: Scoring, scratch: RankScratch
) -> None:
    """Limit the items of some authors to the `max_items` newest, not counting those that acts with `bits` take out."""
    n_keys = np.int64(0)
    for i in range(first, last):
        for place in range(scratch.begin[i], scratch.begin[i] + scratch.n_items[i]):
            scratch.key[n_keys] = outbox.item[place] >> BITS_33
            n_keys += not bits or scoring.post_bits[scratch.key[n_keys]] & bits == 0
    low, high = np.int64(0), np.int64(outbox.n)  # all items from `high` on are kept, and none below `low`
    while low < high:
        middle, newer = (low + high) >> 1, np.int64(0)
        for k in range(n_keys):
            newer += scratch.key[k] >= np.uint64(middle)
        if newer <= max_items:
            high = middle
        else:
            low = middle + 1
    for i in range(first, last):
        while scratch.n_items[i] > 0 and np.int64(outbox.item[scratch.begin[i]] >> BITS_33) < high:
            scratch.begin[i] += 1
            scratch.n_items[i] -= 1


@inline_kernel
def copy_items(first: Any, last: Any, end: Any, outbox: Outbox, scratch: RankScratch) -> Any:
    """Copy the items of some authors to `end` and beyond; return the new end.

    Most authors have one or two items, so two items are always written, to avoid a branch.
    """
    for i in range(first, last):
        begin, n = np.int64(scratch.begin[np.uint64(i)]), np.int64(scratch.n_items[np.uint64(i)])
        for k in range(2):
            place: Any = min(begin + k, outbox.n)
            item, target = outbox.item[np.uint64(place)], np.uint64(end + k)
            scratch.root[target] = item & LOWER
            scratch.tag[target] = item >> BITS_32
        for k in range(2, n):
            item, target = outbox.item[np.uint64(begin + k)], np.uint64(end + k)
            scratch.root[target] = item & LOWER
            scratch.tag[target] = item >> BITS_32
        end += n
    return end


@kernel_step
def drop_taken_out(first: Any, end: Any, bits: Any, scoring: Scoring, scratch: RankScratch) -> Any:
    """Drop the candidates from `first` on that acts with `bits` take out; return the new end."""
    n = first
    for place in range(first, end):
        i, target = np.uint64(place), np.uint64(n)
        tag = scratch.tag[i]
        scratch.root[target], scratch.tag[target] = scratch.root[i], tag
        n += scoring.post_bits[np.uint64(tag >> np.uint32(1))] & bits == 0
    return n


@kernel_step
def _add_extras(
    reader: Any, end: Any, audience: Audience, outbox: Outbox, scoring: Scoring, scratch: RankScratch
) -> Any:
    """Write a reader's other candidates from `end` on; return the new end."""
    for number in range(n_extras(scoring)):
        local = extra_candidate(number, reader, outbox, scoring, audience)
        scratch.root[end], scratch.tag[end] = NO_POST, 0
        if local != NO_POST:
            scratch.root[end], scratch.tag[end] = outbox.root[local], local << 1 | 1  # treated like a root with copies
        end += 1
    return end


@lean_kernel
def count_candidates(readers: Int32, audience: Audience, outbox: Outbox, scoring: Scoring, scratch: RankScratch) -> Any:
    """Return an upper bound of the number of candidates of some readers, including posts that they know.

    It is -1 if one reader has more followees than `scratch` has room for.
    """
    total, first = np.int64(0), np.int64(0)
    while first < len(readers):
        n = _find_block_items(readers, first, audience, outbox, scratch)
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
    is_followed: Mask,
) -> Any:
    """Write all candidates of some readers, in the order in which `ranking.rank` scores them; return their number.

    `reader` receives the reader of each candidate, `post` its id or `NO_POST`, and `is_followed` whether the reader
    follows its author. The result is -1 if one reader has more candidates than `scratch` has room for.
    """
    n_listed, first = np.int64(0), np.int64(0)
    while first < len(readers):
        n, place = gather(readers, first, audience, outbox, scoring, scratch), np.int64(0)
        if n == 0:  # `count_candidates` used other scratch memory
            return np.int64(-1)
        for j in range(n):
            while place < scratch.ends[j]:
                is_post = scratch.root[place] != NO_POST
                reader[n_listed] = readers[first + j]
                post[n_listed] = outbox.first + np.int64(scratch.tag[place] >> np.uint32(1)) if is_post else NO_POST
                is_followed[n_listed] = place < scratch.followed_ends[j]
                n_listed += 1
                place += 1
        first += n
    return n_listed
