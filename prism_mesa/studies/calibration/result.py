"""The results of a calibration: distances from targets, the fitted world, and tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import yaml

from prism_mesa.arrays import Floats
from prism_mesa.errors import format_count, one_line, redact_credentials
from prism_mesa.params import merge_values, nest_keys
from prism_mesa.runs.config import Config, make_config
from prism_mesa.studies.calibration.plan import UNDEFINED_DISTANCE, CalibrationFolder, CalibrationPlan, Target, Trial
from prism_mesa.studies.calibration.surrogate import Profiles, fit_profiles
from prism_mesa.studies.design.study_design import StudyDesign
from prism_mesa.studies.folder import replacing, write_text
from prism_mesa.studies.journal import Journals
from prism_mesa.studies.statistics.significance import interval


@dataclass(frozen=True)
class TrialResult:
    """The result of a trial.

    Attributes:
        reason: The reason of a failure; empty if the trial succeeded.
        measures: Means over the seeds with a value; NaN if no seed has a value.
        distances: Distances of the means from the targets, in tolerances; NaN without a mean.
    """

    trial: Trial
    reason: str
    measures: dict[str, float]
    distances: Floats
    runs: int

    @property
    def objective(self) -> float | None:
        """The sum of squared distances, where NaN counts as `UNDEFINED_DISTANCE`; None if the trial failed."""
        if self.reason:
            return None
        return float((np.where(np.isnan(self.distances), UNDEFINED_DISTANCE, self.distances) ** 2).sum())


def distance(value: float, target: Target) -> float:
    """Return how far a value is above its target, in tolerances; negative below the target."""
    return (value - target.target) / target.tolerance


def arm_measures(design: StudyDesign, journals: Journals, arm: str) -> tuple[dict[str, Floats], str, int]:
    """Return the defined values of measures in an arm, the reason for its first failure, and the number of runs."""
    rows, reason, n = [], "", 0
    for planned in design.runs():
        if planned.condition.arm != arm:
            continue
        entry = journals.entry(planned.run)
        n += entry is not None
        if entry is not None and entry.done:
            rows.append([entry.measures.get(name, ("", None))[1] for name in design.params.measures])
        elif not reason:
            fault = "was not run" if entry is None else f"{entry.ending}: {entry.reason}"
            reason = f"seed {planned.seed}: {fault}"
    table = np.array(rows, np.float64).reshape(-1, len(design.params.measures))  # None becomes NaN
    columns = zip(design.params.measures, table.T, strict=True)
    return {name: column[np.isfinite(column)] for name, column in columns}, reason, n


def judge_trials(
    trials: Sequence[Trial], design: StudyDesign, journals: Journals, fit: Mapping[str, Target]
) -> list[TrialResult]:
    """Return the results of trials, which are arms of a finished study."""
    results = []
    for trial in trials:
        values, reason, n = arm_measures(design, journals, trial.name)
        means = {name: nan if reason or not len(values[name]) else float(values[name].mean()) for name in fit}
        distances = np.array([distance(means[name], target) for name, target in fit.items()])
        results.append(TrialResult(trial, reason, means, distances, n))
    return results


CONFIG: Final = "fitted.yaml"  # the configuration of the fitted world
_MIN_TRIALS: Final = 4  # trials that profiles need


@dataclass(frozen=True, repr=False)
class CalibrationResult:
    """A calibration and its results, in the folder `calibration_dir`.

    Attributes:
        fitted: The parameter values of the trial with the lowest objective.
        config: The configuration of the fitted world.
        trials: A row for each trial: `trial`, `how`, `status`, `reason`, the parameters, the means of the fitted
            measures, `objective`.
        measures: A row for each target, from runs of the fitted world with new seeds: `set` (`fit`, `holdout`),
            `measure`, `data`, `target`, `tolerance`, `simulated`, `low` and `high` (95 % interval of the mean),
            `distance` (in tolerances), `inside` (distance at most 1), `n` (runs with a value).
        profiles: Profiles of the parameters; None with fewer than four successful trials.
        runs: Number of runs of trials, including failed runs.
    """

    plan: CalibrationPlan
    calibration_dir: Path
    fitted: dict[str, float | int]
    config: Config
    trials: pd.DataFrame
    measures: pd.DataFrame
    profiles: Profiles | None
    runs: int
    notes: tuple[str, ...]

    @property
    def config_file(self) -> Path:
        """The configuration file of the fitted world, for ``prism run``."""
        return self.calibration_dir / CONFIG

    @one_line
    def __repr__(self) -> str:
        values = ", ".join(f"{key}={value:g}" for key, value in self.fitted.items())
        return f"<CalibrationResult {values}, {format_count(len(self.trials), 'trial')}, {self.calibration_dir}>"


def write_result(
    plan: CalibrationPlan,
    folder: CalibrationFolder,
    results: Sequence[TrialResult],
    best: TrialResult,
    report_design: StudyDesign,
) -> CalibrationResult:
    """Write tables and the fitted configuration into a calibration's folder, and return the result."""
    with folder.journals() as journals:
        values, reason, _ = arm_measures(report_design, journals, report_design.arms[0])
    trials = pd.DataFrame(
        {
            "trial": result.trial.number,
            "how": result.trial.how,
            "status": "failed" if result.reason else "done",
            "reason": result.reason,
            **result.trial.values,
            **result.measures,
            "objective": nan if result.objective is None else result.objective,
        }
        for result in results
    )
    measures = pd.DataFrame(
        {"set": name, "measure": measure, **_target_row(target, values[measure])}
        for name, targets in (("fit", plan.params.fit), ("holdout", plan.params.holdout))
        for measure, target in targets.items()
    )
    profiles = _profiles(plan, results, best)
    base_values = plan.base.model_dump(mode="json")
    config = make_config(merge_values(base_values, nest_keys(best.trial.values)), str(folder.path / CONFIG))
    notes = (*plan.notes, *_notes(results, reason, best, plan))
    write_text(folder.path / CONFIG, redact_credentials(_config_text(plan, config, best)))
    tables = {"trials": trials, "fitted": measures}
    if profiles is not None:
        tables |= {"profiles": profiles.curves, "parameters": profiles.intervals}
    for name, frame in tables.items():
        with replacing(folder.table(name)) as file:
            frame.to_parquet(file, index=False)
    runs = sum(result.runs for result in results)
    return CalibrationResult(plan, folder.path, best.trial.values, config, trials, measures, profiles, runs, notes)


def _target_row(target: Target, values: Floats) -> dict[str, Any]:
    mean = float(values.mean()) if len(values) else nan
    [low], [high] = interval(values[:, None])
    deviation = distance(mean, target)
    simulated_values = {"simulated": mean, "low": float(low), "high": float(high), "distance": deviation}
    target_values = {"data": target.data, "target": target.target, "tolerance": target.tolerance}
    return {**target_values, **simulated_values, "inside": bool(abs(deviation) <= 1.0), "n": len(values)}


def _profiles(plan: CalibrationPlan, results: Sequence[TrialResult], best: TrialResult) -> Profiles | None:
    successful = [result for result in results if not result.reason]
    if len(successful) < _MIN_TRIALS:
        return None
    points = np.array([plan.point(result.trial.values) for result in successful])
    distances = np.array([result.distances for result in successful])
    objectives = np.array([result.objective for result in successful], np.float64)
    return fit_profiles(plan.axes, points, distances, objectives, plan.point(best.trial.values), plan.params.rise)


def _notes(results: Sequence[TrialResult], reason: str, best: TrialResult, plan: CalibrationPlan) -> list[str]:
    failed = [result for result in results if result.reason]
    notes = []
    if failed:
        first = f"trial {failed[0].trial.number}: {failed[0].reason}"
        n_failed = format_count(len(failed), "trial")
        notes.append(f"{n_failed} of {len(results)} failed and do not count; the first: {first}")
    successful = [result for result in results if not result.reason]
    undefined = [name for name in plan.params.fit if any(np.isnan(result.measures[name]) for result in successful)]
    if undefined:
        notes.append(f"{', '.join(undefined)}: undefined in some trials, which counts as ten tolerances")
    if reason:
        notes.append(f"a run of the fitted world failed and does not count: {reason}")
    point = plan.point(best.trial.values)
    keys_at_bounds = [axis.key for axis, position in zip(plan.axes, point, strict=True) if not 0.01 <= position <= 0.99]
    if keys_at_bounds:
        notes.append(f"{', '.join(keys_at_bounds)}: fitted at the end of its range; the optimum may lie outside")
    return notes


def _config_text(plan: CalibrationPlan, config: Config, best: TrialResult) -> str:
    data = ", ".join(dict.fromkeys(target.data for target in plan.params.fit.values()))
    header = [
        f"# The world that prism calibrate fitted ({plan.name}); every key. prism run {CONFIG}",
        f"# Fitted to: {data}.",
        *(f"# fitted: {key}: {value:g}" for key, value in best.trial.values.items()),
    ]
    body = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    return "\n".join([*header, "", body])
