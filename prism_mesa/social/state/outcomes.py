"""Running results of a platform, and cascades (the trees of reshares under posts)."""

from typing import Final

import numpy as np
import pandas as pd

from prism_mesa.arrays import Int32, Mask, Rows
from prism_mesa.kernels.commit.posts import Counters, add_impressions, count_engagements, rank_sum
from prism_mesa.kernels.trees import measure_trees
from prism_mesa.snapshot import Restorable
from prism_mesa.social.state.posts import POST, RESHARE, Posts

TOTALS: Final = ("posts", "impressions", "likes", "replies", "reshares", "open", "fallback")
"""Counts whose sums over all rounds so far are reported as `total_<name>`."""

OUTCOME_FIELDS: Final = (
    *(f"total_{name}" for name in TOTALS),
    "cascades",
    "cascade_mean_size",
    "cascade_max_size",
    "cascade_never_reshared",
    "attention_gini",
)


class Outcomes(Restorable):
    """Running results of a platform, updated each round without traversing trees.

    A cascade is a post and its reshares. Replies and their reshares are left out, as in a run's summary.

    Attributes:
        attention: Impressions of each agent's posts and replies, shape (n,), including those after the agent left. An
            impression of a reshare counts for the author of the root.
    """

    saved_fields = ("attention", "_seen", "_posts", "_joined", "_begun", "_most_reshares")

    def __init__(self, n_agents: int) -> None:
        self.attention = np.zeros(n_agents, np.int32)
        self._seen = 0
        self._posts = self._joined = self._begun = self._most_reshares = 0

    def count_engagements(self, posts: Posts, post: Int32, action: Int32) -> tuple[int, int]:
        """Add a round's engagements to the counters of roots and cascades; return the numbers of likes and replies."""
        counters = Counters(posts.likes, posts.replies, posts.reshares, posts.kind)
        roots, likes, replies, joined, begun, self._most_reshares = count_engagements(
            post, action, posts.root, counters, POST, self._most_reshares
        )
        posts.count_velocity(roots)
        self._joined += joined
        self._begun += begun
        return likes, replies

    def count_posts(self, posts: Posts) -> None:
        """Count the posts added since the last call."""
        self._posts += int((posts.kind[self._seen :] == POST).sum())
        self._seen = len(posts)

    def count_impressions(self, posts: Posts, n_agents: int, roots: Int32, counts: Int32) -> None:
        """Add the impressions of a round, and clear `counts`, which has them by root. `roots` may repeat roots."""
        if n_agents > len(self.attention):
            self.attention = np.pad(self.attention, (0, n_agents - len(self.attention)))
        add_impressions(roots, counts, posts.impressions, posts.author, self.attention)

    def row(self, totals: "dict[str, int]", joined: Mask) -> dict[str, float]:
        """Return the values of `OUTCOME_FIELDS`; attention is compared among the agents that have joined.

        Without cascades, their sizes and shares are 0.
        """
        n_cascades = self._posts
        return {
            **{f"total_{name}": totals[name] for name in TOTALS},
            "cascades": n_cascades,
            "cascade_mean_size": (n_cascades + self._joined) / n_cascades if n_cascades else 0.0,
            "cascade_max_size": 1 + self._most_reshares if n_cascades else 0,
            "cascade_never_reshared": (n_cascades - self._begun) / n_cascades if n_cascades else 0.0,
            "attention_gini": gini_of_counts(self.attention if joined.all() else self.attention[joined]),
        }


def gini_of_counts(numbers: Int32) -> float:
    """Return the Gini coefficient of non-negative integers: 0 if all are equal, near 1 if one number is the whole sum.

    Small numbers are counted instead of sorted. All sums are exact integers, so the order does not matter.

    >>> gini_of_counts(np.array([1, 1, 1, 1])), gini_of_counts(np.array([0, 0, 0, 8]))
    (0.0, 0.75)
    """
    n, total = len(numbers), int(numbers.sum())
    if not total:
        return 0.0
    largest = int(numbers.max())
    ranked = rank_sum(numbers, largest) if largest <= 4 * n else int(np.sort(numbers) @ np.arange(1, n + 1))
    return 2 * float(ranked) / (n * total) - (n + 1) / n


def cascades(parent: Rows, root: Rows, kind: Rows) -> pd.DataFrame:
    """Return one row for the cascade of each post that is not a reshare.

    Args:
        parent: Id of the post that each post reshares or answers; parents have smaller ids.
        root: Id of the first post of each post's cascade.
        kind: Codes of `domain.POST_KINDS`.

    Returns:
        The columns `root`; `size` (1 + reshares); `depth` (reshares from the root to the farthest reshare);
        `breadth` (largest number of reshares at one depth; 1 without reshares); and `structural_virality` (mean
        distance between all pairs in the tree; 0 for a lone post; Goel, Anderson, Hofman, Watts 2016,
        doi:10.1287/mnsc.2015.2158).
    """
    is_reshare = kind == RESHARE
    size, depth, breadth = (np.empty(len(parent), np.int32) for _ in range(3))
    distance_sums = np.empty(len(parent), np.float64)
    parents, roots_by_post = (np.ascontiguousarray(ids, np.int32) for ids in (parent, root))
    measure_trees(parents, roots_by_post, is_reshare, size, depth, breadth, distance_sums)
    roots = np.flatnonzero(~is_reshare).astype(np.int32)
    size = size[roots]
    pair_counts = size * (size - 1.0) / 2
    virality = np.divide(distance_sums[roots], pair_counts, out=np.zeros(len(roots)), where=pair_counts > 0)
    columns = {"root": roots, "size": size, "depth": depth[roots], "breadth": breadth[roots]}
    return pd.DataFrame(columns | {"structural_virality": virality}, copy=False)
