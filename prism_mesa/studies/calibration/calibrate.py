"""Fits parameters to targets: proposes trials, runs them, and learns from what their runs measure.

Trials come in batches. A batch is proposed from all that was before it, and nothing else; its runs may end in any
order. So what is tried depends on the file alone, for any number of workers and however often it was broken off.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final

import numpy as np

from prism_mesa.errors import ConfigError, RunError
from prism_mesa.streams import Floats, digest64
from prism_mesa.studies.calibration.folder import CalibrationFolder, How, Trial
from prism_mesa.studies.calibration.params import RUNS
from prism_mesa.studies.calibration.plan import CalibrationPlan
from prism_mesa.studies.calibration.profiles import probe
from prism_mesa.studies.calibration.proposals import best_guess, likely, load_optuna, spread
from prism_mesa.studies.calibration.result import CalibrationResult, TrialResult, judged, write_result
from prism_mesa.studies.calibration.surrogate import Surrogate, load_sklearn
from prism_mesa.studies.driver import Engine, Progress, run_missing
from prism_mesa.studies.folder import WHOLE

_ENOUGH: Final = 4  # trials of which a surrogate is made
FITTED: Final = "fitted"  # the arm of the fitted world


@dataclass(frozen=True)
class Budget:
    """How long to go on.

    Attributes:
        runs: Of all trials, those of earlier calls among them; failed ones count. None: no limit.
        minutes: On the wall, from now, after which no batch is begun. None: no limit.
    """

    runs: int | None = None
    minutes: float | None = None


def resolve_budget(plan: CalibrationPlan, runs: int | None, minutes: float | None) -> Budget:
    """Return what a call may take: what it says itself, else what the file says, else `RUNS` runs.

    Raises:
        ConfigError: If that is not enough for two trials.
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
    """Fit, run the fitted world with seeds of its own, and return what came of it.

    Args:
        plan: The calibration.
        folder: Where it is kept; made if it is missing. No run that is done is run again.
        engine: Who runs the runs.
        budget: How long to go on.
        text: The calibration file, to be kept beside the results.
        on_run: Called with the progress at first and after each run.

    Raises:
        ConfigError: If Optuna or scikit-learn is not installed.
        DataError: If the folder cannot be used, or another process uses it.
        RunError: If no trial came to a good end.
        KeyboardInterrupt: When the user ends it; what was done is kept, and the same call continues.
    """
    load_optuna()
    load_sklearn()
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
    """Run batches of trials until the budget is spent, and return what became of each."""
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
        before = so_far

        def total(now: Progress, planned: float = planned, before: Progress = before) -> Progress:
            return Progress(int(planned), before.done + now.done, before.failed + now.failed, now.calls)

        def report(now: Progress, total: Callable[[Progress], Progress] = total) -> None:
            on_run(total(now))

        so_far = total(run_missing(design, folder, engine, retry=False, on_run=report))
        with folder.journals() as known:
            results += judged(batch, design, known, plan.params.fit)
    return results


def _proposed(plan: CalibrationPlan, results: Sequence[TrialResult]) -> list[Trial]:
    """Return the next batch of trials, from what became of all before it."""
    at, size, space = len(results), plan.params.batch, plan.space
    n_axes = len(space.axes)
    places: list[tuple[How, Floats]] = []
    if at < plan.first:
        evenly = spread(max(plan.first, at + size), n_axes, plan.params.seed)
        places += [("spread", place) for place in evenly[at : min(at + size, plan.first)]]
    left = size - len(places)
    if left:
        places += _learned(plan, results, left)
    return [Trial(at + number, how, space.values(place)) for number, (how, place) in enumerate(places)]


def _learned(plan: CalibrationPlan, results: Sequence[TrialResult], n: int) -> list[tuple[How, Floats]]:
    """Return `n` places: the last where the surrogate is least, one that probes a profile, the others by TPE."""
    points = np.array([plan.space.place(one.trial.values) for one in results]).reshape(-1, len(plan.space.axes))
    objectives = [one.objective for one in results]
    done = [place for place, one in enumerate(objectives) if one is not None]
    seed = digest64("calibration/batch", str(plan.params.seed), str(len(results)))
    chosen: list[tuple[How, Floats]] = []
    if len(done) >= _ENOUGH:
        surrogate = Surrogate.fit(points[done], np.array([results[place].distances for place in done]))
        turn = len(results) // plan.params.batch
        known = np.array([objectives[place] for place in done], np.float64)
        found = probe(surrogate, points[done], known, turn % len(plan.space.axes), plan.params.rise)
        if found is not None:
            chosen.append(("probe", found))
        chosen.append(("guess", best_guess(surrogate, points[done], seed=seed)))
        if len(chosen) > n:
            chosen = [chosen[turn % 2]]
    n_likely = n - len(chosen)
    places = likely(points, objectives, n_likely, seed=seed) if n_likely else np.zeros((0, points.shape[1]))
    return [*(("likely", place) for place in places), *chosen]
