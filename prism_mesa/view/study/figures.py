"""The report's section of figures."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from prism_mesa.errors import shorten
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import RunTable
from prism_mesa.view.plots import style
from prism_mesa.view.study import contents
from prism_mesa.view.study.blocks import Block, Code, Paragraph, Picture, Section, code_list
from prism_mesa.view.study.comparisons import SHARES, treatment_text
from prism_mesa.view.study.numbers import level

MAX_MEASURES: Final = 6
MAX_CONDITIONS: Final = 24  # a figure with more conditions has a row for each arm or level instead
MAX_FACTORS: Final = 6
MAX_PAIRS: Final = 6  # maximum number of lines in a panel of `precision_figure`
_MAX_NAMES: Final = 12
_MAX_LEVELS: Final = 12
_MAX_LINES: Final = 7
_MAX_MARKS: Final = 25
_MAX_PANELS: Final = 4
_ROW_LETTERS: Final = 34  # letters per line in the label of a row
_LEGEND_LETTERS: Final = 28  # letters of a label in a legend

type DifferenceRow = tuple[str, float, float, float, float]
"""A name, the difference, both ends of its interval, and the margin of an equality (NaN if there is none)."""


def figures_section(result: StudyResult) -> Section:
    """Return the section of figures, with the measures of expectations first."""
    runs = result.table.runs
    measures = [name for name in contents.measures_in_order(result) if runs[name].notna().any()]
    if not measures:
        return Section("figures", "Figures", (Paragraph("There is nothing to draw yet."),))
    measures, left_out = measures[:MAX_MEASURES], measures[MAX_MEASURES:]
    blocks: list[Block | None] = [_differences(result, measures), _treatments(result)]
    blocks += [distribution_picture(result, measure) for measure in measures]
    blocks += [make_picture(result, measures) for make_picture in (_interactions, _precision, _sensitivity)]
    if left_out:
        n_more = len(left_out) - _MAX_NAMES
        end = f" and {n_more:,} more." if n_more > 0 else "."
        blocks.append(Paragraph(("Not drawn: ", *code_list(left_out[:_MAX_NAMES]), end)))
    return Section("figures", "Figures", tuple(block for block in blocks if block is not None))


def distribution_picture(result: StudyResult, measure: str) -> Picture:
    """Return a picture of the values of a measure in all runs, by condition or against each sampled factor."""
    terms = [contents.short_key(name) for name in contents.condition_columns(result.table)]
    first_terms = terms if len(terms) < 3 else [*terms[:2], "others"]
    scope = f"by {contents.format_list(first_terms)}" if terms else "in all runs"
    n, n_factors = int(result.table.runs[measure].notna().sum()), len(result.table.factors)
    if contents.is_sampled(result.table):
        draw, text = _scatter, ", against each factor"
        text += f", the first {MAX_FACTORS} of {n_factors}" if n_factors > MAX_FACTORS else ""
    elif len(contents.conditions(result.table)) > MAX_CONDITIONS:
        draw, text = _by_arm, ", for all levels of other factors; boxes cover the middle half of the runs"
    else:
        draw, text = _by_condition, ". Thin lines join runs with the same seed" if result.table.paired and terms else ""
        text += ". Diamonds are means with their 95 % intervals"
    caption = (Code(measure), f" {scope}. Each point is a run{text} (n = {n:,} runs).")
    return Picture(f"distribution-{measure}", caption, partial(draw, result, measure))


def _by_condition(result: StudyResult, measure: str) -> Figure:
    """Draw a row for each condition, in blocks of conditions that differ only in the first term."""
    term, *shared_terms = contents.condition_columns(result.table) or ("",)
    blocks: dict[str, list[dict[str, Any]]] = {}
    for condition in contents.conditions(result.table):
        name = contents.condition_label(result.table, condition, shared_terms) if shared_terms else ""
        blocks.setdefault(name, []).append(condition)
    levels = list(dict.fromkeys(level(row[term]) if term else "" for block in blocks.values() for row in block))
    figure, axes = _figure_of_rows(sum(map(len, blocks.values())) + sum(map(bool, blocks)))
    ticks: list[tuple[int, str, bool]] = []
    index = 0
    for shared, block in blocks.items():
        if shared:
            ticks.append((index, shared, True))
            index += 1
        runs = [contents.rows_of_condition(result.table.runs, result.table, condition) for condition in block]
        if result.table.paired and len(block) > 1:
            _join_seeds(axes, runs, index, measure)
        for condition, rows in zip(block, runs, strict=True):
            name = contents.condition_label(result.table, condition, (term,) if term else ())
            _draw_runs(axes, rows[measure], index, levels.index(level(condition[term])) if term else 0)
            _draw_mean(axes, result, measure, condition, index)
            ticks.append((index, name, False))
            index += 1
    _finish_rows(axes, ticks, index, measure)
    return figure


def _figure_of_rows(n: int) -> tuple[Figure, Axes]:
    height = (0.8 if n <= 3 else 0.5 if n <= 8 else 0.42) * n + 0.6
    figure = Figure(figsize=(style.WIDTH, height), layout="constrained")
    return figure, figure.add_subplot()


def _finish_rows(axes: Axes, ticks: Sequence[tuple[int, str, bool]], bottom: int, measure: str) -> None:
    """Label the rows, with names of blocks in bold, and the axis of the measure."""
    names = list(dict.fromkeys(name for _, name, _ in ticks))
    short = dict(zip(names, style.short_labels(names, _ROW_LETTERS, 2), strict=True))
    axes.set_yticks([index for index, _, _ in ticks], labels=[short[name] for _, name, _ in ticks], parse_math=False)
    for text, (_, _, bold) in zip(axes.get_yticklabels(), ticks, strict=True):
        text.set_fontweight("bold" if bold else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(bottom - 0.4, -0.6)
    style.tidy(axes, grid="x")
    axes.set_xlabel(contents.axis_label(measure), parse_math=False)


def _join_seeds(axes: Axes, runs: Sequence[pd.DataFrame], first_row: int, measure: str) -> None:
    """Draw lines between the runs of each seed across rows."""
    measured = (rows.dropna(subset=measure) for rows in runs)
    points = pd.concat([rows.assign(y=_jitter(row, len(rows))) for row, rows in enumerate(measured, first_row)])
    lines = [group[[measure, "y"]].to_numpy() for _, group in points.groupby("seed") if len(group) > 1]
    options: dict[str, Any] = {"colors": style.GREY, "linewidths": 0.6, "alpha": 0.4, "zorder": 1}
    axes.add_collection(LineCollection(lines, rasterized=style.has_many_marks(len(lines) * 2), **options))


def _jitter(row: int, n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return the vertical positions of `n` points in a row, spread in a fixed pattern."""
    return row - 0.16 + 0.09 * np.sin(2.4 * np.arange(n))


def _draw_runs(axes: Axes, values: pd.Series, row: int, series: int) -> None:
    values = values.dropna()
    options: dict[str, Any] = {"s": 16, "alpha": 0.65, "linewidths": 0, "zorder": 2}
    y, is_dense = _jitter(row, len(values)), style.has_many_marks(8 * len(values))
    axes.scatter(values, y, rasterized=is_dense, **_mark(series), **options)


def _draw_mean(axes: Axes, result: StudyResult, measure: str, condition: Mapping[str, Any], row: int) -> None:
    answers = result.analysis.answers
    rows = contents.rows_of_condition(answers[answers["measure"] == measure], result.table, condition)
    for answer in rows.dropna(subset="mean").to_dict("records"):
        y = row + 0.2
        axes.plot([answer["low"], answer["high"]], [y, y], color=style.INK, lw=1.6, zorder=3, solid_capstyle="butt")
        axes.plot([answer["mean"]], [y], "D", color=style.INK, ms=4.5, zorder=4)


def _by_arm(result: StudyResult, measure: str) -> Figure:
    """Draw the runs of each arm as points and boxes; for a single arm, of each level of the first factor."""
    by_term = result.table.runs.groupby(contents.condition_columns(result.table)[0], sort=False, dropna=False)
    groups = [(level(name), rows[measure]) for name, rows in by_term][:MAX_CONDITIONS]
    figure, axes = _figure_of_rows(len(groups))
    options: dict[str, Any] = {"orientation": "horizontal", "showfliers": False, "manage_ticks": False, "widths": 0.26}
    options["medianprops"] = {"color": style.INK, "lw": 1.6}
    for row, (_, values) in enumerate(groups):
        _draw_runs(axes, values, row, row)
        if values.notna().any():
            axes.boxplot([values.dropna()], positions=[row + 0.2], **options)
    _finish_rows(axes, [(row, name, False) for row, (name, _) in enumerate(groups)], len(groups), measure)
    return figure


def _scatter(result: StudyResult, measure: str) -> Figure:
    """Draw a measure against the first factors."""
    factors = result.table.factors[:MAX_FACTORS]
    figure, grid = style.panels(len(factors), height=2.3, columns=3)
    is_dense = style.has_many_marks(len(result.table.runs) * len(factors))
    options: dict[str, Any] = {"s": 9, "alpha": 0.8 if is_dense else 0.55, "linewidths": 0, "rasterized": is_dense}
    names = style.short_labels(result.table.arms, _ROW_LETTERS)
    for index, (axes, factor) in enumerate(zip(grid, factors, strict=True)):
        for n, (arm, label) in enumerate(zip(result.table.arms, names, strict=True)):
            rows = result.table.runs[result.table.runs["arm"] == arm].dropna(subset=measure)
            axes.scatter(rows[factor], rows[measure], label=label, **_mark(n), **options)
        style.tidy(axes)
        axes.set_xlabel(shorten(factor, 28), parse_math=False)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        if index % 3 == 0:
            axes.set_ylabel(contents.axis_label(measure), parse_math=False)
    if len(result.table.arms) > 1:
        style.figure_legend(figure, grid[0], ncols=3)
    return figure


def _interactions(result: StudyResult, measures: Sequence[str]) -> Picture | None:
    terms = interaction_terms(result.table)
    if not terms:
        return None
    axis, lines, *panel = map(contents.short_key, terms)
    answers = result.analysis.answers
    n_panels = answers[terms[2]].nunique(dropna=False) if panel else 1
    measured = set(answers.loc[answers["mean"].notna(), "measure"])
    available = [name for name in measures if name in measured][: MAX_MEASURES // n_panels]
    panels = f", a panel for each {panel[0]}" if panel else ""
    n = answers.loc[answers["measure"].isin(available), "n"]
    counts = " to ".join(dict.fromkeys([f"{n.min():,.0f}", f"{n.max():,.0f}"]))
    caption = (
        f"Means by {axis}, a line for each {lines}{panels}, with 95 % intervals. Lines that are not parallel "
        f"indicate an interaction (n = {counts} runs a point)."
    )
    return Picture("interaction", caption, partial(interaction_figure, result, available, terms)) if available else None


def interaction_terms(table: RunTable) -> tuple[str, ...]:
    """Return the terms for the axis, the lines and perhaps the panels; empty if a term has too many levels."""
    terms = contents.condition_columns(table)
    if len(terms) not in (2, 3) or contents.is_sampled(table):
        return ()
    lines, axis, *panel = terms
    limits = {lines: _MAX_LINES, axis: _MAX_LEVELS} | dict.fromkeys(panel, _MAX_PANELS)
    is_small = all(table.runs[term].nunique(dropna=False) <= n for term, n in limits.items())
    return (axis, lines, *panel) if is_small else ()


def interaction_figure(result: StudyResult, measures: Sequence[str], terms: Sequence[str]) -> Figure:
    """Draw means along one of `interaction_terms`, with a line or a panel for each level of the others."""
    axis, lines, *panel = terms
    answers = result.analysis.answers
    panels: list[tuple[str, pd.DataFrame]] = []
    for measure in measures:
        rows, title = answers[answers["measure"] == measure], shorten(measure, 40)
        if panel:
            by_panel = rows.groupby(panel[0], sort=False, dropna=False)
            panels += [(f"{title}, {contents.short_key(panel[0])} {level(n)}", part) for n, part in by_panel]
        else:
            panels.append((title, rows))
    figure, grid = style.panels(len(panels), height=2.6)
    for axes, (title, rows) in zip(grid, panels, strict=True):
        _draw_interaction(axes, rows, axis, lines)
        style.tidy(axes, title, grid="y")
    style.figure_legend(figure, grid[0], title=None if lines == "arm" else lines, ncols=3)
    return figure


def _draw_interaction(axes: Axes, answers: pd.DataFrame, axis: str, lines: str) -> None:
    rows = answers.assign(axis_level=answers[axis].map(level), line_level=answers[lines].map(level))
    names = list(rows["axis_level"].drop_duplicates())
    by_line = list(rows.groupby("line_level", sort=False))
    labels = style.short_labels([str(name) for name, _ in by_line], _LEGEND_LETTERS)
    for n, (label, (_, line)) in enumerate(zip(labels, by_line, strict=True)):
        positions = line["axis_level"].map(names.index) + 0.05 * n
        error_bars = [line["mean"] - line["low"], line["high"] - line["mean"]]
        bars = axes.errorbar(positions, line["mean"], error_bars, fmt="-", ms=4.5, lw=1.4, capsize=3, **_mark(n))
        bars.set_label(label)
    axes.set_xticks(range(len(names)), labels=style.short_labels(names, 14, 2), parse_math=False)
    axes.set_xlim(-0.3, len(names) - 0.5)
    axes.set_xlabel(axis, parse_math=False)


def _mark(series: int) -> dict[str, Any]:
    return {"color": style.series_color(series), "marker": style.series_marker(series)}


def _differences(result: StudyResult, measures: Sequence[str]) -> Picture | None:
    tables = {name: difference_rows(result, name) for name in measures}
    tables = {name: rows for name, rows in tables.items() if any(pd.notna(row[1]) for row in rows)}
    caption = (
        "Differences with Student's 95 % intervals: for expectations, the left side minus the right; for other "
        "measures, each arm or level minus the first."
    )
    caption += " The shaded bands are the margins of equalities." if len(result.analysis.equivalence) else ""
    return Picture("differences", caption, partial(difference_figure, tables)) if tables else None


def _treatments(result: StudyResult) -> Picture | None:
    tables: dict[str, list[DifferenceRow]] = {}
    for row in result.analysis.treatments.to_dict("records"):
        values = row["mean"], row["low"], row["high"]
        tables.setdefault(row["measure"], []).append((treatment_text(row), *values, np.nan))
    caption = (
        "Effects of interventions on some agents (treated minus control) and on the whole platform, and their "
        "difference, with Student's 95 % intervals."
    )
    return Picture("treatments", caption, partial(difference_figure, tables)) if tables else None


def difference_rows(result: StudyResult, measure: str) -> list[DifferenceRow]:
    """Return the comparisons in the expectations of a measure, or else of each arm or level with the first."""
    margins = result.analysis.equivalence.set_index("text")["margin"].to_dict()
    rows: list[DifferenceRow] = []
    for verdict in result.analysis.expectations:
        name, _, text = verdict.text.strip().rpartition(": ")
        if name == measure:
            label, margin = f"{text} ({verdict.verdict})", margins.get(verdict.text, np.nan)
            rows.append((label, verdict.difference, *verdict.interval, margin))
    if rows:
        return rows
    table = result.analysis.differences
    table = table[table["measure"] == measure]
    is_with_first = table["right"] == table.groupby("term")["right"].transform("first")
    return [
        (_pair_name(row["term"], row["left"], row["right"]), row["difference"], row["low"], row["high"], np.nan)
        for row in table[is_with_first].head(_MAX_LEVELS).to_dict("records")
    ]


def difference_figure(tables: Mapping[str, Sequence[DifferenceRow]]) -> Figure:
    """Draw differences with 95 % intervals, with a panel for each measure and shaded margins of equalities."""
    ratios = [len(rows) + 1.6 for rows in tables.values()]
    figure = Figure(figsize=(style.WIDTH, 0.36 * sum(ratios)), layout="constrained")
    grid = figure.subplots(len(tables), 1, squeeze=False, height_ratios=ratios)[:, 0]
    for axes, (measure, rows) in zip(grid, tables.items(), strict=True):
        for index, (_, difference, low, high, margin) in enumerate(rows):
            if np.isfinite(margin):
                axes.fill_betweenx([index - 0.4, index + 0.4], -margin, margin, color=style.GREY, alpha=0.18, lw=0)
            axes.plot([low, high], [index, index], color=style.series_color(0), lw=1.8, solid_capstyle="butt")
            axes.plot([difference], [index], color=style.series_color(0), marker="D", ms=5)
        axes.axvline(0, color=style.INK, lw=0.8, ls="--")
        style.tidy(axes, grid="x")
        names = style.short_labels([row[0] for row in rows], 2 * _LEGEND_LETTERS)
        axes.set_yticks(range(len(rows)), names, parse_math=False)
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel(f"difference: {contents.axis_label(measure)}", parse_math=False)
    return figure


def _pair_name(term: object, left: object, right: object) -> str:
    name = contents.sides_text(left, right)
    return name if term in ("arm", "condition") else f"{contents.short_key(str(term))}: {name}"


def _precision(result: StudyResult, measures: Sequence[str]) -> Picture | None:
    table = result.analysis.precision
    available = [name for name in measures if name in set(table["measure"])]
    if not available:
        return None
    n_pairs = table.groupby(["term", "left", "right"], dropna=False).ngroups
    limit_note = f"; the first {MAX_PAIRS} of {n_pairs} comparisons" if n_pairs > MAX_PAIRS else ""
    caption = (
        f"Half width of the 95 % interval of a difference by the number of seeds{limit_note} "
        f"(up to {table['seeds'].max():,} seeds). Where a line is flat, more seeds add little."
    )
    return Picture("precision", caption, partial(precision_figure, result, available))


def precision_figure(result: StudyResult, measures: Sequence[str]) -> Figure:
    """Draw the half width of a difference's interval against the number of seeds."""
    columns = 3 if len(measures) == 3 or len(measures) > 4 else 2
    figure, grid = style.panels(len(measures), height=2.4, columns=columns)
    table = result.analysis.precision
    for index, (axes, measure) in enumerate(zip(grid, measures, strict=True)):
        by_pair = table[table["measure"] == measure].groupby(["term", "left", "right"], sort=False, dropna=False)
        pairs = list(by_pair)[:MAX_PAIRS]
        names = style.short_labels([_pair_name(*key) for key, _ in pairs], 2 * _LEGEND_LETTERS)
        for n, (name, (_, rows)) in enumerate(zip(names, pairs, strict=True)):
            step = -(-len(rows) // _MAX_MARKS)
            axes.plot(rows["seeds"], rows["half_width"], ms=4.5, lw=1.4, label=name, markevery=step, **_mark(n))
        style.tidy(axes, shorten(measure, 80 // columns))
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("seeds")
        if index % columns == 0:
            axes.set_ylabel("half width")
    longest = max((len(label) for label in grid[0].get_legend_handles_labels()[1]), default=0)
    style.figure_legend(figure, grid[0], ncols=1 if longest > _LEGEND_LETTERS + 8 else 2)
    return figure


def _sensitivity(result: StudyResult, measures: Sequence[str]) -> Picture | None:
    table, n = result.analysis.sensitivity, f"(n = {int((result.table.runs['status'] == 'done').sum()):,} runs)"
    morris = (
        "Elementary effects (Morris): factors to the right matter; the effect of factors at the top depends on other "
        f"factors or is not linear; bars are 95 % intervals of \u03bc* {n}."
    )
    kinds = {
        "share": ("variance", share_figure, f"Sources of the variance between runs, with 95 % intervals {n}. {SHARES}"),
        "st": ("sobol", share_figure, f"Sobol indices, shares of a measure's variance, with 95 % intervals {n}."),
        "mu_star": ("morris", morris_figure, morris),
    }
    for index, (name, draw, caption) in kinds.items():
        measured = set(table.loc[table["index"] == index, "measure"])
        if available := [measure for measure in measures if measure in measured]:
            return Picture(name, caption, partial(draw, result, available))
    return None


_SHARES: Final = {"s1": "S1, alone", "st": "ST, with interactions", "share": ""}


def share_figure(result: StudyResult, measures: Sequence[str]) -> Figure:
    """Draw bars of variance shares with intervals; for a Sobol design, first-order and total indices."""
    table = result.analysis.sensitivity
    factors, indices = list(table["factor"].unique()), [index for index in _SHARES if index in set(table["index"])]
    height = 0.76 / len(indices)
    figure, grid = style.panels(len(measures), height=0.36 * len(factors) + 1.1)
    for number, (axes, measure) in enumerate(zip(grid, measures, strict=True)):
        for n, index in enumerate(indices):
            rows = table[(table["measure"] == measure) & (table["index"] == index)]
            y = rows["factor"].map(factors.index) + height * (n - (len(indices) - 1) / 2)
            color, label = style.series_color(n), _SHARES[index]
            axes.barh(y, rows["value"], height=height - 0.02, color=color, alpha=0.85, label=label)
            error_bars = [rows["value"] - rows["low"], rows["high"] - rows["value"]]
            axes.errorbar(rows["value"], y, xerr=np.abs(error_bars), fmt="none", color=style.INK, lw=1.2, capsize=2)
        style.tidy(axes, shorten(measure, 40), grid="x")
        names = [shorten(name, _LEGEND_LETTERS) if number % 2 == 0 else "" for name in factors]
        axes.set_yticks(range(len(factors)), labels=names, parse_math=False)
        axes.set_ylim(len(factors) - 0.5, -0.5)
        axes.set_xlabel("share of the variance")
    if len(indices) > 1:
        style.figure_legend(figure, grid[0], ncols=2)
    return figure


def morris_figure(result: StudyResult, measures: Sequence[str]) -> Figure:
    """Draw the mean absolute effect of each factor against the standard deviation of its effects."""
    figure, grid = style.panels(len(measures), height=2.7)
    table = result.analysis.sensitivity
    for axes, measure in zip(grid, measures, strict=True):
        rows = table[table["measure"] == measure]
        indices = rows.pivot(index="factor", columns="index", values="value")
        limits = rows[rows["index"] == "mu_star"].set_index("factor")[["low", "high"]]
        for n, factor in enumerate(name for name in result.table.factors if name in indices.index):
            x, y, (low, high) = indices.loc[factor, "mu_star"], indices.loc[factor, "sigma"], limits.loc[factor]
            if pd.notna(low):
                error_bars = np.abs([[x - low], [high - x]])
                axes.errorbar(x, y, xerr=error_bars, fmt="none", color=style.GREY, lw=1.2, capsize=2)
            axes.plot(x, y, ls="none", ms=6, **_mark(n), label=shorten(factor, _LEGEND_LETTERS))
        style.tidy(axes, shorten(measure, 40))
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set(xlabel="\u03bc* (mean absolute effect)", ylabel="\u03c3 (spread)")
    style.figure_legend(figure, grid[0], ncols=3)
    return figure
