"""Fit parameters to targets: propose trials, run them, and learn from their measures.

A batch of trials depends only on the results of earlier batches. So the trials are the same for any number of workers,
and after interruptions.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np
from scipy.stats import qmc

from prism_mesa.arrays import Floats
from prism_mesa.errors import ConfigError, RunError
from prism_mesa.streams import digest64
from prism_mesa.studies.calibration.plan import RUNS, CalibrationFolder, CalibrationPlan, Origin, Trial
from prism_mesa.studies.calibration.result import CalibrationResult, TrialResult, judge_trials, write_result
from prism_mesa.studies.calibration.surrogate import SKLEARN, Surrogate, best_guess, import_optional, propose_probe
from prism_mesa.studies.driver import Engine, Progress, run_missing
from prism_mesa.studies.folder import WHOLE

_MIN_TRIALS: Final = 4  # trials that a surrogate needs
FITTED: Final = "fitted"  # the arm of the fitted world


@dataclass(frozen=True)
class Budget:
    """Limits of a calibration; None: no limit.

    `runs` limits the runs of all trials, including failed trials and trials of earlier calls. No batch starts after
    `minutes` of the call.
    """

    runs: int | None = None
    minutes: float | None = None


def resolve_budget(plan: CalibrationPlan, runs: int | None, minutes: float | None) -> Budget:
    """Return the budget of the call, or else of the file, or else `RUNS` runs; raise ConfigError below two trials."""
    if runs is None and minutes is None:
        runs, minutes = plan.params.runs, plan.params.minutes
    if runs is None and minutes is None:
        runs = RUNS
    min_runs = 2 * len(plan.seeds)
    if runs is not None and runs < min_runs:
        raise ConfigError(
            f"{plan.where}: runs: give at least {min_runs} (two trials of {len(plan.seeds)} seeds), not {runs}"
        )
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
    """Fit, run the fitted world with new seeds, and return the result (see `api.validation.Calibration`).

    After a KeyboardInterrupt, the same call continues from the results so far.
    """
    import_optional("optuna", "optuna")
    import_optional(SKLEARN, "scikit-learn")
    with folder.locked(WHOLE, "another process is running this calibration: wait for it"):
        folder.write_plan_files(plan, text)
        results = _run_trials(plan, folder, engine, budget, on_run)
        successful = [result for result in results if result.objective is not None]
        if not successful:
            reason = results[0].reason if results else "none was run"
            raise RunError(f"{folder.path}: all {len(results)} trials failed; the first: {reason}")
        best = min(successful, key=lambda result: (result.objective or 0.0, result.trial.number))
        measures = [*plan.params.fit, *plan.params.holdout]
        report_design = plan.study({FITTED: best.trial.values}, plan.report_seeds, measures)
        run_missing(report_design, folder, engine)
        return write_result(plan, folder, results, best, report_design)


def _run_trials(
    plan: CalibrationPlan,
    folder: CalibrationFolder,
    engine: Engine,
    budget: Budget,
    on_run: Callable[[Progress], object],
) -> list[TrialResult]:
    """Run batches of trials until the budget is spent, and return their results."""
    deadline = inf if budget.minutes is None else time.monotonic() + 60 * budget.minutes
    max_trials = inf if budget.runs is None else budget.runs // len(plan.seeds)
    trials, results, progress_so_far = folder.trials(plan), list[TrialResult](), Progress(0)
    while len(results) < max_trials and (time.monotonic() < deadline or not results):
        if len(trials) <= len(results):
            trials += _propose(plan, results)
            folder.write_trials(trials)
        size = plan.params.batch
        batch = trials[len(results) : (len(results) // size + 1) * size]
        batch = batch[: int(min(len(batch), max_trials - len(results)))]
        design = plan.study({trial.name: trial.values for trial in batch}, plan.seeds, list(plan.params.fit))
        planned = max_trials * len(plan.seeds) if max_trials < inf else progress_so_far.planned + design.n_runs

        def add_earlier(current: Progress, planned: float = planned, earlier: Progress = progress_so_far) -> Progress:
            return Progress(int(planned), earlier.done + current.done, earlier.failed + current.failed, current.calls)

        def report_progress(current: Progress, add_earlier: Callable[[Progress], Progress] = add_earlier) -> None:
            on_run(add_earlier(current))

        progress_so_far = add_earlier(run_missing(design, folder, engine, retry=False, on_run=report_progress))
        with folder.journals() as journals:
            results += judge_trials(batch, design, journals, plan.params.fit)
    return results


def _propose(plan: CalibrationPlan, results: Sequence[TrialResult]) -> list[Trial]:
    start, size = len(results), plan.params.batch
    proposals: list[tuple[Origin, Floats]] = []
    if start < plan.n_initial:
        spread = spread_points(max(plan.n_initial, start + size), len(plan.axes), plan.params.seed)
        proposals += [("spread", point) for point in spread[start : min(start + size, plan.n_initial)]]
    if n_left := size - len(proposals):
        proposals += _propose_near_targets(plan, results, n_left)
    return [Trial(start + number, origin, plan.values(point)) for number, (origin, point) in enumerate(proposals)]


def _propose_near_targets(plan: CalibrationPlan, results: Sequence[TrialResult], n: int) -> list[tuple[Origin, Floats]]:
    """Return `n` points: most by TPE, then one that probes a profile, and last the minimum of the surrogate."""
    points = np.array([plan.point(result.trial.values) for result in results]).reshape(-1, len(plan.axes))
    objectives = [result.objective for result in results]
    successful = [index for index, objective in enumerate(objectives) if objective is not None]
    seed = digest64("calibration/batch", str(plan.params.seed), str(len(results)))
    proposals: list[tuple[Origin, Floats]] = []
    if len(successful) >= _MIN_TRIALS:
        surrogate = Surrogate.fit(points[successful], np.array([results[index].distances for index in successful]))
        n_batches = len(results) // plan.params.batch
        finite = np.array([objectives[index] for index in successful], np.float64)
        probe_point = propose_probe(surrogate, points[successful], finite, n_batches % len(plan.axes), plan.params.rise)
        if probe_point is not None:
            proposals.append(("probe", probe_point))
        proposals.append(("guess", best_guess(surrogate, points[successful], seed=seed)))
        if len(proposals) > n:
            proposals = [proposals[n_batches % 2]]
    likely = likely_points(points, objectives, n - len(proposals), seed=seed)
    return [*(("likely", point) for point in likely), *proposals]


def spread_points(n: int, n_axes: int, seed: int) -> Floats:
    """Return the first `n` points of a scrambled Sobol sequence, shape (n, axes)."""
    sequence = qmc.Sobol(n_axes, rng=digest64("calibration/spread", str(seed)))
    return np.asarray(sequence.random_base2(int(np.ceil(np.log2(n)))))[:n]


def likely_points(points: Floats, objectives: Sequence[float | None], n: int, *, seed: int) -> Floats:
    """Return `n` different points from Optuna's TPE (Bergstra et al. 2011); a failed trial has the objective None."""
    optuna = import_optional("optuna", "optuna")
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            seed = digest64("calibration/likely", str(seed)) % 2**32
            sampler = optuna.samplers.TPESampler(seed=seed, n_startup_trials=0, multivariate=True, constant_liar=True)
        study = optuna.create_study(sampler=sampler)
        names = [str(axis) for axis in range(points.shape[1])]
        distributions = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in names}
        create_trial, states = optuna.trial.create_trial, optuna.trial.TrialState
        for point, objective in zip(points, objectives, strict=True):
            values = dict(zip(names, map(float, point), strict=True))
            state = states.FAIL if objective is None else states.COMPLETE
            study.add_trial(create_trial(state=state, value=objective, params=values, distributions=distributions))
        proposals = [study.ask(distributions).params for _ in range(n)]
    finally:
        optuna.logging.set_verbosity(level)
    return np.array([[params[name] for name in names] for params in proposals])
