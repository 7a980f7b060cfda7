"""A report as one HTML page: everything in it, nothing fetched, nothing run."""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study.answers import answers_table, short_answer
from prism_mesa.view.study.blocks import RULINGS, Answer, Block, Code, Paragraph, Report, Table, parts_of, plain
from prism_mesa.view.study.contents import conditions, measures_in_order, runs_in_words

_TEMPLATES: Final = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    """Return what fills the templates in: whatever is no template's own is escaped."""
    made = Environment(
        loader=FileSystemLoader(_TEMPLATES, encoding="utf-8"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"parts": parts_of, "plain": plain, "kind": lambda thing: type(thing).__name__}
    made.globals["rulings"] = RULINGS
    return made


def page_of(report: Report, drawn: Mapping[str, str], numbers: Mapping[str, int]) -> str:
    """Return a report as HTML.

    Args:
        report: What it says.
        drawn: Figures as SVG elements, by name.
        numbers: Of the figures, by name.
    """
    figures = {name: Markup(svg) for name, svg in drawn.items()}  # noqa: S704 - matplotlib escapes what it is given
    styles = Markup((_TEMPLATES / "page.css").read_text(encoding="utf-8"))  # noqa: S704 - a file of ours
    page = _environment().get_template("page.html")
    return page.render(report=report, figures=figures, numbers=numbers, styles=styles)


def snippet_of(title: str, blocks: Sequence[Block | Answer | Table]) -> str:
    """Return a heading and some blocks as HTML, for a notebook."""
    styles = Markup((_TEMPLATES / "snippet.css").read_text(encoding="utf-8"))  # noqa: S704 - a file of ours
    return _environment().get_template("snippet.html").render(title=title, blocks=blocks, styles=styles)


_MOST_MEASURES: Final = 4
_MOST_CONDITIONS: Final = 8


def study_html(result: StudyResult) -> str:
    """Return a study as a piece of HTML: its question, verdicts, and the first rows of the table of answers."""
    blocks: list[Block] = [Paragraph(f"{runs_in_words(result.table.runs)}."), *short_answer(result).blocks]
    if len(result.analysis.answers):
        measures, shown = measures_in_order(result)[:_MOST_MEASURES], conditions(result.table)[:_MOST_CONDITIONS]
        blocks.append(answers_table(result, measures, shown))
    blocks.append(Paragraph(("The whole report is ", Code(str(result.study_dir / "report.html")), ".")))
    return snippet_of(result.question, blocks)
