"""Rank feeds: choose the best copy of each root among the candidates that a reader does not know."""

from typing import Any, Final

import numpy as np

from prism_mesa.arrays import Int32, UInt16, UInt64
from prism_mesa.kernels.compiling import Table, inline_kernel, kernel_step, lean_kernel
from prism_mesa.kernels.feeds.gathering import NO_POST, gather, is_hidden
from prism_mesa.kernels.feeds.outbox import Audience, Outbox, root_place, writer_index
from prism_mesa.kernels.feeds.scoring import DIVERSE, X_ALGO, RankScratch, Scoring, discount, score_fresh, sort_key
from prism_mesa.kernels.lanes import LANES, lanes_among, lanes_below, lowest_bit
from prism_mesa.kernels.ordering import is_among, put_in_order

MANY: Final = 128
"""Number of known roots, or of new candidates, above which roots are looked up as bits and not in a list."""


@inline_kernel
def find_fresh(
    reader: Any,
    first: Any,
    last: Any,
    followed_end: Any,
    outbox: Outbox,
    scoring: Scoring,
    audience: Audience,
    scratch: RankScratch,
) -> Any:
    """Write candidates ``first`` .. ``last - 1`` that a reader can be shown into `RankScratch.fresh`; return the count.

    Known roots are dropped for sixteen candidates at a time, with a bit each. Few other candidates need a separate
    check.
    """
    begin, end, n = audience.seen_start[reader], audience.seen_start[reader + 1], np.int64(0)
    repeats = len(audience.read_start) > 1
    if repeats:
        mark_read(1, reader, outbox, audience, scratch)
    is_long, old_end = end - begin > MANY, end
    if is_long:
        old_end = mark_known(audience.seen_roots, begin, end, outbox, scratch)
    for block in range(first, last, LANES):
        known = (
            _known_bits(block, outbox, scratch)
            if is_long
            else lanes_among(scratch.root, np.int64(block), audience.seen_roots, begin, end)
        )
        if repeats:
            known |= _read_bits(block, outbox, scratch)
        fresh = np.uint64(~known & _first_bits(last - block))
        needs_check = lanes_below(scratch.root, np.int64(block), np.int64(outbox.first))
        if len(audience.hidden_start) > 0:
            needs_check |= ~_first_bits(followed_end - block)
        unchecked = fresh & np.uint64(needs_check)
        while unchecked:
            candidate, lowest = block + lowest_bit(unchecked), unchecked & (~unchecked + np.uint64(1))
            is_outsider = candidate >= followed_end
            if _is_dropped(candidate, reader, is_outsider, begin, old_end, is_long, outbox, scoring, audience, scratch):
                fresh ^= lowest
            unchecked ^= lowest
        while fresh:
            scratch.fresh[np.uint64(n)] = block + lowest_bit(fresh)
            fresh &= fresh - np.uint64(1)
            n += 1
    if repeats:
        mark_read(0, reader, outbox, audience, scratch)
    return n


@inline_kernel
def _first_bits(n: Any) -> Any:
    """Return a number with the lowest `n` bits set, at most `LANES`."""
    return (np.int64(1) << min(max(n, 0), LANES)) - 1


@inline_kernel
def _is_dropped(
    candidate: Any,
    reader: Any,
    is_outsider: Any,
    begin: Any,
    old_end: Any,
    is_long: Any,
    outbox: Outbox,
    scoring: Scoring,
    audience: Audience,
    scratch: RankScratch,
) -> Any:
    """Return whether a candidate with an old root, or by an author that the reader does not follow, is dropped.

    If the list of seen roots is long, its entries ``begin`` .. ``old_end - 1`` have not been compared before.
    """
    root = scratch.root[candidate]
    is_dropped = root == NO_POST
    if not is_dropped and root < outbox.first:
        is_dropped = scoring.author[root] == reader  # it may no longer be in its author's list
        is_dropped |= is_long and is_among(audience.seen_roots, begin, old_end, root)
    if not is_dropped and is_outsider and len(audience.hidden_start) > 0:
        is_dropped = is_hidden(
            scoring.author[outbox.first + np.int64(scratch.tag[candidate] >> np.uint32(1))], reader, audience
        )
    return is_dropped


@kernel_step
def mark_read(bit: Any, reader: Any, outbox: Outbox, audience: Audience, scratch: RankScratch) -> None:
    """Set the bits in `RankScratch.post_bits` of copies that a reader has read to 0 or 1 (`feed.repeats`)."""
    k = audience.read_start[reader + 1] - 1
    while k >= audience.read_start[reader] and audience.read_posts[k] >= outbox.first:
        place = np.uint64(audience.read_posts[k] - outbox.first)
        word, mask = place >> np.uint64(6), np.uint64(1) << (place & np.uint64(63))
        scratch.post_bits[word] = scratch.post_bits[word] & ~mask | mask * np.uint64(bit)
        k -= 1


@kernel_step
def mark_known(known: Int32, begin: Any, end: Any, outbox: Outbox, scratch: RankScratch) -> Any:
    """Set the bits in `RankScratch.root_bits` of visible roots in ``known[begin:end]``; return where they begin."""
    k = end - 1
    while k >= begin and known[k] >= outbox.first:
        set_bit(known[k] - outbox.first, scratch.root_bits)
        k -= 1
    return k + 1


@kernel_step
def clear_bits(begin: Any, end: Any, n_best: Any, outbox: Outbox, audience: Audience, scratch: RankScratch) -> None:
    """Clear the bits in `RankScratch.root_bits` of known roots and of the first `n_best` of `RankScratch.best`."""
    k = end - 1
    while k >= begin and audience.seen_roots[k] >= outbox.first:
        scratch.root_bits[(audience.seen_roots[k] - outbox.first) >> 6] = 0
        k -= 1
    for k in range(n_best):
        scratch.root_bits[root_place(scratch.root[scratch.best[k]], outbox.first, outbox.n, outbox.old_roots) >> 6] = 0


@kernel_step
def _known_bits(block: Any, outbox: Outbox, scratch: RankScratch) -> Any:
    """Return which of `LANES` candidates have a known visible root, one bit each."""
    bits = np.int64(0)
    for lane in range(LANES):
        place = np.int64(scratch.root[block + lane]) - outbox.first
        if 0 <= place < outbox.n:  # entries after the last candidate are arbitrary
            bits |= get_bit(place, scratch.root_bits) << lane
    return bits


@kernel_step
def _read_bits(block: Any, outbox: Outbox, scratch: RankScratch) -> Any:
    """Return which of `LANES` candidates the reader has read (`mark_read`), one bit each."""
    bits = np.int64(0)
    for lane in range(LANES):
        place = np.int64(scratch.tag[block + lane] >> np.uint32(1))
        if place < outbox.n:  # entries after the last candidate are arbitrary
            bits |= get_bit(place, scratch.post_bits) << lane
    return bits


@inline_kernel
def set_bit(place: Any, words: UInt64) -> None:
    """Set the bit of an index."""
    bit = np.uint64(place)
    words[bit >> np.uint64(6)] |= np.uint64(1) << (bit & np.uint64(63))


@inline_kernel
def get_bit(place: Any, words: UInt64) -> Any:
    """Return the bit of an index, 0 or 1."""
    bit = np.uint64(place)
    return np.int64(words[bit >> np.uint64(6)] >> (bit & np.uint64(63)) & np.uint64(1))


@inline_kernel
def keep_best_copies(n: Any, max_posts: Any, is_many: Any, outbox: Outbox, scratch: RankScratch) -> Any:
    """Write the best of `n` fresh candidates into `RankScratch.best`, in order and each root once; return the count.

    The count is at most `max_posts`. If there are many, `RankScratch.root_bits` marks the chosen roots.
    """
    n_best, seen_bits = np.int64(0), np.uint64(0)
    for i in range(n):
        if n_best >= max_posts:
            break
        if scratch.order[i] < 0:  # the same post as the previous candidate
            continue
        candidate = np.uint64(scratch.fresh[np.uint64(scratch.order[i])])
        root, is_copied = scratch.root[candidate], np.uint64(scratch.tag[candidate] & np.uint32(1))
        scratch.best[n_best] = candidate
        if is_many:
            place = root_place(root, outbox.first, outbox.n, outbox.old_roots)
            n_best += 1 - get_bit(place, scratch.root_bits)
            set_bit(place, scratch.root_bits)
            continue
        bit = is_copied << np.uint64(root & 63)
        if seen_bits & bit:  # rare: a copy, or another root with the same bit, is in the list
            copy = 0
            while scratch.root[scratch.best[copy]] != root:
                copy += 1
            if copy < n_best:
                continue
        seen_bits |= bit
        n_best += 1
    return n_best


@kernel_step
def order_diverse(n: Any, outbox: Outbox, scoring: Scoring, scratch: RankScratch) -> None:
    """Order the first `n` of `RankScratch.best` so that further posts of the same author have lower scores.

    In feeds by group, further posts of the same group have lower scores too. `RankScratch.order` receives the order.
    """
    _discount_authors(n, outbox, scoring, scratch)
    put_in_order(scratch.key, n, scratch.order, scratch.places, scratch.counts)
    if scoring.mode == DIVERSE and scoring.n_groups > 0:
        _discount_groups(n, scoring, scratch)
        put_in_order(scratch.key, n, scratch.order, scratch.places, scratch.counts)


@inline_kernel
def _discount_authors(n: Any, outbox: Outbox, scoring: Scoring, scratch: RankScratch) -> None:
    for k in range(n):
        candidate, writer = scratch.best[k], _candidate_writer(scratch.best[k], outbox, scoring, scratch)
        factor = _diversity_factor(scratch.n_better[writer], scoring)
        scratch.score[candidate] = discount(scratch.score[candidate], factor)
        scratch.key[k] = sort_key(scratch.score[candidate], scratch.tag[candidate])
        scratch.n_better[writer] += 1
    for k in range(n):
        scratch.n_better[_candidate_writer(scratch.best[k], outbox, scoring, scratch)] = 0


@inline_kernel
def _candidate_writer(candidate: Any, outbox: Outbox, scoring: Scoring, scratch: RankScratch) -> Any:
    author = scoring.author[outbox.first + np.int64(scratch.tag[candidate] >> np.uint32(1))]
    return writer_index(outbox.has_posts, outbox.writers, author)


@inline_kernel
def _diversity_factor(n_better: Any, scoring: Scoring) -> Any:
    """Return the factor of a score, given the number of better-ranked posts of the same author."""
    if len(scoring.diversity) == 0:
        return 1.0 / (1.0 + n_better)
    return scoring.diversity[min(n_better, len(scoring.diversity) - 1)]


@kernel_step
def _discount_groups(n: Any, scoring: Scoring, scratch: RankScratch) -> None:
    """Divide each score by 1 plus the number of better posts whose root's author is in the same group."""
    for group in range(scoring.n_groups):
        scratch.n_of_group[group] = 0
    for i in range(n):
        place = scratch.order[i]
        candidate = scratch.best[place]
        group = scoring.group[scoring.author[scratch.root[candidate]]]
        scratch.key[place] = sort_key(
            discount(scratch.score[candidate], 1.0 / (1.0 + scratch.n_of_group[group])), scratch.tag[candidate]
        )
        scratch.n_of_group[group] += 1


@lean_kernel
def rank(
    readers: Int32,
    first_reader: int,
    first_score: int,
    audience: Audience,
    outbox: Outbox,
    scoring: Scoring,
    scratch: RankScratch,
    feed: Table[np.int32],
    n_feed: UInt16,
) -> Any:
    """Write the feeds of `readers`, best posts first, into `feed`, shape (agents, `feed.size`), and their lengths.

    Readers from `first_reader` on get a feed; no reader may occur twice. `first_score` is the number of candidates of
    earlier readers. Ranking stops at a reader with more candidates than `scratch` has room for.

    Returns:
        The number of readers with a feed, and the number of their candidates, both including earlier readers.
    """
    n_ranked, n_scored = np.int64(first_reader), np.int64(first_score)
    while n_ranked < len(readers):
        n, first = gather(readers, n_ranked, audience, outbox, scoring, scratch), np.int64(0)
        if n == 0:
            break
        for j in range(n):
            reader, last = readers[n_ranked + j], scratch.ends[j]
            fresh = find_fresh(reader, first, last, scratch.followed_ends[j], outbox, scoring, audience, scratch)
            fresh = score_fresh(reader, fresh, scratch.followed_ends[j], n_scored, outbox.first, scoring, scratch)
            n_feed[reader] = _write_feed(reader, fresh, audience, outbox, scoring, scratch, feed)
            first = last
        n_scored += first
        n_ranked += n
    return n_ranked, n_scored


@inline_kernel
def _write_feed(
    reader: Any, n: Any, audience: Audience, outbox: Outbox, scoring: Scoring, scratch: RankScratch, feed: Int32
) -> Any:
    """Write the best of `n` fresh candidates into the feed of a reader; return the length of the feed."""
    begin, end = audience.seen_start[reader], audience.seen_start[reader + 1]
    is_diverse = scoring.mode == X_ALGO or scoring.mode == DIVERSE
    put_in_order(scratch.key, n, scratch.order, scratch.places, scratch.counts)
    is_many = n > MANY or end - begin > MANY
    size = feed.shape[1]  # `feed.size`
    n_best = keep_best_copies(n, n if is_diverse else size, is_many, outbox, scratch)
    if is_many:
        clear_bits(begin, end, n_best, outbox, audience, scratch)
    if is_diverse:
        order_diverse(n_best, outbox, scoring, scratch)
    n_shown = min(n_best, size)
    for place in range(n_shown):
        candidate = scratch.best[scratch.order[place]] if is_diverse else scratch.best[place]
        feed[reader, place] = outbox.first + np.int64(scratch.tag[np.uint64(candidate)] >> np.uint32(1))
    return n_shown
