"""Simulated time: round and tick to a timestamp and back."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True)
class Clock:
    """Time of a run: tick 0 opens a round, 1 .. T are its ticks, T + 1 closes it.

    Attributes:
        start: When round 0 opens, in UTC.
        round_length: Simulated length of a round.
        ticks_per_round: T.
    """

    start: datetime
    round_length: timedelta
    ticks_per_round: int

    def number(self, round_: int, tick: int) -> int:
        """Return round and tick as one number that grows with time."""
        return round_ * (self.ticks_per_round + 2) + tick

    def round_and_tick(self, number: int) -> tuple[int, int]:
        """Return the round and the tick of a number."""
        return divmod(number, self.ticks_per_round + 2)

    def at(self, number: int) -> datetime:
        """Return the time of a numbered tick."""
        round_, rest = self.round_and_tick(number)  # apart: all ticks times a long round would overflow
        return self.start + self.round_length * round_ + self.round_length * rest / (self.ticks_per_round + 2)

    def nearest(self, time: datetime) -> int:
        """Return the numbered tick nearest to a time."""
        return round((time - self.start) / self.round_length * (self.ticks_per_round + 2))
