"""Fit parameters to targets: propose trials, run them, and learn from their measures.

Trials come in batches. Each batch depends on all results before it, and on nothing else, so the trials are the same
for any number of workers and interruptions.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np
from scipy.stats import qmc

from prism_mesa.errors import ConfigError, RunError
from prism_mesa.streams import Floats, digest64
from prism_mesa.studies.calibration.plan import RUNS, CalibrationFolder, CalibrationPlan, How, Trial
from prism_mesa.studies.calibration.result import CalibrationResult, TrialResult, judged, write_result
from prism_mesa.studies.calibration.surrogate import SKLEARN, Surrogate, best_guess, load, probe
from prism_mesa.studies.driver import Engine, Progress, run_missing
from prism_mesa.studies.folder import WHOLE

_ENOUGH: Final = 4  # trials that a surrogate needs
FITTED: Final = "fitted"  # the arm of the fitted world


@dataclass(frozen=True)
class Budget:
    """Limits of a calibration.

    Attributes:
        runs: Runs of all trials, including failed ones and those of earlier calls. None: no limit.
        minutes: Wall minutes from now, after which no batch begins. None: no limit.
    """

    runs: int | None = None
    minutes: float | None = None


def resolve_budget(plan: CalibrationPlan, runs: int | None, minutes: float | None) -> Budget:
    """Return the budget of a call: its own, else that of the file, else `RUNS` runs.

    Raises:
        ConfigError: If it is not enough for two trials.
    """
    if runs is None and minutes is None:
        runs, minutes = plan.params.runs, plan.params.minutes
    if runs is None and minutes is None:
        runs = RUNS
    least = 2 * len(plan.seeds)
    if runs is not None and runs < least:
        raise ConfigError(f"{plan.where}: runs: {runs} are fewer than two trials of {len(plan.seeds)} seeds: {least}")
    return Budget(runs, minutes)


def calibrate(
    plan: CalibrationPlan,
    folder: CalibrationFolder,
    engine: Engine,
    budget: Budget,
    *,
    text: str = "",
    on_run: Callable[[Progress], object] = lambda progress: None,
) -> CalibrationResult:
    """Fit, run the fitted world with new seeds, and return the result; arguments as for `api.calibrations.Calibration`.

    Raises:
        ConfigError: If Optuna or scikit-learn is not installed.
        DataError: If the folder cannot be used, or another process uses it.
        RunError: If all trials failed.
        KeyboardInterrupt: When the user stops it; results are kept, and the same call continues.
    """
    load("optuna", "optuna")
    load(SKLEARN, "scikit-learn")
    with folder.locked(WHOLE, "another process runs this calibration now; wait for it"):
        folder.describe_plan(plan, text)
        results = _trials(plan, folder, engine, budget, on_run)
        done = [result for result in results if result.objective is not None]
        if not done:
            reason = results[0].reason if results else "none was run"
            raise RunError(f"{folder.path}: none of {len(results)} trials came to a good end; the first: {reason}")
        best = min(done, key=lambda result: (result.objective or 0.0, result.trial.number))
        measures = [*plan.params.fit, *plan.params.holdout]
        report = plan.study({FITTED: best.trial.values}, plan.report_seeds, measures)
        run_missing(report, folder, engine)
        return write_result(plan, folder, results, best, report)


def _trials(
    plan: CalibrationPlan,
    folder: CalibrationFolder,
    engine: Engine,
    budget: Budget,
    on_run: Callable[[Progress], object],
) -> list[TrialResult]:
    """Run batches of trials until the budget is spent, and return their results."""
    ends = inf if budget.minutes is None else time.monotonic() + 60 * budget.minutes
    most = inf if budget.runs is None else budget.runs // len(plan.seeds)
    trials, results, so_far = folder.trials(plan), list[TrialResult](), Progress(0)
    while len(results) < most and (time.monotonic() < ends or not results):
        if len(trials) <= len(results):
            trials += _proposed(plan, results)
            folder.keep_trials(trials)
        size = plan.params.batch
        batch = trials[len(results) : (len(results) // size + 1) * size]
        batch = batch[: int(min(len(batch), most - len(results)))]
        design = plan.study({trial.name: trial.values for trial in batch}, plan.seeds, list(plan.params.fit))
        planned = most * len(plan.seeds) if most < inf else so_far.planned + design.n_runs

        def overall(now: Progress, planned: float = planned, before: Progress = so_far) -> Progress:
            return Progress(int(planned), before.done + now.done, before.failed + now.failed, now.calls)

        def report(now: Progress, overall: Callable[[Progress], Progress] = overall) -> None:
            on_run(overall(now))

        so_far = overall(run_missing(design, folder, engine, retry=False, on_run=report))
        with folder.journals() as known:
            results += judged(batch, design, known, plan.params.fit)
    return results


def _proposed(plan: CalibrationPlan, results: Sequence[TrialResult]) -> list[Trial]:
    """Return the next batch of trials, given the results of all before it."""
    at, size = len(results), plan.params.batch
    places: list[tuple[How, Floats]] = []
    if at < plan.first:
        evenly = spread(max(plan.first, at + size), len(plan.axes), plan.params.seed)
        places += [("spread", place) for place in evenly[at : min(at + size, plan.first)]]
    if left := size - len(places):
        places += _learned(plan, results, left)
    return [Trial(at + number, how, plan.values(place)) for number, (how, place) in enumerate(places)]


def _learned(plan: CalibrationPlan, results: Sequence[TrialResult], n: int) -> list[tuple[How, Floats]]:
    """Return `n` places: the last is the surrogate's lowest, one probes a profile, the others are TPE's."""
    points = np.array([plan.place(result.trial.values) for result in results]).reshape(-1, len(plan.axes))
    objectives = [result.objective for result in results]
    done = [place for place, objective in enumerate(objectives) if objective is not None]
    seed = digest64("calibration/batch", str(plan.params.seed), str(len(results)))
    chosen: list[tuple[How, Floats]] = []
    if len(done) >= _ENOUGH:
        surrogate = Surrogate.fit(points[done], np.array([results[place].distances for place in done]))
        turn = len(results) // plan.params.batch
        known = np.array([objectives[place] for place in done], np.float64)
        probed = probe(surrogate, points[done], known, turn % len(plan.axes), plan.params.rise)
        if probed is not None:
            chosen.append(("probe", probed))
        chosen.append(("guess", best_guess(surrogate, points[done], seed=seed)))
        if len(chosen) > n:
            chosen = [chosen[turn % 2]]
    n_likely = n - len(chosen)
    places = likely(points, objectives, n_likely, seed=seed) if n_likely else np.zeros((0, points.shape[1]))
    return [*(("likely", place) for place in places), *chosen]


def spread(n: int, n_axes: int, seed: int) -> Floats:
    """Return the first `n` places of a scrambled Sobol sequence, shape (n, axes)."""
    sequence = qmc.Sobol(n_axes, rng=digest64("calibration/spread", str(seed)))
    return np.asarray(sequence.random_base2(int(np.ceil(np.log2(n)))))[:n]


def likely(points: Floats, objectives: Sequence[float | None], n: int, *, seed: int) -> Floats:
    """Return `n` places by Optuna's multivariate tree-structured Parzen estimator (Bergstra et al. 2011).

    The objective of a trial that failed is None. Each place keeps away from those before it.
    """
    optuna = load("optuna", "optuna")
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            seed = digest64("calibration/likely", str(seed)) % 2**32
            sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=0, multivariate=True, constant_liar=True)
        study = optuna.create_study(sampler=sampler)
        names = [str(axis) for axis in range(points.shape[1])]
        within = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in names}
        make, states = optuna.trial.create_trial, optuna.trial.TrialState
        for place, objective in zip(points, objectives, strict=True):
            values = dict(zip(names, map(float, place), strict=True))
            state = states.FAIL if objective is None else states.COMPLETE
            study.add_trial(make(state=state, value=objective, params=values, distributions=within))
        asked = [study.ask(within).params for _ in range(n)]
    finally:
        optuna.logging.set_verbosity(level)
    return np.array([[params[name] for name in names] for params in asked])
