"""Fill slots of feeds with trending posts and search results."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Int32, UInt16
from prism_mesa.kernels.compiling import inline_kernel, kernel
from prism_mesa.kernels.feeds.gathering import NO_POST, is_hidden
from prism_mesa.kernels.feeds.outbox import Audience, Outbox
from prism_mesa.kernels.feeds.scoring import Scoring
from prism_mesa.kernels.ordering import is_among

type Int16 = npt.NDArray[np.int16]


@kernel
def fill_slots(
    readers: Int32,
    trending: Int32,
    search_results: Int32,
    queries: Int16,
    interval: int,
    audience: Audience,
    outbox: Outbox,
    scoring: Scoring,
    feed: Int32,
    n_feed: UInt16,
) -> None:
    """Fill the slots of feeds, each root once. Slots are every `interval`-th place, and all places after the last post.

    Slots first show `trending` roots, the same for all readers, and then search results for the topic in `queries` (-1
    for none). `search_results` has shape (topics, posts), with `NO_POST` after the last result. Both contain local
    numbers. A post that already has a higher place in the feed keeps it, and the slot shows the next post instead. A
    post with a lower place moves up to the slot. No feed becomes longer than `feed.size`.
    """
    size, n_slots = feed.shape[1], len(trending) + search_results.shape[1]  # `feed.size`
    old_feed, placed_roots = np.empty(size, np.int32), np.empty(n_slots, np.int32)
    for reader in readers:
        n_before, next_old, slot = np.int64(n_feed[reader]), np.int64(0), np.int64(0)
        n, n_placed = np.int64(0), np.int64(0)
        for i in range(n_before):
            old_feed[i] = feed[reader, i]
        while n < size:
            post = np.int64(NO_POST)
            if (n + 1) % interval == 0 or next_old >= n_before:
                while post == NO_POST and slot < n_slots:
                    post = _slot_post(slot, reader, trending, search_results, queries, outbox)
                    slot += 1
                    if post != NO_POST and not (
                        _is_new(post, reader, audience, scoring) and not _is_in_feed(post, feed[reader, :n], outbox)
                    ):
                        post = np.int64(NO_POST)
                if post != NO_POST:
                    placed_roots[n_placed] = post
                    n_placed += 1
            while post == NO_POST and next_old < n_before:
                post = np.int64(old_feed[next_old])
                for i in range(n_placed):
                    if placed_roots[i] == outbox.root[post - outbox.first]:
                        post = np.int64(NO_POST)
                        break
                next_old += 1
            if post == NO_POST:
                if slot >= n_slots:
                    break
                continue
            feed[reader, n] = post
            n += 1
        n_feed[reader] = n


@inline_kernel
def _slot_post(slot: Any, reader: Any, trending: Int32, search_results: Int32, queries: Int16, outbox: Outbox) -> Any:
    local = np.int64(NO_POST)
    if slot < len(trending):
        local = np.int64(trending[slot])
    elif queries[reader] >= 0:
        local = np.int64(search_results[queries[reader], slot - len(trending)])
    return local if local == NO_POST else local + outbox.first


@inline_kernel
def _is_new(post: Any, reader: Any, audience: Audience, scoring: Scoring) -> Any:
    """Return whether a root is new to a reader, and by another author that is not hidden from the reader."""
    author = scoring.author[post]
    if author == reader or (len(audience.hidden_start) > 0 and is_hidden(author, reader, audience)):
        return False
    begin, end, is_read = audience.seen_start[reader], audience.seen_start[reader + 1], False
    if len(audience.read_start) > 1:
        is_read = is_among(audience.read_posts, audience.read_start[reader], audience.read_start[reader + 1], post)
    return not (is_read or is_among(audience.seen_roots, begin, end, post))


@inline_kernel
def _is_in_feed(post: Any, feed: Int32, outbox: Outbox) -> Any:
    is_in_feed = False
    for i in range(len(feed)):
        is_in_feed |= outbox.root[feed[i] - outbox.first] == post
    return is_in_feed
