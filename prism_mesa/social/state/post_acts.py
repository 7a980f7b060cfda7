"""What acts of the platform have met so far: roots with the round in which the act begins, and suspended accounts."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.snapshot import Restorable

type Int32 = npt.NDArray[np.int32]
type Rows = npt.NDArray[np.integer[Any]]

NOT_MET: Final = -1
NOT_SUSPENDED: Final = 255


class PostActs(Restorable):
    """The roots and accounts that interventions have met.

    Attributes:
        due: By intervention: the round from which the act applies to each root, or `NOT_MET`. Roots that the act does
            not cover have a round too.
        membership: By intervention: the membership of each account before its suspension, or `NOT_SUSPENDED`.
    """

    saved_fields = ("due", "membership")

    def __init__(self) -> None:
        self.due: dict[str, Int32] = {}
        self.membership: dict[str, npt.NDArray[np.uint8]] = {}

    def due_rounds(self, key: str, n_posts: int) -> Int32:
        """Return the round from which an act applies to each root; posts that were added since are `NOT_MET`."""
        known = self.due.get(key, np.zeros(0, np.int32))
        if len(known) < n_posts:
            longer = np.full(max(n_posts, len(known) * 3 // 2), NOT_MET, np.int32)
            longer[: len(known)] = known
            known = self.due[key] = longer
        return known[:n_posts]

    def suspended(self, key: str, n_agents: int) -> npt.NDArray[np.uint8]:
        """Return the membership of each account before its suspension; accounts that were added are not suspended."""
        known = self.membership.get(key, np.zeros(0, np.uint8))
        if len(known) < n_agents:
            known = np.append(known, np.full(n_agents - len(known), NOT_SUSPENDED, np.uint8))
            self.membership[key] = known
        return known
