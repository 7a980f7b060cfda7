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
KEY: Final = "opinions.rule"


@dataclass(frozen=True)
class Spread:
    """The distribution of stances.

    Attributes:
        mean: The mean.
        sd: The standard deviation.
        bimodality: Sarle's coefficient: 5/9 for a uniform distribution, 1 for two camps; NaN if all stances are equal.
        agents: Number of agents in each of several equal parts of the range.
    """

    mean: float
    sd: float
    bimodality: float
    agents: npt.NDArray[np.int64]

    @property
    def numbers(self) -> dict[str, float]:
        """Mean, standard deviation and bimodality, by name."""
        return {"mean": self.mean, "sd": self.sd, "bimodality": self.bimodality}


def measure_spread(stances: Floats, counts: npt.NDArray[np.bool_], attribute: Attribute) -> Spread:
    """Return the spread of the stances that count; `attribute` is the one that moves."""
    bins, ends = np.zeros(PARTS, np.int64), (attribute.low, attribute.high)
    n, mean, second, third, fourth = spread(np.ascontiguousarray(stances), counts, ends, bins)
    return Spread(mean if n else nan, sqrt(second) if n else nan, bimodality(second, third, fourth), bins)


def bimodality(second: float, third: float, fourth: float) -> float:
    """Return Sarle's coefficient by central moments, (skewness² + 1) / kurtosis; NaN if nothing varies.

    It is at most 1 (Pfister et al. 2013, doi:10.3389/fpsyg.2013.00700).
    """
    if second < 1e-24:  # what rounding leaves of equal numbers
        return nan
    return (third * third / second**3 + 1) / (fourth / second**2)


class UserRule:
    """A function of your own that says what readers hold once they have read a post.

    Args:
        where: ``module:function``.
        stance: The attribute that changes.

    Raises:
        ConfigError: If there is no such function.
    """

    def __init__(self, where: str, stance: Attribute) -> None:
        self._where, self._calls = f"{KEY}: {where}", 0
        self._function = OwnFunction(stance, where, KEY)

    def __call__(self, columns: Callable[[Any], Columns], n: int) -> Floats:
        """Return what each of `n` readers holds; `columns` returns the columns of some of the rows.

        Raises:
            ConfigError: If it raises, gives anything but a stance for each row, or one that depends on other rows.
        """
        stances = self._function(columns(np.arange(n)), n)
        self._calls += 1
        is_checked = self._calls & (self._calls - 1) == 0  # the 1st call, the 2nd, the 4th, ...
        some = np.arange(n)[::-2]
        if is_checked and not np.array_equal(stances[some], self._function(columns(some), len(some))):
            raise OwnCodeError(f"{self._where}: gave other values for the same rows beside other rows")
        return stances


class Opinions(Restorable):
    """The state of opinions beside the attribute that moves.

    Attributes:
        first: Mean, standard deviation and bimodality before the first round; 0 before the run began.
        own: A rule of your own, if there is one.
    """

    changes = ("first",)

    def __init__(self, params: OpinionsParams, known: Attributes) -> None:
        self.first = np.zeros(3)
        self.own = None if params.user_rule is None else UserRule(params.user_rule, known.agents[str(params.of)])
