"""What the data say of each parameter: how low the objective can be at each of its values, whatever the others are.

Profiles as Raue et al. 2009 (doi:10.1093/bioinformatics/btp358) have them, of the surrogate in place of the model: a
tolerance is read as a standard deviation, so that the objective is minus twice a log likelihood, and where it rises by
3.84 above its least a 95 % interval ends. A parameter whose profile stays below that up to a bound is not identified
on that side.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from prism_mesa.streams import Floats, generator
from prism_mesa.studies.calibration.plan import Axis, Space
from prism_mesa.studies.calibration.surrogate import Surrogate

GRID: Final = 25  # values of a parameter at which its profile is told
LEEWAY: Final = 1.0  # standard deviations of the surrogate by which a value is given the benefit of the doubt
_PROBED: Final = 9
_TRIES: Final = 128
_ROUNDS: Final = 5

IDENTIFIED: Final = "identified"
ONLY_ABOVE: Final = "not identified below: flat down to the lowest value"
ONLY_BELOW: Final = "not identified above: flat up to the highest value"
OPEN: Final = "not identified: flat from the lowest value to the highest"


@dataclass(frozen=True)
class Profiles:
    """Profiles of all parameters.

    Attributes:
        curves: For each parameter and value: `parameter`, `value`, `objective` (the least that the surrogate has
            there), `possible` (the least where it may err by one standard deviation), `tried` (the least of the trials
            around that value; NaN without any).
        intervals: For each parameter: `parameter`, `fitted`, `low`, `high` (where `possible` is within the rise),
            `lowest`, `highest` (the range), `verdict`.
        least: The least of the surrogate.
    """

    curves: pd.DataFrame
    intervals: pd.DataFrame
    least: float


def fit_profiles(
    space: Space, points: Floats, distances: Floats, objectives: Floats, best: Floats, rise: float
) -> Profiles:
    """Return the profiles that trials allow.

    Args:
        space: The ranges of the parameters.
        points: Places of the trials that did not fail, shape (trials, axes).
        distances: Of them, shape (trials, targets); NaN where a measure is not defined.
        objectives: The objective of each trial.
        best: The fitted values.
        rise: How far the objective may rise within an interval.
    """
    surrogate = Surrogate.fit(points, distances)
    curves = [_curve(space, place, surrogate, points, objectives) for place in range(len(space.axes))]
    least = min(min(float(curve["objective"].min()) for curve in curves), float(surrogate.objective(best[None])[0]))
    rows = [
        _interval(axis, curve, float(best[place]), least + rise)
        for place, (axis, curve) in enumerate(zip(space.axes, curves, strict=True))
    ]
    return Profiles(pd.concat(curves, ignore_index=True), pd.DataFrame(rows), least)


def probe(surrogate: Surrogate, points: Floats, objectives: Floats, axis: int, rise: float) -> Floats | None:
    """Return the place that would tell most about the profile of a parameter: where it is low, and no trial says so.

    Of the values of the parameter at which the surrogate may be within the rise, it is that at which the best trial is
    worst, or none is near; with the other parameters as the surrogate has its least. None if there is no such value.

    Args:
        surrogate: A model of the trials.
        points: Places of the trials, shape (trials, axes).
        objectives: The objective of each trial.
        axis: Place of the parameter among the axes.
        rise: How far the objective may rise within an interval.
    """
    grid = np.linspace(0.0, 1.0, _PROBED)
    width = 0.5 / (_PROBED - 1)
    found = _least(surrogate, points, axis, grid, LEEWAY)
    most = float(objectives.min()) + rise
    near = [np.abs(points[:, axis] - at) <= width for at in grid]
    tried = np.array([objectives[rows].min() if rows.any() else np.inf for rows in near])
    claimed = (surrogate.objective(found, leeway=LEEWAY) <= most) & (tried > most)
    if not claimed.any():
        return None
    return np.asarray(found[np.argmax(np.where(claimed, tried, -np.inf))])


def _curve(space: Space, place: int, surrogate: Surrogate, points: Floats, objectives: Floats) -> pd.DataFrame:
    axis, grid = space.axes[place], np.linspace(0.0, 1.0, GRID)
    width = 0.5 / (GRID - 1)
    near = [np.abs(points[:, place] - at) <= width for at in grid]
    lows = {leeway: _least(surrogate, points, place, grid, leeway) for leeway in (0.0, LEEWAY)}
    return pd.DataFrame(
        {
            "parameter": axis.key,
            "value": [float(axis.value(at)) for at in grid],
            "objective": surrogate.objective(lows[0.0]),
            "possible": surrogate.objective(lows[LEEWAY], leeway=LEEWAY),
            "tried": [float(objectives[rows].min()) if rows.any() else np.nan for rows in near],
        }
    )


def _least(surrogate: Surrogate, points: Floats, place: int, grid: Floats, leeway: float) -> Floats:
    """Return where the surrogate is lowest at each value of one axis, over all other axes; shape (grid, axes).

    The search starts from the trials and random places, and then narrows around the best place of each value and of
    its neighbours.
    """
    n_axes = points.shape[1]
    if n_axes == 1:
        return grid[:, None]
    draws, each = generator("calibration/profile", str(place)), np.arange(len(grid))

    def lowest(tried: Floats) -> Floats:
        tried = np.array(np.broadcast_to(tried, (len(grid), *tried.shape[-2:])))
        tried[:, :, place] = grid[:, None]
        values = surrogate.objective(tried.reshape(-1, n_axes), leeway=leeway).reshape(len(grid), -1)
        return np.asarray(tried[each, values.argmin(axis=1)])

    best = lowest(np.vstack([points, draws.random((_TRIES, n_axes))]))
    for narrower in range(_ROUNDS):
        steps = draws.normal(0.0, 0.15 * 0.5**narrower, (_TRIES, n_axes))
        neighbours = best[np.clip(each[:, None] + (-1, 0, 1), 0, len(grid) - 1)]
        best = lowest(np.clip(np.concatenate([neighbours, best[:, None] + steps], axis=1), 0.0, 1.0))
    return best


def _interval(axis: Axis, curve: pd.DataFrame, best: float, most: float) -> dict[str, object]:
    """Return where a profile is below a line around the fitted value, and what that says of the parameter."""
    grid = np.linspace(0.0, 1.0, GRID)
    height = curve["possible"].to_numpy() - most
    middle = int(np.argmin(np.abs(grid - best)))
    low, high = _crossing(grid, height, middle, -1, best), _crossing(grid, height, middle, 1, best)
    verdicts = {(True, True): OPEN, (True, False): ONLY_ABOVE, (False, True): ONLY_BELOW, (False, False): IDENTIFIED}
    return {
        "parameter": axis.key,
        "fitted": float(axis.value(best)),
        "low": float(axis.value(0.0 if low is None else low)),
        "high": float(axis.value(1.0 if high is None else high)),
        "lowest": axis.low,
        "highest": axis.high,
        "verdict": verdicts[low is None, high is None],
    }


def _crossing(grid: Floats, height: Floats, start: int, step: int, best: float) -> float | None:
    """Return the outermost place in a direction at which a curve comes below 0, or None if it is below at the end."""
    end = 0 if step < 0 else len(grid) - 1
    if height[end] <= 0:
        return None
    at = end
    while at != start and height[at] > 0:
        at -= step
    if at == start and height[at] > 0:
        return best
    above = at + step
    share = height[at] / (height[at] - height[above])
    return float(grid[at] + share * (grid[above] - grid[at]))
