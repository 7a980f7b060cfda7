"""Finding a number in a short list, and bringing short lists of keys into order."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, part_of_kernels
from prism_mesa.kernels.outbox import LOWER

type Int32 = npt.NDArray[np.int32]
type Int64 = npt.NDArray[np.int64]
type Keys = npt.NDArray[np.uint64]

FEW: Final = 48
"""Up to so many, places are counted; more are sorted, or searched by halves."""


@part_of_kernels
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
def show(best: Keys, n: Any, feed: Int32, reader: Any, first: Any) -> None:
    """Write posts into a feed by falling key; the place of each is counted, nothing is swapped."""
    size = feed.shape[1]
    if n > FEW:
        order = np.sort(best[:n])
        for place in range(min(n, size)):
            feed[reader, place] = first + np.int64(order[n - 1 - place] & LOWER)
        return
    for i in range(n):
        place = 0
        for j in range(n):
            place += best[j] > best[i]
        if place < size:
            feed[reader, place] = first + np.int64(best[i] & LOWER)


@kernel
def by_key(keys: Keys, order: Int64, n: int) -> None:
    """Write the places of keys into `order`, the largest first."""
    if n > FEW:
        order[:n] = np.argsort(keys[:n])[::-1]
        return
    for i in range(n):
        place = i
        while place > 0 and keys[order[place - 1]] < keys[i]:
            order[place] = order[place - 1]
            place -= 1
        order[place] = i
