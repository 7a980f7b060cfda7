"""Groups of agents by an attribute, with impressions and engagements of each group by root."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Floats, Int32, Rows
from prism_mesa.snapshot import Restorable
from prism_mesa.social.state.attributes import Attribute

MAX_GROUPS: Final = 10
"""Maximum number of groups that feeds can distinguish."""


def n_groups(attribute: Attribute) -> int:
    """Return the number of groups of an attribute: one per value, or two for a range."""
    return len(attribute.values) or 2


def assign_groups(attribute: Attribute, stored: Floats) -> npt.NDArray[np.int16]:
    """Return the group of each agent, from 0.

    A range is split at its middle, which belongs to the lower group. Measures by an attribute use the same groups.

    >>> assign_groups(Attribute("leaning", low=-1, high=1), np.array([-0.5, 0.0, 1.0]))
    array([0, 0, 1], dtype=int16)
    """
    if not attribute.values:
        return (stored > (attribute.low + attribute.high) / 2).astype(np.int16)
    order = np.argsort(attribute.stored_values)
    return order[np.searchsorted(attribute.stored_values, stored, sorter=order)].astype(np.int16)


class GroupCounts(Restorable):
    """Impressions and engagements of each group with each root and its reshares.

    Attributes:
        impressions: Shape (posts, groups), counted for roots; posts added since the last count have no row yet.
        engagements: Likes, replies and reshares, in the same shape.
    """

    saved_fields = ("impressions", "engagements")

    def __init__(self, n: int) -> None:
        self.impressions = np.zeros((0, n), np.int32)
        self.engagements = np.zeros((0, n), np.int32)

    @property
    def n(self) -> int:
        """The number of groups."""
        return self.impressions.shape[1]

    def count(self, n_posts: int, group: Rows, read: tuple[Rows, Rows], engaged: tuple[Rows, Rows]) -> None:
        """Count a round; `read` and `engaged` are columns of agents and roots, and `group` has each agent's group."""
        self.impressions = self._add_counts(self.impressions, n_posts, group, *read)
        self.engagements = self._add_counts(self.engagements, n_posts, group, *engaged)

    def _add_counts(self, old_counts: Int32, n_posts: int, group: Rows, agents: Rows, roots: Rows) -> Int32:
        counts = np.zeros((n_posts, self.n), np.int32)
        counts[: len(old_counts)] = old_counts
        if len(roots):
            first_root = int(roots.min())  # old roots are seldom read
            new_counts = np.bincount((roots.astype(np.int64) - first_root) * self.n + group[agents])
            cells = counts.reshape(-1)[first_root * self.n :]
            cells[: len(new_counts)] += new_counts.astype(np.int32)
        return counts

    def consensus(self, roots: Rows, weight: float) -> Floats:
        """Return the product of each root's engagement rates (engagements per impression) over the groups.

        Each rate is shrunk towards the mean rate of these roots, with a prior of `weight` impressions. Group-informed
        consensus (Small et al. 2021, doi:10.6035/recerca.5516) shrinks towards 1/2 instead.
        """
        n_engaged, n_seen = self.root_counts(roots)
        total_engaged, total_seen = (int(part.sum()) for part in self.root_counts(np.unique(roots)))
        mean_rate = total_engaged / total_seen if total_seen else 0.0
        return np.asarray(((n_engaged + weight * mean_rate) / (n_seen + weight)).prod(axis=1))

    def root_counts(self, roots: Rows) -> tuple[Int32, Int32]:
        """Return engagements and impressions of roots by group, each with shape (roots, groups)."""
        counts = np.zeros((2, len(roots), self.n), np.int32)
        is_counted = roots < len(self.impressions)
        for rows, column in zip(counts, (self.engagements, self.impressions), strict=True):
            rows[is_counted] = column[roots[is_counted]]
        return counts[0], counts[1]


@dataclass(frozen=True)
class Groups:
    """The groups of agents in a round.

    Attributes:
        agent_groups: The group of each agent.
        counts: Impressions and engagements of each group so far.
    """

    agent_groups: npt.NDArray[np.int16]
    counts: GroupCounts


NO_GROUPS: Final = Groups(np.zeros(0, np.int16), GroupCounts(0))
