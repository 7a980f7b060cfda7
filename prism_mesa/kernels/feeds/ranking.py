"""Rank feeds: of the visible posts that a reader does not know, the best copy of each root."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import Table, lean_kernel, part_of_kernels, step_of_kernels
from prism_mesa.kernels.feeds.gathering import NOBODY, gather, is_hidden
from prism_mesa.kernels.feeds.outbox import Audience, Outbox, place_of_root, writer_index
from prism_mesa.kernels.feeds.scoring import DIVERSE, X_ALGO, RankScratch, Scoring, lowered, score_fresh, sort_key
from prism_mesa.kernels.lanes import LANES, among, below, lowest_bit
from prism_mesa.kernels.ordering import is_among, put_in_order

type Int32 = npt.NDArray[np.int32]
type Keys = npt.NDArray[np.uint64]

MANY: Final = 128
"""Known roots, or new candidates, from which on roots are looked up in `RankScratch.met` and not in a list."""


@part_of_kernels
def find_fresh(
    reader: Any,
    first: Any,
    last: Any,
    inside_end: Any,
    outbox: Outbox,
    scoring: Scoring,
    audience: Audience,
    scratch: RankScratch,
) -> Any:
    """Write the candidates ``first`` .. ``last - 1`` a reader can be shown to `RankScratch.fresh`; return the count.

    A bit of a word stands for a candidate. Few remain to be looked at one by one once known roots are out.
    """
    begin, end, n = audience.seen_start[reader], audience.seen_start[reader + 1], np.int64(0)
    repeats = len(audience.read_start) > 1
    if repeats:
        list_read(1, reader, outbox, audience, scratch)
    is_long, old_end = end - begin > MANY, end
    if is_long:
        old_end = note_known(audience.seen_roots, begin, end, outbox, scratch)
    for at in range(first, last, LANES):
        known = (
            _noted(at, outbox, scratch)
            if is_long
            else among(scratch.root, np.int64(at), audience.seen_roots, begin, end)
        )
        if repeats:
            known |= _listed(at, outbox, scratch)
        fresh = np.uint64(~known & _up_to(last - at))
        looked_at = below(scratch.root, np.int64(at), np.int64(outbox.first))
        if len(audience.hidden_start) > 0:
            looked_at |= ~_up_to(inside_end - at)
        rest = fresh & np.uint64(looked_at)
        while rest:
            candidate, lowest = at + lowest_bit(rest), rest & (~rest + np.uint64(1))
            if _drops(
                candidate, reader, candidate >= inside_end, begin, old_end, is_long, outbox, scoring, audience, scratch
            ):
                fresh ^= lowest
            rest ^= lowest
        while fresh:
            scratch.fresh[np.uint64(n)] = at + lowest_bit(fresh)
            fresh &= fresh - np.uint64(1)
            n += 1
    if repeats:
        list_read(0, reader, outbox, audience, scratch)
    return n


@part_of_kernels
def _up_to(n: Any) -> Any:
    """Return a number with the first `n` bits of `LANES` set."""
    return (np.int64(1) << min(max(n, 0), LANES)) - 1


@part_of_kernels
def _drops(
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
    """Return whether a candidate that has an old root, or is by an agent that the reader does not follow, drops out.

    Of a long list, ``known[begin:old_end]`` has not been compared yet.
    """
    root = scratch.root[candidate]
    drops = root == NOBODY
    if not drops and root < outbox.first:
        drops = scoring.author[root] == reader  # its author may no longer have it in its list
        drops |= is_long and is_among(audience.seen_roots, begin, old_end, root)
    if not drops and is_outsider and len(audience.hidden_start) > 0:
        drops = is_hidden(
            scoring.author[outbox.first + np.int64(scratch.tag[candidate] >> np.uint32(1))], reader, audience
        )
    return drops


@step_of_kernels
def list_read(bit: Any, reader: Any, outbox: Outbox, audience: Audience, scratch: RankScratch) -> None:
    """Set the bits in `RankScratch.listed` of the copies that a reader has read to 0 or 1 (`feed.repeats`)."""
    k = audience.read_start[reader + 1] - 1
    while k >= audience.read_start[reader] and audience.read_posts[k] >= outbox.first:
        place = np.uint64(audience.read_posts[k] - outbox.first)
        word, mask = place >> np.uint64(6), np.uint64(1) << (place & np.uint64(63))
        scratch.listed[word] = scratch.listed[word] & ~mask | mask * np.uint64(bit)
        k -= 1


@step_of_kernels
def note_known(known: Int32, begin: Any, end: Any, outbox: Outbox, scratch: RankScratch) -> Any:
    """Note those of ``known[begin:end]`` that are visible themselves in `RankScratch.met`; return where these begin."""
    k = end - 1
    while k >= begin and known[k] >= outbox.first:
        note(known[k] - outbox.first, scratch.met)
        k -= 1
    return k + 1


@step_of_kernels
def forget(begin: Any, end: Any, kept: Any, outbox: Outbox, audience: Audience, scratch: RankScratch) -> None:
    """Clear what known roots, and the first of `RankScratch.best`, have left in `RankScratch.met`."""
    k = end - 1
    while k >= begin and audience.seen_roots[k] >= outbox.first:
        scratch.met[(audience.seen_roots[k] - outbox.first) >> 6] = 0
        k -= 1
    for k in range(kept):
        scratch.met[place_of_root(scratch.root[scratch.best[k]], outbox.first, outbox.n, outbox.old_roots) >> 6] = 0


@step_of_kernels
def _noted(at: Any, outbox: Outbox, scratch: RankScratch) -> Any:
    """Return what `among` returns, for visible roots."""
    bits = np.int64(0)
    for lane in range(LANES):
        place = np.int64(scratch.root[at + lane]) - outbox.first
        if 0 <= place < outbox.n:  # entries after the last are arbitrary
            bits |= is_noted(place, scratch.met) << lane
    return bits


@step_of_kernels
def _listed(at: Any, outbox: Outbox, scratch: RankScratch) -> Any:
    """Return which of `LANES` candidates are listed (`list_read`), one bit each."""
    bits = np.int64(0)
    for lane in range(LANES):
        place = np.int64(scratch.tag[at + lane] >> np.uint32(1))
        if place < outbox.n:  # behind the last anything stands
            bits |= is_noted(place, scratch.listed) << lane
    return bits


@part_of_kernels
def note(place: Any, words: Keys) -> None:
    """Set the bit of a place."""
    at = np.uint64(place)
    words[at >> np.uint64(6)] |= np.uint64(1) << (at & np.uint64(63))


@part_of_kernels
def is_noted(place: Any, words: Keys) -> Any:
    """Return the bit of a place, 0 or 1."""
    at = np.uint64(place)
    return np.int64(words[at >> np.uint64(6)] >> (at & np.uint64(63)) & np.uint64(1))


@part_of_kernels
def keep_best_copies(n: Any, most: Any, is_many: Any, outbox: Outbox, scratch: RankScratch) -> Any:
    """Write the first of `n` fresh candidates, in order, each root once, into `RankScratch.best`; return how many.

    There are at most `most`. If they are many, `RankScratch.met` says which roots there are.
    """
    kept, some = np.int64(0), np.uint64(0)
    for i in range(n):
        if kept >= most:
            break
        if scratch.order[i] < 0:  # the same post as the previous one
            continue
        candidate = np.uint64(scratch.fresh[np.uint64(scratch.order[i])])
        root, is_copied = scratch.root[candidate], np.uint64(scratch.tag[candidate] & np.uint32(1))
        scratch.best[kept] = candidate
        if is_many:
            place = place_of_root(root, outbox.first, outbox.n, outbox.old_roots)
            kept += 1 - is_noted(place, scratch.met)
            note(place, scratch.met)
            continue
        bit = is_copied << np.uint64(root & 63)
        if some & bit:  # rare: a copy of it, or a root with the same bit, is among them
            same = 0
            while scratch.root[scratch.best[same]] != root:
                same += 1
            if same < kept:
                continue
        some |= bit
        kept += 1
    return kept


@step_of_kernels
def order_diverse(n: Any, outbox: Outbox, scoring: Scoring, scratch: RankScratch) -> None:
    """Bring the first `n` of `RankScratch.best` into an order in which further posts of one author score less.

    So do those of one group, where feeds are by groups. `RankScratch.order` gets their places.
    """
    _lower_authors(n, outbox, scoring, scratch)
    put_in_order(scratch.key, n, scratch.order, scratch.places, scratch.counts)
    if scoring.mode == DIVERSE and scoring.n_groups > 0:
        _lower_groups(n, scoring, scratch)
        put_in_order(scratch.key, n, scratch.order, scratch.places, scratch.counts)


@part_of_kernels
def _lower_authors(n: Any, outbox: Outbox, scoring: Scoring, scratch: RankScratch) -> None:
    for k in range(n):
        candidate, writer = scratch.best[k], _writer(scratch.best[k], outbox, scoring, scratch)
        scratch.score[candidate] = lowered(scratch.score[candidate], _factor(scratch.better[writer], scoring))
        scratch.key[k] = sort_key(scratch.score[candidate], scratch.tag[candidate])
        scratch.better[writer] += 1
    for k in range(n):
        scratch.better[_writer(scratch.best[k], outbox, scoring, scratch)] = 0


@part_of_kernels
def _writer(candidate: Any, outbox: Outbox, scoring: Scoring, scratch: RankScratch) -> Any:
    author = scoring.author[outbox.first + np.int64(scratch.tag[candidate] >> np.uint32(1))]
    return writer_index(outbox.has_posts, outbox.writers, author)


@part_of_kernels
def _factor(before: Any, scoring: Scoring) -> Any:
    """Return the factor of a score with `before` better-ranked posts of its author."""
    if len(scoring.diversity) == 0:
        return 1.0 / (1.0 + before)
    return scoring.diversity[min(before, len(scoring.diversity) - 1)]


@step_of_kernels
def _lower_groups(n: Any, scoring: Scoring, scratch: RankScratch) -> None:
    """Divide scores by 1 + the number of better ones with root authors of the same group."""
    for group in range(scoring.n_groups):
        scratch.of_group[group] = 0
    for i in range(n):
        place = scratch.order[i]
        candidate = scratch.best[place]
        group = scoring.group[scoring.author[scratch.root[candidate]]]
        scratch.key[place] = sort_key(
            lowered(scratch.score[candidate], 1.0 / (1.0 + scratch.of_group[group])), scratch.tag[candidate]
        )
        scratch.of_group[group] += 1


@lean_kernel
def rank(
    readers: Int32,
    ranked: int,
    given_at: int,
    audience: Audience,
    outbox: Outbox,
    scoring: Scoring,
    scratch: RankScratch,
    feed: Table[np.int32],
    n_feed: npt.NDArray[np.uint16],
) -> Any:
    """Write the feeds of `readers` (each once), best first, into `feed`, shape (agents, `feed.size`), and `n_feed`.

    Stops where `scratch` does not hold the candidates of the next reader.

    Returns:
        How many readers have their feeds, `ranked` included, and how many candidates these had.
    """
    done, at = np.int64(ranked), np.int64(given_at)
    while done < len(readers):
        n, first = gather(readers, done, audience, outbox, scoring, scratch), np.int64(0)
        if n == 0:
            break
        for j in range(n):
            reader, last = readers[done + j], scratch.ends[j]
            fresh = find_fresh(reader, first, last, scratch.inside_ends[j], outbox, scoring, audience, scratch)
            score_fresh(reader, fresh, scratch.inside_ends[j], at, outbox.first, scoring, scratch)
            n_feed[reader] = _show_best(reader, fresh, audience, outbox, scoring, scratch, feed)
            first = last
        at += first
        done += n
    return done, at


@part_of_kernels
def _show_best(
    reader: Any, n: Any, audience: Audience, outbox: Outbox, scoring: Scoring, scratch: RankScratch, feed: Int32
) -> Any:
    """Write the best of `n` fresh candidates into the feed of a reader; return their number."""
    begin, end = audience.seen_start[reader], audience.seen_start[reader + 1]
    is_diverse = scoring.mode == X_ALGO or scoring.mode == DIVERSE
    put_in_order(scratch.key, n, scratch.order, scratch.places, scratch.counts)
    is_many = n > MANY or end - begin > MANY
    size = feed.shape[1]  # `feed.size`
    kept = keep_best_copies(n, n if is_diverse else size, is_many, outbox, scratch)
    if is_many:
        forget(begin, end, kept, outbox, audience, scratch)
    if is_diverse:
        order_diverse(kept, outbox, scoring, scratch)
    shown = min(kept, size)
    for place in range(shown):
        candidate = scratch.best[scratch.order[place]] if is_diverse else scratch.best[place]
        feed[reader, place] = outbox.first + np.int64(scratch.tag[np.uint64(candidate)] >> np.uint32(1))
    return shown
