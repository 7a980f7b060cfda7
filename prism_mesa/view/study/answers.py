"""The report's sections on answers: the short answer, and the table of measures by condition."""

from collections import Counter
from typing import Any, Final

import pandas as pd

from prism_mesa.errors import format_count
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import Verdict
from prism_mesa.view.study import blocks as doc
from prism_mesa.view.study import contents
from prism_mesa.view.study.comparisons import effect_size
from prism_mesa.view.study.numbers import decimals_for, interval, number, p_value, significant

_MAX_CONDITIONS: Final = 24
_MAX_POINTS: Final = 8  # maximum number of conditions in the table for a sampled design
_MAX_ROWS: Final = 60  # further rows are folded


def answers_section(result: StudyResult) -> doc.Section:
    """Return the table of answers for the first conditions."""
    if result.analysis.answers.empty:
        return doc.Section("answers", "Answers by condition", (doc.Paragraph("No run has been measured yet."),))
    conditions, measures = contents.conditions(result.table), contents.measures_in_order(result)
    limit = _MAX_POINTS if contents.is_sampled(result.table) else _MAX_CONDITIONS
    blocks: list[doc.Block] = []
    if len(conditions) > limit:
        text = f"The first {limit} of {len(conditions):,} conditions; all are in `runs.parquet`."
        blocks.append(doc.Paragraph(doc.code_spans(text)))
    shown_conditions = conditions[:limit]
    n_unfolded = max(_MAX_ROWS // max(len(shown_conditions), 1), 1)
    blocks.append(answers_table(result, measures[:n_unfolded], shown_conditions))
    if folded := measures[n_unfolded:]:
        folded_table = answers_table(result, folded, shown_conditions)
        blocks.append(doc.Fold(format_count(len(folded), "further measure"), (folded_table,)))
    return doc.Section("answers", "Answers by condition", tuple(blocks))


def answers_table(result: StudyResult, measures: list[str], conditions: list[dict[str, Any]]) -> doc.Table:
    """Return a table of answers, with a group of rows for each measure and a row for each condition."""
    answers = result.analysis.answers
    is_single = (answers["n"] + answers["missing"]).max() <= 1
    titles = ("value", "n", "missing") if is_single else ("mean", "95 % interval", "median", "sd", "n", "missing")
    groups = []
    for measure in measures:
        measure_answers = answers[answers["measure"] == measure]
        decimals = decimals_for(measure_answers["low"], measure_answers["high"], measure_answers["mean"])
        rows: list[doc.Row] = []
        for condition in conditions:
            for row in contents.rows_of_condition(measure_answers, result.table, condition).to_dict("records"):
                cells = [number(row["mean"], decimals)]
                if not is_single:
                    cells.append(interval(row["low"], row["high"], decimals))
                    cells += [number(row[name], decimals) for name in ("median", "sd")]
                counts = (number(row["n"]), number(row["missing"]))
                rows.append((*contents.condition_cells(result.table, row), *cells, *counts))
        groups.append(doc.Group(contents.measure_title(measure), tuple(rows)))
    caption = f"By {contents.format_list(contents.condition_columns(result.table))}: "
    caption += (
        "the value of the only run of a condition."
        if is_single
        else "mean with Student's 95 % interval, median, standard deviation between runs, number of runs, and number "
        "of missing runs."
    )
    return doc.Table((*contents.condition_headers(result.table), *doc.number_columns(*titles)), tuple(groups), caption)


_MAX_LIST_ITEMS: Final = 5
_VERBS: Final = {"holds": ("holds", "hold"), "fails": ("fails", "fail"), "open": ("stays open", "stay open")}


def short_answer(result: StudyResult) -> doc.Section:
    """Return each expectation with its verdict; without expectations, the largest differences."""
    n_done, verdicts = contents.run_counts(result.table.runs)["done"], result.analysis.expectations
    blocks: list[doc.Block] = []
    if not n_done:
        blocks.append(doc.Paragraph("No run has been finished yet, so there is no answer.", note=True))
    elif result.status == "incomplete":
        blocks.append(doc.Paragraph("Some runs are still missing, so this answer is preliminary.", note=True))
    if len(verdicts) > 1:
        counts: Counter[str] = Counter(verdict.verdict for verdict in verdicts)
        parts = [f"{counts[name]:,} {verbs[counts[name] > 1]}" for name, verbs in _VERBS.items() if counts[name]]
        blocks.append(doc.Paragraph(f"Of {len(verdicts):,} expectations, {contents.format_list(parts)}."))
    for verdict in verdicts:
        numbers = _verdict_numbers(verdict, paired=result.table.paired)
        blocks.append(doc.Answer(verdict.verdict, verdict.text, verdict.sentence, numbers))
    if n_done and not verdicts:
        blocks += _largest_effects(result)
    return doc.Section("answer", "The short answer", tuple(blocks))


def _verdict_numbers(verdict: Verdict, *, paired: bool) -> str:
    text = f"{format_count(verdict.n, 'pair' if paired else 'run')}, {verdict.missing:,} missing"
    if not pd.isna(verdict.means[0]):
        decimals = decimals_for([verdict.interval[0]], [verdict.interval[1]], list(verdict.means))
        left, right = (number(mean, decimals) for mean in verdict.means)
        text = f"means {left} and {right}; {text}"
    return text if pd.isna(verdict.p) else f"{verdict.test}; {text}"


def _largest_effects(result: StudyResult) -> list[doc.Block]:
    """Return the largest differences between arms or levels; for a sampled design, the strongest factors."""
    introduction = "The study states no expectations. "
    table = result.analysis.differences
    table = table[table["n"] > 0]
    if len(table):
        size, label = effect_size(result)
        largest = table.loc[table[size].abs().sort_values(ascending=False, kind="stable").index[:_MAX_LIST_ITEMS]]
        text = f"The largest of {format_count(len(table), 'difference')}, by effect size {label}, with 95 % intervals"
        text += f" and p after Holm's correction over all {table['p'].count():,}:"
        items = tuple(_difference_item(row, label, row[size]) for row in largest.to_dict("records"))
        return [doc.Paragraph(introduction + text), doc.Bullets(items)]
    indices = result.analysis.sensitivity
    indices = indices[indices["index"].isin(("st", "mu_star"))]
    if len(indices):
        strongest = indices.sort_values("value", ascending=False, kind="stable").drop_duplicates("measure")
        items = tuple(map(_factor_item, strongest.head(_MAX_LIST_ITEMS).to_dict("records")))
        return [doc.Paragraph(f"{introduction}The strongest factor of each measure:"), doc.Bullets(items)]
    return [doc.Paragraph(f"{introduction}All results are below.")]


def _difference_item(row: dict[str, Any], label: str, size: object) -> doc.Words:
    decimals = decimals_for([row["low"]], [row["high"]], [row["difference"]])
    difference = doc.Strong(number(row["difference"], decimals))
    limits = f" {interval(row['low'], row['high'], decimals)} for "
    p_text = f" (p (Holm) {p_value(row['p_holm'])}, {label} = {number(size, 2)})"
    sides = doc.split_parts(contents.comparison_words(row))
    return (doc.Code(str(row["measure"])), " ", difference, limits, *sides, p_text)


def _factor_item(row: dict[str, Any]) -> doc.Words:
    index = "total Sobol index" if row["index"] == "st" else "Morris \u03bc*"
    limits = f"[{significant(row['low'])}, {significant(row['high'])}]"
    value = f" ({index} {significant(row['value'])}, 95 % interval {limits})"
    return doc.Code(str(row["measure"])), ": ", doc.Code(str(row["factor"])), value
