"""Measures of a run's tables."""

import math
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd


def ccdf(values: npt.ArrayLike) -> tuple[npt.NDArray[Any], npt.NDArray[np.float64]]:
    """Return the distinct values, ascending, and the share of all values at least as large.

    >>> [a.tolist() for a in ccdf([1, 1, 1, 5])]
    [[1, 5], [1.0, 0.25]]
    """
    distinct, counts = np.unique(np.asarray(values), return_counts=True)
    return distinct, counts[::-1].cumsum()[::-1] / max(1, int(counts.sum()))


def gini(values: npt.ArrayLike) -> float:
    """Return the Gini coefficient of non-negative amounts: 0 if all are equal, near 1 if one agent has everything.

    >>> gini([1, 1, 1, 1]), gini([0, 0, 0, 8])
    (0.0, 0.75)
    """
    ascending = np.sort(np.asarray(values, np.float64))
    n, total = len(ascending), float(ascending.sum())
    if not total:
        return 0.0
    weighted_sum = float(np.arange(1, n + 1, dtype=np.float64) @ ascending)
    return 2 * weighted_sum / (n * total) - (n + 1) / n


def top_share(values: npt.ArrayLike, share: float) -> float:
    """Return the part of the total that the largest `share` of the amounts (at least one) holds; 0 without amounts.

    >>> top_share([1, 1, 1, 1, 1, 1, 1, 1, 1, 11], 0.1)
    0.55
    """
    amounts = np.asarray(values, np.float64)
    total = float(amounts.sum())
    n = max(1, round(share * len(amounts)))
    return float(np.partition(amounts, -n)[-n:].sum()) / total if total else 0.0


@dataclass(frozen=True)
class TailExponent:
    """The exponent of a tail, its standard error, and the number of values."""

    exponent: float
    se: float
    n: int


def tail_exponent(sizes: npt.ArrayLike, above: int) -> TailExponent:
    """Return the exponent a of a tail, the integers in `sizes` from `above` (at least 1), if P(x) falls with x ** -a.

    Maximum likelihood and its standard error: Clauset, Shalizi, Newman 2009, equations 3.5 and 3.6,
    doi:10.1137/070710111. The fit does not show that the tail is a power law.

    Returns:
        The exponent, above 1; infinite if all values are `above`, NaN without any. Both have a standard error of NaN.
    """
    values = np.asarray(sizes)
    distinct, counts = np.unique(values[values >= above], return_counts=True)
    n = int(counts.sum())
    if not n:
        return TailExponent(math.nan, math.nan, 0)
    mean = float(counts @ np.log(distinct / above)) / n
    if not mean:
        return TailExponent(math.inf, math.nan, n)
    low, high = -25.0, 25.0  # of log(exponent - 1): the expected mean falls with the exponent
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if _mean_log(1 + math.exp(middle), above) > mean else (low, middle)
    exponent, step = 1 + math.exp((low + high) / 2), 1e-5 * math.exp((low + high) / 2)
    spread = (_mean_log(exponent - step, above) - _mean_log(exponent + step, above)) / (2 * step)
    return TailExponent(exponent, 1 / math.sqrt(n * spread), n)


_BERNOULLI: Final = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600)
_STEP: Final = 1e-30


def _mean_log(exponent: float, above: int) -> float:
    """Return the mean of log(x / above) over whole numbers x >= above with P(x) proportional to x ** -exponent.

    It is the slope of the logarithm of Hurwitz's zeta function, scaled by ``above ** exponent``: an Euler-Maclaurin sum
    with a complex-step derivative (Squire, Trapp 1998, doi:10.1137/S003614459631241X).
    """
    s = exponent + 1j * _STEP
    end = above + 30.0
    total = (np.arange(above, end) / above).astype(np.complex128) ** -s
    last = complex(end / above) ** -s
    zeta = complex(total.sum()) + last * (end / (s - 1) + 0.5)
    term = s / end
    for i, bernoulli in enumerate(_BERNOULLI):
        zeta += bernoulli * term * last
        term *= (s + 2 * i + 1) * (s + 2 * i + 2) / end**2
    return -zeta.imag / zeta.real / _STEP


TAILS: Final = (10, 100)
"""Sizes from which the tail of cascades is measured, as in VoterFraud2020."""

MIN_TAIL: Final = 50
"""Minimum number of values in a tail."""


def cascade_summary(cascades: pd.DataFrame) -> dict[str, Any]:
    """Return number, sizes, tails, depths and structural virality of cascades (`social.state.outcomes.cascades`).

    `tail_exponents` has the `TailExponent` of each tail in `TAILS` with at least `MIN_TAIL` cascades.
    """
    if cascades.empty:
        return {"n": 0}
    size = cascades["size"].to_numpy()
    virality = cascades["structural_virality"].to_numpy()[size > 1]
    tails = {f"above_{above}": tail_exponent(size, above) for above in TAILS}
    return {
        "n": len(cascades),
        "share_never_reshared": float((size == 1).mean()),
        "mean_size": float(size.mean()),
        "max_size": int(size.max()),
        "tail_exponents": {k: asdict(t) for k, t in tails.items() if t.n >= MIN_TAIL and math.isfinite(t.exponent)},
        "max_depth": int(cascades["depth"].max()),
        "max_breadth": int(cascades["breadth"].max()),
        "mean_structural_virality": float(virality.mean()) if len(virality) else 0.0,
        "median_structural_virality": float(np.median(virality)) if len(virality) else 0.0,
        "max_structural_virality": float(virality.max(initial=0.0)),
    }


def activity_summary(activity: npt.NDArray[np.integer[Any]]) -> dict[str, float]:
    """Return how unequally agents act, among all and among active agents; `activity` has each agent's action count."""
    active = activity[activity > 0]
    return {
        "mean": float(activity.mean()) if len(activity) else 0.0,
        "share_active": len(active) / max(1, len(activity)),
        "gini": gini(activity),
        "top_10_share": top_share(activity, 0.1),
        "gini_active": gini(active),
        "top_10_share_active": top_share(active, 0.1),
    }


def attention_summary(attention: npt.NDArray[np.integer[Any]]) -> dict[str, float]:
    """Return how unequally attention (`Outcomes.attention`) is shared, among all agents and among those seen."""
    return {name.replace("active", "seen"): value for name, value in activity_summary(attention).items()}


def hp_cycle(values: npt.ArrayLike, smoothing: float = 1600.0) -> npt.NDArray[np.float64]:
    """Return the cycle of a series: its deviation from a smooth trend (Hodrick and Prescott 1997, doi:10.2307/2953682).

    The trend minimises the squared deviations plus `smoothing` times the squared changes of its slope; 1600 is usual
    for quarterly data.
    """
    series = np.asarray(values, dtype=float)
    cycle: npt.NDArray[np.float64] = series - _smoother(len(series), smoothing) @ series
    return cycle


@lru_cache(maxsize=4)
def _smoother(n: int, smoothing: float) -> npt.NDArray[np.float64]:
    """Return the matrix that smooths a series of length n, shape (n, n)."""
    second_differences = np.diff(np.eye(n), 2, axis=0)
    return np.linalg.inv(np.eye(n) + smoothing * second_differences.T @ second_differences)


def business_cycle(gdp: npt.ArrayLike, unemployment: npt.ArrayLike, inflation: npt.ArrayLike) -> dict[str, float]:
    """Return statistics with which economists judge whether the quarters of an economy are plausible.

    Args:
        gdp: Real output, above 0, shape (n,), n at least 16.
        unemployment: Percent, shape (n,).
        inflation: Percent a year in each quarter, shape (n,).

    Returns:
        `output_sd` (percent) and `output_ar1` describe the cycle of log output. `okun` is the slope of the unemployment
        cycle on the output cycle, and `correlation` is their correlation. `accelerationist` is the slope of the yearly
        change of four-quarter inflation on the unemployment cycle. `phillips_level` is the slope of inflation on
        unemployment, which can be positive. `unemployment_min` and `unemployment_max` are the range of unemployment.
        `hp_cycle` computes the cycles.
    """
    output_cycle = hp_cycle(100 * np.log(np.asarray(gdp, dtype=float)))
    unemployment_rate, annual_rates = np.asarray(unemployment, dtype=float), np.asarray(inflation, dtype=float)
    unemployment_cycle = hp_cycle(unemployment_rate)
    yearly_means = np.convolve(annual_rates, np.ones(4) / 4, "valid")
    return {
        "output_sd": float(output_cycle.std()),
        "output_ar1": float(np.corrcoef(output_cycle[1:], output_cycle[:-1])[0, 1]),
        "okun": float(np.polyfit(output_cycle, unemployment_cycle, 1)[0]),
        "correlation": float(np.corrcoef(output_cycle, unemployment_cycle)[0, 1]),
        "accelerationist": float(np.polyfit(unemployment_cycle[7:], yearly_means[4:] - yearly_means[:-4], 1)[0]),
        "phillips_level": float(np.polyfit(unemployment_rate, annual_rates, 1)[0]),
        "unemployment_min": float(unemployment_rate.min()),
        "unemployment_max": float(unemployment_rate.max()),
    }
