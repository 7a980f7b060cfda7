"""A report as one self-contained HTML page, without scripts."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study.answers import answers_table, short_answer
from prism_mesa.view.study.blocks import RULINGS, Block, Code, Paragraph, Report, plain, split_parts
from prism_mesa.view.study.contents import conditions, measures_in_order, status_counts


@cache
def _environment() -> Environment:
    """Return the template environment, which escapes all values."""
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates", encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"parts": split_parts, "plain": plain, "kind": lambda thing: type(thing).__name__}
    made.globals["rulings"] = RULINGS
    return made


def to_html(report: Report, drawn: Mapping[str, str]) -> str:
    """Return a report as HTML; `drawn` holds its figures as SVG elements, by name, in order."""
    figures = {name: Markup(svg) for name, svg in drawn.items()}  # noqa: S704 - matplotlib escapes what it is given
    return _environment().get_template("page.html").render(report=report, figures=figures)


_MOST_MEASURES: Final = 4
_MOST_CONDITIONS: Final = 8


def study_html(result: StudyResult) -> str:
    """Return a summary of a study as HTML: its question, its verdicts, and the first rows of its answers."""
    blocks: list[Block] = [Paragraph(f"{status_counts(result.table.runs)}."), *short_answer(result).blocks]
    if len(result.analysis.answers):
        measures, few = measures_in_order(result)[:_MOST_MEASURES], conditions(result.table)[:_MOST_CONDITIONS]
        blocks.append(answers_table(result, measures, few))
    blocks.append(Paragraph(("The whole report is ", Code(str(result.study_dir / "report.html")), ".")))
    return _environment().get_template("snippet.html").render(title=result.question, blocks=blocks)
