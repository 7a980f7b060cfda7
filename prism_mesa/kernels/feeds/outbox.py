"""The visible posts by author: what feeds are made of."""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel, part_of_kernels
from prism_mesa.kernels.lanes import ones

type Int32 = npt.NDArray[np.int32]
type Keys = npt.NDArray[np.uint64]

BITS_32: Final = np.uint64(32)
BITS_33: Final = np.uint64(33)
LOWER: Final = np.uint64(0xFFFFFFFF)
"""The lower 32 bits: of an item its root."""


class Outbox(NamedTuple):
    """The visible posts by author, with local numbers from 0 in the order of their ids.

    It is small, so that most of it stays in the processor's caches.

    Attributes:
        first: Id of local number 0.
        n: Number of visible posts.
        wrote: A bit for each agent: whether it has any.
        writers: How many have any among the agents of all words of `wrote` before, int32.
        start: The w-th agent who has any has items ``start[w]`` .. ``start[w + 1] - 1``, oldest first.
        item: Each a number: ``local number << 33 | whether several visible posts have its root << 32 | root's id``;
            and one more, which counts for nothing.
        old_roots: Roots of visible posts that are older than all these, ascending; one may stand there more than once.
        root: Of each visible post.
    """

    first: int
    n: int
    wrote: Keys
    writers: Int32
    start: Int32
    item: Keys
    old_roots: Int32
    root: Int32


@kernel
def fill_outbox(author: Int32, root: Int32, start: Int32, wrote: Keys, writers: Int32, item: Keys) -> None:
    """Fill an outbox; `author` and `root` have one entry per visible post, `start` one per agent and two more."""
    n, n_writers = len(author), np.int64(0)
    for i in range(n):
        wrote[author[i] >> 6] |= np.uint64(1) << np.uint64(author[i] & 63)
    for word in range(len(wrote)):
        writers[word] = n_writers
        n_writers += ones(wrote[word])
    for i in range(n):
        start[writer_of(wrote, writers, author[i]) + 2] += 1
    for w in range(2, n_writers + 2):
        start[w] += start[w - 1]
    least = root.min()
    copies = np.zeros(root.max() - least + 1, np.uint8)
    for i in range(n):
        copies[root[i] - least] = min(2, copies[root[i] - least] + 1)
    for i in range(n):
        w = writer_of(wrote, writers, author[i]) + 1
        copied = np.uint64(copies[root[i] - least] >> 1)
        item[start[w]] = np.uint64(i) << BITS_33 | copied << BITS_32 | np.uint64(root[i])
        start[w] += 1


@part_of_kernels
def writer_of(wrote: Keys, writers: Int32, author: Any) -> Any:
    """Return the place of an agent among those who have a visible post."""
    below = (np.uint64(1) << np.uint64(author & 63)) - np.uint64(1)
    return np.int64(writers[author >> 6]) + ones(wrote[author >> 6] & below)


@part_of_kernels
def place_of_root(root: Any, first: Any, n: Any, old_roots: Int32) -> Any:
    """Return a number of a root below ``n + len(old_roots)``, or -1 if no visible post has it.

    A visible root has its local number; the old ones come after these.
    """
    if root >= first:
        return np.int64(root) - first
    low, high = np.int64(0), np.int64(len(old_roots))
    while low < high:
        middle = (low + high) >> 1
        if old_roots[middle] < root:
            low = middle + 1
        else:
            high = middle
    return n + low if low < len(old_roots) and old_roots[low] == root else np.int64(-1)
