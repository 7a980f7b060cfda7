"""Predictions between trials: a Gaussian process (scikit-learn) for each measure, and the objective that follows."""

import warnings
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from prism_mesa.errors import ConfigError
from prism_mesa.extras import how_to_install
from prism_mesa.streams import Floats

_LENGTHS: Final = (0.1, 10.0)
_NOISE: Final = (1e-6, 1.0)
_STARTS: Final = 1  # random starts besides the first one in the search for lengths and noise
_MOST: Final = 300
"""Trials that a process is fitted on: of more, the best half of so many, and others evenly from best to worst."""


@dataclass(frozen=True)
class GaussianProcess:
    """A smooth function of a place, known at some places up to noise.

    Matern 5/2 with a length for each axis, and noise, by maximum likelihood (Rasmussen and Williams 2006, chapter 5).
    """

    regressor: Any
    noise: float

    @classmethod
    def fit(cls, points: Floats, values: Floats) -> Self:
        """Return the process that is most likely to have these values at these places, shape (n, axes), each 0 to 1."""
        gaussian, kernels = load_sklearn()
        n_axes = points.shape[1]
        smooth = kernels.ConstantKernel(1.0, (1e-2, 1e3)) * kernels.Matern([0.5] * n_axes, _LENGTHS, nu=2.5)
        regressor = gaussian.GaussianProcessRegressor(
            smooth + kernels.WhiteKernel(0.01, _NOISE), normalize_y=True, n_restarts_optimizer=_STARTS, random_state=0
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a length at its bound: the measure does not depend on that parameter
            regressor.fit(points, values)
        return cls(regressor, float(regressor.kernel_.k2.noise_level) * float(np.var(values) or 1.0))

    def at(self, places: Floats) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation of the function, without noise, at places, shape (m, axes)."""
        mean, sd = self.regressor.predict(places, return_std=True)
        return mean, np.sqrt(np.maximum(sd**2 - self.noise, 0.0))

    def mean_at(self, places: Floats) -> Floats:
        """Return the mean of the function at places, shape (m, axes)."""
        return np.asarray(self.regressor.predict(places))


def load_sklearn() -> tuple[Any, Any]:
    """Return scikit-learn's modules of Gaussian processes and of kernels.

    Raises:
        ConfigError: If scikit-learn is not installed.
    """
    try:
        from sklearn import gaussian_process
        from sklearn.gaussian_process import kernels
    except ImportError:
        install = how_to_install("calibrate", "scikit-learn")
        raise ConfigError(f"prism calibrate needs scikit-learn: {install}") from None
    return gaussian_process, kernels


@dataclass(frozen=True)
class Surrogate:
    """The objective as trials predict it at any place.

    A process is fitted to asinh of the distance of each measure from its target: about the distance itself within a
    tolerance, about its logarithm far away.
    """

    processes: tuple[GaussianProcess, ...]

    @classmethod
    def fit(cls, points: Floats, distances: Floats) -> Self:
        """Fit the processes.

        Args:
            points: Places of the trials, shape (trials, axes).
            distances: Of each trial and measure, in tolerances; NaN where a measure is not defined.
        """
        if len(points) > _MOST:
            order = np.argsort(np.nansum(distances**2, axis=1), kind="stable")
            rest = order[_MOST // 2 :]
            evenly = np.linspace(0, len(rest) - 1, _MOST - _MOST // 2).astype(int)
            kept = np.sort(np.append(order[: _MOST // 2], rest[evenly]))
            points, distances = points[kept], distances[kept]
        defined = [np.isfinite(column) for column in distances.T]
        return cls(
            tuple(
                GaussianProcess.fit(points[rows], np.arcsinh(column[rows]))
                for rows, column in zip(defined, distances.T, strict=True)
                if rows.sum() > 1
            )
        )

    def objective(self, places: Floats, *, leeway: float = 0.0) -> Floats:
        """Return the objective at places, shape (m, axes), if each process may err by `leeway` standard deviations."""
        total = np.zeros(len(places))
        for process in self.processes:
            if leeway:
                mean, sd = process.at(places)
                off = np.maximum(np.abs(mean) - leeway * sd, 0.0)
            else:
                off = process.mean_at(places)
            total += np.sinh(off) ** 2
        return total
