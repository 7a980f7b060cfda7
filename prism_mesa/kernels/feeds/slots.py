"""Places of feeds that go to what is trending, or to what a search finds, in any order of feeds."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, part_of_kernels
from prism_mesa.kernels.feeds.candidates import NOBODY, is_hidden
from prism_mesa.kernels.feeds.outbox import Outbox
from prism_mesa.kernels.ordering import is_among

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]


@kernel
def place_in_slots(
    readers: Int32,
    trending: Int32,
    found: Int32,
    query: npt.NDArray[np.int16],
    every: int,
    outbox: Outbox,
    author: Int32,
    root: Int32,
    known_start: Int64,
    known: Int32,
    hidden_start: Int64,
    hidden: Int32,
    feed: Int32,
    n_feed: npt.NDArray[np.uint16],
) -> None:
    """Give every so many-th place of feeds, and those behind their last posts, to other posts; each root once.

    What stands in a feed before its place comes stays where it is, and the place goes to the next one; what stands
    behind it moves up. What would not fit any more drops out of the feed.

    Args:
        readers: Rows of agents, each once.
        trending: Local numbers of roots, for all readers; they come first.
        found: Shape (topics, posts): local numbers of roots for who searches for a topic, or `NOBODY`.
        query: The topic that each agent searches for; below 0: none.
        every: Which places are slots, counted from 1.
        outbox: The visible posts.
        author: Of all posts; `root` too.
        root: See `author`.
        known_start: With `known`: roots that each agent has seen, ascending.
        known: See `known_start`.
        hidden_start: With `hidden`: whose posts are not shown to each agent; empty if nobody's are.
        hidden: See `hidden_start`.
        feed: Shape (agents, size): the feeds, best first.
        n_feed: How many posts are in each.
    """
    size, n_slots = feed.shape[1], len(trending) + found.shape[1]
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
                    if post != NOBODY and not _can_be_shown(
                        post, reader, author, known_start, known, hidden_start, hidden, feed, n, root
                    ):
                        post = np.int64(NOBODY)
                if post != NOBODY:
                    placed[n_placed] = post
                    n_placed += 1
            while post == NOBODY and at < n_before:
                post = np.int64(before[at])
                for i in range(n_placed):
                    if placed[i] == root[post]:
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
def _in_slot(
    slot: Any, reader: Any, trending: Int32, found: Int32, query: npt.NDArray[np.int16], outbox: Outbox
) -> Any:
    """Return the post of a slot, or `NOBODY`."""
    local = np.int64(NOBODY)
    if slot < len(trending):
        local = np.int64(trending[slot])
    elif query[reader] >= 0:
        local = np.int64(found[query[reader], slot - len(trending)])
    return local if local == NOBODY else local + outbox.first


@part_of_kernels
def _can_be_shown(
    post: Any,
    reader: Any,
    author: Int32,
    known_start: Int64,
    known: Int32,
    hidden_start: Int64,
    hidden: Int32,
    feed: Int32,
    n: Any,
    root: Int32,
) -> Any:
    """Return whether a root is new to a reader, by somebody else whom it sees, and not in its feed so far."""
    if author[post] == reader or is_hidden(author[post], reader, hidden_start, hidden):
        return False
    if is_among(known, known_start[reader], known_start[reader + 1], post):
        return False
    stands = False
    for i in range(n):
        stands |= root[feed[reader, i]] == post
    return not stands
