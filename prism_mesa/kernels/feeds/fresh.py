"""Which candidates a reader does not know yet, and of each root the best copy."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import part_of_kernels, step_of_kernels
from prism_mesa.kernels.feeds.extras import NOBODY, is_hidden
from prism_mesa.kernels.feeds.outbox import Outbox, place_of_root
from prism_mesa.kernels.feeds.room import Audience, Room
from prism_mesa.kernels.feeds.scoring import Scoring
from prism_mesa.kernels.lanes import LANES, among, below, first_one
from prism_mesa.kernels.ordering import is_among

type Int32 = npt.NDArray[np.int32]
type Keys = npt.NDArray[np.uint64]

MANY: Final = 128
"""Known roots, or new candidates, from which on roots are looked up in `Room.met` and not in a list."""


@part_of_kernels
def find_fresh(
    reader: Any,
    first: Any,
    last: Any,
    inside_end: Any,
    outbox: Outbox,
    scoring: Scoring,
    audience: Audience,
    room: Room,
) -> Any:
    """Write which of the candidates ``first`` .. ``last - 1`` a reader can be shown into `Room.fresh`; return how many.

    A bit of a word stands for a candidate. Few need a look of their own, once what is known has dropped out.
    """
    begin, end, n = audience.known_start[reader], audience.known_start[reader + 1], np.int64(0)
    repeats = len(audience.shown_start) > 1
    if repeats:
        list_read(1, reader, outbox, audience, room)
    is_long, old_end = end - begin > MANY, end
    if is_long:
        old_end = note_known(audience.known, begin, end, outbox, room)
    for at in range(first, last, LANES):
        known = _noted(at, outbox, room) if is_long else among(room.root, np.int64(at), audience.known, begin, end)
        if repeats:
            known |= _listed(at, outbox, room)
        fresh = np.uint64(~known & _up_to(last - at))
        looked_at = below(room.root, np.int64(at), np.int64(outbox.first))
        if len(audience.hidden_start) > 0:
            looked_at |= ~_up_to(inside_end - at)
        rest = fresh & np.uint64(looked_at)
        while rest:
            one, lowest = at + first_one(rest), rest & (~rest + np.uint64(1))
            if _drops(one, reader, one >= inside_end, begin, old_end, is_long, outbox, scoring, audience, room):
                fresh ^= lowest
            rest ^= lowest
        while fresh:
            room.fresh[np.uint64(n)] = at + first_one(fresh)
            fresh &= fresh - np.uint64(1)
            n += 1
    if repeats:
        list_read(0, reader, outbox, audience, room)
    return n


@part_of_kernels
def _up_to(n: Any) -> Any:
    """Return a number whose first `n` bits of `LANES` are set."""
    return (np.int64(1) << min(max(n, 0), LANES)) - 1


@part_of_kernels
def _drops(
    one: Any,
    reader: Any,
    is_outsider: Any,
    begin: Any,
    old_end: Any,
    is_long: Any,
    outbox: Outbox,
    scoring: Scoring,
    audience: Audience,
    room: Room,
) -> Any:
    """Return whether a reader cannot be shown a candidate whose root is old, or that somebody it does not follow wrote.

    What is known of a long list, ``known[begin:old_end]``, has not been compared yet.
    """
    root = room.root[one]
    drops = root == NOBODY
    if not drops and root < outbox.first:
        drops = scoring.author[root] == reader  # which its author may have forgotten
        drops |= is_long and is_among(audience.known, begin, old_end, root)
    if not drops and is_outsider and len(audience.hidden_start) > 0:
        drops = is_hidden(scoring.author[outbox.first + np.int64(room.tag[one] >> np.uint32(1))], reader, audience)
    return drops


@step_of_kernels
def list_read(bit: Any, reader: Any, outbox: Outbox, audience: Audience, room: Room) -> None:
    """Set the bits in `Room.listed` of the copies that a reader has read to 0 or 1, where roots can be shown again."""
    k = audience.shown_start[reader + 1] - 1
    while k >= audience.shown_start[reader] and audience.shown[k] >= outbox.first:
        place = np.uint64(audience.shown[k] - outbox.first)
        word, one = place >> np.uint64(6), np.uint64(1) << (place & np.uint64(63))
        room.listed[word] = room.listed[word] & ~one | one * np.uint64(bit)
        k -= 1


@step_of_kernels
def note_known(known: Int32, begin: Any, end: Any, outbox: Outbox, room: Room) -> Any:
    """Note those of ``known[begin:end]`` that are visible themselves in `Room.met`; return where these begin."""
    k = end - 1
    while k >= begin and known[k] >= outbox.first:
        note(known[k] - outbox.first, room.met)
        k -= 1
    return k + 1


@step_of_kernels
def forget(begin: Any, end: Any, kept: Any, outbox: Outbox, audience: Audience, room: Room) -> None:
    """Clear what known roots, and the first of `Room.best`, have left in `Room.met`."""
    k = end - 1
    while k >= begin and audience.known[k] >= outbox.first:
        room.met[(audience.known[k] - outbox.first) >> 6] = 0
        k -= 1
    for k in range(kept):
        room.met[place_of_root(room.root[room.best[k]], outbox.first, outbox.n, outbox.old_roots) >> 6] = 0


@step_of_kernels
def _noted(at: Any, outbox: Outbox, room: Room) -> Any:
    """Return what `among` would, of visible roots."""
    found = np.int64(0)
    for lane in range(LANES):
        place = np.int64(room.root[at + lane]) - outbox.first
        if 0 <= place < outbox.n:  # behind the last anything stands
            found |= is_noted(place, room.met) << lane
    return found


@step_of_kernels
def _listed(at: Any, outbox: Outbox, room: Room) -> Any:
    """Return which of `LANES` candidates are listed (`list_read`), a bit for each."""
    found = np.int64(0)
    for lane in range(LANES):
        place = np.int64(room.tag[at + lane] >> np.uint32(1))
        if place < outbox.n:  # behind the last anything stands
            found |= is_noted(place, room.listed) << lane
    return found


@part_of_kernels
def note(place: Any, words: Keys) -> None:
    """Set the bit of a place."""
    at = np.uint64(place)
    words[at >> np.uint64(6)] |= np.uint64(1) << (at & np.uint64(63))


@part_of_kernels
def is_noted(place: Any, words: Keys) -> Any:
    """Return the bit of a place, 0 or 1."""
    at = np.uint64(place)
    return np.int64(words[at >> np.uint64(6)] >> (at & np.uint64(63)) & np.uint64(1))


@part_of_kernels
def keep_best_copies(n: Any, most: Any, is_many: Any, outbox: Outbox, room: Room) -> Any:
    """Write the first of `n` fresh candidates, in their order, each root once, into `Room.best`; return how many.

    There are at most `most`. If they are many, `Room.met` says which roots there are.
    """
    kept, some = np.int64(0), np.uint64(0)
    for i in range(n):
        if kept >= most:
            break
        if room.order[i] < 0:  # the same post as the one before it
            continue
        one = np.uint64(room.fresh[np.uint64(room.order[i])])
        root, is_copied = room.root[one], np.uint64(room.tag[one] & np.uint32(1))
        room.best[kept] = one
        if is_many:
            place = place_of_root(root, outbox.first, outbox.n, outbox.old_roots)
            kept += 1 - is_noted(place, room.met)
            note(place, room.met)
            continue
        bit = is_copied << np.uint64(root & 63)
        if some & bit:  # seldom: a copy of it, or one whose root has the same bit, is among them
            same = 0
            while room.root[room.best[same]] != root:
                same += 1
            if same < kept:
                continue
        some |= bit
        kept += 1
    return kept
