"""Count what happens to posts, and choose the texts of new ones."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel
from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.kernels.matching import match_of

type Int32 = npt.NDArray[np.int32]

LIKE: Final = 0
REPLY: Final = 1
"""Places in `domain.ACTIONS`; the third is a reshare."""


class Counters(NamedTuple):
    """Counters of posts, and their kinds, shape (n,)."""

    likes: Int32
    replies: Int32
    reshares: Int32
    kind: npt.NDArray[np.uint8]


@kernel
def roots_counted(post: Int32, root: Int32, counter: Int32) -> Int32:
    """Count impressions at roots, and return the root of each."""
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
    post: Int32, action: Int32, root: Int32, counters: Counters, looked_at: int, largest: int
) -> tuple[Int32, int, int, int, int, int]:
    """Count engagements at roots; cascades begin with roots of the kind `looked_at`, of which `largest` is the largest.

    Returns:
        The root of each engagement; the numbers of likes and replies; and of these roots: reshares, roots that had no
        reshare before, and the most reshares of one.
    """
    roots = np.empty(len(post), np.int32)
    likes, replies, joined, begun = 0, 0, 0, 0
    for i in range(len(post)):
        roots[i] = to = root[post[i]]
        if action[i] == LIKE:
            counters.likes[to] += 1
            likes += 1
        elif action[i] == REPLY:
            counters.replies[to] += 1
            replies += 1
        else:
            counters.reshares[to] += 1
            if counters.kind[to] == looked_at:
                joined += 1
                begun += counters.reshares[to] == 1
                largest = max(largest, counters.reshares[to])
    return roots, likes, replies, joined, begun, largest


@kernel
def shown_texts(
    parent: Int32, kind: npt.NDArray[np.int64], reshare: int, root: Int32, text_id: Int32, words: Int32
) -> Int32:
    """Return the texts that readers see of replies and reshares without words: what their parents' roots say or show.

    A `reshare` shows what its root shows. `words` are the texts that posts say themselves, -1 where readers see those.
    """
    out = np.empty(len(parent), np.int32)
    for i in range(len(parent)):
        of = root[parent[i]]
        out[i] = text_id[of] if kind[i] == reshare or words[of] < 0 else words[of]
    return out


@kernel
def add_attention(
    roots: Int32, impressions: Int32, known: Int32, author: Int32, attention: npt.NDArray[np.int64]
) -> None:
    """Add to the `attention` of authors the impressions of `roots` beyond those `known`, and note them there.

    `roots` are all posts whose impressions may have grown, in any order; repetitions do not matter.
    """
    for root in roots:
        new = impressions[root] - known[root]
        if new:
            attention[author[root]] += new
            known[root] = impressions[root]


@kernel
def rank_sum(numbers: npt.NDArray[np.int64], most: int) -> int:
    """Return the sum of numbers from 0 to `most`, each times its rank from 1."""
    counts = np.zeros(most + 1, np.int64)
    for number in numbers:
        counts[number] += 1
    total, below = 0, 0
    for number in range(most + 1):
        many = counts[number]
        total += number * (many * below + many * (many + 1) // 2)
        below += many
    return total


@kernel
def nearest_texts(
    key: np.uint64,
    authors: Int32,
    current: Int32,
    interests: npt.NDArray[np.int8],
    vectors: npt.NDArray[np.int8],
    considered: int,
    best: Int32,
) -> None:
    """Write for each author the nearest to its interests of `considered` texts drawn from the `current` ones.

    Ties go to the text drawn first. `key` has round and tick mixed in; the index of a draw and the agent follow.
    """
    for i in range(len(authors)):
        nearest = np.int64(-1 << 40)
        for draw in range(considered):
            u = unit(mixed(mixed(key, np.uint64(draw)), np.uint64(authors[i])))
            text = current[np.int64(u * len(current))]
            match = match_of(interests, vectors, authors[i], text)
            if match > nearest:
                nearest = match
                best[i] = text
