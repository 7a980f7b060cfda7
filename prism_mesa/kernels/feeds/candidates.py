"""Candidates of feeds: what somebody followed has posted, and what is drawn or taken for each reader beside it."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, part_of_kernels
from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.kernels.feeds.outbox import BITS_33, Outbox, writer_of
from prism_mesa.kernels.feeds.scoring import Scoring
from prism_mesa.kernels.ordering import is_among

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]

NOBODY: Final = -1


@part_of_kernels
def n_extras(scoring: Scoring) -> Any:
    """Return how many candidates each reader has at most beside those of whom it follows."""
    return scoring.outsiders + scoring.two_hops + len(scoring.trending) + scoring.found.shape[1]


@part_of_kernels
def extra_of(number: Any, reader: Any, outbox: Outbox, scoring: Scoring, indptr: Int64, indices: Int32) -> Any:
    """Return the local number of one of these candidates, `NOBODY` where a draw finds none.

    First come posts drawn from the whole platform, then those of two hops, what is trending, and what a search finds.
    What the reader wrote, or somebody whom it follows, is none: the one is never shown, the other is a candidate
    already.
    """
    local = np.int64(NOBODY)
    hops, trends = scoring.outsiders, scoring.outsiders + scoring.two_hops
    finds = trends + len(scoring.trending)
    if number < hops:
        u = unit(mixed(mixed(scoring.outsider_key, np.uint64(number)), np.uint64(reader)))
        local = np.int64(u * outbox.n)
    elif number < trends:
        local = _of_two_hops(number - hops, reader, outbox, scoring, indptr, indices)
    elif number < finds:
        local = np.int64(scoring.trending[number - trends])
    elif scoring.query[reader] >= 0:
        local = np.int64(scoring.found[scoring.query[reader], number - finds])
    if local == NOBODY:
        return local
    author = scoring.author[outbox.first + local]
    if author == reader or is_among(indices, indptr[reader], indptr[reader + 1], author):
        return np.int64(NOBODY)
    return local


@part_of_kernels
def _of_two_hops(draw: Any, reader: Any, outbox: Outbox, scoring: Scoring, indptr: Int64, indices: Int32) -> Any:
    """Return a post of somebody whom somebody follows whom the reader follows: each step is drawn evenly."""
    key = mixed(mixed(scoring.two_hops_key, np.uint64(draw)), np.uint64(reader))
    at = np.int64(reader)
    for hop in range(2):
        n = indptr[at + 1] - indptr[at]
        if n == 0:
            return np.int64(NOBODY)
        at = np.int64(indices[indptr[at] + np.int64(unit(mixed(key, np.uint64(hop))) * n)])
    if not outbox.wrote[at >> 6] >> np.uint64(at & 63) & np.uint64(1):
        return np.int64(NOBODY)
    w = writer_of(outbox.wrote, outbox.writers, at)
    n = np.int64(outbox.start[w + 1]) - np.int64(outbox.start[w])
    place = outbox.start[w] + np.int64(unit(mixed(key, np.uint64(2))) * n)
    return np.int64(outbox.item[place] >> BITS_33)


@part_of_kernels
def place_in_outbox(local: Any, author: Any, outbox: Outbox) -> Any:
    """Return where a visible post stands among the items of its author."""
    place = np.int64(outbox.start[writer_of(outbox.wrote, outbox.writers, author)])
    while np.int64(outbox.item[place] >> BITS_33) != local:
        place += 1
    return place


@part_of_kernels
def is_hidden(author: Any, reader: Any, hidden_start: Int64, hidden: Int32) -> Any:
    """Return whether a reader is shown nothing of an author."""
    return len(hidden_start) > 0 and is_among(hidden, hidden_start[reader], hidden_start[reader + 1], author)


@kernel
def keep_newest(begin: Int32, count: Int32, first: Any, last: Any, outbox: Outbox, most: Any) -> Any:
    """Let some authors have only their items that are among the `most` newest of all of them; return how many are left.

    The items of the i-th author, ``first <= i < last``, are ``begin[i] .. begin[i] + count[i] - 1``, oldest first.
    """
    total = np.int64(0)
    for i in range(first, last):
        total += count[i]
    if total <= most:
        return total
    local, n = np.empty(total, np.uint64), np.int64(0)
    for i in range(first, last):
        for place in range(begin[i], begin[i] + count[i]):
            local[n] = outbox.item[place] >> BITS_33
            n += 1
    local.sort()
    for i in range(first, last):
        while count[i] > 0 and (most == 0 or outbox.item[begin[i]] >> BITS_33 < local[total - most]):
            begin[i] += 1
            count[i] -= 1
    return np.int64(most)


@part_of_kernels
def _followed(
    reader: Any,
    indptr: Int64,
    indices: Int32,
    hidden_start: Int64,
    hidden: Int32,
    outbox: Outbox,
    scoring: Scoring,
    begin: Int32,
    count: Int32,
) -> Any:
    """Write where the items of those whom a reader follows lie; return how many authors they are."""
    n = np.int64(0)
    for edge in range(indptr[reader], indptr[reader + 1]):
        author = indices[edge]
        if not outbox.wrote[author >> 6] >> np.uint64(author & 63) & np.uint64(1):
            continue
        if is_hidden(author, reader, hidden_start, hidden):
            continue
        w = writer_of(outbox.wrote, outbox.writers, author)
        begin[n], count[n] = outbox.start[w], outbox.start[w + 1] - outbox.start[w]
        n += 1
    if scoring.followed >= 0:
        keep_newest(begin, count, np.int64(0), n, outbox, scoring.followed)
    return n


@kernel
def count_candidates(
    readers: Int32,
    indptr: Int64,
    indices: Int32,
    hidden_start: Int64,
    hidden: Int32,
    outbox: Outbox,
    scoring: Scoring,
) -> Any:
    """Return how many candidates some readers have together, those among them that they know."""
    total, begin, count = np.int64(0), np.empty(outbox.n, np.int32), np.empty(outbox.n, np.int32)
    for j in range(len(readers)):
        n = _followed(readers[j], indptr, indices, hidden_start, hidden, outbox, scoring, begin, count)
        for i in range(n):
            total += count[i]
    return total + len(readers) * n_extras(scoring)


@kernel
def list_candidates(
    readers: Int32,
    indptr: Int64,
    indices: Int32,
    hidden_start: Int64,
    hidden: Int32,
    outbox: Outbox,
    scoring: Scoring,
    reader: Int32,
    post: Int32,
    inside: npt.NDArray[np.bool_],
) -> None:
    """Write all candidates of some readers, in the order in which `ranking.rank` scores them.

    Args:
        readers: Rows of agents.
        indptr: With `indices`: whom each agent follows.
        indices: See `indptr`.
        hidden_start: With `hidden`: whose posts are not shown to each agent; empty if nobody's are.
        hidden: See `hidden_start`.
        outbox: The visible posts.
        scoring: How many candidates there are besides.
        reader: Gets whose candidate each is; as long as `count_candidates` says.
        post: Gets its id, or `NOBODY`.
        inside: Gets whether the reader follows its author.
    """
    at, begin, count = np.int64(0), np.empty(outbox.n, np.int32), np.empty(outbox.n, np.int32)
    for j in range(len(readers)):
        own = readers[j]
        n = _followed(own, indptr, indices, hidden_start, hidden, outbox, scoring, begin, count)
        for i in range(n):
            for place in range(begin[i], begin[i] + count[i]):
                reader[at] = own
                post[at] = outbox.first + np.int64(outbox.item[place] >> BITS_33)
                inside[at] = True
                at += 1
        for number in range(n_extras(scoring)):
            local = extra_of(number, own, outbox, scoring, indptr, indices)
            reader[at] = own
            post[at] = NOBODY if local == NOBODY else outbox.first + local
            inside[at] = False
            at += 1
