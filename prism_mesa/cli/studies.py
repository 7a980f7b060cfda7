"""Commands for many runs: studies and sweeps."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from typer import Argument, Option

from prism_mesa.cli.arguments import DEFAULT_FILE, AsJson, ConfigArguments, OutOption, check_unique, file_and_overrides
from prism_mesa.cli.console import print_lines, progress_bar
from prism_mesa.errors import BadInputError, RunError
from prism_mesa.terminal import show_json, show_line

if TYPE_CHECKING:
    from prism_mesa.api.studies import Study
    from prism_mesa.studies.result import StudyResult

study = typer.Typer(
    help="Answer a question with many runs, intervals and a report.", no_args_is_help=True, rich_markup_mode=None
)

StudyFile = Annotated[Path, Argument(metavar="STUDY.yaml", help="the study file")]
Workers = Annotated[int | None, Option(min=1, max=100_000, help="number of parallel runs; by default one per core")]
EngineName = Annotated[
    Literal["local", "dask", "slurm"], Option(help="where to run: this machine, Dask, or a SLURM cluster")
]
Scheduler = Annotated[
    str | None, Option(metavar="ADDRESS", help="address of a running Dask scheduler: tcp://host:8786")
]
Keep = Annotated[
    Literal["tables", "measures"] | None,
    Option(help="tables: keep each run's folder; measures: keep only measures; by default as in the study"),
]
Figures = Annotated[Literal["png", "svg", "pdf"], Option(help="format of the report's figures besides PNG")]


@study.command()
def plan(
    file: StudyFile,
    out: OutOption = Path("results"),
    workers: Workers = None,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Check a study, and estimate its cost.

    It runs two seeds to estimate runs, hours, LLM calls, and widths of intervals.
    """
    from prism_mesa.api.studies import Study
    from prism_mesa.view.study.summary import plan_lines

    study_to_plan = Study(file, out=out)
    with runs_bar(study_to_plan.design.n_runs, "pilot runs") as on_run:
        costs = study_to_plan.plan(workers=workers, engine=engine, scheduler=scheduler, on_run=on_run)
    if as_json:
        widths = costs.widths.to_dict("records")
        show_json(replace_nonfinite({**vars(costs), "study_dir": str(study_to_plan.study_dir), "widths": widths}))
    else:
        print_lines(plan_lines(costs))


@study.command()
def run(
    file: StudyFile,
    out: OutOption = Path("results"),
    workers: Workers = None,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    shard: Annotated[
        str | None, Option(metavar="K/N", help="run only the K-th of N parts, as in a job array; K from 1")
    ] = None,
    keep: Keep = None,
    seeds: Annotated[
        int | None,
        Option(min=1, max=1_000_000, help="number of seeds, as for a small trial; by default as in the study"),
    ] = None,
    attempts: Annotated[int, Option(min=1, max=100, help="number of attempts at a run that fails")] = 1,
    retry: Annotated[bool, Option(help="repeat runs that failed in an earlier call")] = True,
    report: Annotated[bool, Option(help="write report.html and report.md at the end")] = True,
    figures: Figures = "png",
    as_json: AsJson = False,
) -> None:
    """Run the missing runs of a study, and answer its question.

    Run the same command again to continue after an interruption.
    """
    from prism_mesa.api.studies import Study

    values = {name: value for name, value in (("keep", keep), ("seeds", seeds)) if value is not None}
    _run(
        Study(file, out=out, **values),
        {"workers": workers, "engine": engine, "scheduler": scheduler, "shard": shard}
        | {"attempts": attempts, "retry": retry, "report": report, "figures": figures},
        as_json=as_json,
    )


@study.command()
def status(file: StudyFile, out: OutOption = Path("results"), as_json: AsJson = False) -> None:
    """Show the progress of a study without running it.

    It counts completed, failed (with reasons), skipped, missing and stale runs.
    """
    from prism_mesa.api.studies import Study
    from prism_mesa.view.study.summary import status_lines

    current_study = Study(file, out=out)
    counts = current_study.status()
    if as_json:
        facts = {"study_dir": str(current_study.study_dir), "status": counts.status}
        show_json({**facts, **vars(counts), "notes": counts.notes})
    else:
        print_lines(status_lines(current_study.design.name, counts))


@study.command()
def report(
    file: StudyFile, out: OutOption = Path("results"), figures: Figures = "png", as_json: AsJson = False
) -> None:
    """Write the report of the completed runs, without running any."""
    from prism_mesa.api.studies import Study

    _show(Study(file, out=out).report(figures), as_json=as_json, has_run=False)


@study.command()
def measures(as_json: AsJson = False) -> None:
    """List the measures of a finished run.

    Study files and --measure take these names. In measures by an attribute, replace NAME by the attribute's name:
    follow_ei@leaning.
    """
    from prism_mesa.studies.measures.catalogue import SUBJECTS
    from prism_mesa.studies.measures.exposure import measures_by_attribute

    subjects = {**SUBJECTS, "By an attribute, or of an intervention": list(measures_by_attribute("NAME").values())}
    if as_json:
        facts = ("meaning", "unit", "low", "high", "source")
        table = {
            measure.name: {"subject": subject} | {fact: getattr(measure, fact) for fact in facts}
            for subject, group in subjects.items()
            for measure in group
        }
        show_json(replace_nonfinite(table))
        return
    width = max(len(measure.name) for group in subjects.values() for measure in group)
    for subject, group in subjects.items():
        show_line(f"{subject}:")
        print_lines(((f"  {measure.name}", measure.meaning) for measure in group), width + 4)


def sweep(
    arguments: ConfigArguments = None,
    vary: Annotated[
        list[str] | None,
        Option(metavar="KEY=A,B,...", help="a key to vary and its values; with --design, its lowest and highest value"),
    ] = None,
    design: Annotated[
        str | None, Option(metavar="KIND:N|FILE.csv", help="sobol:64, lhs:200, morris:20, or a file of points")
    ] = None,
    seeds: Annotated[int, Option(min=1, help="number of seeds per point: 1, 2, ...")] = 5,
    measure: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="a measure from `prism study measures`; repeat the option for several"),
    ] = None,
    keep: Keep = "measures",
    name: Annotated[str | None, Option(help="name of the results folder; by default from the varied keys")] = None,
    out: OutOption = Path("results"),
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Run a configuration at many values of some keys.

    It is a study with a design and no arms.
    """
    from prism_mesa.api.studies import Study
    from prism_mesa.runs.config import load_config, parse_override

    file, overrides = file_and_overrides(arguments, DEFAULT_FILE)
    load_config(file, overrides)  # raises the same errors as prism run
    axes = dict(_parse_vary(text) for text in check_unique(vary))
    if not axes and not (design or "").endswith(".csv"):
        raise BadInputError("sweep: nothing varies: give --vary KEY=A,B,... or --design FILE.csv")
    values: dict[str, Any] = {
        "question": f"How do results depend on {', '.join(axes) or design}?",
        "base": str(file) if file is not None else {},
        "set": dict(map(parse_override, overrides)),
        "vary": axes,
        "design": _parse_design(design),
        "seeds": seeds,
        "keep": keep,
        **({"measures": measure} if measure else {}),
        "name": name or re.sub(r"[^\w.-]+", "-", "-".join(["sweep", *(axes or [Path(design or "").stem])]))[:60],
    }
    _run(Study(values, out=out), {"workers": workers}, as_json=as_json)


def _parse_vary(text: str) -> tuple[str, list[Any]]:
    from prism_mesa.studies.params import parse_value

    key, equals, values = text.partition("=")
    if not equals or not key.strip() or not values.strip():
        raise BadInputError(f"--vary: {text!r}: must be KEY=A,B,..., for example agents.band=0.02,0.10")
    return key.strip(), [parse_value(value) for value in values.split(",")]


def _parse_design(text: str | None) -> str | dict[str, int] | None:
    kind, colon, n = (text or "").partition(":")
    return {kind: int(n)} if colon and n.isdecimal() and len(n) < 10 else text


def _run(current_study: "Study", options: Mapping[str, Any], *, as_json: bool) -> None:
    with runs_bar(current_study.design.n_runs, "runs", end_text="tables and report") as on_run:
        result = current_study.run(**options, on_run=on_run)
    _show(result, as_json=as_json)


@contextmanager
def runs_bar(total: int, unit: str, end_text: str = "") -> Iterator[Any]:
    """Show a progress bar of many runs; yields a function of the progress, for the start and after each run."""
    with progress_bar(total, unit, end_text) as update_bar:
        yield lambda progress: update_bar(progress.done + progress.failed + progress.skipped, progress.planned)


def _show(result: "StudyResult", *, as_json: bool, has_run: bool = True) -> None:
    """Print the result of a study; raises RunError if this command ran it (`has_run`) and a run failed."""
    from prism_mesa.view.study.contents import run_counts
    from prism_mesa.view.study.summary import study_lines

    runs = run_counts(result.table.runs)
    if as_json:
        verdicts = map(vars, result.analysis.expectations)
        failed = result.table.runs[result.table.runs["status"] == "failed"]
        files = (result.study_dir / name for name in ("report.html", "report.md"))
        facts: dict[str, Any] = {
            "study_dir": str(result.study_dir),
            "question": result.question,
            "status": result.status,
            "runs": runs,
            "expectations": list(verdicts),
            "sensitivity": result.analysis.sensitivity.to_dict("records"),
            "failures": failed[["run", "arm", "seed", "reason"]].to_dict("records"),
            "report": [str(file) for file in files if file.is_file()],
            "notes": list(result.notes),
        }
        show_json(replace_nonfinite(facts))
    else:
        print_lines(study_lines(result))
    if has_run and runs["failed"]:
        failed_text = f"{runs['failed']} of {len(result.table.runs)} runs failed"
        raise RunError(f"{result.study_dir}: {failed_text}; the same command tries them again")


def replace_nonfinite(value: Any) -> Any:
    """Return a value for JSON, with null in place of NaN and infinity."""
    if isinstance(value, Mapping):
        return {key: replace_nonfinite(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [replace_nonfinite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.item() if hasattr(value, "item") else value
