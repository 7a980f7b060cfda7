"""The command that fits parameters to targets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from prism_mesa.cli.arguments import AsJson, OutOption
from prism_mesa.cli.console import print_lines
from prism_mesa.cli.studies import Workers, replace_nonfinite, runs_bar
from prism_mesa.terminal import show_json

if TYPE_CHECKING:
    from prism_mesa.studies.calibration.result import CalibrationResult


def calibrate(
    file: Annotated[Path, Argument(metavar="FILE.yaml", help="parameters, targets, and held-out data")],
    out: OutOption = Path("results"),
    workers: Workers = None,
    runs: Annotated[
        int | None, Option(min=1, help="total number of runs, earlier ones included; by default as in the file")
    ] = None,
    minutes: Annotated[float | None, Option(min=0, help="minutes of wall time after which no trial starts")] = None,
    report: Annotated[bool, Option(help="write report.html and report.md at the end")] = True,
    as_json: AsJson = False,
) -> None:
    """Fit parameters to data by simulation.

    It compares the fitted world with data that the fit did not see.

    Run the same command again to continue after an interruption; nothing is run twice.
    """
    from prism_mesa.api.calibrations import Calibration

    calibration = Calibration(file, out=out)
    with runs_bar(1, "runs", "fitted world and report") as on_run:
        result = calibration.run(workers=workers, runs=runs, minutes=minutes, report=report, on_run=on_run)
    if as_json:
        show_json(replace_nonfinite(_as_json(result)))
    else:
        from prism_mesa.view.calibration import calibration_lines

        print_lines(calibration_lines(result))


def _as_json(result: "CalibrationResult") -> dict[str, Any]:
    failed = int((result.trials["status"] == "failed").sum())
    reports = (result.calibration_dir / name for name in ("report.html", "report.md"))
    return {
        "calibration_dir": str(result.calibration_dir),
        "status": "done",
        "trials": {"done": len(result.trials) - failed, "failed": failed},
        "runs": result.runs,
        "fitted": result.fitted,
        "parameters": [] if result.profiles is None else result.profiles.intervals.to_dict("records"),
        "measures": result.measures.to_dict("records"),
        "config": str(result.config_file),
        "report": [str(file) for file in reports if file.is_file()],
        "notes": list(result.notes),
    }
