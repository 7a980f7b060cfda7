"""Groups of agents by an attribute, and each group's impressions and engagements by root."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.snapshot import Restorable
from prism_mesa.social.state.attributes import Attribute

type Rows = npt.NDArray[np.integer[Any]]
type Counts = npt.NDArray[np.int32]

MOST_GROUPS: Final = 10
"""The most groups that feeds can distinguish."""


def n_groups(attribute: Attribute) -> int:
    """Return the number of groups of an attribute: one per value, or two for a range."""
    return len(attribute.values) or 2


def assign_groups(attribute: Attribute, stored: npt.NDArray[np.float64]) -> npt.NDArray[np.int16]:
    """Return the group of each agent, from 0.

    A range is split at its middle, which belongs to the lower group, as in measures by an attribute.

    >>> assign_groups(Attribute("leaning", low=-1, high=1), np.array([-0.5, 0.0, 1.0]))
    array([0, 0, 1], dtype=int16)
    """
    if not attribute.values:
        return (stored > (attribute.low + attribute.high) / 2).astype(np.int16)
    order = np.argsort(attribute.kept)
    return order[np.searchsorted(attribute.kept, stored, sorter=order)].astype(np.int16)


class GroupCounts(Restorable):
    """Counts of the copies of each root that each group has read, and engaged with.

    Attributes:
        impressions: Shape (posts, groups), counted at roots; posts added since the last count have no row yet.
        engagements: Likes, replies and reshares in the same shape.
    """

    changes = ("impressions", "engagements")

    def __init__(self, n: int) -> None:
        self.impressions = np.zeros((0, n), np.int32)
        self.engagements = np.zeros((0, n), np.int32)

    @property
    def n(self) -> int:
        """The number of groups."""
        return self.impressions.shape[1]

    def count(self, n_posts: int, group: Rows, read: tuple[Rows, Rows], engaged: tuple[Rows, Rows]) -> None:
        """Count a round; `read` and `engaged` are agents and roots, and `group` holds each agent's group."""
        self.impressions = self._counted(self.impressions, n_posts, group, *read)
        self.engagements = self._counted(self.engagements, n_posts, group, *engaged)

    def _counted(self, old: Counts, n_posts: int, group: Rows, agents: Rows, roots: Rows) -> Counts:
        counts = np.zeros((n_posts, self.n), np.int32)
        counts[: len(old)] = old
        if len(roots):
            first = int(roots.min())  # old roots are seldom read
            counts_of_round = np.bincount((roots.astype(np.int64) - first) * self.n + group[agents])
            cells = counts.reshape(-1)[first * self.n :]
            cells[: len(counts_of_round)] += counts_of_round.astype(np.int32)
        return counts

    def consensus(self, roots: Rows, weight: float) -> npt.NDArray[np.float64]:
        """Return for each root the product over groups of its engagements per impression.

        Each rate is shrunk to the rate over all these roots, with the weight of `weight` impressions. Small et al.
        2021, doi:10.6035/recerca.5516, shrink to 1/2 (group-informed consensus).
        """
        n_engaged, n_seen = self.of_roots(roots)
        engaged_in_all, seen_in_all = (int(part.sum()) for part in self.of_roots(np.unique(roots)))
        mean_rate = engaged_in_all / seen_in_all if seen_in_all else 0.0
        return np.asarray(((n_engaged + weight * mean_rate) / (n_seen + weight)).prod(axis=1))

    def of_roots(self, roots: Rows) -> tuple[Counts, Counts]:
        """Return engagements and impressions of roots by group, each of shape (roots, groups)."""
        counts = np.zeros((2, len(roots), self.n), np.int32)
        is_counted = roots < len(self.impressions)
        for rows, column in zip(counts, (self.engagements, self.impressions), strict=True):
            rows[is_counted] = column[roots[is_counted]]
        return counts[0], counts[1]


@dataclass(frozen=True)
class Groups:
    """The groups of agents in a round.

    Attributes:
        of: The group of each agent.
        counts: Impressions and engagements of each group so far.
    """

    of: npt.NDArray[np.int16]
    counts: GroupCounts


NO_GROUPS: Final = Groups(np.zeros(0, np.int16), GroupCounts(0))
