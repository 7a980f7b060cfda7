"""The figures of a report: which there are, of which measures, and what their captions say."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from prism_mesa.errors import shortened
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import RunTable
from prism_mesa.view.plots.style import (
    GREY,
    INK,
    SMALL,
    WIDTH,
    color_of,
    is_many,
    labels_of,
    marker_of,
    panels,
    tidy,
    tidy_legend,
)
from prism_mesa.view.study.blocks import Block, Code, Paragraph, Part, Picture, Section, Words
from prism_mesa.view.study.comparisons import SHARES
from prism_mesa.view.study.contents import (
    axis_label,
    condition_columns,
    condition_label,
    conditions,
    in_words,
    is_sampled,
    measures_in_order,
    of_condition,
    short_key,
    side_name,
)
from prism_mesa.view.study.numbers import level

MOST_MEASURES: Final = 6
_MOST_NAMED: Final = 12


def figures_section(result: StudyResult) -> Section:
    """Return the figures that the study has runs for: of the measures of its expectations, then of the first others."""
    runs = result.table.runs
    known = [name for name in measures_in_order(result) if runs[name].notna().any()]
    if not known:
        return Section("figures", "Figures", (Paragraph("There is nothing to draw yet."),))
    shown, left_out = known[:MOST_MEASURES], known[MOST_MEASURES:]
    blocks: list[Block] = [*_differences(result, shown), *_distributions(result, shown), *_interactions(result, shown)]
    blocks += [*_precision(result, shown), *_sensitivity(result, shown)]
    if left_out:
        blocks.append(Paragraph(_left_out(left_out)))
    return Section("figures", "Figures", tuple(blocks))


def _left_out(measures: Sequence[str]) -> Words:
    parts: list[Part] = ["Not drawn: "]
    for name in measures[:_MOST_NAMED]:
        parts += [Code(name), ", "]
    more = len(measures) - _MOST_NAMED
    return (*parts[:-1], f" and {more:,} more." if more > 0 else ".")


def _distributions(result: StudyResult, measures: Sequence[str]) -> list[Block]:
    return [
        Picture(
            f"distribution-{measure}",
            (Code(measure), f" {_by(result)}. ", distribution_caption(result, measure)),
            partial(distribution_figure, result, measure),
        )
        for measure in measures
    ]


def _by(result: StudyResult) -> str:
    terms = [short_key(name) for name in condition_columns(result.table)]
    return f"by {in_words(terms[:2] if len(terms) < 3 else [*terms[:2], 'others'])}" if terms else "in all runs"


def _with_rows(measures: Sequence[str], having: Sequence[str]) -> list[str]:
    found = set(having)
    return [name for name in measures if name in found]


def _differences(result: StudyResult, measures: Sequence[str]) -> list[Block]:
    shown = [name for name in measures if any(row[1] == row[1] for row in difference_rows(result, name))]
    caption = (
        "Differences with Student's 95 % intervals: for expectations, the left side minus the right; for other "
        "measures, each arm or level minus the first."
    )
    caption += " The shaded bands are the margins of equalities." if len(result.analysis.equivalence) else ""
    return [Picture("differences", caption, partial(difference_figure, result, shown))] if shown else []


def _interactions(result: StudyResult, measures: Sequence[str]) -> list[Block]:
    terms = interaction_terms(result.table)
    if not terms:
        return []
    axis, lines, *panel = terms
    own = result.analysis.answers
    n_panels = own[panel[0]].nunique(dropna=False) if panel else 1
    shown = _with_rows(measures, own.loc[own["mean"].notna(), "measure"])[: MOST_MEASURES // n_panels]
    each = f", a panel for each {short_key(panel[0])}" if panel else ""
    n = own.loc[own["measure"].isin(shown), "n"]
    least, most = n.min(), n.max()
    of = f"{least:,.0f}" if least == most else f"{least:,.0f} to {most:,.0f}"
    caption = (
        f"Means by {short_key(axis)}, a line for each {short_key(lines)}{each}, with 95 % intervals. Lines that "
        f"are not parallel are an interaction (n = {of} runs a point)."
    )
    draw = partial(interaction_figure, result, shown, terms)
    return [Picture("interaction", caption, draw)] if shown else []


def _precision(result: StudyResult, measures: Sequence[str]) -> list[Block]:
    found = result.analysis.precision
    shown = _with_rows(measures, found["measure"])
    if not shown:
        return []
    n_pairs = found.groupby(["term", "left", "right"], dropna=False).ngroups
    cut = f"; the first {MOST_PAIRS} of {n_pairs} comparisons" if n_pairs > MOST_PAIRS else ""
    caption = (
        f"Half the width of the 95 % interval of a difference, had the study had fewer seeds{cut} "
        f"(up to {found['seeds'].max():,} seeds). Where a line is flat, more seeds tell little more."
    )
    return [Picture("precision", caption, partial(precision_figure, result, shown))]


def _sensitivity(result: StudyResult, measures: Sequence[str]) -> list[Block]:
    found = result.analysis.sensitivity
    n = int((result.table.runs["status"] == "done").sum())
    if shares := _with_rows(measures, found.loc[found["index"] == "share", "measure"]):
        caption = f"Where the variance between runs comes from, with 95 % intervals (n = {n:,} runs). {SHARES}"
        return [Picture("variance", caption, partial(share_figure, result, shares))]
    if sobol := _with_rows(measures, found.loc[found["index"] == "st", "measure"]):
        caption = f"Sobol indices with 95 % intervals: the share of a measure's variance (n = {n:,} runs)."
        return [Picture("sobol", caption, partial(share_figure, result, sobol))]
    if morris := _with_rows(measures, found.loc[found["index"] == "mu_star", "measure"]):
        caption = (
            "Elementary effects (Morris): right, factors that matter; high, factors whose effect depends on the "
            f"others or is not linear; bars are 95 % intervals of \u03bc* (n = {n:,} runs)."
        )
        return [Picture("morris", caption, partial(morris_figure, result, morris))]
    return []


MOST_CONDITIONS: Final = 24
"""Conditions that have a row of their own in a figure."""
MOST_FACTORS: Final = 6
_LONGEST: Final = 34


def distribution_figure(result: StudyResult, measure: str) -> Figure:
    """Return what a measure was in each run: by condition, or, of sampled points, against each factor."""
    if is_sampled(result.table):
        return _scatter(result, measure)
    if len(conditions(result.table)) > MOST_CONDITIONS:
        return _by_arm(result, measure)
    return _by_condition(result, measure)


def distribution_caption(result: StudyResult, measure: str) -> str:
    """Return what the figure of a measure shows, and of how many runs."""
    n = int(result.table.runs[measure].notna().sum())
    if is_sampled(result.table):
        left = len(result.table.factors) - MOST_FACTORS
        more = f", the first {MOST_FACTORS} of {len(result.table.factors)} factors" if left > 0 else ""
        return f"Each point is a run, against each factor{more} (n = {n:,} runs)."
    if len(conditions(result.table)) > MOST_CONDITIONS:
        return f"Each point is a run, whatever its other factors; boxes hold the middle half (n = {n:,} runs)."
    joined = result.table.paired and bool(_row_term(result.table))
    thin = " Thin lines join runs with the same seed." if joined else ""
    return f"Each point is a run.{thin} Diamonds are means with their 95 % intervals (n = {n:,} runs)."


def _row_term(table: RunTable) -> str:
    """Return what changes from row to row within a block."""
    return next(iter(condition_columns(table)), "")


def _blocks(table: RunTable) -> list[tuple[str, list[dict[str, Any]]]]:
    """Return the conditions in blocks that differ in one thing only, with what they share in words."""
    term = _row_term(table)
    found: dict[str, list[dict[str, Any]]] = {}
    for condition in conditions(table):
        shared = [name for name in condition_columns(table) if name != term]
        told = condition_label(table, condition, shared) if shared else ""
        found.setdefault(told, []).append(condition)
    return list(found.items())


def _by_condition(result: StudyResult, measure: str) -> Figure:
    blocks, term = _blocks(result.table), _row_term(result.table)
    levels = list(dict.fromkeys(level(one[term]) if term else "" for _, block in blocks for one in block))
    n_rows = sum(len(block) for _, block in blocks) + sum(bool(told) for told, _ in blocks)
    figure = Figure(figsize=(WIDTH, _height(n_rows)), layout="constrained")
    axes = figure.add_subplot()
    ticks: list[tuple[float, str, bool]] = []
    place = 0.0
    for told, block in blocks:
        if told:
            ticks.append((place, told, True))
            place += 1
        runs = [of_condition(result.table.runs, result.table, one) for one in block]
        rows = [place + row for row in range(len(block))]
        _draw_block(axes, runs, rows, measure, joined=result.table.paired)
        for condition, own, row in zip(block, runs, rows, strict=True):
            style = levels.index(level(condition[term])) if term else 0
            name = condition_label(result.table, condition, (term,) if term else ())
            _draw_runs(axes, own[measure], row, style)
            _draw_mean(axes, result, measure, condition, row)
            ticks.append((row, name, False))
        place += len(block)
    _name_rows(axes, ticks, place)
    tidy(axes, grid="x")
    axes.set_xlabel(axis_label(measure), parse_math=False)
    return figure


def _name_rows(axes: Axes, ticks: Sequence[tuple[float, str, bool]], bottom: float) -> None:
    """Name the rows from the top; the names of blocks are bold."""
    names = list(dict.fromkeys(name for _, name, _ in ticks))
    short = dict(zip(names, labels_of(names, _LONGEST, 2), strict=True))
    axes.set_yticks([place for place, _, _ in ticks], labels=[short[name] for _, name, _ in ticks], parse_math=False)
    for text, (_, _, bold) in zip(axes.get_yticklabels(), ticks, strict=True):
        text.set_fontweight("bold" if bold else "normal")
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(bottom - 0.4, -0.6)


def _height(n_rows: int) -> float:
    """Return how high a figure of so many rows is, in inches: few have more room each."""
    return (0.8 if n_rows <= 3 else 0.5 if n_rows <= 8 else 0.42) * n_rows + 0.6


def _heights(n: int) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return how far points lie above their row: the same for the same place in it, so figures repeat."""
    return -0.16 + 0.09 * np.sin(2.4 * np.arange(n))


def _draw_block(axes: Axes, runs: Sequence[pd.DataFrame], rows: Sequence[float], measure: str, *, joined: bool) -> None:
    """Join the runs of a seed from row to row."""
    if not joined or len(runs) < 2:
        return
    found: dict[Any, list[tuple[float, float]]] = {}
    for own, row in zip(runs, rows, strict=True):
        known = own.dropna(subset=measure)
        for seed, value, height in zip(known["seed"], known[measure], _heights(len(known)), strict=True):
            found.setdefault(seed, []).append((value, row + height))
    lines = [points for points in found.values() if len(points) > 1]
    axes.add_collection(
        LineCollection(lines, colors=GREY, linewidths=0.6, alpha=0.4, zorder=1, rasterized=is_many(len(lines) * 2))
    )


def _draw_runs(axes: Axes, values: pd.Series, row: float, style: int) -> None:
    known = values.dropna()
    axes.scatter(
        known,
        row + _heights(len(known)),
        s=16,
        color=color_of(style),
        marker=marker_of(style),
        alpha=0.65,
        linewidths=0,
        zorder=2,
        rasterized=is_many(8 * len(known)),
    )


def _draw_mean(axes: Axes, result: StudyResult, measure: str, condition: Mapping[str, Any], row: float) -> None:
    answers = result.analysis.answers
    own = of_condition(answers[answers["measure"] == measure], result.table, condition)
    for one in own.to_dict("records"):
        if pd.notna(one["mean"]):
            at = row + 0.2
            axes.plot([one["low"], one["high"]], [at, at], color=INK, lw=1.6, zorder=3, solid_capstyle="butt")
            axes.plot([one["mean"]], [at], "D", color=INK, ms=4.5, zorder=4)


def _by_arm(result: StudyResult, measure: str) -> Figure:
    """Return the runs of each arm, or of all levels of the first factor if there is one arm, as points and boxes."""
    term = _row_term(result.table)
    groups = [(level(name), rows[measure]) for name, rows in result.table.runs.groupby(term, sort=False, dropna=False)]
    groups = groups[:MOST_CONDITIONS]
    figure = Figure(figsize=(WIDTH, _height(len(groups))), layout="constrained")
    axes = figure.add_subplot()
    for row, (_, values) in enumerate(groups):
        _draw_runs(axes, values, row, row)
        if values.notna().any():
            axes.boxplot(
                [values.dropna()],
                positions=[row + 0.2],
                widths=0.26,
                orientation="horizontal",
                showfliers=False,
                manage_ticks=False,
                medianprops={"color": INK, "lw": 1.6},
            )
    _name_rows(axes, [(row, name, False) for row, (name, _) in enumerate(groups)], len(groups))
    tidy(axes, grid="x")
    axes.set_xlabel(axis_label(measure), parse_math=False)
    return figure


def _scatter(result: StudyResult, measure: str) -> Figure:
    """Return a measure against each factor, the first few of many."""
    factors = result.table.factors[:MOST_FACTORS]
    figure, grid = panels(len(factors), height=2.3, columns=3)
    many = is_many(len(result.table.runs) * len(factors))
    names = labels_of(result.table.arms, _LONGEST)
    for place, (axes, factor) in enumerate(zip(grid, factors, strict=True)):
        for style, arm in enumerate(result.table.arms):
            own = result.table.runs[result.table.runs["arm"] == arm].dropna(subset=measure)
            axes.scatter(
                own[factor],
                own[measure],
                s=9,
                alpha=0.8 if many else 0.55,
                linewidths=0,
                color=color_of(style),
                marker=marker_of(style),
                label=names[style],
                rasterized=many,
            )
        tidy(axes)
        axes.set_xlabel(shortened(factor, 28), parse_math=False)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        if place % 3 == 0:
            axes.set_ylabel(axis_label(measure), parse_math=False)
    if len(result.table.arms) > 1:
        tidy_legend(
            figure.legend(
                *grid[0].get_legend_handles_labels(), frameon=False, fontsize=SMALL, loc="outside lower left", ncols=3
            )
        )
    return figure


MOST_PAIRS: Final = 6
"""Lines in a panel of the interval against the number of seeds."""
_MOST_LEVELS: Final = 12
_MOST_LINES: Final = 7
_MOST_MARKS: Final = 25
_MOST_PANELS: Final = 4
_LONGEST_NAME: Final = 28

type Row = tuple[str, float, float, float, float]


def interaction_terms(table: RunTable) -> tuple[str, ...]:
    """Return what is drawn along the axis, as lines, and, of three, in panels; nothing unless each has few levels."""
    terms = condition_columns(table)
    if len(terms) not in (2, 3) or is_sampled(table):
        return ()
    lines, axis, *panel = terms
    most = {lines: _MOST_LINES, axis: _MOST_LEVELS} | dict.fromkeys(panel, _MOST_PANELS)
    few = all(table.runs[term].nunique(dropna=False) <= n for term, n in most.items())
    return (axis, lines, *panel) if few else ()


def interaction_figure(result: StudyResult, measures: Sequence[str], terms: Sequence[str]) -> Figure:
    """Return the means of measures along the levels of one thing, a line for each level of another.

    A third thing has a panel for each of its levels. `terms` are those of `interaction_terms`.
    """
    axis, lines, *panel = terms
    answers = result.analysis.answers
    shown: list[tuple[str, pd.DataFrame]] = []
    for measure in measures:
        own = answers[answers["measure"] == measure]
        title = shortened(measure, 40)
        by_panel = own.groupby(panel[0], sort=False, dropna=False) if panel else [("", own)]
        shown += [(f"{title}, {short_key(panel[0])} {level(at)}" if panel else title, rows) for at, rows in by_panel]
    figure, grid = panels(len(shown), height=2.6)
    for axes, (title, rows) in zip(grid, shown, strict=True):
        _draw_interaction(axes, rows, axis, lines)
        tidy(axes, title, grid="y")
    handles, labels = grid[0].get_legend_handles_labels()
    heading = None if lines == "arm" else lines
    tidy_legend(
        figure.legend(handles, labels, title=heading, frameon=False, fontsize=SMALL, loc="outside lower left", ncols=3)
    )
    return figure


def _draw_interaction(axes: Axes, answers: pd.DataFrame, axis: str, lines: str) -> None:
    own = answers.assign(axis_level=answers[axis].map(level), line_level=answers[lines].map(level))
    names = list(own["axis_level"].drop_duplicates())
    by_line = list(own.groupby("line_level", sort=False))
    labels = labels_of([str(name) for name, _ in by_line], _LONGEST_NAME)
    for style, (label, (_, rows)) in enumerate(zip(labels, by_line, strict=True)):
        places = rows["axis_level"].map(names.index) + 0.05 * style
        reach = [rows["mean"] - rows["low"], rows["high"] - rows["mean"]]
        axes.errorbar(places, rows["mean"], yerr=reach, fmt="-", **_line(style), capsize=3).set_label(label)
    axes.set_xticks(range(len(names)), labels=labels_of(names, 14, 2), parse_math=False)
    axes.set_xlim(-0.3, len(names) - 0.5)
    axes.set_xlabel(axis, parse_math=False)


def _line(style: int) -> dict[str, Any]:
    return {"color": color_of(style), "marker": marker_of(style), "ms": 4.5, "lw": 1.4}


def difference_rows(result: StudyResult, measure: str) -> list[Row]:
    """Return the comparisons of a measure: its expectations, or else each arm or level with the first.

    Each row has its name, the difference, where its interval begins and ends, and the margin of an equality (or NaN).
    """
    margins = result.analysis.equivalence.set_index("text")["margin"].to_dict()
    rows: list[Row] = []
    for expectation in result.analysis.expectations:
        if (text := expectation.text.strip()).startswith(f"{measure}: "):
            name = f"{text.removeprefix(f'{measure}: ')} ({expectation.verdict})"
            margin = margins.get(expectation.text, np.nan)
            rows.append((name, expectation.difference, *expectation.interval, margin))
    if rows:
        return rows
    found = result.analysis.differences
    found = found[found["measure"] == measure]
    first = found.groupby("term")["right"].transform("first")
    for row in found[found["right"] == first].head(_MOST_LEVELS).to_dict("records"):
        name = _pair_name(row["term"], row["left"], row["right"])
        rows.append((name, row["difference"], row["low"], row["high"], np.nan))
    return rows


def difference_figure(result: StudyResult, measures: Sequence[str]) -> Figure:
    """Return differences with their 95 % intervals, a panel for each measure; margins of equalities are shaded."""
    rows = {measure: difference_rows(result, measure) for measure in measures}
    ratios = [len(own) + 1.6 for own in rows.values()]
    figure = Figure(figsize=(WIDTH, 0.36 * sum(ratios)), layout="constrained")
    grid = figure.subplots(len(rows), 1, squeeze=False, height_ratios=ratios)[:, 0]
    for axes, (measure, own) in zip(grid, rows.items(), strict=True):
        for place, (_, difference, low, high, margin) in enumerate(own):
            if np.isfinite(margin):
                axes.fill_betweenx([place - 0.4, place + 0.4], -margin, margin, color=GREY, alpha=0.18, lw=0)
            axes.plot([low, high], [place, place], color=color_of(0), lw=1.8, solid_capstyle="butt")
            axes.plot([difference], [place], color=color_of(0), marker="D", ms=5)
        axes.axvline(0, color=INK, lw=0.8, ls="--")
        tidy(axes, grid="x")
        axes.set_yticks(
            range(len(own)), labels=labels_of([name for name, *_ in own], 2 * _LONGEST_NAME), parse_math=False
        )
        axes.set_ylim(len(own) - 0.5, -0.5)
        axes.set_xlabel(f"difference: {axis_label(measure)}", parse_math=False)
    return figure


def precision_figure(result: StudyResult, measures: Sequence[str]) -> Figure:
    """Return half the width of the interval of a difference against the number of seeds."""
    figure, grid = panels(len(measures), height=2.4, columns=_columns(len(measures)))
    found = result.analysis.precision
    for place, (axes, measure) in enumerate(zip(grid, measures, strict=True)):
        own = found[found["measure"] == measure]
        pairs = list(own.groupby(["term", "left", "right"], sort=False, dropna=False))[:MOST_PAIRS]
        names = labels_of([_pair_name(*key) for key, _ in pairs], 2 * _LONGEST_NAME)
        for style, (name, (_, rows)) in enumerate(zip(names, pairs, strict=True)):
            every = -(-len(rows) // _MOST_MARKS)
            axes.plot(rows["seeds"], rows["half_width"], **_line(style), label=name, markevery=every)
        tidy(axes, shortened(measure, 80 // _columns(len(measures))))
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True))
        axes.set_xlabel("seeds")
        if place % _columns(len(measures)) == 0:
            axes.set_ylabel("half width")
    handles, labels = grid[0].get_legend_handles_labels()
    columns = 1 if any(len(label) > _LONGEST_NAME + 8 for label in labels) else 2
    tidy_legend(figure.legend(handles, labels, frameon=False, fontsize=SMALL, loc="outside lower left", ncols=columns))
    return figure


def _pair_name(term: object, left: object, right: object) -> str:
    sides = {"left": left, "right": right}
    name = f"{side_name(sides, 'left')} \u2212 {side_name(sides, 'right')}"
    return name if term in ("arm", "condition") else f"{short_key(str(term))}: {name}"


def _columns(n: int) -> int:
    """Return how many small panels stand side by side."""
    return 3 if n == 3 or n > 4 else 2


def share_figure(result: StudyResult, measures: Sequence[str]) -> Figure:
    """Return bars of the shares of the variance with intervals; for a Sobol design first-order and total indices."""
    found = result.analysis.sensitivity
    factors, indices = list(found["factor"].unique()), [index for index in _SHARES if index in set(found["index"])]
    height = 0.76 / len(indices)
    figure, grid = panels(len(measures), height=0.36 * len(factors) + 1.1)
    for place, (axes, measure) in enumerate(zip(grid, measures, strict=True)):
        for side, index in enumerate(indices):
            own = found[(found["measure"] == measure) & (found["index"] == index)]
            rows = own["factor"].map(factors.index) + height * (side - (len(indices) - 1) / 2)
            axes.barh(rows, own["value"], height=height - 0.02, color=color_of(side), alpha=0.85, label=_SHARES[index])
            reach = [own["value"] - own["low"], own["high"] - own["value"]]
            axes.errorbar(own["value"], rows, xerr=np.abs(reach), fmt="none", color=INK, lw=1.2, capsize=2)
        tidy(axes, shortened(measure, 40), grid="x")
        names = [shortened(name, _LONGEST_NAME) if place % 2 == 0 else "" for name in factors]
        axes.set_yticks(range(len(factors)), labels=names, parse_math=False)
        axes.set_ylim(len(factors) - 0.5, -0.5)
        axes.set_xlabel("share of the variance")
    if len(indices) > 1:
        drawn = grid[0].get_legend_handles_labels()
        tidy_legend(figure.legend(*drawn, frameon=False, fontsize=SMALL, loc="outside lower left", ncols=2))
    return figure


_SHARES: Final = {"s1": "S1, alone", "st": "ST, with interactions", "share": ""}


def morris_figure(result: StudyResult, measures: Sequence[str]) -> Figure:
    """Return the mean absolute effect of each factor against how much its effects differ."""
    figure, grid = panels(len(measures), height=2.7)
    found = result.analysis.sensitivity
    for axes, measure in zip(grid, measures, strict=True):
        own = found[found["measure"] == measure]
        wide = own.pivot(index="factor", columns="index", values="value")
        reach = own[own["index"] == "mu_star"].set_index("factor")
        for style, factor in enumerate(name for name in result.table.factors if name in wide.index):
            _morris_point(axes, wide.loc[factor], reach.loc[factor], style, shortened(factor, _LONGEST_NAME))
        tidy(axes, shortened(measure, 40))
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.set(xlabel="\u03bc* (mean absolute effect)", ylabel="\u03c3 (spread)")
    tidy_legend(
        figure.legend(
            *grid[0].get_legend_handles_labels(), frameon=False, fontsize=SMALL, loc="outside lower left", ncols=3
        )
    )
    return figure


def _morris_point(axes: Axes, at: pd.Series, reach: pd.Series, style: int, name: str) -> None:
    if pd.notna(reach["low"]):
        width = [[at["mu_star"] - reach["low"]], [reach["high"] - at["mu_star"]]]
        axes.errorbar(at["mu_star"], at["sigma"], xerr=np.abs(width), fmt="none", color=GREY, lw=1.2, capsize=2)
    axes.plot(at["mu_star"], at["sigma"], ls="none", color=color_of(style), marker=marker_of(style), ms=6, label=name)
