"""Discrete power laws by maximum likelihood, and how well one fits (Clauset, Shalizi and Newman 2009)."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from scipy.special import zeta

from prism_mesa.runs.measures import TailExponent, ccdf, tail_exponent
from prism_mesa.streams import generator

type Sizes = npt.NDArray[np.integer[Any]]

_TABLE: Final = 100_000
"""Whole numbers above the least one whose probabilities are tabulated to draw from."""

_FEWEST: Final = 50
"""So many values must be in a tail that is looked for."""


@dataclass(frozen=True)
class PowerLaw:
    """A discrete power law, P(x) in proportion to ``x ** -exponent`` for whole x from `least` on, fitted to sizes.

    Attributes:
        least: The smallest size that counts.
        exponent: By maximum likelihood; its standard error `se`.
        n: Sizes in the tail.
        ks: Largest distance between the cumulative shares of the tail and of the law (Kolmogorov and Smirnov).
    """

    least: int
    exponent: float
    se: float
    n: int
    ks: float


def fit_power_law(sizes: npt.ArrayLike, least: int | None = None) -> PowerLaw:
    """Return the power law of a tail.

    The exponent is that of the exact likelihood (equation 3.5 of doi:10.1137/070710111), not of its approximation,
    which is biased below a least size of about 6.

    Args:
        sizes: Whole numbers from 1 on, in any order.
        least: Where the tail begins; None: where the distance `ks` is smallest, among sizes with a tail of at least 50.

    Returns:
        The law; exponent and distance are NaN where the tail has no two different sizes.
    """
    values = np.asarray(sizes)
    if least is None:
        distinct, shares = ccdf(values)
        candidates = distinct[(distinct >= 1) & (shares * len(values) >= _FEWEST)]
        fits = [fit_power_law(values, int(start)) for start in candidates]
        known = [fit for fit in fits if math.isfinite(fit.ks)]
        return min(known, key=lambda fit: fit.ks) if known else PowerLaw(1, math.nan, math.nan, 0, math.nan)
    tail = values[values >= least]
    found: TailExponent = tail_exponent(tail, least)
    if not math.isfinite(found.exponent):
        return PowerLaw(least, math.nan, math.nan, found.n, math.nan)
    return PowerLaw(least, found.exponent, found.se, found.n, distance(tail, found.exponent, least))


def distance(tail: npt.ArrayLike, exponent: float, least: int) -> float:
    """Return the largest distance between cumulative shares of a tail's sizes and of a power law.

    Args:
        tail: Whole numbers of at least `least`.
        exponent: Above 1.
        least: The smallest size of the law, at least 1.
    """
    distinct, at_least = ccdf(tail)
    above = np.append(at_least[1:], 0.0)
    whole = zeta(exponent, least)
    law_above = zeta(exponent, distinct + 1.0) / whole
    law_from = zeta(exponent, distinct.astype(float)) / whole
    return float(max(np.abs(above - law_above).max(), np.abs(at_least - law_from).max()))


def drawn_sizes(exponent: float, least: int, n: int, rng: np.random.Generator) -> Sizes:
    """Return sizes drawn from a discrete power law, shape (n,).

    Up to 100,000 above the least one they are exact; beyond, the law is taken as continuous (appendix D of
    doi:10.1137/070710111), which errs by less than a ten-thousandth of a size.
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
    """Return the probabilities of more than `least`, `least` + 1, ..., falling."""
    numbers = np.arange(least, least + _TABLE, dtype=float)
    return np.asarray(zeta(exponent, numbers + 1.0) / zeta(exponent, least))


def plausibility(fit: PowerLaw, draws: int = 200, key: str = "") -> float:
    """Return the share of samples of a fitted law, each fitted anew, that lie as far from their fit as the data do.

    Below .1 the law is ruled out (section 4.1 of doi:10.1137/070710111; the least size is taken as given, so that only
    the tail is drawn). With 200 draws the share is known to within some .03.

    Args:
        fit: What `fit_power_law` returned.
        draws: Samples, at least 1.
        key: Another text, other draws.
    """
    if not math.isfinite(fit.ks):
        return math.nan
    rng = generator("plausibility of a power law", key)
    samples = (drawn_sizes(fit.exponent, fit.least, fit.n, rng) for _ in range(draws))
    return sum(fit_power_law(sample, fit.least).ks >= fit.ks for sample in samples) / draws
