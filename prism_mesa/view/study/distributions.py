"""Figures of what was measured: each run a point, runs with the same seed joined, means with their intervals."""

from collections.abc import Mapping, Sequence
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
from prism_mesa.view.study.contents import (
    axis_label,
    condition_columns,
    condition_label,
    conditions,
    is_sampled,
    of_condition,
)
from prism_mesa.view.study.numbers import level

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
