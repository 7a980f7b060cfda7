"""Counting what happens to posts, and choosing what is written about."""

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel
from prism_mesa.kernels.draws import mixed, unit
from prism_mesa.kernels.matching import match_of

type Int32 = npt.NDArray[np.int32]


@kernel
def roots_counted(post: Int32, root: Int32, counter: Int32) -> Int32:
    """Return the root of each of `post`, and count it there."""
    roots = np.empty(len(post), np.int32)
    for i in range(len(post)):
        roots[i] = root[post[i]]
        counter[roots[i]] += 1
    return roots


@kernel
def add_reshares(
    roots: Int32, reshares: Int32, kind: npt.NDArray[np.uint8], looked_at: int, largest: int
) -> tuple[int, int, int]:
    """Count reshares at their roots.

    Args:
        roots: The root of each reshare.
        reshares: The counter, shape (n,).
        kind: What each post is, shape (n,).
        looked_at: The kind of roots whose cascades are looked at.
        largest: The most reshares of such a root so far.

    Returns:
        Of such roots: reshares among these, roots that had none before, the most reshares of one so far.
    """
    joined, begun = 0, 0
    for root in roots:
        reshares[root] += 1
        if kind[root] == looked_at:
            joined += 1
            begun += reshares[root] == 1
            largest = max(largest, reshares[root])
    return joined, begun, largest


@kernel
def add_attention(
    roots: Int32, impressions: Int32, known: Int32, author: Int32, attention: npt.NDArray[np.int64]
) -> None:
    """Add to the `attention` of authors the impressions of `roots` that are not `known` yet; then they are.

    Args:
        roots: All posts whose impressions may have grown, in any order and any number of times.
        impressions: The counter, shape (n,).
        known: What of it has been added, shape (n,) or longer.
        author: Who wrote each post, shape (n,).
        attention: By agent.
    """
    for root in roots:
        new = impressions[root] - known[root]
        if new:
            attention[author[root]] += new
            known[root] = impressions[root]


@kernel
def nearest_texts(
    key: np.uint64,
    authors: Int32,
    current: Int32,
    interests: npt.NDArray[np.int8],
    vectors: npt.NDArray[np.int8],
    considered: int,
) -> Int32:
    """Return for each author, of `considered` drawn ones of the `current` texts, that nearest to its interests.

    Ties go to the one drawn first. `key` has round and tick mixed in; the index of a draw and the agent follow.
    """
    best = np.empty(len(authors), np.int32)
    for i in range(len(authors)):
        nearest = np.int64(-1 << 40)
        for draw in range(considered):
            u = unit(mixed(mixed(key, np.uint64(draw)), np.uint64(authors[i])))
            text = current[np.int64(u * len(current))]
            match = match_of(interests, vectors, authors[i], text)
            if match > nearest:
                nearest = match
                best[i] = text
    return best
