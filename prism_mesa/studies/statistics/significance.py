"""Tests, Student's intervals and equivalence tests (TOST) for many columns at once; Holm's correction."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import comb
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import stats
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from prism_mesa.streams import Floats
from prism_mesa.studies.statistics.cells import ROUNDING, alike, constant

ALPHA: Final = 0.05
_EXACT: Final = 8
"""Runs of a side up to which Mann-Whitney's p is exact if no two runs have the same number (scipy's own bound)."""


def holm(p: npt.ArrayLike) -> Floats:
    """Return p-values corrected by Holm (1979, https://www.jstor.org/stable/4615733), each column for itself.

    Those that are not a number stay so, and are not counted. (statsmodels' `multipletests` gives the same, and collects
    garbage at each call: 60 ms for a column of three.)

    Args:
        p: Shape (tests,) or (tests, columns).

    >>> holm([0.01, 0.04, float("nan"), 0.03]).tolist()
    [0.03, 0.06, nan, 0.06]
    """
    given = np.asarray(p, np.float64)
    order = np.argsort(given, axis=0, kind="stable")  # NaN last
    known = np.isfinite(given).sum(axis=0)
    ranks = np.arange(len(given)).reshape(-1, *[1] * (given.ndim - 1))
    raised = np.take_along_axis(given, order, axis=0) * np.maximum(known - ranks, 1)
    corrected = np.empty(given.shape)
    np.put_along_axis(corrected, order, np.minimum(np.maximum.accumulate(raised, axis=0), 1.0), axis=0)
    return corrected


def constant_p(*sizes: int) -> float:
    """Return the two-sided p of a difference other than 0 that has no variation, which a t-test would take for certain.

    It is exact: of all ways to give signs to the differences (one size), or to deal out the runs over both sides (two),
    two are as extreme. So up to five equal differences tell nothing at the level of .05.

    >>> constant_p(2), constant_p(6), constant_p(3, 3)
    (0.5, 0.03125, 0.1)
    """
    ways = 2 ** sizes[0] if len(sizes) == 1 else comb(sum(sizes), sizes[0])
    return min(1.0, 2 / ways)


def mean_p(values: Floats, scale: Floats | float = 0.0) -> Floats:
    """Return two-sided p-values of Student's t-test of each column's mean against 0.

    Numbers that are all 0 have p = 1, those that are all the same otherwise that of `constant_p`; fewer than two
    have none.

    Args:
        values: Shape (rows, columns); NaN where there is none.
        scale: Of each column, the size of what the numbers are differences of, if they are: it was rounded too.
    """
    scale = np.broadcast_to(scale, values.shape[1])
    p = np.full(values.shape[1], np.nan)
    for columns, rows in alike(values):
        there = values[rows][:, columns]
        if len(there) < 2:
            continue
        flat = constant(there, scale[columns])
        none = np.abs(there).max(axis=0) <= ROUNDING * scale[columns]
        p[columns[flat]] = np.where(none[flat], 1.0, constant_p(len(there)))
        with nearly_equal():
            p[columns[~flat]] = stats.ttest_1samp(there[:, ~flat], 0.0, axis=0).pvalue
    return p


def two_sample_p(left: Floats, right: Floats) -> Floats:
    """Return two-sided p-values of Welch's t-test of two samples, without gaps, for each column.

    Sides that are each all the same have p = 1 if they are equal, else that of `constant_p`; fewer than two runs of
    a side have none.
    """
    p = np.full(left.shape[1], np.nan)
    if min(len(left), len(right)) < 2:
        return p
    flat = constant(left) & constant(right)
    p[flat] = np.where(constant(np.stack([left[0], right[0]]))[flat], 1.0, constant_p(len(left), len(right)))
    with nearly_equal():
        p[~flat] = stats.ttest_ind(left[:, ~flat], right[:, ~flat], axis=0, equal_var=False).pvalue
    return p


@contextmanager
def nearly_equal() -> Iterator[None]:
    """Let scipy not warn of a side whose numbers are all the same: the other one has a variance to test by."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        yield


def mann_whitney(left: Floats, right: Floats) -> tuple[Floats, Floats, Floats]:
    """Return U of the left side, the two-sided p and the rank-biserial r of each column.

    r is 2 U / (n m) - 1 (Kerby 2014, doi:10.2466/11.IT.3.1): 1 where every run on the left lies above every one on the
    right. p is exact for few runs without equal numbers, otherwise from the normal distribution, corrected for ties.

    Args:
        left: Shape (runs, columns), without gaps.
        right: The same of the other side.
    """
    columns, sizes = left.shape[1], len(left) * len(right)
    u, p = np.full((2, columns), np.nan)
    if not sizes:
        return u, p, u.copy()
    both = np.sort(np.concatenate([left, right]), axis=0)
    tied = (both[1:] == both[:-1]).any(axis=0)
    flat = both[0] == both[-1]
    few = max(len(left), len(right)) <= _EXACT
    u[flat], p[flat] = sizes / 2, 1.0
    for some, method in (((~tied & few), "exact"), (~flat & ~(~tied & few), "asymptotic")):
        if some.any():
            found = stats.mannwhitneyu(left[:, some], right[:, some], axis=0, method=method)
            u[some], p[some] = found.statistic, found.pvalue
    return u, p, 2 * u / sizes - 1


LEVEL: Final = 0.95


def interval(samples: tuple[Floats, ...], scale: Floats | float = 0.0) -> tuple[Floats, Floats]:
    """Return the ends of Student's 95 % intervals of a mean, or Welch's of the difference of two means.

    The degrees of freedom are n - 1 for one sample, and Welch-Satterthwaite's for two, as in the t-tests of
    `significance`: an interval leaves out 0 exactly where p is below .05. Values that are all equal have an interval
    without width if there are enough of them (`constant_p` below .05), else none (NaN). Fewer than two values have
    no interval either.

    Args:
        samples: One or two, each of shape (rows, columns), without gaps. Rows are independent: seeds, or runs.
        scale: As in `cells.constant`, of one sample.
    """
    low, high = np.full((2, samples[0].shape[1]), np.nan)
    if min(len(sample) for sample in samples) < 2:
        return low, high
    flat = np.all([constant(sample, scale if len(samples) == 1 else 0.0) for sample in samples], axis=0)
    if constant_p(*map(len, samples)) < ALPHA:
        low[flat] = high[flat] = samples[0][0, flat] - (samples[1][0, flat] if len(samples) > 1 else 0.0)
    if not flat.all():
        rest = tuple(sample[:, ~flat] for sample in samples)
        with nearly_equal():
            test = stats.ttest_1samp(*rest, 0.0) if len(rest) == 1 else stats.ttest_ind(*rest, equal_var=False)
        low[~flat], high[~flat] = test.confidence_interval(LEVEL)
    return low, high


@dataclass(frozen=True)
class Equivalence:
    """Two one-sided tests of a difference (Schuirmann 1987, doi:10.1007/BF01068419), and one of its being larger.

    Attributes:
        margin: How far from 0 the difference may lie.
        low: Where the interval of 90 % of the difference begins (t): it lies within the margin where `p` is below .05.
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

    A difference that is the same everywhere has the p-values of `constant_p`; only runs that are identical, seed by
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
    p = constant_p(*map(len, samples))
    above, under = difference > -margin + rounding, difference < margin - rounding
    beyond = abs(difference) > margin + rounding
    low = high = difference if p / 2 < ALPHA else np.nan
    one_sided = (p / 2 if above else 1.0, p / 2 if under else 1.0)
    return Equivalence(margin, low, high, *one_sided, p if beyond else 1.0, beyond)
