"""Ranking feeds: of the visible posts the best for each reader. The platform is only read."""

from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import lean_kernel, part_of_kernels
from prism_mesa.kernels.feeds.diverse import order_diverse
from prism_mesa.kernels.feeds.fresh import MANY, find_fresh, forget, keep_best_copies
from prism_mesa.kernels.feeds.gathering import gather
from prism_mesa.kernels.feeds.outbox import Outbox
from prism_mesa.kernels.feeds.room import Audience, Room
from prism_mesa.kernels.feeds.scoring import DIVERSE, X_ALGO, Scoring, score_fresh
from prism_mesa.kernels.ordering import put_in_order

type Int32 = npt.NDArray[np.int32]


@lean_kernel
def rank(
    readers: Int32,
    ranked: Any,
    given_at: Any,
    audience: Audience,
    outbox: Outbox,
    scoring: Scoring,
    room: Room,
    feed: Int32,
    n_feed: npt.NDArray[np.uint16],
) -> Any:
    """Write the feed of each of `readers` (each once), best first; return how many have theirs.

    They do not all have it if the room does not hold the candidates of the next one.

    Args:
        readers: Rows of agents.
        ranked: How many of them have their feed already.
        given_at: How many candidates these had.
        audience: What is known of readers.
        outbox: The visible posts.
        scoring: What they are ranked by.
        room: Memory to work in.
        feed: Shape (agents, size): gets ids of posts.
        n_feed: Gets the number of posts in each feed.

    Returns:
        `ranked` and `given_at` to go on with.
    """
    ranked, given_at = np.int64(ranked), np.int64(given_at)
    while ranked < len(readers):
        n, first = gather(readers, ranked, audience, outbox, scoring, room), np.int64(0)
        if n == 0:
            break
        for j in range(n):
            reader, last = readers[ranked + j], room.ends[j]
            fresh = find_fresh(reader, first, last, room.inside_ends[j], outbox, scoring, audience, room)
            score_fresh(reader, fresh, room.inside_ends[j], given_at, outbox.first, scoring, room)
            n_feed[reader] = _show_best(reader, fresh, audience, outbox, scoring, room, feed)
            first = last
        given_at += first
        ranked += n
    return ranked, given_at


@part_of_kernels
def _show_best(
    reader: Any, n: Any, audience: Audience, outbox: Outbox, scoring: Scoring, room: Room, feed: Int32
) -> Any:
    """Write the best of `n` fresh candidates into the feed of a reader; return how many there are."""
    begin, end = audience.known_start[reader], audience.known_start[reader + 1]
    is_diverse = scoring.mode == X_ALGO or scoring.mode == DIVERSE
    put_in_order(room.key, n, room.order, room.scratch, room.counts)
    is_many = n > MANY or end - begin > MANY
    kept = keep_best_copies(n, n if is_diverse else feed.shape[1], is_many, outbox, room)
    if is_many:
        forget(begin, end, kept, outbox, audience, room)
    if is_diverse:
        order_diverse(kept, outbox, scoring, room)
    shown = min(kept, feed.shape[1])
    for place in range(shown):
        one = room.best[room.order[place]] if is_diverse else room.best[place]
        feed[reader, place] = outbox.first + np.int64(room.tag[np.uint64(one)] >> np.uint32(1))
    return shown
