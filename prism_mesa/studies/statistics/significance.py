"""Tests of one sample or two, from scipy, for many columns at once; Holm's correction."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import comb
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy import stats

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


def p_of_constant(*sizes: int) -> float:
    """Return the two-sided p of a difference other than 0 that has no variation, which a t-test would take for certain.

    It is exact: of all ways to give signs to the differences (one size), or to deal out the runs over both sides (two),
    two are as extreme. So up to five equal differences tell nothing at the level of .05.

    >>> p_of_constant(2), p_of_constant(6), p_of_constant(3, 3)
    (0.5, 0.03125, 0.1)
    """
    ways = 2 ** sizes[0] if len(sizes) == 1 else comb(sum(sizes), sizes[0])
    return min(1.0, 2 / ways)


def p_of_mean(values: Floats, scale: Floats | float = 0.0) -> Floats:
    """Return two-sided p-values of Student's t-test of each column's mean against 0.

    Numbers that are all 0 have p = 1, those that are all the same otherwise that of `p_of_constant`; fewer than two
    have none.

    Args:
        values: Shape (rows, columns); NaN where there is none.
        scale: As in `cells.constant`.
    """
    scale = np.broadcast_to(scale, values.shape[1])
    p = np.full(values.shape[1], np.nan)
    for columns, rows in alike(values):
        there = values[rows][:, columns]
        if len(there) < 2:
            continue
        flat = constant(there, scale[columns])
        none = np.abs(there).max(axis=0) <= ROUNDING * scale[columns]
        p[columns[flat]] = np.where(none[flat], 1.0, p_of_constant(len(there)))
        with nearly_equal():
            p[columns[~flat]] = stats.ttest_1samp(there[:, ~flat], 0.0, axis=0).pvalue
    return p


def p_of_two(left: Floats, right: Floats) -> Floats:
    """Return two-sided p-values of Welch's t-test of two samples, without gaps, for each column.

    Sides that are each all the same have p = 1 if they are equal, else that of `p_of_constant`; fewer than two runs of
    a side have none.
    """
    p = np.full(left.shape[1], np.nan)
    if min(len(left), len(right)) < 2:
        return p
    flat = constant(left) & constant(right)
    p[flat] = np.where(constant(np.stack([left[0], right[0]]))[flat], 1.0, p_of_constant(len(left), len(right)))
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
