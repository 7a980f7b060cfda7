"""Bootstrap intervals: scipy's BCa, for many columns at once, the same for the same numbers at all times."""

import warnings
from collections.abc import Callable
from typing import Final

import numpy as np
from scipy import stats

from prism_mesa.streams import Floats, generator
from prism_mesa.studies.statistics.cells import constant

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
