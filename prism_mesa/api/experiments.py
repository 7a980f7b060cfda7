"""Simulate field experiments, and compare their outcomes with what was published."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from prism_mesa.api.studies import Study
from prism_mesa.errors import ConfigError, RunError, format_count
from prism_mesa.studies.driver import Progress
from prism_mesa.studies.experiments.evaluation import (
    ExperimentResults,
    OutcomeRow,
    check_arms,
    compare_matched,
    evaluate,
)
from prism_mesa.studies.experiments.outcomes import Experiment, read_outcomes, select_experiments
from prism_mesa.studies.params import read_study

OUTCOMES_FILE: Final = Path("configs/studies/experiments/outcomes.yaml")
"""The file of outcomes that is read by default."""


class Experiments:
    """Field experiments and their studies; ``prism experiments`` in Python.

    Args:
        names: Names of experiments in the file; none for all.
        file: The file of outcomes. Study files and modules of measures lie beside it.
        seeds: The number of seeds; None: as in the studies.
        scale: `full`: the worlds of the studies; `small`: with the values under `small`, for a quick look.
        out: Parent folder; the report is in ``out/experiments``. Existing runs are not repeated.

    Raises:
        BadInputError: If a name, key, measure or arm is wrong.
    """

    def __init__(
        self,
        names: Sequence[str] = (),
        *,
        file: str | os.PathLike[str] = OUTCOMES_FILE,
        seeds: int | None = None,
        scale: Literal["full", "small"] = "full",
        out: str | Path = "results",
    ) -> None:
        if scale not in ("full", "small"):
            raise ConfigError(f"scale: {scale!r}: give 'full' or 'small'")
        content, self._file, self.scale = read_outcomes(Path(file)), Path(file), scale
        self.path = Path(out) / ("experiments" if scale == "full" else "experiments-small")
        self.experiments = select_experiments(content.experiments, tuple(names))
        self.figures = content.figures
        # a study computes the measures of all its experiments, so that its runs serve whichever are asked for
        self.studies = {
            study: self._study(study, [item for item in content.experiments.values() if item.study == study], seeds)
            for study in dict.fromkeys(item.study for item in self.experiments.values())
        }
        for name, item in self.experiments.items():
            design = self.studies[item.study].design
            check_arms(name, item, design.arms)
            if design.params.keep != "tables" and any(o.compare == "matched" for o in item.outcomes.values()):
                raise ConfigError(f"{name}: outcomes that are matched compare runs: set keep: tables in {item.study}")

    def _study(self, name: str, experiments: Sequence[Experiment], seeds: int | None) -> Study:
        """Return the study that some experiments share."""
        file, values = self._file.parent / name, dict[str, Any]()
        if self.scale == "small":
            values["set"] = read_study(file).set | {key: v for item in experiments for key, v in item.small.items()}
        if seeds is not None:
            values["seeds"] = seeds
        outcomes = [(item, key, outcome) for item in experiments for key, outcome in item.outcomes.items()]
        measures = [item.measure(key) for item, key, outcome in outcomes if outcome.compare != "matched"]
        if measures:
            values["measures"] = list(dict.fromkeys(measures))
        return Study(file, out=self.path, **values)

    @property
    def n_runs(self) -> int:
        """The number of runs of all studies."""
        return sum(study.design.n_runs for study in self.studies.values())

    def run(
        self,
        *,
        workers: int | None = None,
        report: bool = True,
        on_run: Callable[[int, int], object] = lambda done, planned: None,
    ) -> ExperimentResults:
        """Run what is missing, and return the outcomes.

        Args:
            workers: Number of parallel runs; None: one for each free core.
            report: Whether to write report.md, outcomes.csv and figures.
            on_run: Called at the start and after each run, with the number of runs that are done and planned.

        Raises:
            RunError: If a run failed; finished runs are kept, and the same call tries the others again.
        """
        results, before = {}, 0
        for name, study in self.studies.items():

            def count(progress: Progress, before: int = before) -> None:
                on_run(before + progress.done + progress.failed, self.n_runs)

            results[name] = study.run(workers=workers, report=False, on_run=count)
            before += study.design.n_runs
        failed = {name: result.runs[result.runs["status"] == "failed"] for name, result in results.items()}
        reasons = [
            f"{name}: {format_count(len(r), 'failed run')}: {r['reason'].iloc[0]}"
            for name, r in failed.items()
            if len(r)
        ]
        if reasons:
            raise RunError(f"{self.path}: {'; '.join(reasons)}")
        rows: list[OutcomeRow] = []
        for name, item in self.experiments.items():
            rows += evaluate(name, item, compare_matched(item, results[item.study]))
        outcome = ExperimentResults(
            path=self.path,
            experiments=self.experiments,
            figures=self.figures,
            rows=tuple(rows),
            scale=self.scale,
            cpu_hours={name: float(result.facts["cpu_s"].sum()) / 3600 for name, result in results.items()},
            notes=tuple(f"{name}: {note}" for name, result in results.items() for note in result.notes),
        )
        if report:
            from prism_mesa.view.experiments import write_report

            write_report(outcome)
        return outcome
