"""What interventions have done so far: the agents that they treat, and the roots and accounts that they have met."""

from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.arrays import Int32, Mask, Rows, UInt8
from prism_mesa.snapshot import Restorable

TREATED, CONTROL, NOT_ELIGIBLE, NOT_ASSIGNED = 0, 1, -1, -2
GROUPS: Final = ("treated", "control")
"""The names of `TREATED` and `CONTROL` in the table `agents`."""
NOT_MET: Final = -1
NOT_SUSPENDED: Final = 255


class ActState(Restorable):
    """The state of each intervention, by its name or number; arrays grow with agents and posts.

    Attributes:
        group: For each agent `TREATED`, `CONTROL`, `NOT_ELIGIBLE`, or `NOT_ASSIGNED` before the intervention begins or
            the agent joins; only for named interventions.
        due: The round from which the act applies to each root, or `NOT_MET`. Roots that the act does not cover have a
            round too.
        membership: The membership of each account before its suspension, or `NOT_SUSPENDED`.
    """

    saved_fields = ("group", "due", "membership")

    def __init__(self) -> None:
        self.group: dict[str, npt.NDArray[np.int8]] = {}
        self.due: dict[str, Int32] = {}
        self.membership: dict[str, UInt8] = {}

    def groups(self, name: str, n_agents: int) -> npt.NDArray[np.int8]:
        """Return the group of each of the first agents."""
        return _grow(self.group, name, n_agents, np.int8(NOT_ASSIGNED))

    def is_treated(self, name: str, rows: Rows) -> Mask:
        """Return which agents an intervention treats."""
        return np.asarray(self.groups(name, int(rows.max(initial=-1)) + 1)[rows] == TREATED)

    def due_rounds(self, key: str, n_posts: int) -> Int32:
        """Return the round from which an act applies to each of the first posts."""
        return _grow(self.due, key, n_posts, np.int32(NOT_MET))

    def suspended(self, key: str, n_agents: int) -> UInt8:
        """Return the membership of each of the first agents before its suspension."""
        return _grow(self.membership, key, n_agents, np.uint8(NOT_SUSPENDED))


def _grow[T: np.generic](arrays: dict[str, npt.NDArray[T]], key: str, n: int, blank: T) -> npt.NDArray[T]:
    """Return the first `n` values of an array, which gets `blank` for new ones."""
    known = arrays.get(key, np.full(0, blank))
    if len(known) < n:
        longer = np.full(max(n, len(known) * 3 // 2), blank)
        longer[: len(known)] = known
        known = arrays[key] = longer
    return known[:n]
