"""When a checkpoint is made: little is lost if the run ends at any moment, and little time goes into it."""

import time
from collections.abc import Callable
from typing import Final

MOST_LOST_S: Final = 60.0
"""Seconds of work that are lost at most, unless that would cost more than `MOST_SHARE`."""
MOST_SHARE: Final = 0.05
"""Share of the time that goes into checkpoints at most."""
_AIM: Final = 0.8
"""Of both, what is aimed at: rounds and checkpoints are not all alike."""


class Policy:
    """Says after each round whether a checkpoint is due.

    Args:
        every: Every so many rounds; None: by time, of which the next round is taken to need as much as the last.
        clock: Seconds that only grow, whatever happens to the time of day.
    """

    def __init__(self, every: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._every, self._clock = every, clock
        self._last_end = self._last_round = clock()
        self._round_s = 0.0
        self._cost_s = 0.0

    def due(self, done: int) -> bool:
        """Return whether a checkpoint is to be made now, as so many rounds are done."""
        now = self._clock()
        self._round_s, self._last_round = max(now - self._last_round, 0.0), now
        if self._every is not None:
            return done % self._every == 0
        since = now - self._last_end
        is_time = since + self._round_s > _AIM * MOST_LOST_S
        return is_time and since >= self._cost_s * (1 / (_AIM * MOST_SHARE) - 1)

    def made(self, cost_s: float) -> None:
        """Take note of a checkpoint that has just been made, and of the seconds that it took."""
        self._cost_s = max(cost_s, 0.0)
        self._last_end = self._last_round = self._clock()
