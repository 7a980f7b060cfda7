"""A surrogate of the objective (Gaussian processes), its minima, and profiles of parameters.

Profiles follow Raue et al. 2009 (doi:10.1093/bioinformatics/btp358), with the surrogate in place of the model. If a
tolerance is a standard deviation, the objective is minus twice a log likelihood. A 95 % interval then ends where the
objective is 3.84 above its minimum.
"""

import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, Self

import numpy as np
import pandas as pd

from prism_mesa.arrays import Floats
from prism_mesa.errors import ConfigError
from prism_mesa.extras import install_hint
from prism_mesa.streams import make_generator
from prism_mesa.studies.calibration.plan import Axis

_MAX_TRIALS: Final = 300
"""Maximum number of trials that a process is fitted to: half are the best trials, half are spaced evenly by rank."""
SKLEARN: Final = "sklearn.gaussian_process"
GRID: Final = 25  # values of a parameter in its profile
LEEWAY: Final = 1.0  # assumed error of the surrogate, in standard deviations
_PROBE_VALUES: Final = 9  # values of a parameter that a probe chooses from
IDENTIFIED: Final = "identified"
ONLY_ABOVE: Final = "not identified below: flat down to the lowest value"
ONLY_BELOW: Final = "not identified above: flat up to the highest value"
OPEN: Final = "not identified: flat from the lowest value to the highest"


def import_optional(module: str, package: str) -> Any:
    """Import an optional module; raise ConfigError if its package is not installed."""
    try:
        return import_module(module)
    except ImportError:
        raise ConfigError(f"prism calibrate needs {package}: {install_hint('calibrate', package)}") from None


@dataclass(frozen=True)
class GaussianProcess:
    """A Gaussian process fitted to noisy values by maximum likelihood (Rasmussen and Williams 2006, chapter 5).

    The process has a Matern 5/2 kernel with a length scale for each axis.
    """

    regressor: Any
    noise: float

    @classmethod
    def fit(cls, points: Floats, values: Floats) -> Self:
        """Fit a process to values at points of shape (n, axes), with positions from 0 to 1."""
        gaussian = import_optional(SKLEARN, "scikit-learn")
        kernels = gaussian.kernels
        matern = kernels.Matern([0.5] * points.shape[1], (0.1, 10.0), nu=2.5)
        kernel = kernels.ConstantKernel(1.0, (1e-2, 1e3)) * matern + kernels.WhiteKernel(0.01, (1e-6, 1.0))
        regressor = gaussian.GaussianProcessRegressor(kernel, normalize_y=True, n_restarts_optimizer=1, random_state=0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a length scale is at its bound if the parameter has no effect
            regressor.fit(points, values)
        return cls(regressor, float(regressor.kernel_.k2.noise_level) * float(np.var(values) or 1.0))

    def predict(self, points: Floats) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation without noise at points of shape (m, axes)."""
        mean, sd = self.regressor.predict(points, return_std=True)
        return mean, np.sqrt(np.maximum(sd**2 - self.noise, 0.0))


@dataclass(frozen=True)
class Surrogate:
    """Predicts the objective at any point from trials.

    For each measure, a process is fitted to asinh of its distance from the target: near the target, this is about the
    distance itself, and far from it a logarithm.
    """

    processes: tuple[GaussianProcess, ...]

    @classmethod
    def fit(cls, points: Floats, distances: Floats) -> Self:
        """Fit the processes to distances in tolerances, shape (trials, measures), at points, shape (trials, axes)."""
        if len(points) > _MAX_TRIALS:
            order = np.argsort(np.nansum(distances**2, axis=1), kind="stable")
            other_indices = order[_MAX_TRIALS // 2 :]
            spacing = np.linspace(0, len(other_indices) - 1, _MAX_TRIALS - _MAX_TRIALS // 2).astype(int)
            selected_indices = np.sort(np.append(order[: _MAX_TRIALS // 2], other_indices[spacing]))
            points, distances = points[selected_indices], distances[selected_indices]
        columns = [(column, np.isfinite(column)) for column in distances.T]
        fit = GaussianProcess.fit
        return cls(tuple(fit(points[rows], np.arcsinh(column[rows])) for column, rows in columns if rows.sum() > 1))

    def objective(self, points: Floats, *, leeway: float = 0.0) -> Floats:
        """Return the objective at points of shape (m, axes), with distances lowered by `leeway` standard deviations."""
        total = np.zeros(len(points))
        for process in self.processes:
            if leeway:
                mean, sd = process.predict(points)
                distance = np.maximum(np.abs(mean) - leeway * sd, 0.0)
            else:
                distance = np.asarray(process.regressor.predict(points))
            total += np.sinh(distance) ** 2
        return total


def best_guess(surrogate: Surrogate, points: Floats, *, seed: int) -> Floats:
    """Return the minimum of the surrogate, shape (axes,), by a search around the trials and random points."""
    draws = make_generator("calibration/best", str(seed))
    shape = (256, points.shape[1])
    candidates = np.vstack([points, draws.random(shape)])
    for round_ in range(6):
        best = candidates[np.argmin(surrogate.objective(candidates))]
        nearby = best + draws.normal(0.0, 0.2 * 0.45**round_, shape)
        candidates = np.vstack([best[None], np.clip(nearby, 0.0, 1.0)])
    return np.asarray(candidates[np.argmin(surrogate.objective(candidates))])


def _minimise_others(surrogate: Surrogate, points: Floats, axis: int, grid: Floats, leeway: float) -> Floats:
    """Return the minimum of the surrogate over all other axes at each value of one axis, shape (grid, axes).

    The search starts from the trials and random points. It narrows around the best points of each value and of the
    neighbouring values.
    """
    n_axes = points.shape[1]
    if n_axes == 1:
        return grid[:, None]
    draws, rows = make_generator("calibration/profile", str(axis)), np.arange(len(grid))

    def select_lowest(candidates: Floats) -> Floats:
        candidates = np.array(np.broadcast_to(candidates, (len(grid), *candidates.shape[-2:])))
        candidates[:, :, axis] = grid[:, None]
        values = surrogate.objective(candidates.reshape(-1, n_axes), leeway=leeway).reshape(len(grid), -1)
        return np.asarray(candidates[rows, values.argmin(axis=1)])

    best = select_lowest(np.vstack([points, draws.random((128, n_axes))]))
    for round_ in range(5):
        steps = draws.normal(0.0, 0.15 * 0.5**round_, (128, n_axes))
        neighbours = best[np.clip(rows[:, None] + (-1, 0, 1), 0, len(grid) - 1)]
        best = select_lowest(np.clip(np.concatenate([neighbours, best[:, None] + steps], axis=1), 0.0, 1.0))
    return best


def _lowest_objectives(points: Floats, objectives: Floats, axis: int, grid: Floats) -> Floats:
    """Return the lowest objective of the trials near each value of one axis; infinite without trials."""
    rows_near_value = (np.abs(points[:, axis] - value) <= 0.5 / (len(grid) - 1) for value in grid)
    return np.array([objectives[rows].min(initial=np.inf) for rows in rows_near_value])


def propose_probe(surrogate: Surrogate, points: Floats, objectives: Floats, axis: int, rise: float) -> Floats | None:
    """Return a point at which the surrogate may be low, but no trial near it is; None without such a point.

    The values of one parameter (`axis`) are searched; the other parameters minimise the surrogate. Low means within
    `rise` of the lowest trial. A value without trials is preferred, then the value whose best trial is worst.
    """
    grid = np.linspace(0.0, 1.0, _PROBE_VALUES)
    candidates = _minimise_others(surrogate, points, axis, grid, LEEWAY)
    limit = float(objectives.min()) + rise
    best_trials = _lowest_objectives(points, objectives, axis, grid)
    is_low = (surrogate.objective(candidates, leeway=LEEWAY) <= limit) & (best_trials > limit)
    return np.asarray(candidates[np.argmax(np.where(is_low, best_trials, -np.inf))]) if is_low.any() else None


@dataclass(frozen=True)
class Profiles:
    """Profiles of all parameters.

    Attributes:
        curves: A row for each parameter and value: `parameter`, `value`, `objective` (the minimum of the surrogate),
            `possible` (the minimum if the surrogate is one standard deviation lower), `tried` (the lowest trial near
            the value; NaN without trials).
        intervals: A row for each parameter: `parameter`, `fitted`, `low`, `high` (where `possible` is within the rise),
            `lowest`, `highest` (the range), `verdict`.
        minimum: The minimum of the surrogate.
    """

    curves: pd.DataFrame
    intervals: pd.DataFrame
    minimum: float


def fit_profiles(
    axes: tuple[Axis, ...], points: Floats, distances: Floats, objectives: Floats, best: Floats, rise: float
) -> Profiles:
    """Return the profiles from successful trials, at points of shape (trials, axes); `best` is the fitted point.

    `distances` has shape (trials, targets), with NaN where undefined.
    """
    surrogate = Surrogate.fit(points, distances)
    curves = [_make_curve(axis, axis_index, surrogate, points, objectives) for axis_index, axis in enumerate(axes)]
    minimum = min(min(float(curve["objective"].min()) for curve in curves), float(surrogate.objective(best[None])[0]))
    rows = [
        _profile_interval(axis, curve["possible"].to_numpy() - minimum - rise, float(position))
        for axis, curve, position in zip(axes, curves, best, strict=True)
    ]
    return Profiles(pd.concat(curves, ignore_index=True), pd.DataFrame(rows), minimum)


def _make_curve(axis: Axis, axis_index: int, surrogate: Surrogate, points: Floats, objectives: Floats) -> pd.DataFrame:
    grid = np.linspace(0.0, 1.0, GRID)
    lows, possible = (_minimise_others(surrogate, points, axis_index, grid, leeway) for leeway in (0.0, LEEWAY))
    best_trials = _lowest_objectives(points, objectives, axis_index, grid)
    return pd.DataFrame(
        {
            "parameter": axis.key,
            "value": [float(axis.value(position)) for position in grid],
            "objective": surrogate.objective(lows),
            "possible": surrogate.objective(possible, leeway=LEEWAY),
            "tried": np.where(np.isinf(best_trials), np.nan, best_trials),
        }
    )


def _profile_interval(axis: Axis, height: Floats, best: float) -> dict[str, object]:
    """Return the interval around the fitted position where a profile's height is below 0, and the verdict, as a row."""
    grid = np.linspace(0.0, 1.0, GRID)
    middle = int(np.argmin(np.abs(grid - best)))
    low, high = _find_crossing(grid, height, middle, -1, best), _find_crossing(grid, height, middle, 1, best)
    verdicts = {(True, True): OPEN, (True, False): ONLY_ABOVE, (False, True): ONLY_BELOW, (False, False): IDENTIFIED}
    ends = {"fitted": best, "low": 0.0 if low is None else low, "high": 1.0 if high is None else high}
    values = {name: float(axis.value(end)) for name, end in ends.items()}
    verdict = verdicts[low is None, high is None]
    return {"parameter": axis.key, **values, "lowest": axis.low, "highest": axis.high, "verdict": verdict}


def _find_crossing(grid: Floats, curve: Floats, start: int, step: int, best: float) -> float | None:
    """Return the outermost position in one direction where a curve crosses 0; None if its end is not above 0."""
    index = 0 if step < 0 else len(grid) - 1
    if curve[index] <= 0:
        return None
    while index != start and curve[index] > 0:
        index -= step
    if curve[index] > 0:
        return best
    inner = index + step
    share = curve[index] / (curve[index] - curve[inner])
    return float(grid[index] + share * (grid[inner] - grid[index]))
