"""Count impressions and engagements of posts, and choose the texts of new posts."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Int32, UInt8
from prism_mesa.kernels.compiling import kernel
from prism_mesa.kernels.draws import mix, uniform
from prism_mesa.kernels.matching import compute_match

LIKE: Final = 0
REPLY: Final = 1
"""Indices into `domain.ACTIONS`; the third action is a reshare."""


class Counters(NamedTuple):
    """The counters and kinds of posts, shape (n,)."""

    likes: Int32
    replies: Int32
    reshares: Int32
    kind: UInt8


@kernel
def count_by_root(post: Int32, root: Int32, counter: Int32) -> Int32:
    """Add impressions of posts to the counters of their roots, and return the roots."""
    roots = np.empty(len(post), np.int32)
    for i in range(len(post)):
        roots[i] = root[post[i]]
        counter[roots[i]] += 1
    return roots


@kernel
def add(counter: Int32, roots: Int32, step: int) -> None:
    """Add `step` to the counter of each of `roots`."""
    for i in range(len(roots)):
        counter[roots[i]] += step


@kernel
def count_engagements(
    post: Int32, action: Int32, root: Int32, counters: Counters, cascade_kind: int, largest: int
) -> tuple[Int32, int, int, int, int, int]:
    """Add engagements to the counters of their roots.

    Cascades begin with roots of kind `cascade_kind`; `largest` is the largest number of reshares of a cascade so far.

    Returns:
        The root of each engagement, the numbers of likes and replies, and for cascades: the number of reshares, the
        number of cascades with a first reshare, and the new `largest`.
    """
    roots = np.empty(len(post), np.int32)
    likes, replies, n_joined, n_begun = 0, 0, 0, 0
    for i in range(len(post)):
        roots[i] = target = root[post[i]]
        if action[i] == LIKE:
            counters.likes[target] += 1
            likes += 1
        elif action[i] == REPLY:
            counters.replies[target] += 1
            replies += 1
        else:
            counters.reshares[target] += 1
            if counters.kind[target] == cascade_kind:
                n_joined += 1
                n_begun += counters.reshares[target] == 1
                largest = max(largest, counters.reshares[target])
    return roots, likes, replies, n_joined, n_begun, largest


@kernel
def add_impressions(roots: Int32, counts: Int32, impressions: Int32, author: Int32, attention: Int32) -> None:
    """Add the `counts` of `roots` to their impressions and to the `attention` of their authors, and clear them.

    Repetitions of roots do not matter.
    """
    for root in roots:
        n_new = counts[root]
        if n_new:
            impressions[root] += n_new
            attention[author[root]] += n_new
            counts[root] = 0


@kernel
def rank_sum(numbers: Int32, largest: int) -> int:
    """Return the sum of numbers times their ranks, which start at 1; numbers lie between 0 and `largest`."""
    counts = np.zeros(largest + 1, np.int64)
    for number in numbers:
        counts[number] += 1
    total, below = 0, 0
    for number in range(largest + 1):
        count = counts[number]
        total += number * (count * below + count * (count + 1) // 2)
        below += count
    return total


@kernel
def nearest_texts(
    key: np.uint64,
    authors: Int32,
    current: Int32,
    interests: npt.NDArray[np.int8],
    vectors: npt.NDArray[np.int8],
    n_draws: int,
    best: Int32,
) -> None:
    """Write into `best`, for each author, the text nearest to its interests of `n_draws` texts drawn from `current`.

    Ties go to the text drawn first. `key` includes round and tick.
    """
    for i in range(len(authors)):
        nearest = np.int64(-1 << 40)
        for draw in range(n_draws):
            u = uniform(mix(mix(key, np.uint64(draw)), np.uint64(authors[i])))
            text = current[np.int64(u * len(current))]
            match = compute_match(interests, vectors, authors[i], text)
            if match > nearest:
                nearest = match
                best[i] = text
