"""The answers of a study: the first part of a report, and a table of measures by condition."""

from collections.abc import Iterator
from typing import Any, Final

import pandas as pd

from prism_mesa.errors import counted
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import Verdict
from prism_mesa.view.study import blocks as b
from prism_mesa.view.study import contents
from prism_mesa.view.study.comparisons import effect_size
from prism_mesa.view.study.numbers import count, decimals_for, interval, number, p_value, significant

_MOST_CONDITIONS: Final = 24
_OF_A_SAMPLE: Final = 8
_MOST_ROWS: Final = 60
"""Rows of the table that stand open; the measures beyond them are in a fold."""


def answers_section(result: StudyResult) -> b.Section:
    """Return the table of answers; with many conditions only the first, and where to find the rest."""
    if result.analysis.answers.empty:
        return b.Section("answers", "Answers by condition", (b.Paragraph("Nothing has been measured yet."),))
    conditions, measures = contents.conditions(result.table), contents.measures_in_order(result)
    most = _OF_A_SAMPLE if contents.is_sampled(result.table) else _MOST_CONDITIONS
    blocks: list[b.Block] = []
    if len(conditions) > most:
        text = f"The first {most} of {len(conditions):,} conditions; all are in `runs.parquet`."
        blocks.append(b.Paragraph(b.marked(text)))
    shown = conditions[:most]
    n_unfolded = max(_MOST_ROWS // max(len(shown), 1), 1)
    blocks.append(answers_table(result, measures[:n_unfolded], shown))
    if rest := measures[n_unfolded:]:
        blocks.append(b.Fold(f"{counted(len(rest), 'further measure')}", (answers_table(result, rest, shown),)))
    return b.Section("answers", "Answers by condition", tuple(blocks))


def answers_table(result: StudyResult, measures: list[str], conditions: list[dict[str, object]]) -> b.Table:
    """Return the answers as a table, with a group of rows for each measure and a row for each condition."""
    single = (result.analysis.answers["n"] + result.analysis.answers["missing"]).max() <= 1
    titles = ("value", "n", "missing") if single else ("mean", "95 % interval", "median", "sd", "n", "missing")
    columns = (*contents.condition_heads(result.table), *b.numeric(*titles))
    groups = []
    for measure in measures:
        rows = tuple(_rows(result, measure, conditions, single=single))
        groups.append(b.Group(contents.measure_title(measure), rows))
    varies = contents.listed(contents.condition_columns(result.table))
    caption = (
        f"By {varies}: what was measured in the one run of a condition, if it is there."
        if single
        else f"By {varies}: mean with Student's 95 % interval, median, standard deviation between runs, runs counted, "
        "and runs that are not there."
    )
    return b.Table(columns, tuple(groups), caption)


def _rows(result: StudyResult, measure: str, conditions: list[dict[str, object]], *, single: bool) -> Iterator[b.Row]:
    answers = result.analysis.answers
    answers = answers[answers["measure"] == measure]
    decimals = decimals_for(answers["low"], answers["high"], answers["mean"])
    for condition in conditions:
        for row in contents.rows_of_condition(answers, result.table, condition).to_dict("records"):
            figures = [number(row["mean"], decimals)]
            if not single:
                figures.append(interval(row["low"], row["high"], decimals))
                figures += [number(row[name], decimals) for name in ("median", "sd")]
            yield *contents.condition_cells(result.table, row), *figures, count(row["n"]), count(row["missing"])


_MOST_LISTED: Final = 5
_RULINGS: Final[dict[b.Ruling, tuple[str, str]]] = {
    "holds": ("holds", "hold"),
    "fails": ("fails", "fail"),
    "open": ("stays open", "stay open"),
}
"""Verdicts as verbs, singular and plural."""


def short_answer(result: StudyResult) -> b.Section:
    """Return each expectation with its verdict; without expectations, the largest differences."""
    done = contents.run_counts(result.table.runs)["done"]
    blocks: list[b.Block] = []
    if not done:
        blocks.append(b.Paragraph("No run has been finished yet, so there is no answer.", note=True))
    elif result.status == "incomplete":
        blocks.append(b.Paragraph("Not all runs have been run yet: what follows is an answer so far.", note=True))
    if result.analysis.expectations:
        paired = result.table.paired
        blocks += [_overview(result)] if len(result.analysis.expectations) > 1 else []
        for verdict in result.analysis.expectations:
            figures = verdict_figures(verdict, paired=paired)
            blocks.append(b.Answer(verdict.verdict, verdict.text, verdict.sentence, figures))
    elif done:
        blocks += _without_expectations(result)
    return b.Section("answer", "The short answer", tuple(blocks))


def _overview(result: StudyResult) -> b.Paragraph:
    verdicts = [verdict.verdict for verdict in result.analysis.expectations]
    counts = {verbs: verdicts.count(name) for name, verbs in _RULINGS.items()}
    parts = [f"{n:,} {verbs[n > 1]}" for verbs, n in counts.items() if n]
    return b.Paragraph(f"Of {len(verdicts):,} expectations that the study states, {contents.listed(parts)}.")


def verdict_figures(verdict: Verdict, *, paired: bool) -> str:
    """Return the figures behind a verdict, on one line."""
    text = f"{counted(verdict.n, 'pair' if paired else 'run')}, {verdict.missing:,} missing"
    if not pd.isna(verdict.means[0]):
        decimals = decimals_for([verdict.interval[0]], [verdict.interval[1]], list(verdict.means))
        left, right = (number(mean, decimals) for mean in verdict.means)
        text = f"means {left} and {right}; {text}"
    return text if pd.isna(verdict.p) else f"{verdict.test}; {text}"


def _without_expectations(result: StudyResult) -> list[b.Block]:
    """Return the largest differences between arms or levels; in a design without these, the strongest factors."""
    lead = "The study states no expectation. "
    table = result.analysis.differences
    table = table[table["n"] > 0]
    if len(table):
        size, sign = effect_size(result)
        largest = table.loc[table[size].abs().sort_values(ascending=False, kind="stable").index[:_MOST_LISTED]]
        intro = f"The largest of {counted(len(table), 'difference')}, by effect size {sign}, with 95 % intervals"
        intro += f" and p after Holm's correction over all {table['p'].count():,}:"
        items = tuple(_difference(row, sign, row[size]) for row in largest.to_dict("records"))
        return [b.Paragraph(lead + intro), b.Bullets(items)]
    indices = result.analysis.sensitivity
    indices = indices[indices["index"].isin(("st", "mu_star"))]
    if len(indices):
        first = indices.sort_values("value", ascending=False, kind="stable").drop_duplicates("measure")
        items = tuple(map(_influence, first.head(_MOST_LISTED).to_dict("records")))
        return [b.Paragraph(f"{lead}What each measure depends on most:"), b.Bullets(items)]
    return [b.Paragraph(f"{lead}What was measured is below.")]


def _difference(row: dict[str, Any], sign: str, size: object) -> b.Words:
    decimals = decimals_for([row["low"]], [row["high"]], [row["difference"]])
    difference = b.Strong(number(row["difference"], decimals))
    within = f" {interval(row['low'], row['high'], decimals)} for "
    rest = f" (p (Holm) {p_value(row['p_holm'])}, {sign} = {number(size, 2)})"
    return (b.Code(str(row["measure"])), " ", difference, within, *b.split_parts(contents.pair(row)), rest)


def _influence(row: dict[str, Any]) -> b.Words:
    sign = {"st": "total Sobol index", "mu_star": "Morris \u03bc*"}[row["index"]]
    within = f"[{significant(row['low'])}, {significant(row['high'])}]"
    value = f"{sign} {significant(row['value'])}, 95 % interval {within}"
    return (b.Code(str(row["measure"])), ": ", b.Code(str(row["factor"])), " (", value, ")")
