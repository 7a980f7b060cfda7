"""Distributions of a finished run as a small table, `curves`, for figures of many runs."""

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
READ: Final = ("engagements", "churn")  # tables that it needs while rounds run
SHARES: Final = np.linspace(0, 1, 101)  # x of the Lorenz curve of activity
DELAYS_MIN: Final = np.round(np.geomspace(1, 24 * 60, 60), 2)  # x of the curve of delays
FEWEST: Final = 30  # nodes of a hop that a reproduction number needs

type Curve = tuple[npt.ArrayLike, npt.ArrayLike]


def lorenz(amounts: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the share of the lowest 0, 1, 2, ..., 100 % (Lorenz 1905, doi:10.2307/2276207); NaN without any amount.

    >>> lorenz([1, 1, 1, 1])[50]
    np.float64(0.5)
    """
    ascending = np.sort(np.asarray(amounts, np.float64))
    if not len(ascending) or not ascending.sum():
        return np.full(len(SHARES), np.nan)
    held = np.append(0.0, ascending.cumsum()) / ascending.sum()
    return np.interp(SHARES * len(ascending), np.arange(len(held)), held)


def up_to(minutes: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the share of delays up to each of `DELAYS_MIN`; NaN without any."""
    ascending = np.sort(np.asarray(minutes, np.float64))
    if not len(ascending):
        return np.full(len(DELAYS_MIN), np.nan)
    return np.searchsorted(ascending, DELAYS_MIN, side="right") / len(ascending)


def _by_size(column: str, run: FinishedRun) -> Curve:
    shapes = shapes_by_size(run.once(measured_posts).cascades)
    return shapes["from_size"], shapes[column]


def _hops(run: FinishedRun) -> Curve:
    hop = run.once(measured_hops)
    numbers = reproduction(hop)[np.bincount(hop) >= FEWEST]
    return np.arange(len(numbers)), numbers


_CURVES: Final[Mapping[str, Callable[[FinishedRun], Curve]]] = {
    "cascade_sizes": lambda run: ccdf(run.once(measured_sizes)),  # share of cascades of at least a size
    "hours": lambda run: (np.arange(24), run.once(hourly_shares)),
    "activity": lambda run: (SHARES, lorenz(run.once(activities))),
    "delays": lambda run: (DELAYS_MIN, up_to(run.once(delays))),
    "reproduction": _hops,
    "depth": partial(_by_size, "depth"),
    "breadth": partial(_by_size, "breadth"),
    "virality": partial(_by_size, "structural_virality"),
    "stays": lambda run: survival(*run.once(stays)) if run.config.has_churn else ((), ()),  # share that lasts longer
}


def run_curves(run: FinishedRun) -> pd.DataFrame:
    """Return the curves of a run: columns `curve` (its name), `x` and `y`."""
    parts = []
    for name, points in _CURVES.items():
        x, y = (np.asarray(values, np.float64) for values in points(run))
        parts.append(pd.DataFrame({"curve": name, "x": x, "y": y}))
    return pd.concat(parts, ignore_index=True)
