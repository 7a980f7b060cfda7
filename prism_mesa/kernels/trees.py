"""Loops over trees that stand in arrays: cascades of posts, and regression trees of a distilled model."""

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.compiling import kernel

type Ints = npt.NDArray[np.int32]


@kernel
def measure_trees(
    parent: Ints,
    root: Ints,
    joins: npt.NDArray[np.bool_],
    size: Ints,
    depth: Ints,
    breadth: Ints,
    parted: npt.NDArray[np.float64],
) -> None:
    """Measure the trees of n nodes, each in the row of its root, in a few passes over all nodes.

    Args:
        parent: The node above each node; read only where it joins a tree. Smaller than the node.
        root: The root of each node's tree.
        joins: Whether a node hangs under its parent; else it is a root.
        size: Gets the number of nodes.
        depth: Gets the most edges between the root and a node.
        breadth: Gets the most nodes at one depth below the root; 1 for a lone root.
        parted: Gets the sum of the distances of all pairs of nodes.
    """
    n = len(parent)
    level = np.zeros(n, np.int32)
    under = np.ones(n, np.int32)  # nodes at or below each one
    size[:], depth[:], breadth[:], parted[:] = 1, 0, 1, 0.0
    for i in range(n):
        if joins[i]:
            level[i] = level[parent[i]] + 1
            size[root[i]] += 1
            depth[root[i]] = max(depth[root[i]], level[i])
    for back in range(n):
        i = n - 1 - back
        if joins[i]:
            under[parent[i]] += under[i]
    first = np.zeros(n, np.int32)  # where the counts of a root's levels begin: it has no more levels than nodes
    end = 0
    for i in range(n):
        first[i] = end
        if not joins[i]:
            end += depth[i]
    at_level = np.zeros(end, np.int32)
    for i in range(n):
        if joins[i]:
            top = root[i]
            # the edge above a node lies on the way between every pair that it parts
            parted[top] += np.float64(under[i]) * np.float64(size[top] - under[i])
            place = first[top] + level[i] - 1
            at_level[place] += 1
            breadth[top] = max(breadth[top], at_level[place])


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
