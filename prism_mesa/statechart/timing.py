"""Triggers in time, which `tick` fires: after a number of ticks, at a rate, or when a condition is true."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import isfinite, log1p, nextafter
from typing import Any, Final

import numpy as np

from prism_mesa.arrays import Floats, Ints
from prism_mesa.errors import ChartError
from prism_mesa.statechart.guards import Expression

type Number = Expression | Callable[[Any, Any], float] | float
_MAX_RATE: Final = 1e300
_CERTAIN: Final = 50.0
"""The rate of probability 1: exp(-50) is less than the least draw above 0."""


@dataclass(frozen=True)
class Exponential:
    """An exponentially distributed number of ticks, rounded up; its mean is `mean` before rounding."""

    mean: float

    def __str__(self) -> str:
        return f"exponential({self.mean:g})"


@dataclass(frozen=True)
class After:
    """A trigger after a number of ticks in a state."""

    ticks: int | Exponential

    def __str__(self) -> str:
        return f"after({self.ticks})"


@dataclass(frozen=True, eq=False)
class When:
    """A trigger in the first tick in which a condition is true."""

    condition: Expression | Callable[[Any, Any], bool]

    def __str__(self) -> str:
        return f"when({_text(self.condition)})"


@dataclass(frozen=True, eq=False)
class Rate:
    """A trigger with a hazard per tick, or with a probability per tick."""

    value: Number
    is_probability: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.value, bool | str) or not (isinstance(self.value, int | float) or callable(self.value)):
            raise ChartError(f"{self}: give a number, an expression over F, or a callable (agent, context)")
        if isinstance(self.value, int | float):
            self.hazard_at(self.value, "trigger")

    def __str__(self) -> str:
        return f"{'probability' if self.is_probability else 'rate'}({_text(self.value)})"

    def hazard_at(self, value: float, where: object) -> float:
        """Return the hazard for a value of `value`. Raises ChartError if it is negative, too large or NaN."""
        if not 0 <= value <= (1.0 if self.is_probability else _MAX_RATE):
            allowed = "a probability from 0 to 1" if self.is_probability else "a finite number, at least 0"
            raise ChartError(f"{where}: {self} is {value}; give {allowed}")
        if not self.is_probability:
            return float(value)
        return min(-float(np.log1p(-value)), _CERTAIN) if value < 1 else _CERTAIN

    def hazards(self, values: Floats, where: object) -> Floats:
        """Return `hazard_at` for many values."""
        is_invalid = ~((values >= 0) & (values <= (1.0 if self.is_probability else _MAX_RATE)))
        if is_invalid.any():
            self.hazard_at(float(values[is_invalid][0]), where)
        if not self.is_probability:
            return values
        with np.errstate(divide="ignore"):
            return np.minimum(-np.log1p(-values), _CERTAIN)


type Timing = After | When | Rate


def after(ticks: int | Exponential) -> After:
    """Return a trigger that fires after `ticks` in a state: a whole number from 1, or ``exponential(mean)``."""
    if not isinstance(ticks, Exponential) and (isinstance(ticks, bool) or not isinstance(ticks, int) or ticks < 1):
        raise ChartError(f"after({ticks!r}): give whole ticks, at least 1, or exponential(mean)")
    return After(ticks)


def exponential(mean: float) -> Exponential:
    """Return an exponential waiting time for `after`; `mean` is above 0. It is as likely to end in each tick."""
    if not isinstance(mean, int | float) or not isfinite(mean) or mean <= 0:
        raise ChartError(f"exponential({mean!r}): give a mean above 0")
    return Exponential(float(mean))


def rate(value: Number) -> Rate:
    """Return a trigger with a hazard per tick: a number, an expression or a callable ``(agent, context)``.

    In a tick something fires with probability 1 - exp(-sum of the rates), and each with its share of the sum.
    """
    return Rate(value)


def probability(value: Number) -> Rate:
    """Return a trigger with a probability per tick, which is the rate -log(1 - probability)."""
    return Rate(value, is_probability=True)


def when(condition: Expression | Callable[[Any, Any], bool]) -> When:
    """Return a trigger that fires when a condition is true: an expression or a callable ``(agent, context)``."""
    if not callable(condition):
        raise ChartError(f"when({condition!r}): give an expression over F, or a callable (agent, context)")
    return When(condition)


def _text(value: object) -> str:
    if isinstance(value, Expression) or not callable(value):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return str(getattr(value, "__name__", type(value).__name__))


def waiting_ticks(draw: float, mean: float) -> int:
    """Return the ticks of an exponential waiting time for a draw in [0, 1)."""
    return max(1, int(np.ceil(-mean * log1p(-draw))))


def pick(hazards: Sequence[float], draw: float) -> int:
    """Return which rate fires, or -1: the same as `picks` for one row, but faster."""
    uppers = list(accumulate(hazards))
    chance = -float(np.expm1(-uppers[-1]))
    if draw >= chance:
        return -1
    position = min(draw / chance * uppers[-1], nextafter(uppers[-1], 0.0))
    return sum(upper <= position for upper in uppers)


def picks(hazards: Floats, draws: Floats) -> Ints:
    """Return which rate fires in each column of `hazards`, or -1.

    A draw in [0, 1) decides whether something fires, and scaled to [0, 1) what fires.
    """
    uppers = hazards.cumsum(0)
    chance = -np.expm1(-uppers[-1])
    index = np.full(len(draws), -1)
    fires = np.flatnonzero(draws < chance)
    total = uppers[-1, fires]
    position = np.minimum(draws[fires] / chance[fires] * total, np.nextafter(total, 0))
    index[fires] = (uppers[:, fires] <= position).sum(0)
    return index
