"""The space of the parameters: each value as a place between 0, its lowest, and 1, its highest."""

from dataclasses import dataclass
from math import exp, log

import numpy as np

from prism_mesa.streams import Floats


@dataclass(frozen=True)
class Axis:
    """A parameter and its range.

    Attributes:
        key: Dotted key of the configuration.
        log: Whether places go by the logarithm.
        whole: Whether only whole numbers are values.
    """

    key: str
    low: float
    high: float
    log: bool = False
    whole: bool = False

    def value(self, place: float) -> float | int:
        """Return the value at a place, with six digits, so that a file says what was run.

        >>> Axis("agents.activity", 0.01, 1, log=True).value(0.5)
        0.1
        """
        inside = min(max(place, 0.0), 1.0)
        if self.log:
            found = exp(log(self.low) + inside * (log(self.high) - log(self.low)))
        else:
            found = self.low + inside * (self.high - self.low)
        rounded = min(max(float(f"{found:.6g}"), self.low), self.high)
        return round(found) if self.whole else rounded

    def place(self, value: float) -> float:
        """Return the place of a value, 0 to 1."""
        if self.log:
            found = (log(max(value, self.low)) - log(self.low)) / (log(self.high) - log(self.low))
        else:
            found = (value - self.low) / (self.high - self.low)
        return min(max(found, 0.0), 1.0)


@dataclass(frozen=True)
class Space:
    """All parameters of a calibration."""

    axes: tuple[Axis, ...]

    def values(self, place: Floats) -> dict[str, float | int]:
        """Return the values at a place, by key."""
        return {axis.key: axis.value(float(at)) for axis, at in zip(self.axes, place, strict=True)}

    def place(self, values: dict[str, float | int]) -> Floats:
        """Return the place of values."""
        return np.array([axis.place(values[axis.key]) for axis in self.axes])
