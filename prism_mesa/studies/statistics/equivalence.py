"""Whether two sides are the same but for a margin: two one-sided tests (TOST)."""

from dataclasses import dataclass

import numpy as np
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from prism_mesa.streams import Floats


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests of a difference (Schuirmann 1987, doi:10.1007/BF01068419).

    Attributes:
        margin: How far from 0 the difference may lie.
        low: Where the interval of 90 % of the difference begins (t): it lies within the margin where `p` is below .05.
        high: Where it ends.
        p_low: That the difference lies at or below minus the margin.
        p_high: That it lies at or above the margin.
    """

    margin: float
    low: float
    high: float
    p_low: float
    p_high: float

    @property
    def p(self) -> float:
        """The larger of the two."""
        return float(np.maximum(self.p_low, self.p_high))


def tost(samples: tuple[Floats, ...], margin: float) -> Equivalence:
    """Return whether a mean, or two samples' means, differ by less than a margin.

    A difference that is the same everywhere is taken for certain: its p-values are 0 or 1.

    Args:
        samples: One, of differences (paired), or two (Welch); NaN where there is none. With fewer than two numbers in
            one all is NaN.
        margin: 0 or above.
    """
    there = [sample[np.isfinite(sample)] for sample in samples]
    if min(len(sample) for sample in there) < 2 or not np.isfinite(margin):
        return Equivalence(margin, np.nan, np.nan, np.nan, np.nan)
    if all(np.ptp(sample) <= 1e-12 * np.abs(sample).max() for sample in there):
        difference = there[0].mean() - (there[1].mean() if len(there) > 1 else 0.0)
        within = (float(difference <= -margin), float(difference >= margin))
        return Equivalence(margin, float(difference), float(difference), *within)
    if len(there) == 1:
        described = DescrStatsW(there[0])
        _, below, above = described.ttost_mean(-margin, margin)
        low, high = described.tconfint_mean(alpha=0.1)
    else:
        compared = CompareMeans(*(DescrStatsW(sample) for sample in there))
        _, (below, above) = compared.ttost_ind(-margin, margin, usevar="unequal")
        low, high = compared.tconfint_diff(alpha=0.1, usevar="unequal")
    return Equivalence(margin, float(low), float(high), float(below[1]), float(above[1]))
