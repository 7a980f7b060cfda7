"""The largest cascades of a run, and the layout of a cascade as a tree that grows from left to right."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from prism_mesa.arrays import Floats, Ints
from prism_mesa.domain import POST_KINDS, PostKind
from prism_mesa.view.page.source import PostColumns

MAX_POSTS: Final = 2000  # later posts of a tree are not drawn
_RESHARE: Final = POST_KINDS.index("reshare")


@dataclass(frozen=True)
class Tree:
    """The posts of a cascade by ascending id, the index of each parent (-1 for the root), and the depths.

    `row` is the vertical position from the top: leaves have whole numbers, and other posts lie between their children.
    """

    posts: Ints
    parent: Ints
    depth: Ints
    row: Floats


def largest_cascades(posts: PostColumns, limit: int, *, kind: PostKind = "post") -> list[tuple[int, int]]:
    """Return (root, size) of the largest cascades with a reshare, ties by id; roots are posts or replies (`kind`)."""
    sizes = np.bincount(posts.root[posts.kind == _RESHARE], minlength=0)
    roots = np.flatnonzero(sizes)
    roots = roots[posts.kind[roots] == POST_KINDS.index(kind)]
    largest = roots[np.argsort(-sizes[roots], kind="stable")][:limit]
    return [(int(root), int(sizes[root]) + 1) for root in largest]


def cascade_tree(posts: PostColumns, root: int) -> Tree:
    """Return the tree of a post and its reshares."""
    members = np.flatnonzero((posts.root == root) & (posts.kind == _RESHARE))
    ids = np.concatenate([[root], members])[:MAX_POSTS].astype(np.int64)
    depth, row, parent = tree_layout(ids.tolist(), posts.parent[ids].tolist())
    return Tree(ids, parent, depth, row)


def tree_layout(ids: Sequence[int], parents: Sequence[int]) -> tuple[Ints, Floats, Ints]:
    """Return the depth, row and parent index of each post of a tree (see `Tree`)."""
    index = {post: i for i, post in enumerate(ids)}
    parent = np.array([-1, *(index.get(post, 0) for post in parents[1:])], np.int64)
    children: list[list[int]] = [[] for _ in ids]
    depth = np.zeros(len(ids), np.int64)
    for i in range(1, len(ids)):  # parents precede their children
        children[parent[i]].append(i)
        depth[i] = depth[parent[i]] + 1
    row, n_leaves, stack = np.zeros(len(ids)), 0, [0]
    while stack:
        i = stack.pop()
        if not children[i]:
            row[i], n_leaves = n_leaves, n_leaves + 1
        stack += reversed(children[i])
    for i in range(len(ids) - 1, -1, -1):
        if children[i]:
            row[i] = (row[children[i][0]] + row[children[i][-1]]) / 2
    return depth, row, parent
