"""Kernels of feeds, in memory that is kept from round to round: a thread takes a room and gives it back."""

from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.feeds.gathering import count_candidates, list_candidates
from prism_mesa.kernels.feeds.outbox import Outbox
from prism_mesa.kernels.feeds.ranking import rank
from prism_mesa.kernels.feeds.room import Audience, Room, room_for
from prism_mesa.kernels.feeds.scoring import DIVERSE, X_ALGO, Scoring
from prism_mesa.kernels.lanes import LANES

type Int32 = npt.NDArray[np.int32]

_CANDIDATES: Final = 1 << 13
"""Space of a first room, which holds most blocks of readers."""
_free: Final[deque[Room]] = deque()


class Listed(NamedTuple):
    """All candidates of some readers, in the order in which they are scored.

    Attributes:
        reader: Whose candidate each is.
        post: Its id, or `NOBODY` where a draw found none.
        inside: Whether the reader follows its author.
    """

    reader: Int32
    post: Int32
    inside: npt.NDArray[np.bool_]


class Offer(NamedTuple):
    """What feeds are made of, and for whom."""

    audience: Audience
    outbox: Outbox
    scoring: Scoring

    def count(self, readers: Int32) -> int:
        """Return how many candidates some readers have, those among them that they know."""
        n = -1

        def count(room: Room) -> bool:
            nonlocal n
            n = int(count_candidates(readers, *self, room))
            return n >= 0

        self._in_room(count)
        return n

    def listed(self, readers: Int32) -> Listed:
        """Return all candidates of some readers."""
        n = self.count(readers)
        found = Listed(np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.bool_))
        self._in_room(lambda room: list_candidates(readers, *self, room, *found) == n)
        return found

    def rank(self, readers: Int32, feed: Int32, n_feed: npt.NDArray[np.uint16]) -> None:
        """Write the feeds of some readers, each once."""
        ranked = given_at = 0

        def rank_more(room: Room) -> bool:
            nonlocal ranked, given_at
            ranked, given_at = rank(readers, ranked, given_at, *self, room, feed, n_feed)
            return bool(ranked == len(readers))

        self._in_room(rank_more)

    def _in_room(self, work: Callable[[Room], bool]) -> None:
        is_diverse = self.scoring.mode in (X_ALGO, DIVERSE)
        n_writers = min(self.outbox.n, len(self.outbox.start)) if is_diverse else 0
        in_room(work, self.outbox, n_writers, self.scoring.n_groups)


def in_room(work: Callable[[Room], bool], outbox: Outbox, n_writers: int = 0, n_groups: int = 0) -> None:
    """Have work done; as long as it says that there was not enough space, again with twice as much."""
    try:
        room = _free.pop()
    except IndexError:
        room = room_for(0, 0, 0, 0)
    n_roots, size = outbox.n + len(outbox.old_roots), max(_CANDIDATES, len(room.fresh) - LANES)
    if len(room.met) * 64 < n_roots or len(room.better) < n_writers or len(room.of_group) < n_groups:
        room = room_for(size, 2 * n_roots, 2 * n_writers, n_groups)
    while not work(room):
        size *= 2
        room = room_for(size, 2 * n_roots, 2 * n_writers, n_groups)
    _free.append(room)
