"""The changes of state of chart agents, as columns."""

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

type Ints = npt.NDArray[np.integer]

_LONG: Final = 1 << 16
"""Number of changes up to which none is dropped."""


class History:
    """Changes of state by the agents' `unique_id`, oldest first; contexts are kept only if they are mappings.

    Attributes:
        recent: The latest changes, made one by one.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, Ints, npt.NDArray[np.float64]]] = []
        self.recent: list[tuple[int, int, float]] = []
        self._contexts: dict[tuple[int, int, float], Mapping[str, Any]] = {}
        self._next_length = _LONG

    def add(self, ids: Ints, moves: Ints, time: float) -> None:
        """Add packed moves (`Statechart.pack`) of several agents."""
        self._pack_recent()
        self._parts.append((ids, moves, np.full(len(ids), time)))

    def add_one(self, agent_id: int, move: int, time: float, context: Any = None) -> None:
        """Add a packed move of one agent."""
        self.recent.append((agent_id, move, time))
        if isinstance(context, Mapping):
            self._contexts[agent_id, move, time] = dict(context)

    def moves(self, agent_id: int, depth: int) -> list[tuple[int, float, Mapping[str, Any] | None]]:
        """Return the last `depth` moves of an agent with their times and contexts."""
        self._pack_recent()
        found: list[tuple[int, float]] = []
        for ids, moves, times in reversed(self._parts):
            rows = np.flatnonzero(ids == agent_id)[::-1]
            found += zip(moves[rows].tolist(), times[rows].tolist(), strict=True)
            if len(found) >= depth:
                break
        return [(move, time, self._contexts.get((agent_id, move, time))) for move, time in found[:depth][::-1]]

    def trim(self, depth: int) -> None:
        """Keep only the last `depth` moves of each agent, if there are many."""
        if sum(len(ids) for ids, _, _ in self._parts) <= self._next_length:
            return
        ids, moves, times = (np.concatenate(column) for column in zip(*self._parts, strict=True))
        order = np.argsort(ids, kind="stable")
        ends = np.searchsorted(ids[order], ids[order], side="right")
        kept = np.sort(order[ends - np.arange(len(order)) <= depth])
        self._parts = [(ids[kept], moves[kept], times[kept])]
        self._next_length = max(_LONG, 2 * len(kept))

    def _pack_recent(self) -> None:
        if self.recent:
            ids, moves, times = zip(*self.recent, strict=True)
            self._parts.append((np.array(ids), np.array(moves), np.array(times)))
            self.recent = []
