"""Loops over trees in arrays: cascades of posts, and regression trees of a distilled model."""

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
    """Measure the trees of n nodes, each in the row of its root, in a few passes.

    Args:
        parent: The parent of each node, read only if it joins a tree; smaller than the node.
        root: The root of each node's tree.
        joins: Whether a node hangs under its parent; otherwise it is a root.
        size: Receives the number of nodes.
        depth: Receives the largest distance from the root.
        breadth: Receives the most nodes at one depth below the root; 1 for a lone root.
        parted: Receives the sum of the distances of all pairs of nodes.
    """
    n = len(parent)
    level = np.zeros(n, np.int32)
    under = np.ones(n, np.int32)  # number of nodes in each subtree
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
    first = np.zeros(n, np.int32)  # start of the counts of a root's levels, which are at most as many as nodes
    end = 0
    for i in range(n):
        first[i] = end
        if not joins[i]:
            end += depth[i]
    at_level = np.zeros(end, np.int32)
    for i in range(n):
        if joins[i]:
            top = root[i]
            # the edge above a node is on the path between every pair that it separates
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
        roots: The root node of each tree.
        feature: The feature that each node tests, or `LEAF`.
        threshold: The threshold of each node: rows up to it go to `left`, the others to `right`; children come after
            their node.
        left: Left children.
        right: Right children.
        value: Values of leaves.
        out: Shape (n,).
    """
    for i in range(len(out)):
        for root in roots:
            node = root
            while feature[node] != LEAF:
                node = left[node] if columns[feature[node], i] <= threshold[node] else right[node]
            out[i] += value[node]
