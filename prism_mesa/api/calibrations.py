"""Calibrations: parameters fitted to targets, and reported on data that the fit did not see."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from prism_mesa.api.studies import file_and_values, study_name
from prism_mesa.errors import format_count, one_line
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
