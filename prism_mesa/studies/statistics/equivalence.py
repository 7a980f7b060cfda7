"""Whether two sides are the same but for a margin, or differ by more: tests against both ends of the margin."""

from dataclasses import dataclass

import numpy as np
from scipy import stats
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from prism_mesa.streams import Floats
from prism_mesa.studies.statistics.cells import ROUNDING, constant
from prism_mesa.studies.statistics.significance import ALPHA, p_of_constant


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests of a difference (Schuirmann 1987, doi:10.1007/BF01068419), and one of its being larger.

    Attributes:
        margin: How far from 0 the difference may lie.
        low: Where the interval of 90 % of the difference begins (t): it lies within the margin where `p` is below .05.
        high: Where it ends.
        p_low: That the difference lies at or below minus the margin.
        p_high: That it lies at or above the margin.
        p_apart: That it lies within the margin; two-sided, so that below .05 the interval of 95 % (t) lies beyond.
        beyond: Whether the mean difference lies beyond the margin.
    """

    margin: float
    low: float
    high: float
    p_low: float
    p_high: float
    p_apart: float
    beyond: bool

    @property
    def p(self) -> float:
        """The larger of the two one-sided ones."""
        return float(np.maximum(self.p_low, self.p_high))


def tost(samples: tuple[Floats, ...], margin: float, *, scale: float = 0.0, identical: bool = False) -> Equivalence:
    """Return whether a mean, or two samples' means, differ by less than a margin, or by more.

    A difference that is the same everywhere has the p-values of `p_of_constant`; only runs that are identical, seed by
    seed, are the same for certain (p = 0).

    Args:
        samples: One, of differences (paired), or two (Welch); NaN where there is none. With fewer than two numbers in
            one all is NaN.
        margin: 0 or above.
        scale: As in `cells.constant`.
        identical: Whether all pairs of runs are the same.
    """
    there = [sample[np.isfinite(sample)] for sample in samples]
    if min(len(sample) for sample in there) < 2 or not np.isfinite(margin):
        return Equivalence(margin, np.nan, np.nan, np.nan, np.nan, np.nan, beyond=False)
    if identical:
        return Equivalence(margin, 0.0, 0.0, 0.0, 0.0, 1.0, beyond=False)
    if all(constant(sample, scale) for sample in there):
        return _of_constant(there, margin, scale)
    if len(there) == 1:
        described = DescrStatsW(there[0])
        _, below, above = described.ttost_mean(-margin, margin)
        low, high = described.tconfint_mean(alpha=0.1)
        difference = float(described.mean)
    else:
        compared = CompareMeans(*(DescrStatsW(sample) for sample in there))
        _, (below, above) = compared.ttost_ind(-margin, margin, usevar="unequal")
        low, high = compared.tconfint_diff(alpha=0.1, usevar="unequal")
        difference = float(compared.d1.mean - compared.d2.mean)
    nearer = below if difference < 0 else above  # t of the difference less this end of the margin, p, df
    apart = min(1.0, 2 * float(stats.t.sf(nearer[0] * np.sign(difference), nearer[2])))
    return Equivalence(
        margin, float(low), float(high), float(below[1]), float(above[1]), apart, beyond=abs(difference) > margin
    )


def _of_constant(samples: list[Floats], margin: float, scale: float) -> Equivalence:
    """Return the same of a difference without variation."""
    difference = float(samples[0][0] - (samples[1][0] if len(samples) > 1 else 0.0))
    rounding = ROUNDING * max(scale, margin, *(float(np.abs(sample).max()) for sample in samples))
    p = p_of_constant(*map(len, samples))
    above, under = difference > -margin + rounding, difference < margin - rounding
    beyond = abs(difference) > margin + rounding
    low = high = difference if p / 2 < ALPHA else np.nan
    one_sided = (p / 2 if above else 1.0, p / 2 if under else 1.0)
    return Equivalence(margin, low, high, *one_sided, p if beyond else 1.0, beyond)
