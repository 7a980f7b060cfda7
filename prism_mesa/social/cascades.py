"""Cascades: the reshare tree under each post, measured. Nothing here changes a post."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.social.posts import RESHARE

type Ids = npt.NDArray[np.integer[Any]]


def cascades(parent: Ids, root: Ids, kind: Ids) -> pd.DataFrame:
    """Return one row per post that is no reshare: its cascade.

    Args:
        parent: Id of the post that each post passes on or answers; parents have smaller ids.
        root: Id of the post whose cascade each belongs to.
        kind: Codes of `records.POST_KINDS`.

    Returns:
        Columns `root`; `size` (1 + reshares); `depth` (reshares from the root to the farthest one);
        `breadth` (most reshares at one depth, 1 for a lone post); `structural_virality` (mean distance
        between all pairs in the tree, 0 for a lone post; Goel, Anderson, Hofman, Watts 2016,
        doi:10.1287/mnsc.2015.2158).
    """
    n = len(parent)
    order = np.flatnonzero(kind == RESHARE)
    depth = np.zeros(n, np.int64)
    depth[order] = -1
    levels: list[npt.NDArray[np.int64]] = []
    below = order
    while len(below):
        ready = depth[parent[below]] == len(levels)
        levels.append(below[ready])
        depth[below[ready]] = len(levels)
        below = below[~ready]
    under = np.ones(n, np.int64)  # nodes at or below each one
    for level in reversed(levels):
        np.add.at(under, parent[level], under[level])
    roots = np.flatnonzero(kind != RESHARE)
    size = np.bincount(root, weights=(kind == RESHARE), minlength=n).astype(np.int64)[roots] + 1
    # the edge above a node lies on the way between every pair that it parts
    parted = np.bincount(
        root[order], weights=under[order] * (size_of(size, roots, root[order]) - under[order]), minlength=n
    )
    pairs = size * (size - 1) / 2
    farthest = np.zeros(n, np.int64)
    np.maximum.at(farthest, root, depth)
    return pd.DataFrame(
        {
            "root": roots,
            "size": size,
            "depth": farthest[roots],
            "breadth": _breadth(root[order], depth[order], n)[roots],
            "structural_virality": np.divide(parted[roots], pairs, out=np.zeros(len(roots)), where=pairs > 0),
        }
    )


def size_of(size: npt.NDArray[np.int64], roots: Ids, wanted: Ids) -> npt.NDArray[np.int64]:
    """Return the sizes of the cascades of `wanted`, which are among the ascending `roots`."""
    return size[np.searchsorted(roots, wanted)]


def _breadth(root: Ids, depth: Ids, n: int) -> npt.NDArray[np.int64]:
    breadth = np.ones(n, np.int64)
    places, counts = np.unique(np.stack([root, depth]), axis=1, return_counts=True)
    np.maximum.at(breadth, places[0], counts)
    return breadth
