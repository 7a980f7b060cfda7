"""Plan, run and report studies."""

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prism_mesa.api.results import StudyPlots
from prism_mesa.errors import ConfigError, DataError, format_count, one_line
from prism_mesa.params import Params, parse_whole_number, short_repr
from prism_mesa.runs.config import Config
from prism_mesa.studies.calibration.plan import MANIFEST as CALIBRATION
from prism_mesa.studies.design.models import conditions_to_check
from prism_mesa.studies.design.study_design import StudyDesign, condition_text, design_study
from prism_mesa.studies.driver import Engine, Progress
from prism_mesa.studies.engines.executors import EngineKind
from prism_mesa.studies.folder import MANIFEST, Shard, StudyFolder, open_folder
from prism_mesa.studies.params import read_study, study_params
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.study import StudyPlan, StudyStatus, collect_result, plan_study, run_study, study_status

if TYPE_CHECKING:
    from prism_mesa.view.study.report import FigureKind


class StudyOutcome(StudyResult):
    """The result of a study, for notebooks."""

    @property
    def plot(self) -> StudyPlots:
        """Figures with a line for each condition and a band over seeds: ``result.plot.cascades()``."""
        return StudyPlots(self)

    def _repr_html_(self) -> str:
        from prism_mesa.view.study.report import study_html

        return study_html(self)


class Study:
    """A question, the conditions to compare, and the measures; ``prism study`` in Python.

    Args:
        study: A study file, or its values; None if the values are given by name.
        out: Parent folder of the study's folder, ``out/<name>``. Existing runs are not repeated.
        values: Values of a study file by name (``question=..., arms=..., seeds=20``); they override `study`.

    Attributes:
        design: The checked study: its conditions, and every run.

    Raises:
        BadInputError: If a key, value, measure or expectation is wrong, or the folder holds another study. `plan` and
            `run` also raise it, before anything runs, if no model can be made.
    """

    def __init__(
        self,
        study: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        /,
        *,
        out: str | Path = "results",
        **values: Any,
    ) -> None:
        file, base = file_and_values("Study", study, read_study)
        label, name = ("Study", "study") if file is None else (str(file), study_name(file))
        self.design: StudyDesign = design_study(study_params({**base, **values}, label), name, label)
        self._folder: StudyFolder = open_folder(self.design, out)
        self._checked = False
        self._text = file.read_text(encoding="utf-8") if file is not None and not values else ""

    @property
    def study_dir(self) -> Path:
        """The study's folder; made with the first run."""
        return self._folder.path

    @one_line
    def __repr__(self) -> str:
        design = self.design
        runs = f"{format_count(len(design.conditions), 'condition')} x {format_count(len(design.seeds), 'seed')}"
        return f"<Study {design.name}: {short_repr(design.params.question)}, {runs}, {self.study_dir}>"

    def plan(
        self,
        *,
        workers: int | None = None,
        engine: EngineKind = "local",
        scheduler: str | None = None,
        on_run: Callable[[Progress], object] = lambda progress: None,
    ) -> StudyPlan:
        """Run two seeds of up to eight conditions, and return the cost of the whole study; arguments as for `run`."""
        checked_engine = open_engine(engine, workers, scheduler)
        self._check()
        return plan_study(self.design, self._folder, checked_engine, text=self._text, on_run=on_run)

    def run(
        self,
        *,
        workers: int | None = None,
        engine: EngineKind = "local",
        scheduler: str | None = None,
        shard: str | None = None,
        attempts: int = 1,
        retry: bool = True,
        report: bool = True,
        figures: "FigureKind" = "png",
        on_run: Callable[[Progress], object] = lambda progress: None,
    ) -> StudyOutcome:
        """Run all runs that are not yet done, and return the result of the study.

        Args:
            workers: Number of parallel runs; None: one for each free core.
            engine: `local`: processes of this machine; `dask` (extra `dask`); `slurm`: jobs through Dask.
            scheduler: Address of a Dask scheduler; None lets Dask start its own here.
            shard: ``"K/N"`` runs the K-th of N parts, K from 1, as in a job array; each part writes its own journal.
            attempts: The number of attempts for a run that fails.
            retry: Whether to repeat runs that failed in an earlier call.
            report: Whether to write report.html and report.md.
            figures: Format of the report's figures besides PNG: `svg` or `pdf`.
            on_run: Called with the progress at the start and after each run.

        Raises:
            DataError: If the folder cannot be used, or another process runs the study.
            KeyboardInterrupt: If the user stops it; repeat the call to continue.
        """
        part, checked_engine = _shard(shard), open_engine(engine, workers, scheduler, attempts)
        self._check()
        folder, text = self._folder, self._text
        try:
            result = run_study(self.design, folder, checked_engine, text=text, shard=part, retry=retry, on_run=on_run)
        except KeyboardInterrupt as stop:
            status = study_status(self.design, self._folder)
            done = f"{status.done} of {status.planned} runs are done and kept; the same command continues"
            raise KeyboardInterrupt(f"{self.study_dir}: interrupted: {done}") from stop
        return _with_report(result, figures if report else None)

    def _check(self) -> None:
        """Make a model of each condition once, to raise errors and to note keys without effect."""
        if not self._checked:
            from prism_mesa.studies.design.models import check_models, find_skipped

            design = find_skipped(self.design)
            self.design = replace(design, notes=(*design.notes, *check_models(design)))
            self._checked = True

    def status(self) -> StudyStatus:
        """Return the runs that are done, failed (with reasons), missing or stale, without running any."""
        return study_status(self.design, self._folder)

    def report(self, figures: "FigureKind" = "png") -> StudyOutcome:
        """Write the report of the completed runs, and return their result; raises DataError without runs."""
        if not self.study_dir.is_dir():
            raise DataError(f"{self.study_dir}: no run has finished yet: start with prism study run")
        self._check()
        return _with_report(collect_result(self.design, self._folder), figures)


def file_and_values(kind: str, source: object, read: Callable[[Path], Params]) -> tuple[Path | None, dict[str, Any]]:
    """Return the file of a study or calibration (None if there is no file), and the values."""
    if source is None or isinstance(source, Mapping):
        return None, dict(source or {})
    if not isinstance(source, str | os.PathLike):
        raise ConfigError(f"{kind}: give a {kind.lower()} file, or its values, not {short_repr(source)}")
    file = Path(source)
    add_import_path(file)
    return file, read(file).model_dump(exclude_unset=True)


def add_import_path(file: Path) -> None:
    """Allow imports of modules next to a study file, unless it lies in a study's folder (possibly from elsewhere)."""
    if not any((file.parent / name).exists() for name in (MANIFEST, CALIBRATION)):
        folder = str(file.parent.absolute())
        if folder not in sys.path:
            sys.path.append(folder)


def configs_by_condition(file: Path) -> dict[str, Config]:
    """Return the configuration for each arm of a study file and each level of its factors, by label."""
    add_import_path(file)
    design = design_study(read_study(file), study_name(file), str(file))
    seed = design.seeds[0]
    return {condition_text(c, design): design.config(design.planned_run(c, seed)) for c in conditions_to_check(design)}


def study_name(file: Path) -> str:
    """Return the name of a study file, with characters that a folder's name allows."""
    return re.sub(r"[^\w.-]+", "-", file.stem).lstrip(".-")[:60] or "study"


def open_engine(kind: EngineKind, workers: int | None, scheduler: str | None = None, attempts: int = 1) -> Engine:
    """Return the engine of a study, after checking that it is available."""
    engine = Engine(kind, workers, scheduler, attempts)
    engine.open(1 if workers is None else workers)
    return engine


def _shard(text: str | None) -> Shard:
    k, n = (parse_whole_number(part) for part in text.partition("/")[::2]) if text is not None else (1, 1)
    if k is None or n is None or not 1 <= k <= n:
        raise ConfigError(f"shard: {text!r}: must be K/N with K from 1 to N, such as 3/8")
    return Shard(k, n)


def _with_report(result: StudyResult, figures: "FigureKind | None") -> StudyOutcome:
    """Write the report unless `figures` is None, and return the result for users."""
    if figures is not None:
        from prism_mesa.view.study.report import write_report

        write_report(result, figures=figures)
    return StudyOutcome(**vars(result))
