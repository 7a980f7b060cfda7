"""Triggers in time, which `tick` fires: after a number of ticks, at a rate, or when a condition is true."""

from collections.abc import Callable
from dataclasses import dataclass
from math import isfinite, log1p
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import ChartError
from prism_mesa.statechart.guards import Expression

type Number = Expression | Callable[[Any, Any], float] | float
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

    def __str__(self) -> str:
        return f"{'probability' if self.is_probability else 'rate'}({_text(self.value)})"

    def hazard(self, agent: Any, context: Any, where: object) -> float:
        """Return the hazard of one agent. Raises ChartError as `hazards` does."""
        value = self.value(agent, context) if callable(self.value) else self.value
        return float(self.hazards(np.array([value], np.float64), where)[0])

    def hazards(self, values: npt.NDArray[np.float64], where: object) -> npt.NDArray[np.float64]:
        """Return the hazards for values of `value`. Raises ChartError if one is negative, too large or NaN."""
        allowed = "a probability from 0 to 1" if self.is_probability else "a finite number, at least 0"
        is_valid = (values >= 0) & (values <= (1.0 if self.is_probability else np.finfo(np.float64).max))
        if not is_valid.all():
            raise ChartError(f"{where}: {self} is {values[~is_valid][0]}; give {allowed}")
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
    return _checked(Rate(value))


def probability(value: Number) -> Rate:
    """Return a trigger with a probability per tick, which is the rate -log(1 - probability)."""
    return _checked(Rate(value, is_probability=True))


def when(condition: Expression | Callable[[Any, Any], bool]) -> When:
    """Return a trigger that fires when a condition is true: an expression or a callable ``(agent, context)``."""
    if not callable(condition):
        raise ChartError(f"when({condition!r}): give an expression over F, or a callable (agent, context)")
    return When(condition)


def _checked(trigger: Rate) -> Rate:
    if isinstance(trigger.value, bool | str) or not (isinstance(trigger.value, int | float) or callable(trigger.value)):
        raise ChartError(f"{trigger}: give a number, an expression over F, or a callable (agent, context)")
    if isinstance(trigger.value, int | float):
        trigger.hazards(np.array([trigger.value], np.float64), "trigger")
    return trigger


def _text(value: object) -> str:
    if isinstance(value, Expression) or not callable(value):
        return f"{value:g}" if isinstance(value, float) else str(value)
    return str(getattr(value, "__name__", type(value).__name__))


def waiting_ticks(draw: float, mean: float) -> int:
    """Return the ticks of an exponential waiting time for a draw in [0, 1)."""
    return max(1, int(np.ceil(-mean * log1p(-draw))))


def picks(hazards: npt.NDArray[np.float64], draws: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return which rate fires in each row, or -1.

    Args:
        hazards: Shape (rows, rates).
        draws: One draw in [0, 1) for each row. It decides whether something fires, and scaled to [0, 1) what fires.
    """
    sums = np.cumsum(hazards, axis=1)
    total = sums[:, -1]
    chance = -np.expm1(-total)
    position = np.divide(draws, chance, out=np.zeros_like(draws), where=chance > 0) * total
    position = np.minimum(position, np.nextafter(total, 0))  # rounding must not reach the end
    return np.where(draws < chance, (sums <= position[:, None]).sum(axis=1), -1)
