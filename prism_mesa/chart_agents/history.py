"""The changes of state of chart agents, as columns."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

type Ints = npt.NDArray[np.integer]

_LONG: Final = 1 << 16
"""Number of changes up to which none is dropped."""


class History:
    """Changes of state as packed moves (`Statechart.pack`), by the agents' `unique_id`, oldest first.

    Attributes:
        recent: The latest changes, made one by one.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, Ints, npt.NDArray[np.float64]]] = []
        self.recent: list[tuple[int, int, float]] = []
        self._contexts: dict[tuple[int, int, float], Mapping[str, Any]] = {}
        self._max_length = _LONG

    def add(self, ids: Ints, moves: Ints, time: float, depth: int) -> None:
        """Add changes of several agents; once there are many, keep only the last `depth` of each agent."""
        self._pack_recent()
        self._parts.append((ids, moves, np.full(len(ids), time)))
        if sum(len(part) for part, _, _ in self._parts) > self._max_length:
            ids, moves, times = (np.concatenate(column) for column in zip(*self._parts, strict=True))
            order = np.argsort(ids, kind="stable")
            ends = np.searchsorted(ids[order], ids[order], side="right")
            kept = np.sort(order[ends - np.arange(len(order)) <= depth])
            self._parts = [(ids[kept], moves[kept], times[kept])]
            self._max_length = max(_LONG, 2 * len(kept))

    def add_one(self, agent_id: int, move: int, time: float, context: Any = None) -> None:
        """Add a change of one agent, with a context that is a mapping."""
        self.recent.append((agent_id, move, time))
        if isinstance(context, Mapping):
            self._contexts[agent_id, move, time] = dict(context)

    def moves(self, agent_id: int, depth: int) -> list[tuple[int, float, Mapping[str, Any] | None]]:
        """Return the last `depth` moves of an agent with their times and contexts."""
        self._pack_recent()
        moves: list[tuple[int, float]] = []
        for ids, part, times in self._parts:
            rows = np.flatnonzero(ids == agent_id)
            moves += zip(part[rows].tolist(), times[rows].tolist(), strict=True)
        last = moves[max(0, len(moves) - depth) :]
        return [(move, time, self._contexts.get((agent_id, move, time))) for move, time in last]

    def _pack_recent(self) -> None:
        if self.recent:
            ids, moves, times = zip(*self.recent, strict=True)
            self._parts.append((np.array(ids), np.array(moves), np.array(times)))
            self.recent = []
