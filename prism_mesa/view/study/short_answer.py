"""The first part of a report: the question, and what the runs answer."""

from typing import Final

import pandas as pd

from prism_mesa.errors import counted
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import Verdict
from prism_mesa.view.study.blocks import Answer, Block, Bullets, Code, Paragraph, Section, Strong, Words
from prism_mesa.view.study.comparisons import effect_size
from prism_mesa.view.study.contents import in_words, pair, run_counts
from prism_mesa.view.study.numbers import decimals_for, interval, number, p_value, significant

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
    if len(found):
        size, sign = effect_size(result)
        first = found.loc[found[size].abs().sort_values(ascending=False, kind="stable").index]
        rows = first.head(_MOST_TOLD).to_dict("records")
        intro = f"The largest of {len(found):,} differences, by effect size {sign}, with 95 % intervals"
        intro += f" and p after Holm's correction over all {len(found):,}:"
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
