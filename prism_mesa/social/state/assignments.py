"""Which agents a named intervention treats, and which are its control."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.snapshot import Restorable

type Codes = npt.NDArray[np.int8]

TREATED, CONTROL, NOT_ELIGIBLE, NOT_ASSIGNED = 0, 1, -1, -2
GROUPS: Final = ("treated", "control")
"""The names of `TREATED` and `CONTROL` in the table `agents`."""


class Assignments(Restorable):
    """The group of each agent in each named intervention.

    Attributes:
        codes: By name: `TREATED`, `CONTROL`, `NOT_ELIGIBLE`, or `NOT_ASSIGNED` before the intervention begins or the
            agent joins.
    """

    saved_fields = ("codes",)

    def __init__(self) -> None:
        self.codes: dict[str, Codes] = {}

    def groups(self, name: str, n_agents: int) -> Codes:
        """Return the group of each agent; agents that were added since the last call are not assigned."""
        known = self.codes.get(name, np.zeros(0, np.int8))
        if len(known) < n_agents:
            known = np.append(known, np.full(n_agents - len(known), NOT_ASSIGNED, np.int8))
            self.codes[name] = known
        return known

    def is_treated(self, name: str, rows: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
        """Return which agents an intervention treats."""
        groups = self.groups(name, int(rows.max(initial=-1)) + 1)
        return np.asarray(groups[rows] == TREATED)
