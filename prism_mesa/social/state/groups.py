"""Groups of agents by an attribute, and how many of each group read, and engaged with, each root."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.snapshot import Restorable
from prism_mesa.social.state.attributes import Attribute

type Rows = npt.NDArray[np.integer[Any]]
type Counts = npt.NDArray[np.int32]

MOST_GROUPS: Final = 10
"""Groups that feeds go by."""


def n_groups(own: Attribute) -> int:
    """Return how many groups an attribute makes: one of each of its values, or two of the numbers of a range."""
    return len(own.values) or 2


def groups_of(own: Attribute, kept: npt.NDArray[np.float64]) -> npt.NDArray[np.int16]:
    """Return the group of each agent by what is kept of its attribute, from 0.

    Numbers of a range are cut at its middle, which belongs to the lower group, as in measures by an attribute.

    >>> groups_of(Attribute("leaning", low=-1, high=1), np.array([-0.5, 0.0, 1.0]))
    array([0, 0, 1], dtype=int16)
    """
    if not own.values:
        return (kept > (own.low + own.high) / 2).astype(np.int16)
    order = np.argsort(own.kept)
    return order[np.searchsorted(own.kept, kept, sorter=order)].astype(np.int16)


class GroupCounts(Restorable):
    """How often agents of each group have read a copy of a root, and engaged with one; nothing where nobody counts.

    Attributes:
        impressions: Shape (posts, groups), one row for each post up to the last that was counted; at roots.
        engagements: The same of likes, replies and reshares.
    """

    changes = ("impressions", "engagements")

    def __init__(self, n: int) -> None:
        self.impressions = np.zeros((0, n), np.int32)
        self.engagements = np.zeros((0, n), np.int32)

    @property
    def n(self) -> int:
        """How many groups there are."""
        return self.impressions.shape[1]

    def count(self, n_posts: int, group: Rows, read: tuple[Rows, Rows], engaged: tuple[Rows, Rows]) -> None:
        """Count a round: agents, and the roots that they read or engaged with; `group` is that of each agent."""
        self.impressions = self._counted(self.impressions, n_posts, group, *read)
        self.engagements = self._counted(self.engagements, n_posts, group, *engaged)

    def _counted(self, before: Counts, n_posts: int, group: Rows, agents: Rows, roots: Rows) -> Counts:
        found = np.zeros((n_posts, self.n), np.int32)
        found[: len(before)] = before
        if len(roots):
            first = int(roots.min())  # old roots are seldom met: there is no counting of them all each time
            counted = np.bincount((roots.astype(np.int64) - first) * self.n + group[agents])
            cells = found.reshape(-1)[first * self.n :]
            cells[: len(counted)] += counted.astype(np.int32)
        return found

    def consensus(self, roots: Rows, weight: float) -> npt.NDArray[np.float64]:
        """Return the product over groups of the share of impressions of each root that were engaged with, 0..1 or so.

        Each share is drawn towards that of all these roots as if it had been seen `weight` times more: the
        group-informed consensus of Small et al. 2021, doi:10.6035/recerca.5516, with this in place of 1/2.
        """
        engaged, seen = self.of_roots(roots)
        engaged_in_all, seen_in_all = (int(part.sum()) for part in self.of_roots(np.unique(roots)))
        mean = engaged_in_all / seen_in_all if seen_in_all else 0.0
        return np.asarray(((engaged + weight * mean) / (seen + weight)).prod(axis=1))

    def of_roots(self, roots: Rows) -> tuple[Counts, Counts]:
        """Return engagements and impressions of some roots by group, each of shape (roots, groups)."""
        return self._of(self.engagements, roots), self._of(self.impressions, roots)

    def _of(self, counts: Counts, roots: Rows) -> Counts:
        """Return the rows of some roots; of those not counted yet nothing but 0."""
        found = np.zeros((len(roots), self.n), np.int32)
        there = roots < len(counts)
        found[there] = counts[roots[there]]
        return found


@dataclass(frozen=True)
class Groups:
    """The groups of agents in a round.

    Attributes:
        of: The group of each agent.
        counts: What each group has read and engaged with so far.
    """

    of: npt.NDArray[np.int16]
    counts: GroupCounts


NO_GROUPS: Final = Groups(np.zeros(0, np.int16), GroupCounts(0))
