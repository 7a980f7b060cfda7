"""Cascades, the reshare trees under posts, and running results of a platform."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.kernels.commit.posts import Counters, add_attention, count_engagements, rank_sum
from prism_mesa.kernels.trees import measure_trees
from prism_mesa.snapshot import Restorable
from prism_mesa.social.state.posts import POST, RESHARE, Posts

type Ids = npt.NDArray[np.integer[Any]]
type Int32 = npt.NDArray[np.int32]

TOTALS: Final = ("posts", "impressions", "likes", "replies", "reshares", "open", "fallback")
"""Counts that are also reported as `total_<name>`, summed over all rounds so far."""

OUTCOME_FIELDS: Final = (
    *(f"total_{name}" for name in TOTALS),
    "cascades",
    "cascade_mean_size",
    "cascade_max_size",
    "cascade_never_reshared",
    "attention_gini",
)


class Outcomes(Restorable):
    """Running results of a platform, updated each round without walking trees.

    A cascade is a post and its reshares; replies and their reshares do not count, as in a run's summary.

    Attributes:
        attention: Impressions of each agent's posts and replies, shape (n,), also after it has left. An impression of
            a reshare counts for the author of its root.
    """

    changes = ("attention", "_known", "_seen", "_posts", "_joined", "_begun", "_most_reshares")

    def __init__(self, n_agents: int) -> None:
        self.attention = np.zeros(n_agents, np.int64)
        self._known = np.zeros(0, np.int32)
        self._seen = 0
        self._posts = self._joined = self._begun = self._most_reshares = 0

    def count_engagements(self, posts: Posts, post: Int32, action: Int32) -> tuple[int, int]:
        """Count a round's engagements for their roots, and the growth of cascades; return likes and replies."""
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

    def count_attention(self, posts: Posts, n_agents: int, window: slice) -> None:
        """Count the impressions of a round; `window` covers the ids of all posts read in it."""
        self.attention = _grown(self.attention, n_agents, n_agents)
        self._known = _grown(self._known, window.stop, 2 * window.stop)
        add_attention(posts.root[window], posts.impressions, self._known, posts.author, self.attention)

    def row(self, totals: "dict[str, int]", joined: npt.NDArray[np.bool_]) -> dict[str, float]:
        """Return `OUTCOME_FIELDS`: totals so far, and the inequality of attention among agents that have joined.

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


def _grown[T: np.generic](array: npt.NDArray[T], needed: int, size: int) -> npt.NDArray[T]:
    """Return `array` if it has `needed` entries, else a copy padded with zeros to `size` entries."""
    if needed <= len(array):
        return array
    grown = np.zeros(size, array.dtype)
    grown[: len(array)] = array
    return grown


def gini_of_counts(numbers: npt.NDArray[np.int64]) -> float:
    """Return the Gini coefficient of non-negative integers: 0 if all are equal, near 1 if one has everything.

    Small numbers are counted instead of sorted. Sums are whole numbers, so the order does not matter.

    >>> gini_of_counts(np.array([1, 1, 1, 1])), gini_of_counts(np.array([0, 0, 0, 8]))
    (0.0, 0.75)
    """
    n, total = len(numbers), int(numbers.sum())
    if not total:
        return 0.0
    largest = int(numbers.max())
    ranked = rank_sum(numbers, largest) if largest <= 4 * n else int(np.sort(numbers) @ np.arange(1, n + 1))
    return 2 * float(ranked) / (n * total) - (n + 1) / n


def cascades(parent: Ids, root: Ids, kind: Ids) -> pd.DataFrame:
    """Return one row for the cascade of each post that is not a reshare.

    Args:
        parent: Id of the post that each post reshares or answers; parents have smaller ids.
        root: Id of the first post of each post's cascade.
        kind: Codes of `domain.POST_KINDS`.

    Returns:
        Columns `root`; `size` (1 + reshares); `depth` (reshares from the root to the farthest one);
        `breadth` (largest number of reshares at one depth; 1 without reshares); `structural_virality` (mean distance
        between all pairs in the tree, 0 for a lone post; Goel, Anderson, Hofman, Watts 2016,
        doi:10.1287/mnsc.2015.2158).
    """
    is_reshare = kind == RESHARE
    size, depth, breadth = (np.empty(len(parent), np.int32) for _ in range(3))
    distance_sums = np.empty(len(parent), np.float64)
    parents, roots_by_post = (np.ascontiguousarray(ids, np.int32) for ids in (parent, root))
    measure_trees(parents, roots_by_post, is_reshare, size, depth, breadth, distance_sums)
    roots = np.flatnonzero(~is_reshare).astype(np.int32)
    size = size[roots]
    pairs = size * (size - 1.0) / 2
    virality = np.divide(distance_sums[roots], pairs, out=np.zeros(len(roots)), where=pairs > 0)
    columns = {"root": roots, "size": size, "depth": depth[roots], "breadth": breadth[roots]}
    return pd.DataFrame(columns | {"structural_virality": virality}, copy=False)
