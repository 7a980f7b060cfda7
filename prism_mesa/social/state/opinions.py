"""How the stances of all agents are spread."""

from dataclasses import dataclass
from math import nan, sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from prism_mesa.kernels.opinions import spread
from prism_mesa.social.state.attributes import Attribute, Floats

PARTS: Final = 50
"""Equal parts of the range in which agents are counted."""


@dataclass(frozen=True)
class Spread:
    """How stances are spread.

    Attributes:
        mean: Their mean.
        sd: Their standard deviation.
        bimodality: Sarle's coefficient: 5/9 if all are as frequent, 1 of two camps; NaN where all hold the same.
        agents: How many are in each of equal parts of the range.
    """

    mean: float
    sd: float
    bimodality: float
    agents: npt.NDArray[np.int64]

    @property
    def numbers(self) -> dict[str, float]:
        """Mean, standard deviation and bimodality, by name."""
        return {"mean": self.mean, "sd": self.sd, "bimodality": self.bimodality}


def spread_of(stances: Floats, counts: npt.NDArray[np.bool_], own: Attribute) -> Spread:
    """Return how the stances of those agents are spread who count; `own` is the attribute that they are."""
    bins, ends = np.zeros(PARTS, np.int64), (own.low, own.high)
    n, mean, second, third, fourth = spread(np.ascontiguousarray(stances), counts, ends, bins)
    return Spread(mean if n else nan, sqrt(second) if n else nan, bimodality(second, third, fourth), bins)


def bimodality(second: float, third: float, fourth: float) -> float:
    """Return Sarle's coefficient by central moments, (skewness² + 1) / kurtosis; NaN where nothing varies.

    It is at most 1 (Pfister et al. 2013, doi:10.3389/fpsyg.2013.00700).
    """
    if second < 1e-24:  # what is left of equal numbers by rounding
        return nan
    return (third * third / second**3 + 1) / (fourth / second**2)
