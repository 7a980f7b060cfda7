"""Compare simulated with published outcomes: values with intervals over seeds, and verdicts."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from math import isfinite, nan
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from prism_mesa.arrays import Floats
from prism_mesa.errors import ConfigError
from prism_mesa.studies.experiments.outcomes import Experiment, FigureParams, Outcome
from prism_mesa.studies.measures.catalogue import find_measure, with_cache
from prism_mesa.studies.measures.finished import finished_run
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.significance import interval

type Verdict = Literal["inside", "outside", "open", "not published", "no value"]

VERDICTS: Final[Mapping[Verdict, str]] = {
    "inside": "the simulated value is in the allowed range; for a direction, so is the whole interval; for a null "
    "result, the interval holds 0 and is no wider than the published one",
    "outside": "it is not",
    "open": "the interval is too wide: more seeds or agents can tell",
    "not published": "nothing is published, or it has not been looked up",
    "no value": "the measure is undefined in these runs",
}


@dataclass(frozen=True)
class OutcomeRow:
    """An outcome with its simulated value.

    Attributes:
        value: Mean over seeds.
        low: Lower end of Student's 95 % interval of the mean; NaN with a single seed.
        high: Upper end.
        n: Number of seeds with a value.
    """

    experiment: str
    name: str
    outcome: Outcome
    value: float
    low: float
    high: float
    n: int

    @property
    def verdict(self) -> Verdict:
        """See `VERDICTS`."""
        outcome, (bottom, top) = self.outcome, self.outcome.allowed
        if outcome.published is None:
            return "not published"
        if not isfinite(self.value):
            return "no value"
        if outcome.is_null:
            return self._null_verdict(top - bottom)
        if isinstance(outcome.published, str):
            if bottom < self.low and self.high < top:
                return "inside"
            return "outside" if self.low > top or self.high < bottom else "open"
        return "inside" if bottom <= self.value <= top else "outside"

    def _null_verdict(self, width: float) -> Verdict:
        if not isfinite(self.low) or self.low <= 0 <= self.high:
            return "inside" if self.high - self.low <= width else "open"
        return "outside"

    @property
    def sign_right(self) -> bool | None:
        """Whether the simulated value is on the published side of no effect; None for null and unknown results."""
        if not self.outcome.sign or not isfinite(self.value):
            return None
        return bool((self.value - self.outcome.neutral) * self.outcome.sign > 0)

    @property
    def sign_established(self) -> bool | None:
        """Whether the whole interval is on the published side of no effect; None as in `sign_right`."""
        if self.sign_right is None:
            return None
        return min((end - self.outcome.neutral) * self.outcome.sign for end in (self.low, self.high)) > 0

    def facts(self) -> dict[str, Any]:
        """Return the row for a table or JSON."""
        outcome, (bottom, top) = self.outcome, self.outcome.allowed
        return {
            "experiment": self.experiment,
            "outcome": self.name,
            "what": outcome.what,
            "unit": outcome.unit,
            "role": outcome.role,
            "published": outcome.published,
            "allowed_low": bottom,
            "allowed_high": top,
            "mark": outcome.mark,
            "simulated": self.value,
            "low": self.low,
            "high": self.high,
            "seeds": self.n,
            "verdict": self.verdict,
            "sign_right": self.sign_right,
            "sign_established": self.sign_established,
        }


@dataclass(frozen=True)
class ExperimentResults:
    """Field experiments and their simulated outcomes.

    Attributes:
        path: Folder of the report, with a folder for each study.
        cpu_hours: CPU time of all runs, by study.
    """

    path: Path
    experiments: Mapping[str, Experiment]
    figures: Mapping[str, FigureParams]
    rows: tuple[OutcomeRow, ...]
    scale: str
    cpu_hours: Mapping[str, float]
    notes: tuple[str, ...] = ()

    @property
    def scored(self) -> list[OutcomeRow]:
        """The predicted outcomes with a published result."""
        return [row for row in self.rows if row.outcome.role == "predicted" and row.outcome.published is not None]

    @property
    def table(self) -> pd.DataFrame:
        """A row for each outcome."""
        return pd.DataFrame([row.facts() for row in self.rows])


def evaluate(name: str, experiment: Experiment, runs: pd.DataFrame) -> Iterable[OutcomeRow]:
    """Yield the outcomes of an experiment, from the table of runs of its study."""
    for key, outcome in experiment.outcomes.items():
        values = _values_by_seed(outcome, experiment, experiment.column(key), runs)
        low, high = interval(values[:, None]) if len(values) > 1 else (np.array([nan]), np.array([nan]))
        mean = float(values.mean()) if len(values) else nan
        yield OutcomeRow(name, key, outcome, mean, float(low[0]), float(high[0]), len(values))


def compare_matched(experiment: Experiment, result: StudyResult) -> pd.DataFrame:
    """Return the runs of a study, with a column for each outcome that compares two runs, in the rows of `arm`."""
    runs, folders = result.runs.copy(), result.facts.set_index("run")["folder"]
    matched = {key: outcome for key, outcome in experiment.outcomes.items() if outcome.compare == "matched"}
    runs[[experiment.column(key) for key in matched]] = nan
    for _, rows in runs.groupby("seed") if matched else ():
        by_arm = rows.reset_index().set_index("arm")
        opened = cache(
            lambda arm, by_arm=by_arm: with_cache(finished_run(result.study_dir / folders[by_arm["run"][arm]]))
        )
        for key, outcome in matched.items():
            arm, against = outcome.arm or experiment.arm, outcome.against or experiment.against
            function: Any = find_measure(experiment.measure(key)).compute
            runs.loc[by_arm["index"][arm], experiment.column(key)] = function(opened(arm), opened(against))
    return runs


def _values_by_seed(outcome: Outcome, experiment: Experiment, measure: str, runs: pd.DataFrame) -> Floats:
    """Return the simulated value of an outcome for each seed in which it is defined."""
    values = runs.pivot(index="seed", columns="arm", values=measure)
    value = values[outcome.arm or experiment.arm]
    if outcome.compare not in ("value", "matched"):
        against = values[outcome.against or experiment.against]
        ratio = value / against
        value = {"percent": 100 * (ratio - 1), "ratio": ratio, "difference": value - against}[outcome.compare]
    numbers = np.asarray(value, np.float64)
    return numbers[np.isfinite(numbers)]


def check_arms(name: str, experiment: Experiment, arms: Iterable[str]) -> None:
    """Raise ConfigError if an outcome names no arm of the study, or an unknown one."""
    known = tuple(arms)
    for key, outcome in experiment.outcomes.items():
        needed = {"arm": outcome.arm or experiment.arm}
        if outcome.compare != "value":
            needed["against"] = outcome.against or experiment.against
        for role, arm in needed.items():
            if arm not in known:
                where = f"{name}: outcomes.{key}: {role}: {arm!r}"
                raise ConfigError(f"{where}: no such arm in {experiment.study} (arms: {', '.join(known)})")
