"""Fit parameters to data by simulation (`Calibration`), and validate a configuration against real data."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from prism_mesa.api.studies import file_and_values, open_engine, study_name
from prism_mesa.errors import ConfigError, format_count, one_line
from prism_mesa.params import short_repr
from prism_mesa.runs.config import Config, read_config
from prism_mesa.runs.yaml_text import read_yaml
from prism_mesa.studies.calibration.calibrate import calibrate, resolve_budget
from prism_mesa.studies.calibration.plan import (
    CalibrationFolder,
    CalibrationPlan,
    calibration_params,
    open_calibration_folder,
    plan_calibration,
    read_calibration,
)
from prism_mesa.studies.calibration.result import CalibrationResult
from prism_mesa.studies.driver import Engine, Progress
from prism_mesa.studies.validation import validation
from prism_mesa.studies.validation.real import load_real_values
from prism_mesa.studies.validation.validation import Validation
from prism_mesa.studies.validation.variants import select_variants


def validate(
    config: Config | Mapping[str, Any] | str | os.PathLike[str] | None = None,
    *,
    data: str | Path | None = None,
    seeds: int = 3,
    variants: Sequence[str] = (),
    fitted: str | Path | None = None,
    workers: int | None = None,
    out: str | Path = "results",
    name: str | None = None,
    report: bool = True,
    on_run: Callable[[Progress], object] = lambda progress: None,
    on_match: Callable[[int, int], object] = lambda done, total: None,
) -> Validation:
    """Run a configuration with several seeds, compare it with real platforms, and write a report.

    Args:
        config: A `Config`, its values, or the path of a YAML file.
        data: Folder of the real data; None: the values shipped with PRISM.
        seeds: The number of seeds, starting from the configuration's seed.
        variants: Names of null models and ablations to run as well; `nulls` or `all` for several.
        fitted: Calibration file whose `fit` names the fitted measures; None: those fitted in PRISM's own calibration.
        workers: Number of parallel runs; None: one for each free core.
        out: Parent folder of the results; repeating a call continues unfinished runs.
        name: Start of the folder's name; None: the name of the file or the configuration.
        report: Whether to write report.md and figures.
        on_run: Called with the progress at the start and after each run.
        on_match: Called before the runs, while thresholds of variants are matched, with the numbers tried and allowed.

    Returns:
        The tables, and whether all required targets that apply are met (`passed`).

    Raises:
        BadInputError: If a key, value, variant or data folder is wrong.
        RunError: If a run failed; finished runs are kept.
    """
    if isinstance(seeds, bool) or not isinstance(seeds, int) or not 1 <= seeds <= 10_000:
        raise ConfigError(f"seeds: give a whole number from 1 to 10,000, not {short_repr(seeds)}")
    variant_names = select_variants(variants)
    measures = None if fitted is None else _fitted_measures(Path(fitted))
    checked_config = read_config(Config, config)
    stem = Path(config).stem if isinstance(config, str | os.PathLike) else checked_config.name
    run_all = partial(validation.validate, engine=open_engine("local", workers), on_run=on_run, on_match=on_match)
    real = load_real_values(data)
    result = run_all(checked_config, name or stem, real, seeds=seeds, variants=variant_names, fitted=measures, out=out)
    if report:
        from prism_mesa.view.validation.report import write_report

        write_report(result)
    return result


def _fitted_measures(file: Path) -> set[str]:
    """Return the measures that a calibration file names under `fit`; raises ConfigError if there are none."""
    fit = read_yaml(file, kind="calibration file", hint="").get("fit")
    if not isinstance(fit, Mapping) or not fit:
        raise ConfigError(f"{file}: fit: names no measures: it must be a calibration file (prism calibrate)")
    return {str(measure) for measure in fit}


class Calibration:
    """Parameters to fit to targets by simulation; ``prism calibrate`` in Python.

    Args:
        calibration: A calibration file, or its values; None if the values are given by name.
        out: Parent folder of the calibration's folder, ``out/<name>``. Existing runs are not repeated.
        values: Values of a calibration file by name (``parameters=..., fit=...``); they override `calibration`.

    Attributes:
        plan: The checked calibration.

    Raises:
        BadInputError: If a key, value or measure is wrong, no model can be made at the ends of the ranges, the same
            data are fitted and held out, or the folder holds another calibration.
    """

    def __init__(
        self,
        calibration: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        /,
        *,
        out: str | Path = "results",
        **values: Any,
    ) -> None:
        file, base = file_and_values("Calibration", calibration, read_calibration)
        label, name = ("Calibration", "calibration") if file is None else (str(file), study_name(file))
        self.plan: CalibrationPlan = plan_calibration(calibration_params({**base, **values}, label), name, label)
        self._folder: CalibrationFolder = open_calibration_folder(self.plan, out)
        self._text = file.read_text(encoding="utf-8") if file is not None and not values else ""

    @property
    def calibration_dir(self) -> Path:
        """The calibration's folder; made with the first run."""
        return self._folder.path

    @one_line
    def __repr__(self) -> str:
        axes, params = self.plan.axes, self.plan.params
        counts = f"{format_count(len(axes), 'parameter')}, {format_count(len(params.fit), 'target')}"
        return f"<Calibration {self.plan.name}: {counts}, {len(params.holdout)} held out, {self.calibration_dir}>"

    def run(
        self,
        *,
        workers: int | None = None,
        runs: int | None = None,
        minutes: float | None = None,
        report: bool = True,
        on_run: Callable[[Progress], object] = lambda progress: None,
    ) -> CalibrationResult:
        """Run trials until the budget is spent, and return the result.

        Args:
            workers: Number of parallel runs; None: one for each free core. Results do not depend on the number.
            runs: Total runs of all trials, earlier calls included; None (with `minutes` None): as in the file.
            minutes: Minutes of wall time after which no batch of trials starts.
            report: Whether to write report.html and report.md.
            on_run: Called with the progress at the start and after each run.

        Raises:
            DataError: If the folder cannot be used, or another process runs the calibration.
            RunError: If no trial succeeded.
            KeyboardInterrupt: If the user stops it; repeat the call to continue.
        """
        budget = resolve_budget(self.plan, runs, minutes)
        try:
            result = calibrate(self.plan, self._folder, Engine(workers=workers), budget, text=self._text, on_run=on_run)
        except KeyboardInterrupt as stop:
            kept = "finished runs are kept; the same command continues"
            raise KeyboardInterrupt(f"{self.calibration_dir}: interrupted: {kept}") from stop
        if report:
            from prism_mesa.view.calibration import write_calibration_report

            write_calibration_report(result)
        return result
