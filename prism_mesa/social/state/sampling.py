"""The recorded agents: all agents, or a fixed random sample."""

from collections.abc import Mapping
from typing import Final

import numpy as np

from prism_mesa.arrays import Mask
from prism_mesa.snapshot import Plain, Restorable
from prism_mesa.social.params import RecordsParams
from prism_mesa.streams import Streams

MAX_AGENTS_FOR_ALL: Final = 100_000
"""Number of agents up to which all agents are recorded by default."""

SAMPLE_SIZE: Final = 10_000
"""Approximate default number of recorded agents if there are more than `MAX_AGENTS_FOR_ALL`."""

SAMPLED: Final = ("transitions", "impressions", "engagements")
"""The tables with a row for each event of an agent."""


class RecordedAgents(Restorable):
    """The agents recorded in each of the tables `SAMPLED`, and the number of engagements of each agent.

    Each agent draws one number, and is recorded in the tables whose share is above this number. So a larger share
    includes all agents of a smaller share, in all tables and rounds. `n` is the number of agents at the start.

    Attributes:
        shares: Share of recorded agents by table, 0..1.
        n_engaged: Engagements of each agent so far, recorded or not, shape (n,); counted only if there is a recorder.
    """

    saved_fields = ("n_engaged",)

    def __init__(self, params: RecordsParams, n: int, streams: Streams) -> None:
        default_share = min(1.0, SAMPLE_SIZE / n) if n > MAX_AGENTS_FOR_ALL else 1.0
        self.shares = {"transitions": default_share, "impressions": default_share, "engagements": 1.0}
        self.shares |= {table: share for table in SAMPLED if (share := getattr(params, table)) is not None}
        self._streams = streams
        self._draw_masks(n)

    def _draw_masks(self, n: int) -> None:
        self.n_engaged = np.zeros(0, np.int32)
        self._masks = {table: None if share >= 1 else np.zeros(0, np.bool_) for table, share in self.shares.items()}
        self.grow(n)

    def __getitem__(self, table: str) -> Mask | None:
        """Return which agents a table records, shape (n,), or None if it records all agents."""
        return self._masks[table]

    def grow(self, n: int) -> None:
        """Make room for `n` agents in total."""
        n_engaged, new_rows = self.n_engaged, np.arange(len(self.n_engaged), n)
        self.n_engaged = np.zeros(n, np.int32)
        self.n_engaged[: len(n_engaged)] = n_engaged
        if all(mask is None for mask in self._masks.values()):
            return
        draws = self._streams.uniform("recorded", new_rows)
        for table, mask in self._masks.items():
            if mask is not None:
                self._masks[table] = np.concatenate([mask, draws < self.shares[table]])

    def restore(self, data: Mapping[str, Plain]) -> None:
        """Restore a snapshot; the recorded agents are drawn again."""
        super().restore(data)
        n_engaged = self.n_engaged
        self._draw_masks(len(n_engaged))
        self.n_engaged = n_engaged

    def to_facts(self) -> dict[str, dict[str, float]]:
        """Return share and number of recorded agents, by table."""
        n = len(self.n_engaged)
        counts = {table: n if mask is None else int(mask.sum()) for table, mask in self._masks.items()}
        return {table: {"share": self.shares[table], "agents": counts[table]} for table in self._masks}
