"""Figures of how conditions relate: interactions, the interval against the number of seeds, and sensitivity."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
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
    labels_of,
    marker_of,
    panels,
    tidy,
    tidy_legend,
)
from prism_mesa.view.study.contents import axis_label, condition_columns, is_sampled, short_key, side_name
from prism_mesa.view.study.numbers import level

MOST_PAIRS: Final = 6
"""Lines in a panel of the interval against the number of seeds."""
_MOST_LEVELS: Final = 12
_MOST_LINES: Final = 7
_MOST_MARKS: Final = 25
_MOST_PANELS: Final = 4
_LONGEST: Final = 28

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
    labels = labels_of([str(name) for name, _ in by_line], _LONGEST)
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
        axes.set_yticks(range(len(own)), labels=labels_of([name for name, *_ in own], 2 * _LONGEST), parse_math=False)
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
        names = labels_of([_pair_name(*key) for key, _ in pairs], 2 * _LONGEST)
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
    columns = 1 if any(len(label) > _LONGEST + 8 for label in labels) else 2
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
        names = [shortened(name, _LONGEST) if place % 2 == 0 else "" for name in factors]
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
            _morris_point(axes, wide.loc[factor], reach.loc[factor], style, shortened(factor, _LONGEST))
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
