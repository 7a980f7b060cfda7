"""Candidates of feeds beside what those whom a reader follows have posted: drawn or taken for each reader."""

from typing import Any, Final

import numpy as np

from prism_mesa.kernels.compiling import part_of_kernels, step_of_kernels
from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.kernels.feeds.outbox import BITS_33, Outbox, writer_of
from prism_mesa.kernels.feeds.room import Audience
from prism_mesa.kernels.feeds.scoring import Scoring
from prism_mesa.kernels.ordering import is_among

NOBODY: Final = -1


@part_of_kernels
def n_extras(scoring: Scoring) -> Any:
    """Return how many candidates each reader has at most beside those of whom it follows."""
    return scoring.outsiders + scoring.two_hops + len(scoring.trending) + scoring.found.shape[1]


@part_of_kernels
def extra_of(number: Any, reader: Any, outbox: Outbox, scoring: Scoring, audience: Audience) -> Any:
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
    """Return a post of somebody whom somebody follows whom the reader follows: each step is drawn evenly."""
    key = mixed(mixed(scoring.two_hops_key, np.uint64(draw)), np.uint64(reader))
    at = np.int64(reader)
    for hop in range(2):
        n = audience.indptr[at + 1] - audience.indptr[at]
        if n == 0:
            return np.int64(NOBODY)
        at = np.int64(audience.indices[audience.indptr[at] + np.int64(unit(mixed(key, np.uint64(hop))) * n)])
    if not outbox.wrote[at >> 6] >> np.uint64(at & 63) & np.uint64(1):
        return np.int64(NOBODY)
    w = writer_of(outbox.wrote, outbox.writers, at)
    n = np.int64(outbox.start[w + 1]) - np.int64(outbox.start[w])
    place = outbox.start[w] + np.int64(unit(mixed(key, np.uint64(2))) * n)
    return np.int64(outbox.item[place] >> BITS_33)


@part_of_kernels
def is_hidden(author: Any, reader: Any, audience: Audience) -> Any:
    """Return whether a reader is shown nothing of an author."""
    begin, end = audience.hidden_start[reader], audience.hidden_start[reader + 1]
    return is_among(audience.hidden, begin, end, author)
