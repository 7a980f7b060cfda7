"""Distributions of a finished run as the table `curves`, for figures of many runs."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import numpy as np
import numpy.typing as npt
import pandas as pd

from prism_mesa.runs.measures import ccdf
from prism_mesa.studies.estimators.graphs import reproduction, shapes_by_size
from prism_mesa.studies.estimators.timing import survival
from prism_mesa.studies.measures.cascades import measured_hops, measured_sizes
from prism_mesa.studies.measures.engagement import stays
from prism_mesa.studies.measures.measure import FinishedRun, measured_posts
from prism_mesa.studies.measures.rhythms import activities, delays, hourly_shares

CURVES: Final = "curves"  # the name of the table in `collect`
CURVE_TABLES: Final = ("engagements", "churn")  # optional tables that curves read
SHARES: Final = np.linspace(0, 1, 101)  # x values of the Lorenz curve of activity
DELAYS_MIN: Final = np.round(np.geomspace(1, 24 * 60, 60), 2)  # x values of the curve of delays
MIN_NODES: Final = 30  # minimum number of nodes at a hop for a reproduction number

type Curve = tuple[npt.ArrayLike, npt.ArrayLike]


def lorenz(amounts: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the Lorenz curve: the share of the lowest 0, 1, 2, ..., 100 % (Lorenz 1905, doi:10.2307/2276207).

    The curve is NaN if the amounts add up to 0.

    >>> lorenz([1, 1, 1, 1])[50]
    np.float64(0.5)
    """
    ascending = np.sort(np.asarray(amounts, np.float64))
    if not len(ascending) or not ascending.sum():
        return np.full(len(SHARES), np.nan)
    cumulative = np.append(0.0, ascending.cumsum()) / ascending.sum()
    return np.interp(SHARES * len(ascending), np.arange(len(cumulative)), cumulative)


def _delays(run: FinishedRun) -> Curve:
    ascending = np.sort(np.asarray(run.compute(delays), np.float64))
    n = len(ascending) or np.nan
    return DELAYS_MIN, np.searchsorted(ascending, DELAYS_MIN, side="right") / n


def _shape_by_size(column: str, run: FinishedRun) -> Curve:
    shapes = shapes_by_size(run.compute(measured_posts).cascades)
    return shapes["from_size"], shapes[column]


def _reproduction(run: FinishedRun) -> Curve:
    hop = run.compute(measured_hops)
    numbers = reproduction(hop)[np.bincount(hop) >= MIN_NODES]
    return np.arange(len(numbers)), numbers


_CURVES: Final[Mapping[str, Callable[[FinishedRun], Curve]]] = {
    "cascade_sizes": lambda run: ccdf(run.compute(measured_sizes)),
    "hours": lambda run: (np.arange(24), run.compute(hourly_shares)),
    "activity": lambda run: (SHARES, lorenz(run.compute(activities))),
    "delays": _delays,
    "reproduction": _reproduction,
    "depth": partial(_shape_by_size, "depth"),
    "breadth": partial(_shape_by_size, "breadth"),
    "virality": partial(_shape_by_size, "structural_virality"),
    "stays": lambda run: survival(*run.compute(stays)) if run.config.has_churn else ((), ()),
}


def run_curves(run: FinishedRun) -> pd.DataFrame:
    """Return the curves of a run: columns `curve` (the name), `x` and `y`."""
    parts = []
    for name, curve in _CURVES.items():
        x, y = (np.asarray(values, np.float64) for values in curve(run))
        parts.append(pd.DataFrame({"curve": name, "x": x, "y": y}))
    return pd.concat(parts, ignore_index=True)
