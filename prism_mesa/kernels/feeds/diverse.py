"""Ranking feeds with posts from outside the network, and with fewer of one author, or of one group."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, part_of_kernels
from prism_mesa.kernels.feeds.candidates import NOBODY, extra_of, is_hidden, n_extras, place_in_outbox
from prism_mesa.kernels.feeds.outbox import BITS_33, LOWER, Outbox, place_of_root, writer_of
from prism_mesa.kernels.feeds.scoring import DIVERSE, GIVEN, Scoring, lowered, scored, sort_key
from prism_mesa.kernels.ordering import by_key, is_among

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Keys = npt.NDArray[np.uint64]
type Floats = npt.NDArray[np.float64]


@part_of_kernels
def _factor(before: Any, scoring: Scoring) -> Any:
    """Return the factor of a score with so many better-ranked posts of the same author."""
    if len(scoring.diversity) == 0:
        return 1.0 / (1.0 + before)
    return scoring.diversity[min(before, len(scoring.diversity) - 1)]


@part_of_kernels
def _lower_groups(key: Keys, score: Floats, order: Int64, n: Any, local: Int32, root: Int32, scoring: Scoring) -> None:
    """Divide the score of each of ``order[:n]`` by 1 + how many better ones are by authors of roots of its group."""
    ranked, places = np.empty(n, np.uint64), np.empty(n, np.int64)
    for i in range(n):
        ranked[i] = key[order[i]]
    by_key(ranked, places, n)
    met = np.zeros(scoring.n_groups, np.int64)
    for i in range(n):
        one = order[places[i]]
        group = scoring.group[scoring.author[root[one]]]
        key[one] = sort_key(lowered(score[one], 1.0 / (1.0 + met[group])), local[one])
        met[group] += 1


@kernel
def _best_diverse(
    reader: int,
    begin: Int32,
    count: Int32,
    first_author: Any,
    last_author: Any,
    most: Any,
    outbox: Outbox,
    scoring: Scoring,
    known: Int32,
    known_first: int,
    known_last: int,
    hidden_start: Int64,
    hidden: Int32,
    indptr: Int64,
    indices: Int32,
    feed: Int32,
    met: Int64,
    turn: Any,
    given_at: Any,
) -> Any:
    """Write the best of a reader's candidates and of posts from outside into its feed; return how many there are.

    Each further post of one author has a lower score. ``met[0]``, by `place_of_root`, is `turn` where a root is kept;
    ``met[1]``, by author, is `turn` and the number of its posts that are kept. Less stands where there are none, so
    nothing is cleared between readers.
    """
    n_visible = outbox.n
    more = n_extras(scoring)
    most += more
    score, key = np.empty(most, np.float64), np.empty(most, np.uint64)
    local, root, writer = np.empty(most, np.int32), np.empty(most, np.int32), np.empty(most, np.int32)
    n, at = np.int64(0), np.int64(given_at)  # a plain 0 would have `by_key` compiled for it as well
    for i in range(first_author, last_author):
        for place in range(begin[i], begin[i] + count[i]):
            local[n], root[n] = np.int64(outbox.item[place] >> BITS_33), np.int64(outbox.item[place] & LOWER)
            at += 1
            if scoring.author[root[n]] == reader or is_among(known, known_first, known_last, root[n]):
                continue
            writer[n] = scoring.author[outbox.first + local[n]]
            if scoring.mode == GIVEN:
                score[n] = scoring.given[at - 1]
            else:
                score[n] = scored(reader, local[n], False, outbox.first, scoring)
            n += 1
    for number in range(more):
        drawn = extra_of(number, reader, outbox, scoring, indptr, indices)
        at += 1
        if drawn == NOBODY:
            continue
        author = scoring.author[outbox.first + drawn]
        if is_hidden(author, reader, hidden_start, hidden):
            continue
        place = place_in_outbox(drawn, author, outbox)
        local[n], root[n], writer[n] = drawn, np.int64(outbox.item[place] & LOWER), author
        if scoring.author[root[n]] == reader or is_among(known, known_first, known_last, root[n]):
            continue
        score[n] = (
            scoring.given[at - 1] if scoring.mode == GIVEN else scored(reader, drawn, True, outbox.first, scoring)
        )
        n += 1
    for i in range(n):
        key[i] = sort_key(score[i], local[i])
    order = np.empty(n, np.int64)
    by_key(key, order, n)
    kept = np.int64(0)
    for i in range(n):  # each root once, its best copy, and each author's posts counted from the best
        one = order[i]
        spot = place_of_root(root[one], outbox.first, n_visible, outbox.old_roots)
        if met[0, spot] == turn:
            continue
        met[0, spot] = turn
        author = writer_of(outbox.wrote, outbox.writers, writer[one])
        before = max(met[1, author] - turn, 0)
        met[1, author] = turn + before + 1
        order[kept] = one
        kept += 1
        score[one] = lowered(score[one], _factor(before, scoring))
        key[one] = sort_key(score[one], local[one])
    if scoring.mode == DIVERSE and scoring.n_groups > 0:
        _lower_groups(key, score, order, kept, local, root, scoring)
    final = np.empty(kept, np.uint64)
    for i in range(kept):
        final[i] = key[order[i]]
    places = np.empty(kept, np.int64)
    by_key(final, places, kept)
    shown = min(feed.shape[1], kept)
    for i in range(shown):
        feed[reader, i] = outbox.first + np.int64(final[places[i]] & LOWER)
    return shown


@kernel
def rank_diverse(
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
    hidden_start: Int64,
    hidden: Int32,
    indptr: Int64,
    indices: Int32,
    feed: Int32,
    n_feed: npt.NDArray[np.uint16],
    met: Int64,
    turn: Any,
    given_at: Any,
) -> Any:
    """Write the feeds of a block of readers, with posts from outside and fewer of one author.

    `met` has two rows, as long as there are roots of visible posts, with nothing from `turn` on; returned is the
    number from which on it has nothing then.
    """
    at, before = np.int64(0), np.int64(0)
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
            hidden_start,
            hidden,
            indptr,
            indices,
            feed,
            met,
            turn,
            given_at,
        )
        given_at += item_ends[j] - before + n_extras(scoring)
        turn += item_ends[j] - before + n_extras(scoring) + 1
        at, before = ends[j], item_ends[j]
    return turn
