"""Write the report of a study as HTML and Markdown."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import yaml

from prism_mesa.errors import redact_credentials
from prism_mesa.runs.process.machine import provenance
from prism_mesa.studies.result import StudyResult
from prism_mesa.view.plots.files import save, to_png, to_svg
from prism_mesa.view.study import blocks as b
from prism_mesa.view.study.answers import answers_section, short_answer
from prism_mesa.view.study.comparisons import comparisons_section
from prism_mesa.view.study.contents import status_counts
from prism_mesa.view.study.design import design_section
from prism_mesa.view.study.figures import figures_section
from prism_mesa.view.study.markdown import to_markdown
from prism_mesa.view.study.numbers import NOTHING
from prism_mesa.view.study.odd.sections import odd_section
from prism_mesa.view.study.page import to_html
from prism_mesa.view.study.runs import deciders_section, failures_section, runs_section

type FigureKind = Literal["png", "svg", "pdf"]


def study_report(result: StudyResult, written: datetime) -> b.Report:
    """Return the report of a study, dated `written`."""
    sections = (
        short_answer(result),
        design_section(result),
        answers_section(result),
        figures_section(result),
        comparisons_section(result),
        failures_section(result),
        deciders_section(result),
        runs_section(result),
        odd_section(result),
        closing_section(result, written),
    )
    kicker = f"Study {result.name}"
    summary = f"{status_counts(result.table.runs)}."
    return b.Report(kicker, result.question, result.status, summary, sections, _footer(result))


def write_report(
    result: StudyResult, *, written: datetime | None = None, figures: FigureKind = "png"
) -> tuple[Path, Path]:
    """Write report.html and report.md into the study's folder, with its figures in `figures`; return both paths.

    An existing report is replaced.

    Args:
        result: The study with its runs.
        written: The date; by default now.
        figures: Format of figures besides PNG.
    """
    return write_pages(study_report(result, written or datetime.now(UTC)), result.study_dir, figures)


def write_pages(report: b.Report, folder: Path, kind: FigureKind = "png") -> tuple[Path, Path]:
    """Write a report as report.html and report.md into a folder, with its figures in `figures`; return both paths."""
    files, drawn = {}, {}
    before = () if (folder / "figures").is_symlink() else (folder / "figures").glob("[0-9][0-9]-*")
    for old in before:
        if old.suffix in (".png", ".svg", ".pdf") and not old.is_dir():
            old.unlink()
    for number, picture in enumerate(b.all_pictures(report.sections), 1):
        figure = picture.draw()
        files[picture.name] = f"figures/{number:02d}-{_file_name(picture.name)}.png"
        drawn[picture.name] = to_svg(figure)
        _replace(folder / files[picture.name], to_png(figure))
        if kind != "png":
            save(figure, (folder / files[picture.name]).with_suffix(f".{kind}"))
    page, text = folder / "report.html", folder / "report.md"
    _replace(page, to_html(report, drawn).encode())
    _replace(text, to_markdown(report, files).encode())
    return page, text


def _file_name(name: str) -> str:
    """Return the name of a figure as a file name that is valid on any system."""
    return re.sub(r"[^\w.-]+", "-", name, flags=re.ASCII)[:60].strip("-.")


def _replace(file: Path, content: bytes) -> None:
    """Replace a file; a link is replaced, not followed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.write_bytes(content)


def closing_section(result: StudyResult, written: datetime) -> b.Section:
    """Return notes, versions and the study file."""
    made = _made(result)
    packages = ", ".join(f"{name} {version}" for name, version in made.get("packages", {}).items() if version)
    begun = str(made.get("started", NOTHING))[:16].replace("T", " ")
    facts = b.Facts(
        (
            ("Begun", f"{begun} UTC, with the versions below"),
            ("Report", f"written {written:%Y-%m-%d %H:%M} UTC"),
            ("Packages", packages or NOTHING),
            ("Python", f"{made.get('python', NOTHING)} on {made.get('machine', NOTHING)}"),
            ("Revision", b.Code(str(made["git"])) if made.get("git") else "not from a checkout"),
        )
    )
    notes = (b.Bullets(tuple(result.notes)),) if result.notes else ()
    study_file = b.Fold("The study file", (b.Listing(study_text(result)),))
    return b.Section("notes", "Notes and versions", (*notes, facts, study_file))


def _made(result: StudyResult) -> dict[str, Any]:
    """Return when and with which versions the study was started; without a record, the current versions."""
    try:
        made = json.loads((result.study_dir / "study.json").read_text(encoding="utf-8"))["made"]
    except (OSError, ValueError, KeyError, TypeError):
        made = None
    return made if isinstance(made, dict) else provenance()


def study_text(result: StudyResult) -> str:
    """Return the study file in the study's folder, or else its values as YAML."""
    file = result.study_dir / "study.yaml"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    return redact_credentials(yaml.safe_dump(result.values, sort_keys=False, allow_unicode=True, width=100))


def _footer(result: StudyResult) -> b.Words:
    return (
        *("To repeat or continue this study: ", b.Code(result.command)),
        *b.marked(
            ". Runs that are there are not run again. One line of pandas reads all: "
            "`pandas.read_parquet('runs.parquet')`."
        ),
    )
