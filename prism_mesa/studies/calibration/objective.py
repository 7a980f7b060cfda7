"""How far simulated measures are from their targets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, nan

import numpy as np

from prism_mesa.streams import Floats
from prism_mesa.studies.calibration.folder import Trial
from prism_mesa.studies.calibration.params import FAR, Target
from prism_mesa.studies.design.study_design import StudyDesign
from prism_mesa.studies.journal import Journals


@dataclass(frozen=True)
class TrialResult:
    """What became of a trial.

    Attributes:
        trial: Its values.
        reason: Why it failed; empty if it did not.
        measures: Means over its seeds, of those in which a measure is defined; NaN if there is none.
        distances: Of each target, in tolerances: (mean - target) / tolerance; NaN where the mean is.
        runs: Of it that were run.
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


def means_of(values: Sequence[Mapping[str, float]], measures: Sequence[str]) -> dict[str, float]:
    """Return the mean of each measure over runs, of those in which it is defined."""
    found = {}
    for name in measures:
        known = [one[name] for one in values if isfinite(one[name])]
        found[name] = float(np.mean(known)) if known else nan
    return found


def distance(value: float, target: Target) -> float:
    """Return how many tolerances a value is from a target; below 0 where it is less."""
    return (value - target.target) / target.tolerance


def values_of(design: StudyDesign, known: Journals, arm: str) -> tuple[list[dict[str, float]], str, int]:
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
        values, reason, n = values_of(design, known, trial.name)
        measures = dict.fromkeys(fit, nan) if reason else means_of(values, list(fit))
        distances = np.array([distance(measures[name], target) for name, target in fit.items()])
        found.append(TrialResult(trial, reason, measures, distances, n))
    return found
