"""How stances are spread, and a rule of your own by which they move."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan, sqrt
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import OwnCodeError
from prism_mesa.kernels.opinions import spread
from prism_mesa.snapshot import Restorable
from prism_mesa.social.params import OpinionsParams
from prism_mesa.social.state.attributes import Attribute, Attributes, Floats
from prism_mesa.social.world.attributes import Columns, OwnFunction

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


KEY: Final = "opinions.rule"
type ColumnsOf = Callable[[Any], Columns]


class OwnRule:
    """A function that says what readers hold once they have read a post.

    Args:
        where: ``module:function``.
        stance: The attribute that moves.

    Raises:
        ConfigError: If there is no such function.
    """

    def __init__(self, where: str, stance: Attribute) -> None:
        self._where = f"{KEY}: {where}"
        self._function = OwnFunction(stance, where, KEY)
        self._asked_for = 0

    def __call__(self, columns: ColumnsOf, n: int) -> Floats:
        """Return what each of `n` readers holds.

        Args:
            columns: Returns the columns of some of the rows.
            n: Rows.

        Raises:
            ConfigError: If it raises, gives anything but a stance for each row, or one that depends on what else it is
                asked about.
        """
        found = self._function(columns(np.arange(n)), n)
        self._asked_for += 1
        is_looked_at = self._asked_for & (self._asked_for - 1) == 0  # the 1st time, the 2nd, the 4th, ...
        some = np.arange(n)[::-2]
        if is_looked_at and not np.array_equal(found[some], self._function(columns(some), len(some))):
            raise OwnCodeError(
                f"{self._where}: gave other values for the same rows beside other rows: a stance has to come from its "
                "own row alone"
            )
        return found


class Opinions(Restorable):
    """What opinions have besides the attribute that moves.

    Attributes:
        first: Mean, standard deviation and bimodality before the first round; 0 before the run began.
        own: The rule, if it is one of a user's own.
    """

    changes = ("first",)

    def __init__(self, params: OpinionsParams, known: Attributes) -> None:
        self.first = np.zeros(3)
        self.own = None if params.own is None else OwnRule(params.own, known.agents[str(params.of)])
