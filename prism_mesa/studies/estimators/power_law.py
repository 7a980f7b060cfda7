"""Discrete power laws: maximum likelihood fits and their plausibility (Clauset, Shalizi and Newman 2009)."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import zeta

from prism_mesa.runs.measures import ccdf, tail_exponent
from prism_mesa.streams import generator

type Sizes = npt.NDArray[np.integer[Any]]

_TABLE: Final = 100_000
"""Number of sizes, from the least, with tabulated probabilities."""
_FEWEST: Final = 50  # values in the tail of a candidate start


@dataclass(frozen=True)
class PowerLaw:
    """A discrete power law fitted to sizes: P(x) is proportional to ``x ** -exponent`` for whole x from `least` on.

    Attributes:
        exponent: By maximum likelihood, with its standard error `se`.
        n: Number of sizes in the tail.
        ks: Kolmogorov-Smirnov distance between the cumulative shares of tail and law.
    """

    least: int
    exponent: float
    se: float
    n: int
    ks: float


def fit_power_law(sizes: npt.ArrayLike, least: int | None = None) -> PowerLaw:
    """Fit a power law to sizes (integers from 1) of at least `least`; NaN without two different sizes.

    With None, `least` is the size with the smallest `ks` among those with a tail of at least 50. The likelihood is
    exact (equation 3.5 of doi:10.1137/070710111): its approximation is biased below a least size of about 6.
    """
    values = np.asarray(sizes)
    if least is None:
        distinct, shares = ccdf(values)
        candidates = distinct[(distinct >= 1) & (shares * len(values) >= _FEWEST)]
        fits = [fit_power_law(values, int(start)) for start in candidates]
        known = [fit for fit in fits if math.isfinite(fit.ks)]
        return min(known, key=lambda fit: fit.ks) if known else PowerLaw(1, math.nan, math.nan, 0, math.nan)
    tail = values[values >= least]
    fit = tail_exponent(tail, least)
    if not math.isfinite(fit.exponent):
        return PowerLaw(least, math.nan, math.nan, fit.n, math.nan)
    return PowerLaw(least, fit.exponent, fit.se, fit.n, distance(tail, fit.exponent, least))


def distance(tail: npt.ArrayLike, exponent: float, least: int) -> float:
    """Return the largest distance between the cumulative shares of a tail and of a power law."""
    distinct, at_least = ccdf(tail)
    above = np.append(at_least[1:], 0.0)
    whole = zeta(exponent, least)
    law_above = zeta(exponent, distinct + 1.0) / whole
    law_from = zeta(exponent, distinct.astype(float)) / whole
    return float(max(np.abs(above - law_above).max(), np.abs(at_least - law_from).max()))


def drawn_sizes(exponent: float, least: int, n: int, rng: np.random.Generator) -> Sizes:
    """Return `n` sizes drawn from a discrete power law.

    Draws are exact up to 100,000 above the least size; beyond, the law is continuous (appendix D of
    doi:10.1137/070710111), an error of less than a ten-thousandth of a size.
    """
    survival = _survival(exponent, least)
    chance = 1.0 - rng.random(n)  # in (0, 1]
    place = np.searchsorted(-survival, -chance, side="right")
    sizes = least + place
    far = place >= _TABLE
    end = least + _TABLE - 0.5
    beyond = end * (chance[far] / survival[-1]) ** (-1.0 / (exponent - 1.0)) + 0.5
    sizes[far] = np.minimum(beyond, 2.0**62).astype(np.int64)
    return sizes


@lru_cache(maxsize=1)
def _survival(exponent: float, least: int) -> npt.NDArray[np.float64]:
    """Return the probabilities of sizes above `least`, `least` + 1, ..."""
    numbers = np.arange(least, least + _TABLE, dtype=float)
    return np.asarray(zeta(exponent, numbers + 1.0) / zeta(exponent, least))


def plausibility(fit: PowerLaw, draws: int = 200, key: str = "") -> float:
    """Return the share of samples of a fitted law with at least the data's distance from their own fit.

    Below .1 the law is ruled out (section 4.1 of doi:10.1137/070710111, for a fixed least size). With 200 draws the
    standard error is about .03. `key` seeds the draws.
    """
    if not math.isfinite(fit.ks):
        return math.nan
    rng = generator("plausibility of a power law", key)
    samples = (drawn_sizes(fit.exponent, fit.least, fit.n, rng) for _ in range(draws))
    return sum(fit_power_law(sample, fit.least).ks >= fit.ks for sample in samples) / draws
