"""Chronological feeds of readers with many candidates, which are neither compared nor sorted.

A candidate is noted as a bit by its local number, which is its age. So the newest are found from the last bit on, and
only as many as fit into a feed are looked at.
"""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import part_of_kernels, step_of_kernels
from prism_mesa.kernels.feeds.audience import Audience
from prism_mesa.kernels.feeds.fresh import is_noted, list_read, note, note_known
from prism_mesa.kernels.feeds.outbox import Outbox, place_of_root
from prism_mesa.kernels.feeds.room import Room
from prism_mesa.kernels.feeds.scoring import CHRONOLOGICAL, Scoring
from prism_mesa.kernels.lanes import last_one
from prism_mesa.kernels.ordering import FEW, is_among

type Int32 = npt.NDArray[np.int32]

DENSE: Final = 512
"""Visible posts per candidate below which looking through all bits is faster than sorting."""


@part_of_kernels
def is_dense(n: Any, outbox: Outbox, scoring: Scoring) -> Any:
    """Return whether `n` candidates are so many."""
    return scoring.mode == CHRONOLOGICAL and n > FEW and n * DENSE > outbox.n


@step_of_kernels
def show_newest(
    reader: Any, first: Any, last: Any, audience: Audience, outbox: Outbox, scoring: Scoring, room: Room, feed: Int32
) -> Any:
    """Write the newest new ones of the candidates ``first`` .. ``last - 1`` into a feed; return how many there are."""
    begin = audience.known_start[reader]
    old_end = note_known(begin, audience.known_start[reader + 1], outbox, audience, room)
    for one in range(first, last):
        root, tag = room.root[one], np.uint64(room.tag[one])
        if root >= outbox.first:
            is_known = is_noted(np.int64(root) - outbox.first, room.met)
        else:
            is_known = np.int64(scoring.author[root] == reader or is_among(audience.known, begin, old_end, root))
        _note_new(tag, np.uint64(1 - is_known), room)
    if len(audience.shown_start) > 1:
        list_read(0, reader, outbox, audience, room)
    size, shown, word = feed.shape[1], np.int64(0), (outbox.n - 1) >> 6
    while word >= 0 and shown < size:
        bits = room.listed[word]
        while bits and shown < size:
            lane = last_one(bits)
            bit = np.uint64(1) << np.uint64(lane)
            bits ^= bit
            local = word * 64 + lane
            feed[reader, shown] = outbox.first + local
            shown += 1
            if room.copied[word] & bit:
                place = place_of_root(outbox.root[local], outbox.first, outbox.n, outbox.old_roots)
                shown -= is_noted(place, room.met)
                note(place, room.met)
        word -= 1
    for words in (room.listed, room.copied, room.met):
        words[: ((outbox.n + len(outbox.old_roots)) >> 6) + 1] = 0
    return shown


@part_of_kernels
def _note_new(tag: Any, bit: Any, room: Room) -> None:
    """Note a post by its tag in `Room.listed`, and in `Room.copied` if others have its root; nothing if `bit` is 0."""
    word, lane = tag >> np.uint64(7), tag >> np.uint64(1) & np.uint64(63)
    room.listed[word] |= bit << lane
    room.copied[word] |= (bit & tag) << lane
