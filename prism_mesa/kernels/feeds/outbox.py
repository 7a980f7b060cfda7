"""The visible posts by author, as the input of feeds."""

from typing import Any, Final, NamedTuple

import numpy as np

from prism_mesa.arrays import Int32, Ints, UInt8, UInt64
from prism_mesa.kernels.compiling import inline_kernel, lean_kernel
from prism_mesa.kernels.lanes import count_bits

BITS_32: Final = np.uint64(32)
BITS_33: Final = np.uint64(33)
LOWER: Final = np.uint64(0xFFFFFFFF)
"""Mask of the lower 32 bits of an item, which contain its root."""


class Outbox(NamedTuple):
    """The visible posts by author; local numbers count visible posts from 0, in order of id.

    These arrays are small enough to stay mostly in the processor's caches.

    Attributes:
        first: Id of local number 0.
        n: Number of visible posts.
        has_posts: A bit for each agent that is 1 if the agent has visible posts.
        writers: Number of bits set in all earlier words of `has_posts`, int32.
        start: The w-th agent with posts has items ``start[w]`` .. ``start[w + 1] - 1``, oldest first.
        item: Each post as ``local number << 33 | has_copies << 32 | id of the root``. `has_copies` is 1 if several
            visible posts have this root. The last entry is unused.
        old_roots: Roots that are too old to be visible but have visible copies, ascending, with repetitions.
        root: Root of each visible post.
    """

    first: int
    n: int
    has_posts: UInt64
    writers: Int32
    start: Int32
    item: UInt64
    old_roots: Int32
    root: Int32


class Audience(NamedTuple):
    """Four ascending lists for each agent i: ``indices[indptr[i]:indptr[i + 1]]``, and so on.

    Attributes:
        indptr, indices: The agents that each agent follows.
        seen_start, seen_roots: The roots that each agent has seen.
        hidden_start, hidden: The agents whose posts are hidden from each agent; empty if there are none.
        read_start, read_posts: With `feed.repeats`, the posts that each agent has read.
    """

    indptr: Ints
    indices: Int32
    seen_start: Ints
    seen_roots: Int32
    hidden_start: Ints
    hidden: Int32
    read_start: Ints
    read_posts: Int32


@lean_kernel
def count_copies(root: Int32, first_root: int, copies: UInt8) -> None:
    """Write into `copies` the number of visible posts of each root from `first_root` on; 2 means 2 or more."""
    for i in range(len(root)):
        copies[root[i] - first_root] = min(2, copies[root[i] - first_root] + 1)


@lean_kernel
def note_writers(author: Int32, first: int, last: int, has_posts: UInt64, posts: Int32) -> Any:
    """Write the posts of authors `first` .. `last` - 1 into `posts`, set the authors' bits, return the number of posts.

    Authors of different threads must not share a word of bits.
    """
    n = np.int64(0)
    for i in range(len(author)):  # always writes, to avoid a branch that is hard to predict
        posts[n] = i
        n += first <= author[i] < last
    for i in posts[:n]:
        has_posts[author[i] >> 6] |= np.uint64(1) << np.uint64(author[i] & 63)
    return n


@lean_kernel
def fill_outbox(
    author: Int32,
    root: Int32,
    first_root: int,
    copies: UInt8,
    posts: tuple[Int32, Int32],
    items_before: int,
    outbox: Outbox,
) -> None:
    """Fill in the posts of some authors. Their bits must be set.

    `author` and `root` are those of each visible post; `copies` counts roots from `first_root` on (`count_copies`).
    `posts` has the posts of these authors (`note_writers`) and space for the index of each post's author.
    `items_before` is the number of posts by earlier authors.
    """
    has_posts, writers, start, item = outbox.has_posts, outbox.writers, outbox.start, outbox.item
    post, writer = posts
    lowest, highest = np.int64(len(start)), np.int64(-1)
    for k in range(len(post)):
        w = writer_index(has_posts, writers, author[post[k]])
        start[w + 1] += 1
        writer[k] = w
        lowest, highest = min(lowest, w), max(highest, w)
    next_start = np.int64(items_before)
    for w in range(lowest, highest + 1):  # makes each start the position of the author's next post
        count = start[w + 1]
        start[w + 1] = next_start
        next_start += count
    for k in range(len(post)):
        w, i = writer[k], post[k]
        has_copies = np.uint64(copies[root[i] - first_root] >> 1)
        item[start[w + 1]] = np.uint64(i) << BITS_33 | has_copies << BITS_32 | np.uint64(root[i])
        start[w + 1] += 1


@lean_kernel
def number_writers(has_posts: UInt64, writers: Int32) -> Any:
    """Write for each word the number of bits set in all earlier words; return the number of all bits set."""
    n = np.int64(0)
    for word in range(len(has_posts)):
        writers[word] = n
        n += count_bits(has_posts[word])
    return n


@inline_kernel
def writer_index(has_posts: UInt64, writers: Int32, author: Any) -> Any:
    """Return the index of an agent among the agents with visible posts."""
    agent = np.uint64(author)
    word, below = agent >> np.uint64(6), (np.uint64(1) << (agent & np.uint64(63))) - np.uint64(1)
    return np.int64(writers[word]) + count_bits(has_posts[word] & below)


@inline_kernel
def root_place(root: Any, first: Any, n: Any, old_roots: Int32) -> Any:
    """Return an index for a root, 0 .. ``n + len(old_roots)`` - 1, or -1 if no visible post has this root.

    It is the local number for a visible root. Old roots come after all visible posts.
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
