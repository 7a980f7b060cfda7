"""An agent's history as a list; the entries live in the platform's rings. It can be read only."""

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import AgentError
from prism_mesa.social.platform import Platform
from prism_mesa.social.state.population import NO_POST, Rows, packed_move, unpacked_move
from prism_mesa.statechart import StateTransition


class HistoryView(Sequence[StateTransition]):
    """An agent's history as a list; the entries live in the platform's rings, which drop the oldest by themselves."""

    def __init__(self, platform: Platform, row: int) -> None:
        self._platform = platform
        self._row = row

    def append(self, value: StateTransition) -> None:
        """Record an entry, at the tick nearest to its timestamp; of its context, the id of a post of the platform."""
        self._platform.history.record(np.array([self._row]), *self._columns(value))

    def check(self, value: StateTransition) -> None:
        """Raise what `append` would raise."""
        self._columns(value)

    def _columns(self, value: StateTransition) -> tuple[npt.NDArray[np.uint16], npt.NDArray[np.int32], Rows]:
        """Return an entry's packed move, clock and post."""
        platform = self._platform
        trigger = platform.trigger_code(value.trigger)
        if trigger < 0:
            raise AgentError(f"SocialAgent.state_history: {value.trigger!r} is no trigger of {platform.chart.name}")
        post = (value.context or {}).get("post_id", NO_POST)
        post = post if isinstance(post, int | np.integer) else NO_POST
        move = packed_move(trigger, value.from_state.code, value.to_state.code)
        clock = np.array([platform.time_of_day.nearest(value.timestamp)], np.int32)
        return np.array([move], np.uint16), clock, np.array([post], np.int32)

    def _entries(self) -> list[StateTransition]:
        platform = self._platform
        entries = []
        for move, clock, post in platform.history.entries(self._row):
            trigger, source, target = unpacked_move(move)
            context = None if post == NO_POST else {"post_id": post}
            name = platform.chart.triggers[trigger]
            entries.append(StateTransition(source, target, name, platform.time_of_day.at(clock), context))
        return entries

    def __len__(self) -> int:
        history = self._platform.history
        return min(int(history.count[self._row]), history.limit(self._row))

    @overload
    def __getitem__(self, index: int) -> StateTransition: ...
    @overload
    def __getitem__(self, index: slice) -> list[StateTransition]: ...
    def __getitem__(self, index: int | slice) -> StateTransition | list[StateTransition]:
        return self._entries()[index]

    def __iter__(self) -> Iterator[StateTransition]:
        return iter(self._entries())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and list(self) == list(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._entries())
