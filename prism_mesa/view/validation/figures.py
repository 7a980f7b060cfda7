"""Figures of a validation: simulated and real data."""

from collections.abc import Mapping, Sequence
from math import isfinite, isnan, nan
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.figure import NotebookFigure
from prism_mesa.studies.estimators.graphs import SIZE_CLASSES
from prism_mesa.studies.measures.cascades import LARGE
from prism_mesa.studies.measures.rhythms import real_hours
from prism_mesa.studies.validation.validation import TargetRow, Validation
from prism_mesa.studies.validation.variants import FULL
from prism_mesa.view.plots import style as theme
from prism_mesa.view.plots.cascades import FEW_POINTS, shares_at
from prism_mesa.view.plots.rounds import Band, draw_band

_MAX_VARIANTS: Final = 4
_POINTS: Final = 200


def validation_figures(result: Validation) -> dict[str, Figure]:
    """Return the figures of a validation by name."""
    figures = {"cascades": cascades_figure(result), "rhythms": rhythms_figure(result), "shapes": shapes_figure(result)}
    return figures | ({"variants": matrix_figure(result)} if result.variants and result.judged else {})


def cascades_figure(result: Validation) -> Figure:
    """Draw sizes of cascades and shapes of large cascades: real, simulated, and up to four variants."""
    figure, [sizes, hops, shapes] = theme.panels(3, columns=3, height=3.6, width=11)
    _draw_sizes(sizes, result)
    _draw_shapes(hops, result, {f"large_hop_{hop}": f"hop {hop}" for hop in (1, 2, 3)})
    hops.set(ylabel="share of reshares", ylim=(0, None))
    _draw_shapes(shapes, result, {"large_depth": "depth\n(median)", "large_virality": "structural\nvirality (mean)"})
    shapes.set(ylabel="steps", ylim=(0, None))
    theme.tidy(hops, f"Cascades of at least {LARGE}: reshares by hop", grid="y")
    theme.tidy(shapes, f"Cascades of at least {LARGE}", grid="y")
    return figure


def _arms(result: Validation) -> list[str]:
    return [FULL, *result.variants][: 1 + _MAX_VARIANTS]


def _arm_label(arm: str) -> str:
    return "simulated" if arm == FULL else arm.replace("_", " ")


def _draw_sizes(axes: Axes, result: Validation) -> None:
    x, y = result.real.curves["cascade_sizes"]
    marker, line = ("o", ":") if len(x) < FEW_POINTS else ("", "-")
    axes.plot(x, y, color=theme.INK, marker=marker, ls=line, lw=1.6, label="real (VoterFraud2020)", zorder=5)
    for index, arm in enumerate(_arms(result)):
        points = _curve_points(result, "cascade_sizes", arm)
        if not points.empty:
            style: dict[str, Any] = {"ls": "-" if arm == FULL else "--", "lw": None, "label": _arm_label(arm)}
            draw_band(axes, _sizes_band(points), color=theme.series_color(index), **style)
    axes.set(xscale="log", yscale="log", xlabel="size of the cascade", ylabel="share of at least that size")
    theme.axes_legend(axes)
    theme.tidy(axes, "Sizes of all cascades")


def _curve_points(result: Validation, name: str, arm: str) -> pd.DataFrame:
    curves = result.curves
    return curves[(curves["curve"] == name) & (curves["arm"] == arm)].dropna()


def _sizes_band(points: pd.DataFrame) -> Band:
    """Return the share of cascades that reach each size, for log-spaced sizes; ranges cover the seeds that reach it."""
    sizes = np.unique(np.geomspace(1, points["x"].max(), _POINTS).round())
    curves = [(curve["x"].to_numpy(), curve["y"].to_numpy()) for _, curve in points.groupby("seed")]
    shares = np.array([shares_at(sizes, curve) for curve in curves])
    reaching_shares = np.where(shares > 0, shares, np.nan)
    return Band(sizes, shares.mean(axis=0), np.nanmin(reaching_shares, axis=0), np.nanmax(reaching_shares, axis=0))


def _draw_shapes(axes: Axes, result: Validation, names: Mapping[str, str]) -> None:
    """Draw targets side by side: the allowed range in grey, the real value, and means and ranges over seeds."""
    arms = _arms(result)
    rows = {row.target.measure: row for row in result.rows}
    for index, name in enumerate(names):
        row = rows[name]
        axes.bar(index, row.target.high - row.target.low, 0.8, row.target.low, color=theme.INK, alpha=0.1, lw=0)
        axes.hlines(row.real, index - 0.4, index + 0.4, color=theme.INK, lw=1.6)
        for n, arm in enumerate(arms):
            values = result.runs.loc[result.runs["arm"] == arm, name].dropna()
            if len(values):
                x, color = index + 0.6 * ((n + 0.5) / len(arms) - 0.5), theme.series_color(n)
                axes.vlines(x, values.min(), values.max(), color=color, lw=1)
                axes.plot(x, values.mean(), color=color, marker="o" if arm == FULL else "s", ms=5)
    axes.set_xticks(range(len(names)), list(names.values()))


def rhythms_figure(result: Validation) -> Figure:
    """Draw hours, activity, delays and windows of use with real values."""
    figure, [hours, activity, delays, windows] = theme.panels(4)
    _draw_overlay(hours, result, "hours", (np.arange(24.0), real_hours(result.config)))
    clock = "UTC" if result.config.agents.time_zone is None else "agents' own clocks"
    hours.set(xlabel=f"hour ({clock})", ylabel="share of posts and replies")
    _draw_overlay(activity, result, "activity", result.real.curves["activity"])
    activity.set(xlabel="share of agents, least active first", ylabel="share of posts and reshares")
    _draw_overlay(delays, result, "delays", result.real.curves["delays"])
    delays.set(xscale="log", xlabel="minutes after the post", ylabel="share of reactions")
    rows = {row.target.measure.removeprefix("window_"): row for row in result.rows if "window_" in row.target.measure}
    positions = np.arange(len(rows))
    windows.bar(positions - 0.2, [row.real for row in rows.values()], 0.38, color=theme.INK, label="real")
    simulated = np.nan_to_num([row.simulated for row in rows.values()])
    windows.bar(positions + 0.2, simulated, 0.38, color=theme.series_color(0), label="simulated")
    windows.set_xticks(positions, list(rows))
    windows.set_ylabel("share of windows of use")
    theme.axes_legend(windows)
    theme.tidy(windows, "Windows of use", grid="y")
    return figure


def shapes_figure(result: Validation) -> Figure:
    """Draw depth, breadth and virality by size of cascades, and children per node by hop."""
    figure, [*by_size, hops] = theme.panels(4)
    for axes, name in zip(by_size, ("depth", "breadth", "virality"), strict=True):
        _draw_overlay(axes, result, name)
        has_data = any(np.size(line.get_ydata()) for line in axes.lines)  # a logarithmic axis needs data
        axes.set(xscale="log" if has_data else "linear", yscale="log" if name == "breadth" and has_data else "linear")
        axes.set(xlabel="minimum size of the cascade", ylabel=f"mean {name}")
        axes.set_xticks(SIZE_CLASSES[::3], [str(size) for size in SIZE_CLASSES[::3]])
        axes.minorticks_off()
    _draw_overlay(hops, result, "reproduction")
    hops.set(xlabel="hop", ylabel="children per node")
    return figure


def _draw_overlay(axes: Axes, result: Validation, name: str, real: tuple[Any, Any] | None = None) -> None:
    """Draw the mean and range of a curve over the seeds that have values, and the real curve."""
    for index, arm in enumerate(_arms(result)):
        by_x = _curve_points(result, name, arm).groupby("x")["y"].agg(["min", "mean", "max"])
        low, high = (by_x[end] if arm == FULL else np.full(len(by_x), np.nan) for end in ("min", "max"))
        style: dict[str, Any] = {"ls": "-", "lw": 1.4} if arm == FULL else {"ls": "--", "lw": 1.0}
        label = _arm_label(arm) if len(by_x) else ""
        style |= {"color": theme.series_color(index), "label": label}
        draw_band(axes, Band(by_x.index, by_x["mean"], low, high), **style)
    if real is not None:
        marker, line = ("o", "") if len(real[0]) < FEW_POINTS else ("", "-")
        axes.plot(*real, color=theme.INK, marker=marker, ms=4, ls=line, lw=1.4, label="real")
    if axes.get_legend_handles_labels()[0]:
        theme.axes_legend(axes)
    theme.tidy(axes, name.capitalize() if real is not None else f"{name.capitalize()} (simulated only; no data)")


_MAX_MARKER_DISTANCE: Final = 2.0
"""Distance from the allowed range, in half widths, from which a marker has its full size."""


def matrix_figure(result: Validation) -> Figure:
    """Draw a matrix of variants by targets, with a marker where a mean is above, below or missing.

    A marker is larger if the mean is farther outside. Targets that do not apply to this world are left out.
    """
    columns = [index for index, row in enumerate(result.rows) if row.inside is not None]
    tables = {FULL: result.rows, **result.variants}
    figure = NotebookFigure(figsize=(theme.WIDTH, 2.6 + 0.27 * len(tables)), layout="constrained")
    axes = figure.subplots()
    distances = [(x, y, _distance(rows[n])) for y, rows in enumerate(tables.values()) for x, n in enumerate(columns)]
    _draw_markers(axes, [p for p in distances if p[2] > 0], "above the allowed range", "^", theme.PALETTE[1])
    _draw_markers(axes, [p for p in distances if p[2] < 0], "below the allowed range", "v", theme.PALETTE[0])
    _draw_markers(axes, [p for p in distances if isnan(p[2])], "no value", "x", theme.INK)
    labels = [result.rows[index].target.label for index in columns]
    axes.set_xticks(range(len(labels)), labels, rotation=60, ha="left", rotation_mode="anchor", fontsize=8)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(tables)), [name.replace("_", " ") for name in tables])
    axes.set(xlim=(-0.5, len(labels) - 0.5), ylim=(len(tables) - 0.5, -0.5))
    axes.grid(visible=True, color=theme.GREY, alpha=0.25)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    theme.figure_legend(figure, axes, ncols=3)
    return figure


def _distance(row: TargetRow) -> float:
    """Return a mean's distance from the allowed range in half widths: negative below, NaN if too few seeds have it."""
    low, high = row.target.low, row.target.high
    if not row.fails:
        return 0.0
    if not isfinite(row.simulated) or low <= row.simulated <= high:
        return nan
    return (row.simulated - (high if row.simulated > high else low)) / ((high - low) / 2)


def _draw_markers(axes: Axes, points: Sequence[tuple[int, int, float]], label: str, marker: str, color: str) -> None:
    x, y, distances = np.array(points, np.float64).reshape(-1, 3).T
    areas = np.nan_to_num(40 + 90 * np.minimum(1.0, np.abs(distances) / _MAX_MARKER_DISTANCE), nan=60.0)
    axes.scatter(x, y, s=areas, marker=marker, color=color, label=label)
