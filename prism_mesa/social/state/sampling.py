"""Whose rows the records hold: all agents, or a drawn share that stays the same."""

from collections.abc import Mapping
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.snapshot import Plain, Restorable
from prism_mesa.social.params import RecordsParams
from prism_mesa.streams import Streams

type Mask = npt.NDArray[np.bool_]

ALL_UP_TO: Final = 100_000
"""Up to so many agents everything is recorded, unless the parameters say otherwise."""

ABOUT: Final = 10_000
"""About so many agents are recorded of more than that."""

SAMPLED: Final = ("transitions", "impressions", "engagements")
"""The tables with a row for each thing that an agent did or saw."""


class Recorded(Restorable):
    """Whose rows each table of `SAMPLED` holds, and how often each agent has engaged.

    An agent is recorded where its one number, drawn once in its life, lies below the table's share: the
    agents of a smaller share are among those of a larger one, in every table and every round.

    Attributes:
        shares: Table -> share of agents that are recorded, 0..1.
        n_engaged: Engagements of each agent so far, recorded or not, shape (n,). Counted where records are kept.
    """

    changes = ("n_engaged",)

    def __init__(self, shares: dict[str, float], n: int, streams: Streams) -> None:
        self.shares = shares
        self.n_engaged = np.zeros(0, np.int32)
        self._masks = {table: None if share >= 1 else np.zeros(0, np.bool_) for table, share in shares.items()}
        self._streams = streams
        self.grow(n)

    def __getitem__(self, table: str) -> Mask | None:
        """Return which agents a table records, shape (n,); None means all of them."""
        return self._masks[table]

    def grow(self, n: int) -> None:
        """Make room for `n` agents in all."""
        new = np.arange(len(self.n_engaged), n)
        self.n_engaged = np.concatenate([self.n_engaged, np.zeros(len(new), np.int32)])
        if all(mask is None for mask in self._masks.values()):
            return
        chance = self._streams.uniform("recorded", new)
        for table, mask in self._masks.items():
            if mask is not None:
                self._masks[table] = np.concatenate([mask, chance < self.shares[table]])

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Bring back what `snapshot` returned; whose rows are recorded is drawn once more."""
        super().restore(kept)
        masks = {table: None if share >= 1 else np.zeros(0, np.bool_) for table, share in self.shares.items()}
        n_engaged, self._masks, self.n_engaged = self.n_engaged, masks, np.zeros(0, np.int32)
        self.grow(len(n_engaged))
        self.n_engaged = n_engaged

    def as_facts(self) -> dict[str, dict[str, float]]:
        """Return for each table the share of agents that is recorded, and their number."""
        n = len(self.n_engaged)
        counts = {table: n if mask is None else int(mask.sum()) for table, mask in self._masks.items()}
        return {table: {"share": self.shares[table], "agents": counts[table]} for table in self._masks}


def recorded_agents(params: RecordsParams, n: int, streams: Streams) -> Recorded:
    """Return whose rows are recorded on a platform that begins with `n` agents."""
    few = min(1.0, ABOUT / n) if n > ALL_UP_TO else 1.0
    usual = {"transitions": few, "impressions": few, "engagements": 1.0}
    given = {table: getattr(params, table) for table in SAMPLED}
    return Recorded({table: usual[table] if given[table] is None else given[table] for table in SAMPLED}, n, streams)
