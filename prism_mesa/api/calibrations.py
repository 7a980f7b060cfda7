"""Calibrations as users call them: parameters fitted to targets, and reported on data that the fit did not see."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from prism_mesa.api.studies import look_beside, name_of
from prism_mesa.errors import ConfigError, counted, one_line
from prism_mesa.params import shown
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
    """Named parameters, fitted to named targets by simulation; ``prism calibrate`` in Python.

    Args:
        calibration: A calibration file, or what one holds; None where the values are given by name.
        out: Parent folder of the calibration's own, ``out/<name>``. What is there already is not run again.
        values: What a calibration file holds, by name (``parameters=..., fit=...``); on top of `calibration`.

    Attributes:
        plan: The calibration as it was checked.

    Raises:
        BadInputError: If a key, a value or a measure is wrong, no model can be made at the ends of the ranges, data
            are both fitted and held out, or another calibration is in its folder.
    """

    def __init__(
        self,
        calibration: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        /,
        *,
        out: str | Path = "results",
        **values: Any,
    ) -> None:
        if calibration is not None and not isinstance(calibration, str | os.PathLike | Mapping):
            raise ConfigError(f"Calibration: give a calibration file, or its values, not {shown(calibration)}")
        file = None if calibration is None or isinstance(calibration, Mapping) else Path(calibration)
        where = "Calibration" if file is None else str(file)
        given = dict(calibration) if isinstance(calibration, Mapping) else {}
        look_beside(file)
        if file is not None:
            given = read_calibration(file).model_dump(exclude_unset=True)
        name = "calibration" if file is None else name_of(file)
        self.plan: CalibrationPlan = plan_calibration(calibration_params({**given, **values}, where), name, where)
        self._folder: CalibrationFolder = open_calibration_folder(self.plan, out)
        self._text = file.read_text(encoding="utf-8") if file is not None and not values else ""

    @property
    def calibration_dir(self) -> Path:
        """The calibration's folder; made with the first run."""
        return self._folder.path

    @one_line
    def __repr__(self) -> str:
        axes, params = self.plan.axes, self.plan.params
        told = (
            f"{counted(len(axes), 'parameter')}, {counted(len(params.fit), 'target')}, {len(params.holdout)} held out"
        )
        return f"<Calibration {self.plan.name}: {told}, {self.calibration_dir}>"

    def run(
        self,
        *,
        workers: int | None = None,
        runs: int | None = None,
        minutes: float | None = None,
        report: bool = True,
        on_run: Callable[[Progress], object] = lambda progress: None,
    ) -> CalibrationResult:
        """Go on until the budget is spent, and return what came of it.

        Args:
            workers: Runs at the same time; None: one for each core that the threads of a run leave. What is tried does
                not depend on it.
            runs: Runs of all trials, those of earlier calls among them; None with None for `minutes`: what the file
                says.
            minutes: On the wall, from now, after which no batch of trials is begun.
            report: Whether report.html and report.md are written.
            on_run: Called with the progress at first and after each run.

        Raises:
            DataError: If the folder cannot be used, or another process runs the calibration.
            RunError: If no trial came to a good end.
            KeyboardInterrupt: When the user ends it. What was done is kept, and the same call continues.
        """
        budget = resolve_budget(self.plan, runs, minutes)
        try:
            result = calibrate(self.plan, self._folder, Engine(workers=workers), budget, text=self._text, on_run=on_run)
        except KeyboardInterrupt as stop:
            raise KeyboardInterrupt(
                f"{self.calibration_dir}: interrupted: what is done is kept; the same command continues"
            ) from stop
        if report:
            from prism_mesa.view.calibration import write_calibration_report

            write_calibration_report(result)
        return result
