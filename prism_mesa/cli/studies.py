"""Commands for many runs: studies and sweeps."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from prism_mesa.cli.arguments import DEFAULT_FILE, AsJson, Configured, OutOption, each_once, file_and_overrides
from prism_mesa.cli.console import print_lines, progress_bar
from prism_mesa.errors import BadInputError, RunError
from prism_mesa.terminal import show_json, show_line

if TYPE_CHECKING:
    from prism_mesa.api.studies import Study
    from prism_mesa.studies.result import StudyResult

study = typer.Typer(
    help="Answer a question by many runs, with intervals and a report.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY.yaml", help="the study file")]
Workers = Annotated[
    int | None, typer.Option(min=1, max=100_000, help="runs at the same time; by default one for each core")
]
EngineName = Annotated[
    Literal["local", "dask", "slurm"], typer.Option(help="who runs them: this machine, Dask, or a cluster with SLURM")
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="a Dask scheduler that is there: tcp://host:8786")
]
Keep = Annotated[
    Literal["tables", "measures"] | None,
    typer.Option(help="tables: each run leaves its folder; measures: only its row; by default what the study says"),
]
Figures = Annotated[Literal["png", "svg", "pdf"], typer.Option(help="format of the report's figures, beside PNG")]


@study.command()
def plan(
    file: StudyFile,
    out: OutOption = Path("results"),
    workers: Workers = None,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    as_json: AsJson = False,
) -> None:
    """Check a study, and tell what all of it will take.

    Two seeds of it are run, from which runs, hours, LLM calls and widths of intervals follow.
    """
    from prism_mesa.api.studies import Study
    from prism_mesa.view.study.summary import plan_lines

    planned = Study(file, out=out)
    with runs_bar(planned.design.n_runs, "pilot runs") as on_run:
        found = planned.plan(workers=workers, engine=engine, scheduler=scheduler, on_run=on_run)
    if as_json:
        widths = found.widths.to_dict("records")
        show_json(finite({**vars(found), "study_dir": str(planned.study_dir), "widths": widths}))
    else:
        print_lines(plan_lines(found))


@study.command()
def run(
    file: StudyFile,
    out: OutOption = Path("results"),
    workers: Workers = None,
    engine: EngineName = "local",
    scheduler: Scheduler = None,
    shard: Annotated[
        str | None, typer.Option(metavar="K/N", help="run only the K-th of N parts, as in a job array; K from 1")
    ] = None,
    keep: Keep = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=1_000_000, help="so many seeds, to try it with few; by default what it says"),
    ] = None,
    attempts: Annotated[int, typer.Option(min=1, max=100, help="how often a run is tried that fails")] = 1,
    retry: Annotated[bool, typer.Option(help="try again what failed in an earlier call")] = True,
    report: Annotated[bool, typer.Option(help="write report.html and report.md at the end")] = True,
    figures: Figures = "png",
    as_json: AsJson = False,
) -> None:
    """Run what is missing of a study, and answer its question.

    The same command continues after whatever ended it.
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
    """Tell how far a study is. Nothing is run.

    It counts runs that are done, failed with their reasons, skipped, missing, and stale.
    """
    from prism_mesa.api.studies import Study
    from prism_mesa.view.study.summary import status_lines

    asked = Study(file, out=out)
    found = asked.status()
    if as_json:
        own = {"study_dir": str(asked.study_dir), "status": found.status}
        show_json({**own, **vars(found), "notes": found.notes})
    else:
        print_lines(status_lines(asked.design.name, found))


@study.command()
def report(
    file: StudyFile, out: OutOption = Path("results"), figures: Figures = "png", as_json: AsJson = False
) -> None:
    """Write the report of the runs that are there. Nothing is run."""
    from prism_mesa.api.studies import Study

    _tell(Study(file, out=out).report(figures), as_json=as_json, ran=False)


@study.command()
def measures(as_json: AsJson = False) -> None:
    """List what can be measured of a finished run.

    Each measure has its name, as study files and --measure take it, and what it is. By an attribute of agents, its name
    stands in the place of NAME: follow_ei@leaning.
    """
    from prism_mesa.studies.measures.catalogue import SUBJECTS
    from prism_mesa.studies.measures.exposure import measures_by_attribute

    subjects = {**SUBJECTS, "By an attribute": list(measures_by_attribute("NAME").values())}
    if as_json:
        told = {
            one.name: {"subject": subject, "meaning": one.meaning, "unit": one.unit}
            | {"low": one.low, "high": one.high, "source": one.source}
            for subject, found in subjects.items()
            for one in found
        }
        show_json(finite(told))
        return
    widest = max(len(one.name) for found in subjects.values() for one in found)
    for subject, found in subjects.items():
        show_line(f"{subject}:")
        print_lines(((f"  {one.name}", one.meaning) for one in found), widest + 4)


def sweep(
    arguments: Configured = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=A,B,...", help="what varies: all its values, or with --design the lowest and highest"
        ),
    ] = None,
    design: Annotated[
        str | None, typer.Option(metavar="KIND:N|FILE.csv", help="sobol:64, lhs:200, morris:20, or a file of points")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="seeds of each point, from 1 on")] = 5,
    measure: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="one of prism study measures; several: the option again")
    ] = None,
    keep: Keep = "measures",
    name: Annotated[str | None, typer.Option(help="name of its folder; by default what varies")] = None,
    out: OutOption = Path("results"),
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Run a configuration at many values of some keys.

    It is a study with a design and no arms.
    """
    from prism_mesa.api.studies import Study
    from prism_mesa.runs.config import load_config, parse_override

    file, given = file_and_overrides(arguments, DEFAULT_FILE)
    load_config(file, given)  # so that bad input is said as prism run says it
    own = dict(_varied(text) for text in each_once(vary))
    if not own and not (design or "").endswith(".csv"):
        raise BadInputError("sweep: nothing varies: give --vary KEY=A,B,... or --design FILE.csv")
    values: dict[str, Any] = {
        "question": f"How do results depend on {', '.join(own) or design}?",
        "base": str(file) if file is not None else {},
        "set": dict(map(parse_override, given)),
        "vary": own,
        "design": _design(design),
        "seeds": seeds,
        "keep": keep,
        **({"measures": measure} if measure else {}),
        "name": name or re.sub(r"[^\w.-]+", "-", "-".join(["sweep", *(own or [Path(design or "").stem])]))[:60],
    }
    _run(Study(values, out=out), {"workers": workers}, as_json=as_json)


def _varied(text: str) -> tuple[str, list[Any]]:
    from prism_mesa.studies.params import parse_value

    key, equals, values = text.partition("=")
    if not equals or not key.strip() or not values.strip():
        raise BadInputError(f"--vary: {text!r}: is written KEY=A,B,..., for example agents.band=0.02,0.10")
    return key.strip(), [parse_value(value) for value in values.split(",")]


def _design(text: str | None) -> str | dict[str, int] | None:
    kind, colon, n = (text or "").partition(":")
    return {kind: int(n)} if colon and n.isdecimal() and len(n) < 10 else text


def _run(asked: "Study", how: Mapping[str, Any], *, as_json: bool) -> None:
    with runs_bar(asked.design.n_runs, "runs", then="tables and report") as on_run:
        result = asked.run(**how, on_run=on_run)
    _tell(result, as_json=as_json)


@contextmanager
def runs_bar(planned: int, unit: str, then: str = "") -> Iterator[Any]:
    """Show how far many runs are; yields what is called with the progress at first and after each run."""
    with progress_bar(planned, unit, then) as advance:
        before = 0

        def on_run(progress: Any) -> None:
            nonlocal before
            now = progress.done + progress.failed + progress.skipped
            advance(now - before, of=progress.planned)
            before = now

        yield on_run


def _tell(result: "StudyResult", *, as_json: bool, ran: bool = True) -> None:
    """Print what a study came to; a call that ran it ends as failed if a run did."""
    from prism_mesa.view.study.contents import run_counts
    from prism_mesa.view.study.summary import study_lines

    runs = run_counts(result.table.runs)
    if as_json:
        expected = result.analysis.expectations
        verdicts = [vars(one) | {"interval": list(one.interval), "means": list(one.means)} for one in expected]
        files = (result.study_dir / name for name in ("report.html", "report.md"))
        reports = [str(file) for file in files if file.is_file()]
        told: dict[str, Any] = {
            "study_dir": str(result.study_dir),
            "question": result.question,
            "status": result.status,
            "runs": runs,
        }
        told |= {
            "expectations": verdicts,
            "sensitivity": result.analysis.sensitivity.to_dict("records"),
            "failures": _failures(result),
            "report": reports,
            "notes": list(result.notes),
        }
        show_json(finite(told))
    else:
        print_lines(study_lines(result))
    if ran and runs["failed"]:
        raise RunError(
            f"{result.study_dir}: {runs['failed']} of {len(result.table.runs)} runs failed; "
            "the same command tries them again"
        )


def _failures(result: "StudyResult") -> list[dict[str, Any]]:
    failed = result.table.runs[result.table.runs["status"] == "failed"]
    return [
        {str(key): value for key, value in row.items()}
        for row in failed[["run", "arm", "seed", "reason"]].to_dict("records")
    ]


def finite(value: Any) -> Any:
    """Return a value as JSON has it: null for numbers that are none."""
    if isinstance(value, Mapping):
        return {key: finite(one) for key, one in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [finite(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.item() if hasattr(value, "item") else value
