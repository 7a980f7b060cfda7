"""Intervals of 95 %, for many columns at once, the same for the same numbers at all times.

Of few numbers they are Student's t, which agrees with the tests; of more, the bootstrap's BCa. Both are scipy's.
"""

import warnings
from collections.abc import Callable
from typing import Final

import numpy as np
from scipy import stats

from prism_mesa.streams import Floats, generator
from prism_mesa.studies.statistics.cells import constant
from prism_mesa.studies.statistics.significance import ALPHA, nearly_equal, p_of_constant

FEW: Final = 10
"""Numbers below which bootstrap intervals are too narrow: Student's are taken."""
RESAMPLES: Final = 2000
LEVEL: Final = 0.95
_BATCH: Final = 100
_AT_ONCE: Final = 1_000_000
"""Numbers that are held in memory at the same time."""

type Statistic = Callable[..., Floats]


def mean(values: Floats, axis: int = 0) -> Floats:
    """Return the mean along an axis."""
    return np.asarray(values.mean(axis=axis))


def difference_of_means(left: Floats, right: Floats, axis: int = 0) -> Floats:
    """Return the mean of one sample less that of another."""
    return np.asarray(left.mean(axis=axis) - right.mean(axis=axis))


def mean_of_all(sums: Floats, counts: Floats, axis: int = 0) -> Floats:
    """Return the mean over all pairs, where each seed has a sum of some and their number."""
    return np.asarray(sums.sum(axis=axis) / counts.sum(axis=axis))


def interval(samples: tuple[Floats, ...], scale: Floats | float = 0.0) -> tuple[Floats, Floats]:
    """Return the ends of 95 % intervals of a mean, or of the difference of two.

    Of fewer than ten numbers (of either sample) they are those of the t-test (Welch's of two), else of the bootstrap.
    Numbers that are all the same have an interval of no width if there are enough of them (`p_of_constant` below .05),
    else none (NaN), as have fewer than two.

    Args:
        samples: One or two, each of shape (rows, columns), without gaps.
        scale: As in `cells.constant`, of one sample.
    """
    fewest = min(len(sample) for sample in samples)
    low, high = np.full((2, samples[0].shape[1]), np.nan)
    if fewest < 2:
        return low, high
    flat = np.all([constant(sample, scale if len(samples) == 1 else 0.0) for sample in samples], axis=0)
    if p_of_constant(*map(len, samples)) < ALPHA:
        low[flat] = high[flat] = samples[0][0, flat] - (samples[1][0, flat] if len(samples) > 1 else 0.0)
    if not flat.all():
        rest = tuple(sample[:, ~flat] for sample in samples)
        statistic = mean if len(samples) == 1 else difference_of_means
        low[~flat], high[~flat] = _student(rest) if fewest < FEW else bootstrap(rest, statistic)
    return low, high


def _student(samples: tuple[Floats, ...]) -> tuple[Floats, Floats]:
    with nearly_equal():
        found = stats.ttest_1samp(*samples, 0.0) if len(samples) == 1 else stats.ttest_ind(*samples, equal_var=False)
    ends = found.confidence_interval(LEVEL)
    return ends.low, ends.high


def bootstrap(samples: tuple[Floats, ...], statistic: Statistic, *, paired: bool = False) -> tuple[Floats, Floats]:
    """Return the ends of 95 % intervals of a statistic (BCa; Efron 1987, doi:10.1080/01621459.1987.10478410).

    Numbers that are all the same have an interval of no width; of fewer than two there is none (NaN).

    Args:
        samples: Each of shape (rows, columns), without gaps.
        statistic: Of the samples, along `axis`.
        paired: Whether rows of the samples belong together and are drawn together.
    """
    low, high = np.full((2, samples[0].shape[1]), np.nan)
    if min(len(sample) for sample in samples) < 2:
        return low, high
    flat = np.all([constant(sample) for sample in samples], axis=0)
    low[flat] = high[flat] = statistic(*(sample[:, flat] for sample in samples), axis=0)
    rest = np.flatnonzero(~flat)
    step = max(1, _AT_ONCE // max(RESAMPLES, _BATCH * sum(len(sample) for sample in samples)))
    for start in range(0, len(rest), step):
        some = rest[start : start + step]
        low[some], high[some] = _bca(tuple(sample[:, some] for sample in samples), statistic, paired)
    return low, high


def _bca(samples: tuple[Floats, ...], statistic: Statistic, paired: bool) -> tuple[Floats, Floats]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", stats.DegenerateDataWarning)  # its interval is NaN, which says so
        found = stats.bootstrap(
            samples,
            statistic,
            axis=0,
            vectorized=True,
            paired=paired,
            n_resamples=RESAMPLES,
            batch=_BATCH,
            confidence_level=LEVEL,
            method="BCa",
            rng=generator("studies/bootstrap"),
        )
    return found.confidence_interval.low, found.confidence_interval.high
