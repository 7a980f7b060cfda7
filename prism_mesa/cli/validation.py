"""The commands that fit parameters to data, and validate a configuration against real data."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from prism_mesa.cli.arguments import AsJson, ConfigArguments, OutOption, file_and_overrides
from prism_mesa.cli.console import print_lines, progress_bar
from prism_mesa.cli.studies import Workers, replace_nonfinite, runs_bar
from prism_mesa.errors import RunError
from prism_mesa.terminal import show, show_json

if TYPE_CHECKING:
    from prism_mesa.studies.calibration.result import CalibrationResult

CALIBRATED_FILE = Path("configs/calibrated.yaml")
"""The configuration file that is validated by default."""

Fitted = Annotated[
    Path | None,
    Option(metavar="FILE", help="calibration file whose `fit` lists the fitted measures; all others are predicted"),
]

AsList = Annotated[bool, Option("--json", help="print the table as one JSON list on stdout, and nothing else")]


def validate(
    arguments: ConfigArguments = None,
    data: Annotated[
        Path | None, Option(metavar="DIR", help="folder of the real data; by default the values shipped with PRISM")
    ] = None,
    seeds: Annotated[
        int, Option(min=1, max=10_000, help="number of seeds, starting from the configuration's seed")
    ] = 3,
    variant: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="also run this null model or ablation, nulls, or all; may be repeated"),
    ] = None,
    fitted: Fitted = None,
    workers: Workers = None,
    out: OutOption = Path("results"),
    as_json: AsList = False,
) -> None:
    """Compare a configuration with real data.

    It prints measures, intervals and figures, and exits with 1 if a target is missed.
    """
    from prism_mesa.api.validation import validate as run_validation
    from prism_mesa.runs.config import load_config
    from prism_mesa.studies.validation.validation import as_json as row_as_json
    from prism_mesa.studies.validation.variants import select_variants
    from prism_mesa.view.validation.report import joint_verdict, validation_lines

    file, overrides = file_and_overrides(arguments, CALIBRATED_FILE)
    config, arms = load_config(file, overrides), 1 + len(select_variants(variant or ()))
    with matching_bar() as on_match, runs_bar(seeds * arms, "runs", end_text="tables and figures") as on_run:
        result = run_validation(
            config,
            data=data,
            seeds=seeds,
            variants=variant or (),
            fitted=fitted,
            workers=workers,
            out=out,
            name=config.name if file is None else Path(file).stem,
            on_run=on_run,
            on_match=on_match,
        )
    if as_json:
        show_json(list(map(row_as_json, result.rows)))
    else:
        show("\n".join(validation_lines(result)))
    if not result.passed:
        raise RunError(f"{result.path}: {joint_verdict(result)}")


@contextmanager
def matching_bar() -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar while thresholds are searched; yields a function of the counts done and in total."""
    with ExitStack() as stack:
        update_bar: Callable[[int], None] | None = None

        def on_match(done: int, total: int) -> None:
            nonlocal update_bar
            update_bar = update_bar or stack.enter_context(progress_bar(total, "thresholds of variants"))
            update_bar(done)
            if done == total:
                stack.close()  # makes room for the progress bar of the runs

        yield on_match


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
    from prism_mesa.api.validation import Calibration

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
