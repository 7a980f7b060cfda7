"""The table of answers: each measure in each condition, with its interval and what is missing."""

from typing import Final

from prism_mesa.errors import counted
from prism_mesa.studies.result import StudyResult
from prism_mesa.view.study.blocks import Block, Code, Column, Fold, Group, Paragraph, Section, Table, Words
from prism_mesa.view.study.contents import (
    condition_cells,
    condition_columns,
    condition_heads,
    conditions,
    in_words,
    is_sampled,
    measure_title,
    measures_in_order,
    of_condition,
)
from prism_mesa.view.study.numbers import count, decimals_for, interval, number

_MOST_CONDITIONS: Final = 24
_OF_A_SAMPLE: Final = 8
_MOST_ROWS: Final = 60
"""Rows of the table that stand open; the measures beyond them are in a fold."""


def answers_section(result: StudyResult) -> Section:
    """Return the table of answers: of many conditions the first, and where the rest is."""
    if result.analysis.answers.empty:
        return Section("answers", "Answers by condition", (Paragraph("Nothing has been measured yet."),))
    shown = conditions(result.table)
    n = len(shown)
    most = _OF_A_SAMPLE if is_sampled(result.table) else _MOST_CONDITIONS
    blocks: list[Block] = []
    if n > most:
        shown = shown[:most]
        blocks.append(Paragraph((f"The first {most} of {n:,} conditions; all are in ", Code("runs.parquet"), ".")))
    measures = measures_in_order(result)
    open_ones = max(_MOST_ROWS // max(len(shown), 1), 1)
    blocks.append(answers_table(result, measures[:open_ones], shown))
    if rest := measures[open_ones:]:
        blocks.append(Fold(f"{counted(len(rest), 'further measure')}", (answers_table(result, rest, shown),)))
    return Section("answers", "Answers by condition", tuple(blocks))


def answers_table(result: StudyResult, measures: list[str], shown: list[dict[str, object]]) -> Table:
    """Return the answers of some measures, a group of rows for each, a row for each condition."""
    heads = condition_heads(result.table)
    single = (result.analysis.answers["n"] + result.analysis.answers["missing"]).max() <= 1
    titles = ("value", "n", "missing") if single else ("mean", "95 % interval", "median", "sd", "n", "missing")
    columns = (*heads, *(Column(title, number=True) for title in titles))
    groups = tuple(Group(measure_title(measure), _rows(result, measure, shown, single=single)) for measure in measures)
    varies = in_words(condition_columns(result.table))
    caption = (
        f"By {varies}: mean with Student's 95 % interval, median, standard deviation "
        "between runs, runs counted, and runs that are not there."
    )
    if single:
        caption = f"By {varies}: what was measured in the one run of a condition, if it is there."
    return Table(columns, groups, caption)


def _rows(
    result: StudyResult, measure: str, shown: list[dict[str, object]], *, single: bool
) -> tuple[tuple[Words, ...], ...]:
    answers = result.analysis.answers
    of_measure = answers[answers["measure"] == measure]
    decimals = decimals_for(of_measure["low"], of_measure["high"], of_measure["mean"])
    rows: list[tuple[Words, ...]] = []
    for condition in shown:
        for row in of_condition(of_measure, result.table, condition).to_dict("records"):
            spread = (
                interval(row["low"], row["high"], decimals),
                number(row["median"], decimals),
                number(row["sd"], decimals),
            )
            counts = (count(row["n"]), count(row["missing"]))
            figures = (number(row["mean"], decimals), *(() if single else spread), *counts)
            rows.append((*condition_cells(result.table, row), *figures))
    return tuple(rows)
