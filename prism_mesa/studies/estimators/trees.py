"""The shape of reshare trees: children at each hop, and cascades of equal size."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

type Ints = npt.NDArray[np.integer[Any]]

SIZE_CLASSES: Final = (2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Sizes with which classes of cascades begin; each ends before the next one."""


def hops(parent: Ints, joins: npt.NDArray[np.bool_]) -> Ints:
    """Return how many reshares lie between each node and its root: 0 for a root.

    Args:
        parent: The node above each node; read only where it joins a tree.
        joins: Whether a node hangs under its parent; else it is a root.
    """
    hop = joins.astype(np.int32)
    below = np.flatnonzero(joins)
    above = parent[below]
    while len(below):  # each pass goes one node up; those that have come to a root leave
        on = joins[above]
        below, above = below[on], above[on]
        hop[below] += 1
        above = parent[above]
    return hop


def reproduction(hop: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the reproduction number by hop: children per node at hop 0, 1, 2, ..., up to the last hop with nodes.

    The first is reshares of a post by who saw it from its author, the next reshares of a reshare.

    >>> reproduction([0, 0, 1, 1, 1, 2]).round(2).tolist()
    [1.5, 0.33, 0.0]
    """
    nodes = np.bincount(np.asarray(hop, np.int64))
    return np.append(nodes[1:], 0) / np.maximum(nodes, 1)


_CLASSES: Final = np.unique(np.rint(1.1 ** np.arange(200)).astype(np.int64))
"""Sizes with which classes begin whose cascades count as equally large: a tenth apart, and single sizes up to 13."""


def matched_difference(size: Ints, value: npt.NDArray[np.float64], is_second: npt.NDArray[np.bool_]) -> float:
    """Return how much larger the mean of a value is in the second of two groups of cascades, at equal sizes.

    It is what comes out on average if, of each class of sizes, as many cascades are drawn from either group as the one
    with fewer has (Juul and Ugander 2021, doi:10.1073/pnas.2100786118). NaN if no class has cascades of both.

    Args:
        size: Posts of each cascade.
        value: What is compared, such as its depth.
        is_second: Whether it belongs to the second group.
    """
    place = np.searchsorted(_CLASSES, size, side="right")
    counts, sums = (
        [np.bincount(place[group], weight[group]) for group in (~is_second, is_second)]
        for weight in (np.ones(len(size)), value)
    )
    n = min(map(len, counts))
    first, second = (count[:n] for count in counts)
    matched = np.minimum(first, second)
    gaps = sums[1][:n] / np.maximum(second, 1) - sums[0][:n] / np.maximum(first, 1)
    return float(matched @ gaps / matched.sum()) if matched.any() else float("nan")


def shapes_by_size(cascades: pd.DataFrame) -> pd.DataFrame:
    """Return the mean shape of cascades of about equal size, a row for each class of sizes that has any.

    Cascades differ in depth and breadth mainly because they differ in size, so they are to be compared at equal sizes
    (Juul and Ugander 2021, doi:10.1073/pnas.2100786118).

    Args:
        cascades: Columns `size`, `depth`, `breadth`, `structural_virality`, as of the table `cascades`.

    Returns:
        Columns `from_size`, `n`, and the means of the four.
    """
    size = cascades["size"].to_numpy()
    place = np.searchsorted(SIZE_CLASSES, size, side="right") - 1
    some = place >= 0
    columns = ["size", "depth", "breadth", "structural_virality"]
    by_class = cascades.loc[some, columns].groupby(np.asarray(SIZE_CLASSES)[place[some]])
    means = by_class.mean()
    means.insert(0, "n", by_class.size())
    return means.rename_axis("from_size").reset_index()
