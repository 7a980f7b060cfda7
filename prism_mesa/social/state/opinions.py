"""The spread of stances, and your own rules of influence."""

from collections.abc import Callable
from dataclasses import dataclass
from math import nan, sqrt
from typing import Any, Final

import numpy as np

from prism_mesa.arrays import Floats, Ints, Mask
from prism_mesa.errors import OwnCodeError
from prism_mesa.kernels.opinions import spread_moments
from prism_mesa.snapshot import Restorable
from prism_mesa.social.params import OpinionsParams
from prism_mesa.social.state.attributes import Attribute, Attributes
from prism_mesa.social.world.attributes import Columns, UserFunction

N_PARTS: Final = 50
"""Number of equal parts of the range for counting agents."""
RULE_KEY: Final = "opinions.rule"


@dataclass(frozen=True)
class Spread:
    """The distribution of stances, with mean and standard deviation.

    Attributes:
        bimodality: Sarle's coefficient: 5/9 for a uniform distribution, 1 for two camps; NaN if all stances are equal.
        agents: Number of agents in each of `N_PARTS` equal parts of the range.
    """

    mean: float
    sd: float
    bimodality: float
    agents: Ints

    @property
    def numbers(self) -> dict[str, float]:
        """Mean, standard deviation and bimodality by name."""
        return {"mean": self.mean, "sd": self.sd, "bimodality": self.bimodality}


def measure_spread(stances: Floats, is_counted: Mask, attribute: Attribute) -> Spread:
    """Return the spread of stances, which are values of `attribute`, over the agents in `is_counted`."""
    agents_by_part, ends = np.zeros(N_PARTS, np.int64), (attribute.low, attribute.high)
    n, mean, second, third, fourth = spread_moments(np.ascontiguousarray(stances), is_counted, ends, agents_by_part)
    return Spread(mean if n else nan, sqrt(second) if n else nan, bimodality(second, third, fourth), agents_by_part)


def bimodality(second: float, third: float, fourth: float) -> float:
    """Return Sarle's coefficient, (skewness² + 1) / kurtosis, from central moments; NaN without variance.

    It is at most 1 (Pfister et al. 2013, doi:10.3389/fpsyg.2013.00700).
    """
    if second < 1e-24:  # rounding errors of equal numbers
        return nan
    return (third * third / second**3 + 1) / (fourth / second**2)


class UserRule:
    """Your own function (``module:function``), which returns the stances of readers after reading a post."""

    def __init__(self, name: str, stance: Attribute) -> None:
        self._where, self._calls = f"{RULE_KEY}: {name}", 0
        self._function = UserFunction(stance, name, RULE_KEY)

    def __call__(self, columns: Callable[[Any], Columns], n: int) -> Floats:
        """Return the new stances of `n` readers; `columns` is a function that returns the columns of given rows.

        Raises:
            ConfigError: If the function raises, or does not return one stance for each row.
            OwnCodeError: If a stance depends on other rows.
        """
        stances = self._function(columns(np.arange(n)), n)
        self._calls += 1
        is_checked = self._calls & (self._calls - 1) == 0  # in calls 1, 2, 4, 8, ...
        rows = np.arange(n)[::-2]
        if is_checked and not np.array_equal(stances[rows], self._function(columns(rows), len(rows))):
            raise OwnCodeError(f"{self._where}: returned other values for some rows when called without the other rows")
        return stances


class Opinions(Restorable):
    """The spread of stances before the first round, and your own rule of influence.

    Attributes:
        first: Mean, standard deviation and bimodality before the first round; 0 until the run starts.
        user_rule: Your own rule of influence, or None.
    """

    saved_fields = ("first",)

    def __init__(self, params: OpinionsParams, schema: Attributes) -> None:
        self.first = np.zeros(3)
        self.user_rule = None if params.user_rule is None else UserRule(params.user_rule, schema.agents[str(params.of)])
