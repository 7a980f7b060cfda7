"""The results of a calibration: trials with their distances from the targets, the fit, its tables."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
import yaml

from prism_mesa.errors import counted, one_line, redact_credentials
from prism_mesa.params import merged, nested
from prism_mesa.runs.config import Config, make_config
from prism_mesa.streams import Floats
from prism_mesa.studies.calibration.folder import CalibrationFolder, Trial
from prism_mesa.studies.calibration.params import FAR, Target
from prism_mesa.studies.calibration.plan import CalibrationPlan
from prism_mesa.studies.calibration.profiles import Profiles, fit_profiles
from prism_mesa.studies.design.study_design import StudyDesign
from prism_mesa.studies.folder import replacing, write_text
from prism_mesa.studies.journal import Journals
from prism_mesa.studies.statistics.significance import interval


@dataclass(frozen=True)
class TrialResult:
    """What became of a trial.

    Attributes:
        reason: Why it failed; empty if it did not.
        measures: Means over its seeds, of those in which a measure is defined; NaN if there is none.
        distances: Of each target, in tolerances: (mean - target) / tolerance; NaN where the mean is.
    """

    trial: Trial
    reason: str
    measures: dict[str, float]
    distances: Floats
    runs: int

    @property
    def objective(self) -> float | None:
        """The sum of its squared distances, what is not defined counted as `FAR`; None if it failed."""
        if self.reason:
            return None
        return float((np.where(np.isnan(self.distances), FAR, self.distances) ** 2).sum())


def mean_measures(values: Sequence[Mapping[str, float]], measures: Sequence[str]) -> dict[str, float]:
    """Return the mean of each measure over runs, of those in which it is defined."""
    found = {}
    for name in measures:
        known = [one[name] for one in values if isfinite(one[name])]
        found[name] = float(np.mean(known)) if known else nan
    return found


def distance(value: float, target: Target) -> float:
    """Return how many tolerances a value is from a target; below 0 where it is less."""
    return (value - target.target) / target.tolerance


def arm_measures(design: StudyDesign, known: Journals, arm: str) -> tuple[list[dict[str, float]], str, int]:
    """Return the measures of each run of an arm, why the first one failed that did, if any, and how many were run."""
    values, reason, n = [], "", 0
    for planned in design.runs():
        if planned.condition.arm != arm:
            continue
        entry = known.entry(planned.run)
        n += entry is not None
        if entry is not None and entry.done:
            taken = (entry.measures.get(name, ("", None))[1] for name in design.params.measures)
            row = [nan if value is None else float(value) for value in taken]
            values.append(dict(zip(design.params.measures, row, strict=True)))
        elif not reason:
            why = "was not run" if entry is None else f"{entry.ending}: {entry.reason}"
            reason = f"seed {planned.seed}: {why}"
    return values, reason, n


def judged(
    trials: Sequence[Trial], design: StudyDesign, known: Journals, fit: Mapping[str, Target]
) -> list[TrialResult]:
    """Return what became of trials, each an arm of a study whose runs are done or failed."""
    found = []
    for trial in trials:
        values, reason, n = arm_measures(design, known, trial.name)
        measures = dict.fromkeys(fit, nan) if reason else mean_measures(values, list(fit))
        distances = np.array([distance(measures[name], target) for name, target in fit.items()])
        found.append(TrialResult(trial, reason, measures, distances, n))
    return found


CONFIG: Final = "fitted.yaml"  # the configuration of the fitted world, in the calibration's folder
_EXPLORED: Final = 4  # trials without which nothing is said of profiles


@dataclass(frozen=True, repr=False)
class CalibrationResult:
    """A calibration and what it came to.

    Attributes:
        plan: What was to be fitted.
        calibration_dir: Its folder.
        fitted: Values of the parameters, of the trial with the least objective.
        config: The configuration of the fitted world.
        trials: A row for each trial: `trial`, `how`, `status`, `reason`, the parameters, the means of the fitted
            measures, `objective`.
        measures: A row for each target, on runs of the fitted world that no trial has had: `set` (`fit`, `holdout`),
            `measure`, `data`, `target`, `tolerance`, `simulated`, `low` and `high` (95 % interval of the mean),
            `distance` (in tolerances), `inside` (up to one), `n` (runs in which it is defined).
        profiles: What the data say of each parameter; None with fewer than four trials that did not fail.
        runs: Of trials that were run, failed ones among them.
        notes: What a reader should know.
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
        """The configuration, as ``prism run`` takes it."""
        return self.calibration_dir / CONFIG

    @one_line
    def __repr__(self) -> str:
        values = ", ".join(f"{key}={value:g}" for key, value in self.fitted.items())
        return f"<CalibrationResult {values}, {counted(len(self.trials), 'trial')}, {self.calibration_dir}>"


def write_result(
    plan: CalibrationPlan,
    folder: CalibrationFolder,
    results: Sequence[TrialResult],
    best: TrialResult,
    report: StudyDesign,
) -> CalibrationResult:
    """Return what a calibration came to, once its tables and its configuration are written into its folder."""
    with folder.journals() as known:
        values, reason, _ = arm_measures(report, known, report.arms[0])
    trials = _trial_table(plan, results)
    measures = pd.DataFrame(
        {"set": name, "measure": measure, **_row(measure, target, values)}
        for name, targets in (("fit", plan.params.fit), ("holdout", plan.params.holdout))
        for measure, target in targets.items()
    )
    profiles = _profiles(plan, results, best)
    values_of_base = plan.base.model_dump(mode="json")
    config = make_config(merged(values_of_base, nested(best.trial.values)), str(folder.path / CONFIG))
    notes = (*plan.notes, *_notes(results, reason, best, plan))
    write_text(folder.path / CONFIG, redact_credentials(_config_text(plan, config, best)))
    tables = {"trials": trials, "fitted": measures}
    if profiles is not None:
        tables |= {"profiles": profiles.curves, "parameters": profiles.intervals}
    for name, frame in tables.items():
        with replacing(folder.table(name)) as new:
            frame.to_parquet(new, index=False)
    runs = sum(result.runs for result in results)
    return CalibrationResult(plan, folder.path, best.trial.values, config, trials, measures, profiles, runs, notes)


def _trial_table(plan: CalibrationPlan, results: Sequence[TrialResult]) -> pd.DataFrame:
    rows: list[dict[str, Any]] = [
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
    ]
    return pd.DataFrame(rows)


def _row(measure: str, target: Target, values: Sequence[dict[str, float]]) -> dict[str, Any]:
    known = np.array([one[measure] for one in values if np.isfinite(one[measure])], np.float64)
    mean = mean_measures(values, [measure])[measure]
    low, high = interval((known[:, None],))
    off = distance(mean, target)
    return {
        "data": target.data,
        "target": target.target,
        "tolerance": target.tolerance,
        "simulated": mean,
        "low": float(low[0]),
        "high": float(high[0]),
        "distance": off,
        "inside": bool(abs(off) <= 1.0),
        "n": len(known),
    }


def _profiles(plan: CalibrationPlan, results: Sequence[TrialResult], best: TrialResult) -> Profiles | None:
    done = [result for result in results if not result.reason]
    if len(done) < _EXPLORED:
        return None
    points = np.array([plan.space.place(one.trial.values) for one in done])
    distances = np.array([one.distances for one in done])
    objectives = np.array([one.objective for one in done], np.float64)
    return fit_profiles(
        plan.space, points, distances, objectives, plan.space.place(best.trial.values), plan.params.rise
    )


def _notes(results: Sequence[TrialResult], reason: str, best: TrialResult, plan: CalibrationPlan) -> list[str]:
    failed = [result for result in results if result.reason]
    said = []
    if failed:
        first = f"trial {failed[0].trial.number}: {failed[0].reason}"
        said.append(
            f"{counted(len(failed), 'trial')} of {len(results)} failed, and count for nothing; the first: {first}"
        )
    undefined = [
        name
        for name in plan.params.fit
        if any(np.isnan(result.measures[name]) for result in results if not result.reason)
    ]
    if undefined:
        said.append(f"{', '.join(undefined)}: not defined in some trials, which count as ten tolerances off")
    if reason:
        said.append(f"a run of the fitted world failed, and is left out of its measures: {reason}")
    places = plan.space.place(best.trial.values)
    ends = [axis.key for axis, place in zip(plan.space.axes, places, strict=True) if not 0.01 <= place <= 0.99]
    if ends:
        said.append(f"{', '.join(ends)}: fitted at the end of its range: the best may lie beyond")
    return said


def _config_text(plan: CalibrationPlan, config: Config, best: TrialResult) -> str:
    data = ", ".join(dict.fromkeys(target.data for target in plan.params.fit.values()))
    head = [
        f"# The world that prism calibrate fitted ({plan.name}); every key. prism run {CONFIG}",
        f"# Fitted to: {data}.",
        *(f"# fitted: {key}: {value:g}" for key, value in best.trial.values.items()),
    ]
    body = yaml.safe_dump(config.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
    return "\n".join([*head, "", body])
