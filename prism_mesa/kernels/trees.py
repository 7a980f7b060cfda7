"""Loops over trees in arrays: the cascades of posts, and the regression trees of a distilled model."""

import numpy as np

from prism_mesa.arrays import Floats, Int32, Ints, Mask
from prism_mesa.kernels.compiling import kernel


@kernel
def measure_trees(
    parent: Int32, root: Int32, is_child: Mask, size: Int32, depth: Int32, breadth: Int32, distance_sum: Floats
) -> None:
    """Measure trees of n nodes in a few passes; the results of a tree are in the row of its root.

    Args:
        parent: The parent of each node that is a child; its index is below that of the node.
        root: The root of each node's tree.
        is_child: Whether a node is the child of its parent; otherwise it is a root.
        size: Receives the number of nodes.
        depth: Receives the largest distance from the root.
        breadth: Receives the largest number of nodes at one depth below the root; 1 for a single root.
        distance_sum: Receives the sum of the distances of all pairs of nodes.
    """
    n = len(parent)
    level = np.zeros(n, np.int32)
    subtree_size = np.ones(n, np.int32)  # number of nodes in each subtree
    size[:], depth[:], breadth[:], distance_sum[:] = 1, 0, 1, 0.0
    for i in range(n):
        if is_child[i]:
            level[i] = level[parent[i]] + 1
            size[root[i]] += 1
            depth[root[i]] = max(depth[root[i]], level[i])
    for step in range(n):
        i = n - 1 - step
        if is_child[i]:
            subtree_size[parent[i]] += subtree_size[i]
    first = np.zeros(n, np.int32)  # where the counts of each root's levels begin
    end = 0
    for i in range(n):
        first[i] = end
        if not is_child[i]:
            end += depth[i]
    level_size = np.zeros(end, np.int32)
    for i in range(n):
        if is_child[i]:
            top = root[i]
            # the edge above a node is on the path between every pair that it separates
            distance_sum[top] += np.float64(subtree_size[i]) * np.float64(size[top] - subtree_size[i])
            cell = first[top] + level[i] - 1
            level_size[cell] += 1
            breadth[top] = max(breadth[top], level_size[cell])


LEAF = -1


@kernel
def add_trees(
    columns: Floats, roots: Ints, feature: Ints, threshold: Floats, left: Ints, right: Ints, value: Floats, out: Floats
) -> None:
    """Add to each row of `out` the values of the leaves that the row reaches, one in each tree.

    Args:
        columns: Shape (features, n).
        roots: The root node of each tree.
        feature: The feature that each node tests, or `LEAF`.
        threshold: The threshold of each node: rows up to it go to `left`, the others to `right`. Children have higher
            indices than their node.
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
