"""A study as a notebook shows it: verdicts and answers, in short."""

from typing import Final

from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study.answers import answers_table
from prism_mesa.view.study.blocks import Block, Code, Paragraph
from prism_mesa.view.study.contents import conditions, measures_in_order, runs_in_words
from prism_mesa.view.study.page import snippet_of
from prism_mesa.view.study.short_answer import short_answer

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
