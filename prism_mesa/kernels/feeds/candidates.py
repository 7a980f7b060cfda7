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
    return scoring.outsiders + scoring.two_hops + len(scoring.trending)


@part_of_kernels
def extra_of(number: Any, reader: Any, outbox: Outbox, scoring: Scoring, indptr: Int64, indices: Int32) -> Any:
    """Return the local number of one of these candidates, `NOBODY` where a draw finds none.

    First come posts drawn from the whole platform, then those of two hops, then what is trending. What the reader
    wrote, or somebody whom it follows, is none: the one is never shown, the other is a candidate already.
    """
    local = np.int64(NOBODY)
    if number < scoring.outsiders:
        u = unit(mixed(mixed(scoring.outsider_key, np.uint64(number)), np.uint64(reader)))
        local = np.int64(u * outbox.n)
    elif number < scoring.outsiders + scoring.two_hops:
        local = _of_two_hops(number - scoring.outsiders, reader, outbox, scoring, indptr, indices)
    else:
        local = np.int64(scoring.trending[number - scoring.outsiders - scoring.two_hops])
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
def is_shown(author: Any, reader: Any, hidden_start: Int64, hidden: Int32, outbox: Outbox) -> Any:
    """Return whether an author has a visible post, and is not hidden from a reader."""
    if not outbox.wrote[author >> 6] >> np.uint64(author & 63) & np.uint64(1):
        return False
    return len(hidden_start) == 0 or not is_among(hidden, hidden_start[reader], hidden_start[reader + 1], author)


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
    total = np.int64(0)
    for j in range(len(readers)):
        for edge in range(indptr[readers[j]], indptr[readers[j] + 1]):
            author = indices[edge]
            if is_shown(author, readers[j], hidden_start, hidden, outbox):
                w = writer_of(outbox.wrote, outbox.writers, author)
                total += outbox.start[w + 1] - outbox.start[w]
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
    """Write all candidates of some readers, in the order in which `feed.rank` scores them.

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
    at = np.int64(0)
    for j in range(len(readers)):
        own = readers[j]
        for edge in range(indptr[own], indptr[own + 1]):
            author = indices[edge]
            if is_shown(author, own, hidden_start, hidden, outbox):
                w = writer_of(outbox.wrote, outbox.writers, author)
                for place in range(outbox.start[w], outbox.start[w + 1]):
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
