"""What trials say of places between them: a Gaussian process for each measure, and the objective that follows."""

from dataclasses import dataclass
from math import log
from typing import Final, Self

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.optimize import minimize

from prism_mesa.streams import Floats

_LENGTHS: Final = (log(0.1), log(10.0))
_NOISE: Final = (log(1e-6), log(1.0))
_TYPICAL: Final = log(0.7)
_MOST: Final = 300
"""Trials that a process is fitted on: of more, the best half of so many, and others evenly from best to worst."""


@dataclass(frozen=True)
class GaussianProcess:
    """A smooth function of a place, known at some places up to noise.

    Matern 5/2 with a length for each axis, and noise, at the largest posterior of lengths (lognormal around .7) and
    noise (Rasmussen and Williams 2006, chapters 2 and 5).

    Attributes:
        points: Places that are known, shape (n, axes), each 0 to 1.
        lengths: Of each axis.
        scale: Standard deviation of the function before anything is known.
    """

    points: Floats
    lengths: Floats
    mean: float
    scale: float
    _whitening: Floats
    _weights: Floats

    @classmethod
    def fit(cls, points: Floats, values: Floats) -> Self:
        """Return the process that values at places, two or more, make likeliest."""
        mean, spread = float(values.mean()), float(values.std()) or 1.0
        y = (values - mean) / spread
        n_axes = points.shape[1]
        bounds = [_LENGTHS] * n_axes + [_NOISE]
        squares = (points.T[:, :, None] - points.T[:, None, :]) ** 2
        found = (
            minimize(_misfit, [start] * n_axes + [log(0.01)], (squares, y), "L-BFGS-B", jac=True, bounds=bounds)
            for start in (log(0.3), log(2.0))
        )
        best = min(found, key=lambda one: float(one.fun))
        lengths = np.exp(best.x[:-1])
        factor = cho_factor(_covariance(points, points, lengths) + np.exp(best.x[-1]) * np.eye(len(y)), lower=True)
        weights = cho_solve(factor, y)
        scale = float(np.sqrt(y @ weights / len(y)))
        whitening = solve_triangular(factor[0], np.eye(len(y)), lower=True)  # once, as it is asked at many places
        return cls(points, lengths, mean, scale * spread, whitening, weights * spread)

    def at(self, places: Floats) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation of the function at places, shape (m, axes)."""
        across = _covariance(places, self.points, self.lengths)
        seen = self._whitening @ across.T
        left = np.maximum(1.0 - np.einsum("ij,ij->j", seen, seen), 0.0)
        return self._mean(across), self.scale * np.sqrt(left)

    def mean_at(self, places: Floats) -> Floats:
        """Return the mean of the function at places, shape (m, axes)."""
        return self._mean(_covariance(places, self.points, self.lengths))

    def _mean(self, across: Floats) -> Floats:
        return np.asarray(self.mean + across @ self._weights)


def _covariance(left: Floats, right: Floats, lengths: Floats) -> Floats:
    """Return the Matern 5/2 correlation of the function at places."""
    a, b = left / lengths, right / lengths
    squared = np.maximum((a**2).sum(1)[:, None] + (b**2).sum(1) - 2 * a @ b.T, 0.0)
    r = np.sqrt(5.0 * squared)
    return np.asarray((1.0 + r + r**2 / 3.0) * np.exp(-r))


def _misfit(logs: Floats, squares: Floats, y: Floats) -> tuple[float, Floats]:
    """Return minus the log posterior of lengths and noise, without constants, and its gradient.

    The scale is the likeliest (Rasmussen and Williams 2006, equations 5.8 and 5.9, with it put in).

    Args:
        logs: Logarithms of the lengths of the axes and of the noise.
        squares: Squared differences of the points, shape (axes, n, n).
        y: Values, shape (n,).
    """
    n, lengths, noise = len(y), np.exp(logs[:-1]), float(np.exp(logs[-1]))
    scaled = squares / lengths[:, None, None] ** 2
    r = np.sqrt(5.0 * scaled.sum(axis=0))
    decay = np.exp(-r)
    factor = cho_factor((1.0 + r + r**2 / 3.0) * decay + noise * np.eye(n), lower=True)
    inverse = cho_solve(factor, np.eye(n))
    weights = inverse @ y
    scale = max(float(y @ weights) / n, 1e-12)
    prior = logs[:-1] - _TYPICAL
    misfit = 0.5 * n * log(scale) + float(np.log(np.diag(factor[0])).sum()) + 0.5 * float((prior**2).sum())
    pull = inverse - np.outer(weights, weights) / scale
    slopes = 0.5 * 5.0 / 3.0 * np.einsum("kij,ij->k", scaled, (1.0 + r) * decay * pull)
    return misfit, np.append(slopes + prior, 0.5 * noise * np.trace(pull))


@dataclass(frozen=True)
class Surrogate:
    """The objective as trials let it be guessed at any place.

    A process is fitted to asinh of the distance of each measure from its target: as it is within a tolerance, as its
    logarithm far away.
    """

    processes: tuple[GaussianProcess, ...]

    @classmethod
    def fit(cls, points: Floats, distances: Floats) -> Self:
        """Return what trials say.

        Args:
            points: Their places, shape (trials, axes).
            distances: Of each trial and measure, in tolerances; NaN where a measure is not defined.
        """
        if len(points) > _MOST:
            order = np.argsort(np.nansum(distances**2, axis=1), kind="stable")
            rest = order[_MOST // 2 :]
            evenly = np.linspace(0, len(rest) - 1, _MOST - _MOST // 2).astype(int)
            kept = np.sort(np.append(order[: _MOST // 2], rest[evenly]))
            points, distances = points[kept], distances[kept]
        known = [np.isfinite(column) for column in distances.T]
        return cls(
            tuple(
                GaussianProcess.fit(points[rows], np.arcsinh(column[rows]))
                for rows, column in zip(known, distances.T, strict=True)
                if rows.sum() > 1
            )
        )

    def objective(self, places: Floats, *, leeway: float = 0.0) -> Floats:
        """Return the objective at places.

        Args:
            places: Shape (m, axes).
            leeway: By how many standard deviations each process may err in favour of a place.
        """
        total = np.zeros(len(places))
        for process in self.processes:
            if leeway:
                mean, sd = process.at(places)
                off = np.maximum(np.abs(mean) - leeway * sd, 0.0)
            else:
                off = process.mean_at(places)
            total += np.sinh(off) ** 2
        return total
