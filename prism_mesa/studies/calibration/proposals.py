"""What is tried next: an even spread at first, then Optuna's TPE, and what a surrogate takes for the best.

The only module that imports Optuna. What it proposes depends on its arguments alone, so a calibration that is broken
off goes on as if it had not been.
"""

import warnings
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from scipy.stats import qmc

from prism_mesa.errors import ConfigError
from prism_mesa.extras import how_to_install
from prism_mesa.streams import Floats, digest64, generator
from prism_mesa.studies.calibration.surrogate import Surrogate

_ROUNDS: Final = 6
_TRIES: Final = 256


def load_optuna() -> Any:
    """Return Optuna, which is imported only when something is calibrated.

    Raises:
        ConfigError: If it is not installed.
    """
    try:
        import optuna
    except ImportError:
        raise ConfigError(f"prism calibrate needs Optuna: {how_to_install('calibrate', 'optuna')}") from None
    return optuna


def spread(n: int, n_axes: int, seed: int) -> Floats:
    """Return `n` places that fill the space evenly: a scrambled Sobol sequence, of which fewer are the first ones."""
    sequence = qmc.Sobol(n_axes, rng=digest64("calibration/spread", str(seed)))
    return np.asarray(sequence.random_base2(int(np.ceil(np.log2(n)))))[:n]


def likely(points: Floats, objectives: Sequence[float | None], n: int, *, seed: int) -> Floats:
    """Return `n` places by a tree-structured Parzen estimator (Bergstra et al. 2011; multivariate, as Optuna has it).

    Args:
        points: Places of the trials, shape (trials, axes).
        objectives: Of each; None if it failed.
        n: How many are proposed together; each keeps away from those before it.
        seed: The seed of the draws.
    """
    optuna = load_optuna()
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            sampler = optuna.samplers.TPESampler(
                seed=digest64("calibration/likely", str(seed)) % 2**32,
                n_startup_trials=0,
                multivariate=True,
                constant_liar=True,
            )
        study = optuna.create_study(sampler=sampler)
        names = [str(axis) for axis in range(points.shape[1])]
        within = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in names}
        for place, objective in zip(points, objectives, strict=True):
            values = dict(zip(names, map(float, place), strict=True))
            state = optuna.trial.TrialState.FAIL if objective is None else optuna.trial.TrialState.COMPLETE
            study.add_trial(
                optuna.trial.create_trial(state=state, value=objective, params=values, distributions=within)
            )
        asked = [study.ask(within).params for _ in range(n)]
    finally:
        optuna.logging.set_verbosity(level)
    return np.array([[found[name] for name in names] for found in asked])


def best_guess(surrogate: Surrogate, points: Floats, *, seed: int) -> Floats:
    """Return the place at which the surrogate has its least objective, shape (axes,).

    Looked for among draws in the whole space and around the known places, ever nearer to the best so far.
    """
    draws = generator("calibration/best", str(seed))
    n_axes = points.shape[1]
    found = np.vstack([points, draws.random((_TRIES, n_axes))])
    for narrower in range(_ROUNDS):
        best = found[np.argmin(surrogate.objective(found))]
        around = best + draws.normal(0.0, 0.2 * 0.45**narrower, (_TRIES, n_axes))
        found = np.vstack([best[None], np.clip(around, 0.0, 1.0)])
    return np.asarray(found[np.argmin(surrogate.objective(found))])
