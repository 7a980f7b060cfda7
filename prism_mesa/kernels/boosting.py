"""Sums over decision trees, row by row. Added in the order of the trees."""

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel

LEAF = -1


@kernel
def add_trees(
    columns: npt.NDArray[np.float64],
    roots: npt.NDArray[np.int64],
    feature: npt.NDArray[np.int64],
    threshold: npt.NDArray[np.float64],
    left: npt.NDArray[np.int64],
    right: npt.NDArray[np.int64],
    value: npt.NDArray[np.float64],
    out: npt.NDArray[np.float64],
) -> None:
    """Add to `out`, for each row, the value of the leaf that it reaches in every tree.

    Args:
        columns: Shape (features, n).
        roots: The node at which each tree begins.
        feature: Of each node: which column it looks at, or `LEAF`.
        threshold: Of each node: rows up to it go to `left`, the others to `right`; these come after the node.
        left: Nodes.
        right: Nodes.
        value: Of each leaf.
        out: Shape (n,).
    """
    for i in range(len(out)):
        for root in roots:
            node = root
            while feature[node] != LEAF:
                node = left[node] if columns[feature[node], i] <= threshold[node] else right[node]
            out[i] += value[node]
