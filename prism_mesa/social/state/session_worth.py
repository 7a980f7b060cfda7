"""What the last sessions of agents were worth to them, compared with their first ones (`agents.returns`)."""

import numpy as np

from prism_mesa.arrays import Floats, Ints, Rows
from prism_mesa.kernels.utility import WORTH_UNITS
from prism_mesa.snapshot import Restorable
from prism_mesa.social.params.agents import ReturnsParams


class SessionWorth(Restorable):
    """The memory of each agent of its sessions; empty without `agents.returns`.

    Attributes:
        n: Number of sessions.
        first: Mean worth of the first sessions.
        last: Mean worth of the last sessions, whose weights halve after `half_life`; begins as `first`.
    """

    saved_fields = ("n", "first", "last")

    def __init__(self) -> None:
        self.n, self.first, self.last = (np.zeros(0) for _ in range(3))

    def note(self, total: Ints, n_read: Rows, params: ReturnsParams) -> None:
        """Note a round, given the total utility of the posts that each agent read, in units, and their number."""
        newcomers = np.zeros(len(n_read) - len(self.n))
        self.n, self.first, self.last = (np.append(old, newcomers) for old in (self.n, self.first, self.last))
        rows = np.flatnonzero(n_read)
        self.n[rows] += 1
        is_first = self.n[rows] <= params.first
        weight = float(np.float32(1 - 0.5 ** (1 / params.half_life)))  # the last digits of powers differ by machine
        weights = np.where(is_first, 1 / self.n[rows], weight)
        self.last[rows] += weights * (total[rows] / (WORTH_UNITS * n_read[rows]) - self.last[rows])
        self.first[rows[is_first]] = self.last[rows[is_first]]

    def factor(self, strength: float, n_agents: int) -> Floats:
        """Return ``exp(strength * (last - first))`` for each agent, rounded to float32, as machines differ in exp."""
        change = np.zeros(n_agents)
        change[: len(self.last)] = self.last - self.first
        return np.exp(np.clip(strength * change, -20, 20)).astype(np.float32).astype(np.float64)
