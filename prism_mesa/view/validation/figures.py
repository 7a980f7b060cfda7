"""Figures of a validation: simulated over real data."""

from collections.abc import Mapping
from math import isfinite, isnan, nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.figure import NotebookFigure
from prism_mesa.studies.estimators.graphs import SIZE_CLASSES
from prism_mesa.studies.measures.cascades import LARGE
from prism_mesa.studies.measures.rhythms import real_hours
from prism_mesa.studies.validation.validation import Row, Validation
from prism_mesa.studies.validation.variants import FULL
from prism_mesa.view.plots import style as look

_MOST_VARIANTS: Final = 4
_POINTS: Final = 200
_FEW: Final = 20
"""Fewer real points than that are drawn as points: what lies between is not known."""

NO_DATA: Final = "simulated only; no data"
"""What stands over a panel in which nothing real is drawn."""

type Floats = npt.NDArray[np.float64]


def validation_figures(result: Validation) -> dict[str, Figure]:
    """Return the figures of a validation by name."""
    drawn = {
        "cascades": cascades_figure(result),
        "rhythms": rhythms_figure(result),
        "shapes": shapes_figure(result),
    }
    return drawn | ({"variants": matrix_figure(result)} if result.variants and result.judged else {})


def cascades_figure(result: Validation) -> Figure:
    """Return sizes of cascades and shapes of large ones: real, simulated, and up to four variants."""
    figure, [sizes, hops, shapes] = look.panels(3, columns=3, height=3.6, width=11)
    _draw_sizes(sizes, result)
    _draw_shapes(hops, result, {f"large_hop_{hop}": f"hop {hop}" for hop in (1, 2, 3)})
    hops.set(ylabel="share of reshares", ylim=(0, None))
    _draw_shapes(shapes, result, {"large_depth": "depth\n(median)", "large_virality": "structural\nvirality (mean)"})
    shapes.set(ylabel="steps", ylim=(0, None))
    look.tidy(hops, f"Cascades of at least {LARGE}: reshares by hop", grid="y")
    look.tidy(shapes, f"Cascades of at least {LARGE}", grid="y")
    return figure


def _arms(result: Validation) -> list[str]:
    return [FULL, *result.variants][: 1 + _MOST_VARIANTS]


def _draw_shapes(axes: Axes, result: Validation, names: Mapping[str, str]) -> None:
    """Draw targets side by side: the allowed range in grey, the real value, the range over seeds, means of variants."""
    arms = _arms(result)
    targets = {row.target.measure: row for row in result.rows if row.target.measure in names}
    for place, name in enumerate(names):
        row = targets[name]
        axes.bar(place, row.target.high - row.target.low, 0.8, row.target.low, color=look.INK, alpha=0.1, lw=0)
        axes.hlines(row.real, place - 0.4, place + 0.4, color=look.INK, lw=1.6)
        for n, arm in enumerate(arms):
            values = result.runs.loc[result.runs["arm"] == arm, name].dropna()
            if len(values):
                x, color = place + 0.6 * ((n + 0.5) / len(arms) - 0.5), look.series_color(n)
                axes.vlines(x, values.min(), values.max(), color=color, lw=1)
                axes.plot(x, values.mean(), color=color, marker="o" if arm == FULL else "s", ms=5)
    axes.set_xticks(range(len(names)), list(names.values()))


def _draw_sizes(axes: Axes, result: Validation) -> None:
    x, y = result.real.curves["cascade_sizes"]
    marker, line = ("o", ":") if len(x) < _FEW else ("", "-")
    axes.plot(x, y, color=look.INK, marker=marker, ls=line, lw=1.6, label="real (VoterFraud2020)", zorder=5)
    for place, arm in enumerate(_arms(result)):
        sizes, low, mean, high = _band(result, "cascade_sizes", arm)
        if len(sizes):
            axes.fill_between(sizes, low, high, color=look.series_color(place), alpha=0.2, lw=0)
            axes.plot(sizes, mean, color=look.series_color(place), ls="-" if arm == FULL else "--", label=_called(arm))
    axes.set(xscale="log", yscale="log", xlabel="size of the cascade", ylabel="share of at least that size")
    look.axes_legend(axes)
    look.tidy(axes, "Sizes of all cascades")


def rhythms_figure(result: Validation) -> Figure:
    """Return hours, activity, delays and windows of use over real values."""
    figure, grid = look.panels(4)
    hours, activity, delays, windows = grid
    _overlay(hours, result, "hours", "Hours", (np.arange(24.0), real_hours(result.config)))
    clock = "UTC" if result.config.agents.time_zone is None else "agents' own clocks"
    hours.set(xlabel=f"hour ({clock})", ylabel="share of what is written")
    _overlay(activity, result, "activity", "Activity", result.real.curves["activity"])
    activity.set(xlabel="share of agents, least active first", ylabel="share of posts and reshares")
    _overlay(delays, result, "delays", "Delays", result.real.curves["delays"])
    delays.set(xscale="log", xlabel="minutes after the post", ylabel="share of reactions")
    _windows(windows, result)
    return figure


def shapes_figure(result: Validation) -> Figure:
    """Return depth, breadth and virality at equal sizes, and children per node by hop."""
    figure, grid = look.panels(4)
    for axes, name in zip(grid, ("depth", "breadth", "virality"), strict=False):
        _overlay(axes, result, name, name.capitalize(), None)
        drawn = any(np.size(line.get_ydata()) for line in axes.lines)  # zero has no logarithm
        scale = "log" if name == "breadth" and drawn else "linear"
        axes.set(
            xscale="log" if drawn else "linear", yscale=scale, xlabel="size of the cascade, from", ylabel=f"mean {name}"
        )
        axes.set_xticks(SIZE_CLASSES[::3], [str(size) for size in SIZE_CLASSES[::3]])
        axes.minorticks_off()
    _overlay(grid[3], result, "reproduction", "Reproduction", None)
    grid[3].set(xlabel="hop", ylabel="children per node")
    return figure


def _overlay(axes: Axes, result: Validation, name: str, title: str, real: tuple[Any, Any] | None) -> None:
    """Draw the mean and range of a curve over seeds, and the real curve."""
    for place, arm in enumerate(_arms(result)):
        x, low, mean, high = _band(result, name, arm)
        if arm == FULL:
            axes.fill_between(x, low, high, color=look.series_color(place), alpha=0.2, lw=0)
        style: dict[str, Any] = {"ls": "-", "lw": 1.4} if arm == FULL else {"ls": "--", "lw": 1.0}
        axes.plot(x, mean, color=look.series_color(place), label=_called(arm) if len(x) else None, **style)
    if real is not None:
        few = len(real[0]) < _FEW
        axes.plot(*real, color=look.INK, marker="o" if few else "", ms=4, ls="" if few else "-", lw=1.4, label="real")
    if axes.get_legend_handles_labels()[0]:
        look.axes_legend(axes)
    look.tidy(axes, title if real is not None else f"{title} ({NO_DATA})")


def _called(arm: str) -> str:
    return "simulated" if arm == FULL else arm.replace("_", " ")


def _windows(axes: Axes, result: Validation) -> None:
    rows = [row for row in result.rows if row.target.measure.startswith("window_")]
    names = [row.target.measure.removeprefix("window_") for row in rows]
    places = np.arange(len(rows))
    axes.bar(places - 0.2, [row.real for row in rows], 0.38, color=look.INK, label="real")
    axes.bar(
        places + 0.2,
        np.nan_to_num([row.simulated for row in rows]),
        0.38,
        color=look.series_color(0),
        label="simulated",
    )
    look.axes_legend(axes)
    axes.set_xticks(places, names)
    axes.set_ylabel("share of windows of use")
    look.tidy(axes, "Windows of use", grid="y")


def _band(result: Validation, name: str, arm: str) -> tuple[Floats, Floats, Floats, Floats]:
    """Return coordinates with the lowest, mean and highest value over the seeds of an arm that have one."""
    curves = result.curves
    rows = curves[(curves["curve"] == name) & (curves["arm"] == arm)].dropna()
    if rows.empty:
        return (np.zeros(0),) * 4
    if name == "cascade_sizes":
        return _steps(rows)
    by_place = rows.groupby("x")["y"]
    x = np.asarray(list(by_place.groups), np.float64)
    low, mean, high = (np.asarray(by_place.agg(how), np.float64) for how in ("min", "mean", "max"))
    return x, low, mean, high


def _steps(points: pd.DataFrame) -> tuple[Floats, Floats, Floats, Floats]:
    """Return shares of cascades of at least a size, at log-spaced sizes that any seed reaches."""
    sizes = np.unique(np.geomspace(1, points["x"].max(), _POINTS).round())
    shares = np.full((points["seed"].nunique(), len(sizes)), np.nan)
    for row, (_, item) in enumerate(points.groupby("seed")):
        x, y = item["x"].to_numpy(), item["y"].to_numpy()
        place = np.searchsorted(x, sizes)  # the smallest size that occurs and is not below it
        shares[row, place < len(x)] = y[place[place < len(x)]]
    known = np.isfinite(shares).sum(axis=0)
    low, high = np.nanmin(shares, axis=0), np.nanmax(shares, axis=0)
    mean = np.nansum(shares, axis=0) / len(shares)
    return sizes[known > 0], low[known > 0], mean[known > 0], high[known > 0]


_FARTHEST: Final = 2.0
"""Halves of what is allowed, beyond it, from which on a sign has its full size."""

_SIGNS: Final = (
    ("above what is allowed", "^", look.PALETTE[1]),
    ("below what is allowed", "v", look.PALETTE[0]),
    ("no value", "x", look.INK),
)


def beyond(row: Row) -> float:
    """Return a mean's distance from the allowed range in half widths, negative below; 0 inside, NaN without value.

    A mean over less than half of the seeds counts as missing.
    """
    if not row.fails:
        return 0.0
    if not isfinite(row.simulated) or row.target.low <= row.simulated <= row.target.high:
        return nan
    half = (row.target.high - row.target.low) / 2
    above = row.simulated > row.target.high
    return (row.simulated - row.target.high if above else row.simulated - row.target.low) / half


def matrix_figure(result: Validation) -> Figure:
    """Return a matrix of variants by targets: empty where a mean is inside, else a sign for above, below or no value.

    Larger signs are farther outside. Targets that do not apply to this world are left out.
    """
    places = [place for place, row in enumerate(result.rows) if row.inside is not None]
    tables = {FULL: result.rows, **result.variants}
    figure = NotebookFigure(figsize=(look.WIDTH, 2.6 + 0.27 * len(tables)), layout="constrained")
    axes = figure.subplots()
    signs = [(x, y, beyond(rows[place])) for y, rows in enumerate(tables.values()) for x, place in enumerate(places)]
    for (text, marker, color), at in zip(_SIGNS, _sorted(signs), strict=True):
        x, y, sizes = zip(*at, strict=True) if at else ((), (), ())
        axes.scatter(x, y, s=sizes, marker=marker, color=color, label=text)
    _frame(axes, [result.rows[place].target.label for place in places], list(tables))
    look.figure_legend(figure, axes, ncols=3)
    return figure


def _sorted(signs: list[tuple[int, int, float]]) -> tuple[list[tuple[int, int, float]], ...]:
    """Return positions and areas of the signs for above, below and no value."""
    area = {off: 40 + 90 * min(1.0, abs(off) / _FARTHEST) for _, _, off in signs}
    above = [(x, y, area[off]) for x, y, off in signs if off > 0]
    below = [(x, y, area[off]) for x, y, off in signs if off < 0]
    return above, below, [(x, y, 60.0) for x, y, off in signs if isnan(off)]


def _frame(axes: Axes, columns: list[str], lines: list[str]) -> None:
    axes.set_xticks(np.arange(len(columns)), columns, rotation=60, ha="left", rotation_mode="anchor", fontsize=8)
    axes.xaxis.tick_top()
    axes.set_yticks(np.arange(len(lines)), [name.replace("_", " ") for name in lines])
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(lines) - 0.5, -0.5))
    axes.grid(visible=True, color=look.GREY, alpha=0.25)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
