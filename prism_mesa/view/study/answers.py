"""The table of answers: each measure in each condition, with its interval and what is missing."""

from typing import Final

import pandas as pd

from prism_mesa.errors import counted
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import Verdict
from prism_mesa.view.study.blocks import (
    Answer,
    Block,
    Bullets,
    Code,
    Column,
    Fold,
    Group,
    Paragraph,
    Section,
    Strong,
    Table,
    Words,
)
from prism_mesa.view.study.comparisons import effect_size
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
    pair,
    run_counts,
)
from prism_mesa.view.study.numbers import count, decimals_for, interval, number, p_value, significant

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


_MOST_TOLD: Final = 5
_RULINGS: Final = {"holds": ("holds", "hold"), "fails": ("fails", "fail"), "open": ("stays open", "stay open")}
"""Verdicts as verbs, of one expectation and of several."""


def short_answer(result: StudyResult) -> Section:
    """Return each expectation with its verdict; without any, what differs most."""
    done = run_counts(result.table.runs)["done"]
    blocks: list[Block] = []
    if not done:
        blocks.append(Paragraph("No run has been finished yet, so there is no answer.", note=True))
    elif result.status == "incomplete":
        blocks.append(Paragraph("Not all runs have been run yet: what follows is an answer so far.", note=True))
    if result.analysis.expectations:
        paired = result.table.paired
        blocks += [_overview(result)] if len(result.analysis.expectations) > 1 else []
        blocks += [_answer(one, paired=paired) for one in result.analysis.expectations]
    elif done:
        blocks += _without_expectations(result)
    return Section("answer", "The short answer", tuple(blocks))


def _overview(result: StudyResult) -> Paragraph:
    found = [verdict.verdict for verdict in result.analysis.expectations]
    told = [f"{n:,} {verbs[n > 1]}" for name, verbs in _RULINGS.items() if (n := found.count(name))]  # type: ignore[arg-type]
    return Paragraph(f"Of {len(found):,} expectations that the study states, {in_words(told)}.")


def verdict_figures(verdict: Verdict, *, paired: bool) -> str:
    """Return the figures of a verdict that its sentence may not have, on one line."""
    of = f"{counted(verdict.n, 'pair' if paired else 'run')}, {verdict.missing:,} missing"
    if not pd.isna(verdict.means[0]):
        decimals = decimals_for([verdict.interval[0]], [verdict.interval[1]], list(verdict.means))
        left, right = (number(mean, decimals) for mean in verdict.means)
        of = f"means {left} and {right}; {of}"
    return of if pd.isna(verdict.p) else f"{verdict.test}; {of}"


def _answer(verdict: Verdict, *, paired: bool) -> Answer:
    return Answer(verdict.verdict, verdict.text, verdict.sentence, verdict_figures(verdict, paired=paired))


def _without_expectations(result: StudyResult) -> list[Block]:
    """Return what differs most between arms or levels; in a design without these, what matters most."""
    lead = "The study states no expectation. "
    found = result.analysis.differences
    found = found[found["n"] > 0]
    if len(found):
        size, sign = effect_size(result)
        first = found.loc[found[size].abs().sort_values(ascending=False, kind="stable").index]
        rows = first.head(_MOST_TOLD).to_dict("records")
        intro = f"The largest of {counted(len(found), 'difference')}, by effect size {sign}, with 95 % intervals"
        intro += f" and p after Holm's correction over all {found['p'].count():,}:"
        return [Paragraph(lead + intro), Bullets(tuple(_difference(row, sign, row[size]) for row in rows))]
    total = result.analysis.sensitivity
    total = total[total["index"].isin(("st", "mu_star"))]
    if len(total):
        first = total.sort_values("value", ascending=False, kind="stable").drop_duplicates("measure")
        rows = first.head(_MOST_TOLD).to_dict("records")
        return [Paragraph(f"{lead}What each measure depends on most:"), Bullets(tuple(map(_influence, rows)))]
    return [Paragraph(f"{lead}What was measured is below.")]


def _difference(row: dict[str, object], sign: str, size: object) -> Words:
    sides = pair(row)
    decimals = decimals_for([row["low"]], [row["high"]], [row["difference"]])  # type: ignore[list-item]
    difference = Strong(number(row["difference"], decimals))
    within = f" {interval(row['low'], row['high'], decimals)} for "
    rest = f" (p (Holm) {p_value(row['p_holm'])}, {sign} = {number(size, 2)})"
    middle = sides if isinstance(sides, tuple) else (sides,)
    return (Code(str(row["measure"])), " ", difference, within, *middle, rest)


def _influence(row: dict[str, object]) -> Words:
    sign = {"st": "total Sobol index", "mu_star": "Morris \u03bc*"}[str(row["index"])]
    within = f"[{significant(row['low'])}, {significant(row['high'])}]"
    value = f"{sign} {significant(row['value'])}, 95 % interval {within}"
    return (Code(str(row["measure"])), ": ", Code(str(row["factor"])), " (", value, ")")
