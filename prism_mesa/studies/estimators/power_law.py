"""Discrete power laws: maximum likelihood fits and their plausibility (Clauset, Shalizi and Newman 2009)."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import zeta

from prism_mesa.arrays import Floats, Rows
from prism_mesa.runs.measures import ccdf, tail_exponent
from prism_mesa.streams import make_generator

_TABLE_SIZE: Final = 100_000
"""Number of tabulated probabilities, from the smallest size on."""
_MIN_TAIL: Final = 50  # minimum number of sizes from a candidate for `min_size` on


@dataclass(frozen=True)
class PowerLaw:
    """A discrete power law: P(x) is proportional to ``x ** -exponent`` for integers x from `min_size` on.

    Attributes:
        exponent: The maximum likelihood estimate, with the standard error `se`.
        n: Number of sizes in the tail.
        ks: Kolmogorov-Smirnov distance between the cumulative shares of tail and law.
    """

    min_size: int
    exponent: float
    se: float
    n: int
    ks: float


def fit_power_law(sizes: npt.ArrayLike, min_size: int | None = None) -> PowerLaw:
    """Fit a power law to sizes (integers from 1) of at least `min_size`; NaN without two different sizes.

    By default, `min_size` is the size with the smallest `ks`, among sizes with a tail of at least 50. The likelihood is
    exact (equation 3.5 of doi:10.1137/070710111); its approximation is biased if the smallest size is below about 6.
    """
    values = np.asarray(sizes)
    if min_size is None:
        unique_sizes, shares = ccdf(values)
        candidates = unique_sizes[(unique_sizes >= 1) & (shares * len(values) >= _MIN_TAIL)]
        fits = [fit_power_law(values, int(start)) for start in candidates]
        finite_fits = [fit for fit in fits if math.isfinite(fit.ks)]
        return min(finite_fits, key=lambda fit: fit.ks) if finite_fits else PowerLaw(1, math.nan, math.nan, 0, math.nan)
    tail = values[values >= min_size]
    fit = tail_exponent(tail, min_size)
    if not math.isfinite(fit.exponent):
        return PowerLaw(min_size, math.nan, math.nan, fit.n, math.nan)
    return PowerLaw(min_size, fit.exponent, fit.se, fit.n, distance(tail, fit.exponent, min_size))


def distance(tail: npt.ArrayLike, exponent: float, min_size: int) -> float:
    """Return the largest distance between the cumulative shares of a tail and of a power law."""
    unique_sizes, share_from = ccdf(tail)
    share_above = np.append(share_from[1:], 0.0)
    total = zeta(exponent, min_size)
    law_above = zeta(exponent, unique_sizes + 1.0) / total
    law_from = zeta(exponent, unique_sizes.astype(float)) / total
    return float(max(np.abs(share_above - law_above).max(), np.abs(share_from - law_from).max()))


def draw_sizes(exponent: float, min_size: int, n: int, rng: np.random.Generator) -> Rows:
    """Return `n` sizes drawn from a discrete power law.

    Draws are exact up to 100,000 above the smallest size. Larger draws come from a continuous law (appendix D of
    doi:10.1137/070710111), with an error of less than a ten-thousandth of a size.
    """
    survival = _survival(exponent, min_size)
    probability = 1.0 - rng.random(n)  # in (0, 1]
    index = np.searchsorted(-survival, -probability, side="right")
    sizes = min_size + index
    is_far = index >= _TABLE_SIZE
    end = min_size + _TABLE_SIZE - 0.5
    far_sizes = end * (probability[is_far] / survival[-1]) ** (-1.0 / (exponent - 1.0)) + 0.5
    sizes[is_far] = np.minimum(far_sizes, 2.0**62).astype(np.int64)
    return sizes


@lru_cache(maxsize=1)
def _survival(exponent: float, min_size: int) -> Floats:
    """Return the probabilities of sizes above `min_size`, `min_size` + 1, ..."""
    numbers = np.arange(min_size, min_size + _TABLE_SIZE, dtype=float)
    return np.asarray(zeta(exponent, numbers + 1.0) / zeta(exponent, min_size))


def plausibility(fit: PowerLaw, draws: int = 200, key: str = "") -> float:
    """Return the share of samples of a fitted law that are at least as far from their own fit as the data.

    Below .1 the law is ruled out (section 4.1 of doi:10.1137/070710111, for a fixed smallest size). With 200 draws the
    standard error is about .03. `key` seeds the draws.
    """
    if not math.isfinite(fit.ks):
        return math.nan
    rng = make_generator("plausibility of a power law", key)
    samples = (draw_sizes(fit.exponent, fit.min_size, fit.n, rng) for _ in range(draws))
    return sum(fit_power_law(sample, fit.min_size).ks >= fit.ks for sample in samples) / draws
