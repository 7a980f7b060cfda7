"""The report's section on comparisons: differences, groups, equivalence, effects and indices."""

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import pandas as pd

from prism_mesa.errors import format_count
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.cells import MARGINS, OTHERS
from prism_mesa.view.study import blocks as doc
from prism_mesa.view.study.contents import comparison_words, measure_title, measures_in_order, sides_text
from prism_mesa.view.study.numbers import decimals_for, interval, number, p_value, significant

type Record = Mapping[str, Any]
type ColumnFormat = tuple[str, Callable[[Record, int], doc.Words]]
"""The title of a column, and a function that formats its cell, given a row and the number of decimals."""

_MAX_ROWS: Final = 40
_MAX_ALL_ROWS: Final = 400
_TEXT_COLUMNS: Final = {"compared", "family", "between", "equivalent", "effect", "factor", "index"}
_P_HOLM: Final[ColumnFormat] = ("p (Holm)", lambda row, _: p_value(row["p_holm"]))
_COUNTS: Final[tuple[ColumnFormat, ...]] = (
    ("n", lambda row, _: number(row["n"])),
    ("missing", lambda row, _: number(row["missing"])),
)


def comparisons_section(result: StudyResult) -> doc.Section:
    """Return the section on comparisons, with a subsection for each kind."""
    make_parts = _treatments, _differences, _groups, _equivalence, _effects, _indices
    parts = tuple(part for make_part in make_parts if (part := make_part(result)) is not None)
    texts = result.analysis.notes
    blocks: list[doc.Block] = (
        [doc.Bullets(texts)] if len(texts) > 1 else [doc.Paragraph(text, note=True) for text in texts]
    )
    if not parts and not blocks:
        blocks.append(doc.Paragraph("There is nothing to compare yet."))
    return doc.Section("comparisons", "Comparisons", tuple(blocks), parts)


def _part(
    name: str, title: str, result: StudyResult, frame: pd.DataFrame, columns: Sequence[ColumnFormat], caption: str
) -> doc.Section | None:
    """Return a table with a group for each measure, or None if no row has runs.

    Rows beyond `_MAX_ROWS` are folded, and rows beyond `_MAX_ALL_ROWS` are left out.
    """
    frame = frame[frame["n"] > 0] if "n" in frame else frame
    rows: list[tuple[str, doc.Row]] = []
    for measure in measures_in_order(result):
        measure_rows = frame[frame["measure"] == measure]
        decimals = decimals_for(measure_rows.get("low", ()), measure_rows.get("high", ()))
        for row in measure_rows.to_dict("records"):
            rows.append((measure, tuple(cell(row, decimals) for _, cell in columns)))
    headers = tuple(doc.Column(header, number=header not in _TEXT_COLUMNS) for header, _ in columns)

    def table(part: Sequence[tuple[str, doc.Row]]) -> doc.Table:
        groups = groupby(part, key=itemgetter(0))
        return doc.Table(
            headers, tuple(doc.Group(measure_title(m), tuple(row for _, row in part)) for m, part in groups), caption
        )

    blocks: list[doc.Block] = [table(rows[:_MAX_ROWS])]
    if folded_rows := rows[_MAX_ROWS:_MAX_ALL_ROWS]:
        blocks.append(doc.Fold(format_count(len(folded_rows), "further row"), (table(folded_rows),)))
    if n_omitted := len(rows[_MAX_ALL_ROWS:]):
        blocks.append(doc.Paragraph(f"{format_count(n_omitted, 'row')} more: the study's analysis in Python has all."))
    return doc.Section(name, title, tuple(blocks)) if rows else None


def _treatments(result: StudyResult) -> doc.Section | None:
    columns: list[ColumnFormat] = [
        ("compared", treatment_text),
        ("mean", lambda row, decimals: number(row["mean"], decimals)),
        ("95 % interval", lambda row, decimals: interval(row["low"], row["high"], decimals)),
        *_COUNTS,
    ]
    caption = (
        "Treated minus control agents within an arm; all agents with minus without the intervention, in the same unit; "
        "and the first minus the second. All are paired by seed, with Student's 95 % intervals."
    )
    frame = result.analysis.treatments
    return _part("treatments", "Some agents and the whole platform", result, frame, columns, caption)


def treatment_text(row: Record, _: int = 0) -> str:
    """Return what a row of `treatments` compares."""
    within, platform = f"{row['arm']}: treated \u2212 control", sides_text(row["whole"], row["none"])
    return {"within": within, "platform": platform, "difference": f"({within}) \u2212 ({platform})"}[row["effect"]]


def _differences(result: StudyResult) -> doc.Section | None:
    frame, paired = result.analysis.differences, result.table.paired
    size, label = effect_size(result)
    families = set(frame.loc[frame["n"] > 0, "family"])
    family: ColumnFormat = ("family", lambda row, _: str(row["family"]))
    columns: list[ColumnFormat] = [
        ("compared", lambda row, _: comparison_words(row)),
        ("difference", lambda row, decimals: number(row["difference"], decimals)),
        ("95 % interval", lambda row, decimals: interval(row["low"], row["high"], decimals)),
        (label, lambda row, _: number(row[size], 2)),
        _P_HOLM,
        *([family] if len(families) > 1 or MARGINS in families else []),
        *_COUNTS,
    ]
    note = "r is the rank-biserial correlation: 1 if every run on the left lies above every run on the right."
    if paired:
        note = "d_z is Cohen's effect size for pairs: the mean difference in standard deviations of these differences."
    caption = (
        f"Mean differences, left minus right, {'paired by seed' if paired else 'of independent runs'}, with Student's "
        f"95 % intervals. {note}{_correction(result, families)}"
    )
    caption += " Rows with a margin have the p of Equivalence below." if MARGINS in families else ""
    return _part("differences", "Differences", result, frame, columns, caption)


def _correction(result: StudyResult, families: set[str]) -> str:
    """Return a sentence about the tests that Holm's correction covers; empty if there are none."""
    table = result.analysis.differences
    expected = sum(pd.notna(verdict.p_holm) for verdict in result.analysis.expectations) if families != {OTHERS} else 0
    others = int(table.loc[table["family"] == OTHERS, "p"].count())
    tests = [format_count(n, noun) for n, noun in ((expected, "expectation"), (others, "other difference")) if n]
    return f" p has Holm's correction over {', and separately over '.join(tests)}." if tests else ""


def effect_size(result: StudyResult) -> tuple[str, str]:
    """Return the column of `differences` with the effect size that fits the study, and its name in a report."""
    return ("d_z", "d_z") if result.table.paired else ("rank_biserial", "r")


def _groups(result: StudyResult) -> doc.Section | None:
    frame = result.analysis.groups
    in_effects = set(result.analysis.effects[["measure", "effect"]].itertuples(index=False, name=None))
    frame = frame.loc[[pair not in in_effects for pair in zip(frame["measure"], frame["term"], strict=True)]]
    names = {"arm": "arms", "condition": "all conditions"}
    columns: list[ColumnFormat] = [
        ("between", lambda row, _: names.get(row["term"]) or doc.Code(str(row["term"]))),
        ("H", lambda row, _: number(row["h"], 2)),
        ("df", lambda row, _: number(row["df"])),
        _P_HOLM,
        *_COUNTS,
    ]
    n_tests = format_count(int(result.analysis.groups["p"].count()), "such test")
    caption = (
        "Kruskal-Wallis: whether any level differs from the others. The test ignores pairs, so with paired seeds it "
        f"misses differences. p has Holm's correction over {n_tests}."
    )
    return _part("groups", "Groups", result, frame, columns, caption)


def _equivalence(result: StudyResult) -> doc.Section | None:
    columns: list[ColumnFormat] = [
        ("compared", lambda row, _: sides_text(row["left"], row["right"])),
        ("margin", lambda row, _: f"\u00b1 {significant(row['margin'])}"),
        ("90 % interval", lambda row, decimals: interval(row["low"], row["high"], decimals)),
        _P_HOLM,
        *_COUNTS,
        ("equivalent", lambda row, _: "yes" if row["equivalent"] else "not shown"),
    ]
    caption = (
        "Two one-sided tests (TOST): sides are equivalent if both ends of the margin are excluded, after Holm's "
        "correction over all expectations. Without it, they are equivalent if the 90 % interval is within the margin."
    )
    return _part("equivalence", "Equivalence", result, result.analysis.equivalence, columns, caption)


def _effects(result: StudyResult) -> doc.Section | None:
    frame = result.analysis.effects
    frame = frame[(frame["df"] > 1) | frame["effect"].str.contains(" x ")]
    columns: list[ColumnFormat] = [
        ("effect", lambda row, _: doc.Code(str(row["effect"]))),
        ("df", lambda row, _: number(row["df"])),
        ("F", lambda row, _: number(row["f"], 2)),
        _P_HOLM,
        ("partial \u03b7\u00b2", lambda row, _: number(row["partial_eta_squared"], 3)),
        *_COUNTS,
    ]
    n_tests = format_count(int(result.analysis.effects["p"].count()), "effect")
    caption = (
        "Main effects and interactions (analysis of variance over all runs). Factors with two levels are under "
        f"Differences. p has Holm's correction over {n_tests}."
    )
    return _part("effects", "Effects", result, frame, columns, caption)


SHARES: Final = "Seed: variance between runs of one condition. Interactions: further variance between conditions."
_INDICES: Final = {
    "s1": "S1, alone",
    "st": "ST, with its interactions",
    "mu_star": "\u03bc*, mean absolute effect",
    "mu": "\u03bc, mean effect",
    "sigma": "\u03c3, spread of effects",
    "share": "share of the variance",
}


def _indices(result: StudyResult) -> doc.Section | None:
    columns: list[ColumnFormat] = [
        ("factor", lambda row, _: doc.Code(str(row["factor"]))),
        ("index", lambda row, _: _INDICES[row["index"]]),
        ("value", lambda row, _: significant(row["value"])),
        ("95 % interval", _index_interval),
    ]
    caption = "How much of a measure's variation each factor accounts for."
    if result.table.design == "morris":
        caption = "How much a measure changes when one factor changes."
    title, note = "Sensitivity", "Intervals are SALib's: normal intervals of a bootstrap."
    if result.table.design == "factorial":
        title, note = "Where the variance comes from", SHARES
    return _part("indices", title, result, result.analysis.sensitivity, columns, f"{caption} {note}")


def _index_interval(row: Record, _: int) -> str:
    return interval(row["low"], row["high"], decimals_for([row["low"]], [row["high"]], [row["value"]]))
