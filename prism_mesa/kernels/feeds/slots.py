"""Slots of feeds for trending posts and search results."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, part_of_kernels
from prism_mesa.kernels.feeds.gathering import NOBODY, is_hidden
from prism_mesa.kernels.feeds.outbox import Audience, Outbox
from prism_mesa.kernels.feeds.scoring import Scoring
from prism_mesa.kernels.ordering import is_among

type Int32 = npt.NDArray[np.int32]
type Int16 = npt.NDArray[np.int16]


@kernel
def place_in_slots(
    readers: Int32,
    trending: Int32,
    found: Int32,
    query: Int16,
    every: int,
    audience: Audience,
    outbox: Outbox,
    scoring: Scoring,
    feed: Int32,
    n_feed: npt.NDArray[np.uint16],
) -> None:
    """Give every `every`-th place of feeds, and the places behind their last posts, to other posts; each root once.

    `trending` are local numbers of roots for all readers, which come first. `found` are those for agents who search for
    a topic (`query`, below 0: none), shape (topics, posts), with `NOBODY` behind the last. A post in the feed before
    its slot stays where it is, and the slot goes to the next one; a post behind the slot moves up. Feeds keep their
    length.
    """
    size, n_slots = feed.shape[1], len(trending) + found.shape[1]  # `feed.size`
    before, placed = np.empty(size, np.int32), np.empty(n_slots, np.int32)
    for reader in readers:
        n_before, at, slot = np.int64(n_feed[reader]), np.int64(0), np.int64(0)
        n, n_placed = np.int64(0), np.int64(0)
        for i in range(n_before):
            before[i] = feed[reader, i]
        while n < size:
            post = np.int64(NOBODY)
            if (n + 1) % every == 0 or at >= n_before:
                while post == NOBODY and slot < n_slots:
                    post = _in_slot(slot, reader, trending, found, query, outbox)
                    slot += 1
                    if post != NOBODY and not (
                        _is_new(post, reader, audience, scoring) and not _stands(post, feed[reader, :n], outbox)
                    ):
                        post = np.int64(NOBODY)
                if post != NOBODY:
                    placed[n_placed] = post
                    n_placed += 1
            while post == NOBODY and at < n_before:
                post = np.int64(before[at])
                for i in range(n_placed):
                    if placed[i] == outbox.root[post - outbox.first]:
                        post = np.int64(NOBODY)
                        break
                at += 1
            if post == NOBODY:
                if slot >= n_slots:
                    break
                continue
            feed[reader, n] = post
            n += 1
        n_feed[reader] = n


@part_of_kernels
def _in_slot(slot: Any, reader: Any, trending: Int32, found: Int32, query: Int16, outbox: Outbox) -> Any:
    local = np.int64(NOBODY)
    if slot < len(trending):
        local = np.int64(trending[slot])
    elif query[reader] >= 0:
        local = np.int64(found[query[reader], slot - len(trending)])
    return local if local == NOBODY else local + outbox.first


@part_of_kernels
def _is_new(post: Any, reader: Any, audience: Audience, scoring: Scoring) -> Any:
    """Return whether a root is by another author that is not hidden from a reader, and new to it."""
    author = scoring.author[post]
    if author == reader or (len(audience.hidden_start) > 0 and is_hidden(author, reader, audience)):
        return False
    begin, end, is_read = audience.seen_start[reader], audience.seen_start[reader + 1], False
    if len(audience.read_start) > 1:
        is_read = is_among(audience.read_posts, audience.read_start[reader], audience.read_start[reader + 1], post)
    return not (is_read or is_among(audience.seen_roots, begin, end, post))


@part_of_kernels
def _stands(post: Any, feed: Int32, outbox: Outbox) -> Any:
    stands = False
    for i in range(len(feed)):
        stands |= outbox.root[feed[i] - outbox.first] == post
    return stands
