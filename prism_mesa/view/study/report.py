"""The report of a study: a self-contained HTML page without scripts, Markdown, and a summary for notebooks."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, Literal

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from prism_mesa.errors import redact_credentials
from prism_mesa.runs.process.machine import provenance
from prism_mesa.studies.result import StudyResult
from prism_mesa.view.plots.files import save, to_png, to_svg
from prism_mesa.view.study import blocks as doc
from prism_mesa.view.study.answers import answers_section, answers_table, short_answer
from prism_mesa.view.study.comparisons import comparisons_section
from prism_mesa.view.study.contents import conditions, measures_in_order, status_counts
from prism_mesa.view.study.design import design_section
from prism_mesa.view.study.figures import figures_section
from prism_mesa.view.study.markdown import to_markdown
from prism_mesa.view.study.numbers import NO_VALUE
from prism_mesa.view.study.odd.sections import odd_section
from prism_mesa.view.study.runs import deciders_section, failures_section, runs_section

type FigureKind = Literal["png", "svg", "pdf"]


def study_report(result: StudyResult, date: datetime) -> doc.Report:
    """Return the report of a study with its date."""
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
        _notes_section(result, date),
    )
    footer = doc.code_spans(
        ". Finished runs are not repeated. `pandas.read_parquet('runs.parquet')` reads the results of all runs."
    )
    footer = ("To repeat or continue this study: ", doc.Code(result.command), *footer)
    summary = f"{status_counts(result.table.runs)}."
    return doc.Report(f"Study {result.name}", result.question, result.status, summary, sections, footer)


def write_report(
    result: StudyResult, *, date: datetime | None = None, figures: FigureKind = "png"
) -> tuple[Path, Path]:
    """Write report.html and report.md into the study's folder, replacing an existing report; return both paths.

    Args:
        result: The study with its runs.
        date: The date of the report; by default now.
        figures: Additional format of figures besides PNG.
    """
    return write_pages(study_report(result, date or datetime.now(UTC)), result.study_dir, figures)


def write_pages(report: doc.Report, folder: Path, kind: FigureKind = "png") -> tuple[Path, Path]:
    """Write a report as report.html and report.md, with figures in `figures`; return both paths."""
    files, svgs = {}, {}
    is_link = (folder / "figures").is_symlink()
    for old_file in () if is_link else (folder / "figures").glob("[0-9][0-9]-*"):
        if old_file.suffix in (".png", ".svg", ".pdf") and not old_file.is_dir():
            old_file.unlink()
    for number, picture in enumerate(doc.all_pictures(report.sections), 1):
        figure = picture.draw()
        name = re.sub(r"[^\w.-]+", "-", picture.name, flags=re.ASCII)[:60].strip("-.")  # valid on any system
        files[picture.name] = f"figures/{number:02d}-{name}.png"
        svgs[picture.name] = to_svg(figure)
        _replace(folder / files[picture.name], to_png(figure))
        if kind != "png":
            save(figure, (folder / files[picture.name]).with_suffix(f".{kind}"))
    html_file, markdown_file = folder / "report.html", folder / "report.md"
    _replace(html_file, to_html(report, svgs).encode())
    _replace(markdown_file, to_markdown(report, files).encode())
    return html_file, markdown_file


def _replace(file: Path, content: bytes) -> None:
    """Replace a file; a symbolic link is replaced, not followed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.unlink(missing_ok=True)
    file.write_bytes(content)


@cache
def _templates() -> Environment:
    """Return the environment of the templates; it escapes all values."""
    templates = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates", encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.filters |= {"parts": doc.split_parts, "plain": doc.plain, "kind": lambda block: type(block).__name__}
    templates.globals["rulings"] = doc.RULINGS
    return templates


def to_html(report: doc.Report, svgs: Mapping[str, str]) -> str:
    """Return a report as HTML; `svgs` maps the names of figures to their SVG elements, in order."""
    figures = {name: Markup(svg) for name, svg in svgs.items()}  # noqa: S704 - matplotlib escapes texts
    return _templates().get_template("page.html").render(report=report, figures=figures)


def study_html(result: StudyResult) -> str:
    """Return a summary of a study as HTML: question, verdicts, and the first rows of the answers."""
    blocks: list[doc.Block] = [doc.Paragraph(f"{status_counts(result.table.runs)}."), *short_answer(result).blocks]
    if len(result.analysis.answers):
        measures, first = measures_in_order(result)[:4], conditions(result.table)[:8]
        blocks.append(answers_table(result, measures, first))
    blocks.append(doc.Paragraph(("The whole report is ", doc.Code(str(result.study_dir / "report.html")), ".")))
    return _templates().get_template("snippet.html").render(title=result.question, blocks=blocks)


def _notes_section(result: StudyResult, date: datetime) -> doc.Section:
    record = _provenance(result)
    packages = ", ".join(f"{name} {version}" for name, version in record.get("packages", {}).items() if version)
    started = str(record.get("started", NO_VALUE))[:16].replace("T", " ")
    facts = doc.Facts(
        (
            ("Started", f"{started} UTC, with the versions below"),
            ("Report", f"written {date:%Y-%m-%d %H:%M} UTC"),
            ("Packages", packages or NO_VALUE),
            ("Python", f"{record.get('python', NO_VALUE)} on {record.get('machine', NO_VALUE)}"),
            ("Revision", doc.Code(str(record["git"])) if record.get("git") else "not from a checkout"),
        )
    )
    file = result.study_dir / "study.yaml"
    if file.is_file():
        text = file.read_text(encoding="utf-8")
    else:
        text = redact_credentials(yaml.safe_dump(result.values, sort_keys=False, allow_unicode=True, width=100))
    notes = (doc.Bullets(tuple(result.notes)),) if result.notes else ()
    return doc.Section("notes", "Notes and versions", (*notes, facts, doc.Fold("The study file", (doc.Listing(text),))))


def _provenance(result: StudyResult) -> dict[str, Any]:
    """Return the date and versions at the start of the study, or the current ones if they were not recorded."""
    try:
        record = json.loads((result.study_dir / "study.json").read_text(encoding="utf-8"))["made"]
    except (OSError, ValueError, KeyError, TypeError):
        record = None
    return record if isinstance(record, dict) else provenance()
