"""Candidates of a block of readers side by side: what those whom they follow have posted, and what is beside it.

Who is followed lies anywhere in memory. So a block is taken through passes that do one thing each without looking at
what they find (who has anything to show, where it lies, what it is): the processor has many reads under way at a time.
The cut into blocks changes nothing.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import lean_kernel, part_of_kernels, step_of_kernels
from prism_mesa.kernels.feeds.extras import NOBODY, extra_of, n_extras
from prism_mesa.kernels.feeds.outbox import BITS_32, BITS_33, LOWER, Outbox, writer_of
from prism_mesa.kernels.feeds.room import READERS, Audience, Room
from prism_mesa.kernels.feeds.scoring import Scoring
from prism_mesa.kernels.lanes import LANES, prefetch

type Int32 = npt.NDArray[np.int32]


@step_of_kernels
def gather(readers: Int32, first: Any, audience: Audience, outbox: Outbox, scoring: Scoring, room: Room) -> Any:
    """Write the candidates of readers from `first` on into `room`; return how many readers they are.

    They are as many as a block has and the room holds; 0 if it does not hold one.
    """
    n = _find(readers, first, audience, outbox, room)
    more, end, most = n_extras(scoring), np.int64(0), len(room.fresh) - LANES
    for j in range(n):
        start, last = room.author_ends[j - 1] if j > 0 else 0, room.author_ends[j]
        found = _n_items(start, last, room)
        kept = _n_kept(found, scoring)
        if max(end + kept + more, found) > most:
            return np.int64(j)
        if kept < found:
            keep_newest(start, last, found, kept, outbox, room)
        end = copy_items(start, last, end, outbox, room)
        room.inside_ends[j] = end
        if more > 0:
            end = _add_extras(readers[first + j], end, audience, outbox, scoring, room)
        room.ends[j] = end
    return n


@part_of_kernels
def _find(readers: Int32, first: Any, audience: Audience, outbox: Outbox, room: Room) -> Any:
    """Write where the items of those lie whom readers from `first` on follow and see; return how many readers."""
    n = _block(readers, first, audience, room)
    find_authors(readers, first, n, audience, outbox, room)
    find_items(room.author_ends[n - 1] if n > 0 else 0, outbox, room)
    return n


@part_of_kernels
def _block(readers: Int32, first: Any, audience: Audience, room: Room) -> Any:
    """Return how many readers from `first` on follow no more than the room holds."""
    n, follows = np.int64(0), np.int64(0)
    while n < min(READERS, len(readers) - first):
        reader = readers[first + n]
        follows += audience.indptr[reader + 1] - audience.indptr[reader]
        if follows > (len(room.fresh) - LANES):
            break
        n += 1
    return n


@step_of_kernels
def find_authors(readers: Int32, first: Any, n: Any, audience: Audience, outbox: Outbox, room: Room) -> None:
    """Write whom `n` readers from `first` on follow and see, if they have anything to show."""
    k, has_hidden = np.int64(0), len(audience.hidden_start) > 0
    for j in range(n):
        reader, begin = readers[first + j], k
        for edge in range(audience.indptr[reader], audience.indptr[reader + 1]):
            author = np.uint64(audience.indices[np.uint64(edge)])
            room.author[np.uint64(k)] = author
            k += np.int64(outbox.wrote[author >> np.uint64(6)] >> (author & np.uint64(63)) & np.uint64(1))
        if has_hidden:
            k = without_hidden(reader, begin, k, audience, room)
        room.author_ends[j] = k


@part_of_kernels
def without_hidden(reader: Any, first: Any, last: Any, audience: Audience, room: Room) -> Any:
    """Move those authors up who are not hidden from a reader; return where they end."""
    at, end, k = audience.hidden_start[reader], audience.hidden_start[reader + 1], first
    if at == end:
        return last
    for i in range(first, last):  # both ascend
        author = room.author[i]
        while at < end and audience.hidden[at] < author:
            at += 1
        room.author[k] = author
        k += 0 if at < end and audience.hidden[at] == author else 1
    return k


@step_of_kernels
def find_items(n: Any, outbox: Outbox, room: Room) -> None:
    """Write where the items of the first `n` authors lie."""
    for place in range(n):
        i = np.uint64(place)
        writer = writer_of(outbox.wrote, outbox.writers, room.author[i])
        room.n_items[i] = writer
        prefetch(outbox.start, writer)
    for place in range(n):
        i = np.uint64(place)
        writer = np.uint64(room.n_items[i])
        begin = outbox.start[writer]
        room.begin[i] = begin
        room.n_items[i] = outbox.start[writer + np.uint64(1)] - begin
        prefetch(outbox.item, np.int64(begin))


@part_of_kernels
def _n_items(first: Any, last: Any, room: Room) -> Any:
    n = np.int64(0)
    for i in range(first, last):
        n += room.n_items[np.uint64(i)]
    return n


@part_of_kernels
def _n_kept(n: Any, scoring: Scoring) -> Any:
    """Return how many are candidates of so many items by those whom a reader follows."""
    return n if scoring.followed < 0 else min(n, np.int64(scoring.followed))


@step_of_kernels
def keep_newest(first: Any, last: Any, n: Any, most: Any, outbox: Outbox, room: Room) -> None:
    """Let some authors, who have `n` items, have only those that are among the `most` newest of all of them."""
    at = np.int64(0)
    for i in range(first, last):
        for place in range(room.begin[i], room.begin[i] + room.n_items[i]):
            room.key[at] = outbox.item[place] >> BITS_33
            at += 1
    low, high = np.int64(0), np.int64(outbox.n)  # all of at least `high` are kept, and of none below `low`
    while low < high:
        middle, newer = (low + high) >> 1, np.int64(0)
        for k in range(n):
            newer += room.key[k] >= np.uint64(middle)
        if newer <= most:
            high = middle
        else:
            low = middle + 1
    for i in range(first, last):
        while room.n_items[i] > 0 and np.int64(outbox.item[room.begin[i]] >> BITS_33) < high:
            room.begin[i] += 1
            room.n_items[i] -= 1


@part_of_kernels
def copy_items(first: Any, last: Any, end: Any, outbox: Outbox, room: Room) -> Any:
    """Write the items of some authors from `end` on; return their end.

    Most have one or two, which are written without asking how many there are.
    """
    for i in range(first, last):
        begin, n = np.int64(room.begin[np.uint64(i)]), np.int64(room.n_items[np.uint64(i)])
        for k in range(2):
            place: Any = min(begin + k, outbox.n)
            item, to = outbox.item[np.uint64(place)], np.uint64(end + k)
            room.root[to] = item & LOWER
            room.tag[to] = item >> BITS_32
        for k in range(2, n):
            item, to = outbox.item[np.uint64(begin + k)], np.uint64(end + k)
            room.root[to] = item & LOWER
            room.tag[to] = item >> BITS_32
        end += n
    return end


@step_of_kernels
def _add_extras(reader: Any, end: Any, audience: Audience, outbox: Outbox, scoring: Scoring, room: Room) -> Any:
    """Write a reader's candidates by those whom it does not follow from `end` on; return their end."""
    for number in range(n_extras(scoring)):
        local = extra_of(number, reader, outbox, scoring, audience)
        room.root[end], room.tag[end] = NOBODY, 0
        if local != NOBODY:
            room.root[end], room.tag[end] = outbox.root[local], local << 1 | 1  # as if others had its root too
        end += 1
    return end


@lean_kernel
def count_candidates(readers: Int32, audience: Audience, outbox: Outbox, scoring: Scoring, room: Room) -> Any:
    """Return how many candidates some readers have together, those among them that they know.

    It is -1 if the room does not hold whom one of them follows.
    """
    total, first = np.int64(0), np.int64(0)
    while first < len(readers):
        n = _find(readers, first, audience, outbox, room)
        if n == 0:
            return np.int64(-1)
        for j in range(n):
            found = _n_items(room.author_ends[j - 1] if j > 0 else 0, room.author_ends[j], room)
            total += _n_kept(found, scoring) + n_extras(scoring)
        first += n
    return total


@lean_kernel
def list_candidates(
    readers: Int32,
    audience: Audience,
    outbox: Outbox,
    scoring: Scoring,
    room: Room,
    reader: Int32,
    post: Int32,
    inside: npt.NDArray[np.bool_],
) -> Any:
    """Write all candidates of some readers, in the order in which `ranking.rank` scores them; return how many.

    It is -1 if the room does not hold those of one reader.

    Args:
        readers: Rows of agents.
        audience: Whom they follow, and who is hidden from them.
        outbox: The visible posts.
        scoring: How many candidates there are besides.
        room: Memory to work in.
        reader: Gets whose candidate each is; as long as `count_candidates` says.
        post: Gets its id, or `NOBODY`.
        inside: Gets whether the reader follows its author.
    """
    at, first = np.int64(0), np.int64(0)
    while first < len(readers):
        n, own = gather(readers, first, audience, outbox, scoring, room), np.int64(0)
        if n == 0:  # `count_candidates` had another room
            return np.int64(-1)
        for j in range(n):
            while own < room.ends[j]:
                is_post = room.root[own] != NOBODY
                reader[at] = readers[first + j]
                post[at] = outbox.first + np.int64(room.tag[own] >> np.uint32(1)) if is_post else NOBODY
                inside[at] = own < room.inside_ends[j]
                at += 1
                own += 1
        first += n
    return at
