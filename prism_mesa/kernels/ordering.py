"""Finding a number in a short list, and bringing short lists of keys into order."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, lean_part_of_kernels, part_of_kernels
from prism_mesa.kernels.feeds.outbox import LOWER

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Keys = npt.NDArray[np.uint64]

FEW: Final = 48
"""Up to so many, places are counted; more are sorted, or searched by halves."""


@lean_part_of_kernels
def is_among(values: Int32, first: Any, last: Any, wanted: Any) -> bool:
    """Return whether ascending ``values[first:last]`` hold a number."""
    while last - first > 8:
        middle = (first + last) >> 1
        if values[middle] <= wanted:
            first = middle
        else:
            last = middle
    found = False
    for i in range(first, last):
        found |= values[i] == wanted
    return found


@part_of_kernels
def show(best: Keys, n: Any, feed: Int32, reader: Any, first: Any, bits: Any, room: Keys, counts: Int64) -> None:
    """Write posts into a feed by falling key; the place of each of a few is counted, nothing is swapped.

    Args:
        best: The keys, below ``2**bits``; they may be reordered.
        n: How many they are.
        feed: Shape (agents, size).
        reader: Whose feed it is.
        first: Id of local number 0.
        bits: Of keys.
        room: As long as `best`; what it holds does not matter.
        counts: Of length `DIGITS`; so for it.
    """
    size = feed.shape[1]
    if n > FEW:
        if bits <= SHORT_KEYS:
            sort_short(best, n, bits, room, counts)
        else:
            best[:n].sort()
        for place in range(min(n, size)):
            feed[reader, place] = first + np.int64(best[n - 1 - place] & LOWER)
        return
    for i in range(n):
        place = 0
        for j in range(n):
            place += best[j] > best[i]
        if place < size:
            feed[reader, place] = first + np.int64(best[i] & LOWER)


DIGIT_BITS: Final = 9
DIGITS: Final = 1 << DIGIT_BITS
SHORT_KEYS: Final = 4 * DIGIT_BITS
"""Bits of keys up to which they are sorted digit by digit, which then takes a third of the time of comparing them."""


@part_of_kernels
def sort_short(keys: Keys, n: Any, bits: Any, room: Keys, counts: Int64) -> None:
    """Sort ``keys[:n]``, each below ``2**bits``, by one digit after the other, the last first (Knuth 1998, 5.2.5)."""
    for shift in range(0, bits, DIGIT_BITS):
        counts[:] = 0
        for i in range(n):
            counts[np.int64(keys[i] >> np.uint64(shift)) & (DIGITS - 1)] += 1
        before = np.int64(0)
        for digit in range(DIGITS):
            here = counts[digit]
            counts[digit] = before
            before += here
        for i in range(n):
            own = np.int64(keys[i] >> np.uint64(shift)) & (DIGITS - 1)
            room[counts[own]] = keys[i]
            counts[own] += 1
        for i in range(n):  # numba takes seconds to compile a slice that is written to another
            keys[i] = room[i]


@kernel
def by_key(keys: Keys, order: Int64, n: Any) -> None:
    """Write the places of keys into `order`, the largest first."""
    if n > FEW:
        rising = np.argsort(keys[:n])
        for i in range(n):
            order[i] = rising[n - 1 - i]
        return
    for i in range(n):
        place = i
        while place > 0 and keys[order[place - 1]] < keys[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
