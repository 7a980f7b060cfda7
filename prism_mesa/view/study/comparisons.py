"""What differs from what: differences, groups, equivalence, effects, indices. Only what the study has."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pandas as pd

from prism_mesa.errors import counted
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.cells import MARGINS, OTHERS
from prism_mesa.view.study import blocks as b
from prism_mesa.view.study.contents import measure_title, measures_in_order, pair, side_name
from prism_mesa.view.study.numbers import count, decimals_for, interval, number, p_value, significant

type Record = Mapping[str, Any]

_MOST_ROWS: Final = 40
_MOST_IN_ALL: Final = 400


def comparisons_section(result: StudyResult) -> b.Section:
    """Return the comparisons that the study has; a section without parts if it has none."""
    parts = tuple(
        part for make in (_differences, _groups, _equivalence, _effects, _indices) if (part := make(result)) is not None
    )
    texts = result.analysis.notes
    notes: tuple[b.Block, ...] = (
        (b.Bullets(texts),) if len(texts) > 1 else tuple(b.Paragraph(t, note=True) for t in texts)
    )
    nothing = () if parts or notes else (b.Paragraph("There is nothing to compare yet."),)
    return b.Section("comparisons", "Comparisons", (*notes, *nothing), parts)


def _section(
    name: str,
    title: str,
    result: StudyResult,
    frame: pd.DataFrame,
    columns: Sequence[b.Column],
    cells: Callable[[Record, int], b.Row],
    caption: str,
) -> b.Section | None:
    """Return a table with a group for each measure; beyond some rows the rest is in a fold, and beyond many left out.

    A frame without rows gives None. `cells` makes the cells of a row, with so many decimals as its measure bears.
    """
    groups: list[b.Group] = []
    for measure in measures_in_order(result):
        rows = frame[frame["measure"] == measure]
        if len(rows):
            decimals = decimals_for(rows.get("low", ()), rows.get("high", ()))
            groups.append(
                b.Group(measure_title(measure), tuple(cells(row, decimals) for row in rows.to_dict("records")))
            )
    shown, left_out = _cut(groups, _MOST_IN_ALL)
    first, rest = _cut(shown, _MOST_ROWS)
    blocks: list[b.Block] = [b.Table(tuple(columns), tuple(first), caption)]
    n_rest, n_left_out = (sum(len(group.rows) for group in part) for part in (rest, left_out))
    if rest:
        blocks.append(b.Fold(counted(n_rest, "further row"), (b.Table(tuple(columns), tuple(rest), caption),)))
    if left_out:
        blocks.append(b.Paragraph(f"{counted(n_left_out, 'row')} more: in Python, the study's analysis has them all."))
    return b.Section(name, title, tuple(blocks)) if groups else None


def _cut(groups: Sequence[b.Group], most: int) -> tuple[list[b.Group], list[b.Group]]:
    """Return the first rows of some groups, at most so many, and the others."""
    first: list[b.Group] = []
    rest: list[b.Group] = []
    for group in groups:
        room = most - sum(len(earlier.rows) for earlier in first)
        first.append(b.Group(group.title, group.rows[:room]))
        rest.append(b.Group(group.title, group.rows[room:]))
    return [group for group in first if group.rows], [group for group in rest if group.rows]


def _with_runs(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the rows that any run stands behind."""
    return frame[frame["n"] > 0]


def _differences(result: StudyResult) -> b.Section | None:
    frame = _with_runs(result.analysis.differences)
    size, sign = effect_size(result)
    families = set(frame["family"])
    is_named = len(families) > 1 or MARGINS in families

    def cells(row: Record, decimals: int) -> b.Row:
        return (
            pair(row),
            number(row["difference"], decimals),
            interval(row["low"], row["high"], decimals),
            number(row[size], 2),
            p_value(row["p_holm"]),
            *([str(row["family"])] if is_named else []),
            count(row["n"]),
            count(row["missing"]),
        )

    paired = result.table.paired
    caption = (
        f"Mean differences, left minus right, {'paired by seed' if paired else 'of independent runs'}, with Student's "
        f"95 % intervals. {_SIZES[paired]}{_corrected_over(result, families)}"
    )
    caption += " With a margin, p is that of Equivalence below." if MARGINS in families else ""
    columns = (b.Column("compared"), *b.numeric("difference", "95 % interval", sign, "p (Holm)"))
    columns += ((b.Column("family"),) if is_named else ()) + b.numeric("n", "missing")
    return _section("differences", "Differences", result, frame, columns, cells, caption)


def _corrected_over(result: StudyResult, families: set[str]) -> str:
    """Return what Holm's correction of differences is over; nothing if they have no p."""
    table = result.analysis.differences
    expected = sum(pd.notna(verdict.p_holm) for verdict in result.analysis.expectations) if families != {OTHERS} else 0
    others = int(table.loc[table["family"] == OTHERS, "p"].count())
    tests = [counted(n, what) for n, what in ((expected, "expectation"), (others, "other difference")) if n]
    return f" p is after Holm's correction over {', and separately over '.join(tests)}." if tests else ""


_SIZES: Final = {
    True: "d_z is Cohen's effect size for pairs: the mean difference in standard deviations of the pairs' differences.",
    False: "r is the rank-biserial correlation: 1 where every run on the left lies above every run on the right.",
}


def effect_size(result: StudyResult) -> tuple[str, str]:
    """Return the column of `differences` with the effect size that fits the study, and its name in a report."""
    return ("d_z", "d_z") if result.table.paired else ("rank_biserial", "r")


_TERMS: Final = {"arm": "arms", "condition": "all conditions"}


def _groups(result: StudyResult) -> b.Section | None:
    frame = _with_runs(result.analysis.groups)
    explained = set(result.analysis.effects[["measure", "effect"]].itertuples(index=False, name=None))
    frame = frame.loc[[pair not in explained for pair in zip(frame["measure"], frame["term"], strict=True)]]

    def cells(row: Record, _: int) -> b.Row:
        figures = (number(row["h"], 2), count(row["df"]), p_value(row["p_holm"]))
        return (_TERMS.get(row["term"]) or b.Code(str(row["term"])), *figures, count(row["n"]), count(row["missing"]))

    n_tests = counted(int(result.analysis.groups["p"].count()), "such test")
    columns = (b.Column("between"), *b.numeric("H", "df", "p (Holm)", "n", "missing"))
    caption = (
        "Kruskal-Wallis: whether any level differs from the others. It ignores pairs: with paired seeds it "
        f"finds too little. p is after Holm's correction over {n_tests}."
    )
    return _section("groups", "Groups", result, frame, columns, cells, caption)


def _equivalence(result: StudyResult) -> b.Section | None:
    frame = _with_runs(result.analysis.equivalence)

    def cells(row: Record, decimals: int) -> b.Row:
        return (
            f"{side_name(row, 'left')} \u2212 {side_name(row, 'right')}",
            f"\u00b1 {significant(row['margin'])}",
            interval(row["low"], row["high"], decimals),
            p_value(row["p_holm"]),
            count(row["n"]),
            count(row["missing"]),
            "yes" if row["equivalent"] else "not shown",
        )

    numbers = b.numeric("margin", "90 % interval", "p (Holm)", "n", "missing")
    columns = (b.Column("compared"), *numbers, b.Column("equivalent"))
    caption = (
        "Two one-sided tests (TOST): equivalent where both ends of the margin are excluded, after Holm's correction "
        "over all expectations; before it, where the 90 % interval of the difference lies within the margin."
    )
    return _section("equivalence", "Equivalence", result, frame, columns, cells, caption)


def _effects(result: StudyResult) -> b.Section | None:
    frame = _with_runs(result.analysis.effects)
    frame = frame[(frame["df"] > 1) | frame["effect"].str.contains(" x ")]

    def cells(row: Record, _: int) -> b.Row:
        figures = (count(row["df"]), number(row["f"], 2), p_value(row["p_holm"]))
        size = number(row["partial_eta_squared"], 3)
        return (b.Code(str(row["effect"])), *figures, size, count(row["n"]), count(row["missing"]))

    n_tests = counted(int(result.analysis.effects["p"].count()), "effect")
    columns = (b.Column("effect"), *b.numeric("df", "F", "p (Holm)", "partial \u03b7\u00b2", "n", "missing"))
    caption = (
        "Main effects and interactions (analysis of variance over all runs); factors with two levels are under "
        f"Differences. p is after Holm's correction over {n_tests}."
    )
    return _section("effects", "Effects", result, frame, columns, cells, caption)


SHARES: Final = "Seed: variance between runs of one condition. Interactions: further variance between conditions."
_INDICES: Final = {
    "s1": "S1, alone",
    "st": "ST, with its interactions",
    "mu_star": "\u03bc*, mean absolute effect",
    "mu": "\u03bc, mean effect",
    "sigma": "\u03c3, spread of effects",
    "share": "share of the variance",
}


def _indices(result: StudyResult) -> b.Section | None:
    frame = result.analysis.sensitivity

    def cells(row: Record, _: int) -> b.Row:
        return b.Code(str(row["factor"])), _INDICES[str(row["index"])], significant(row["value"]), index_interval(row)

    columns = (b.Column("factor"), b.Column("index"), *b.numeric("value", "95 % interval"))
    caption = "How much of a measure's variation each factor accounts for."
    if result.table.design == "morris":
        caption = "How much a measure moves when one factor moves."
    title, more = "Sensitivity", "Intervals are SALib's: the normal interval of a bootstrap."
    if result.table.design == "factorial":
        title, more = "Where the variance comes from", SHARES
    return _section("indices", title, result, frame, columns, cells, f"{caption} {more}")


def index_interval(row: Record) -> str:
    """Return the interval of an index; of one without, nothing."""
    return interval(row["low"], row["high"], decimals_for([row["low"]], [row["high"]], [row["value"]]))
