"""Figures of distilled models: the quality of answers, and the drift of outcomes with the LLM's share."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.statechart import STATE_COLORS, AgentState
from prism_mesa.view.plots import style as look
from prism_mesa.view.plots.files import save
from prism_mesa.view.plots.rounds import draw_band, interval_band

_COMPARED: Final = {
    "llm": "#4d4d4d",
    "logistic": look.PALETTE[0],
    "boosting": look.PALETTE[2],
    "rule": look.PALETTE[1],
    "majority": "#a8a8a8",
}
_SHARE: Final = "share that the LLM answers"


def distilled_figure(judged: Mapping[str, Any], *, width: float = look.WIDE) -> Figure:
    """Return a distilled model's quality on held-out personas and posts: calibration, log loss and AUC.

    It has a panel for each of these, so it takes no `ax`.

    Args:
        judged: One of the `choices` of a report of `prism distill`.
        width: Width of the figure in centimetres.
    """
    if look.is_narrow(width):
        figure = look.new_figure(width, 14.0)
        places = figure.subplot_mosaic("cc;la", height_ratios=[1.7, 1])
    else:
        figure = look.new_figure(width, 8.0)
        places = figure.subplot_mosaic("cla", width_ratios=[1.5, 1, 1])
    curves, first = places["c"], judged["options"][0]
    curves.plot([0, 1], [0, 1], color=look.GREY, lw=0.8, ls=":")
    for place, (name, groups) in enumerate(judged["calibration"].items()):
        predicted, true = ([group[side] for group in groups] for side in ("said", "true"))
        curves.plot(predicted, true, look.series_marker(place) + "-", color=_COMPARED[name], ms=4, lw=1.2, label=name)
    curves.set(xlim=(0, 1), ylim=(0, 1))
    curves.set_xlabel(f"P({first}) as predicted", fontsize=look.TEXT, parse_math=False)
    curves.set_ylabel("as the LLM gave it", fontsize=look.TEXT)
    look.tidy(curves, "Calibration")
    look.axes_legend(curves, loc="upper left")
    for letter, measure, title in (("l", "log_loss", "Log loss, nats"), ("a", "auc", "AUC")):
        _scores(places[letter], judged["scores"], measure)
        look.tidy(places[letter], title, grid="x")
    counts = f"n = {judged['rows']:,} decisions on held-out personas and posts"
    how = "calibration in tenths of what was predicted; of log loss lower is better, of AUC higher."
    look.write_caption(figure, f"{counts}, {how}", width)
    return figure


def _scores(axes: Axes, scores: Mapping[str, Any], measure: str) -> None:
    names = [name for name in _COMPARED if name in scores][::-1]
    values = [scores[name][measure] for name in names]
    axes.barh(names, values, color=[_COMPARED[name] for name in names])
    for place, value in enumerate(values):
        axes.text(value, place, f" {value:.2f}", va="center", fontsize=look.SMALL)
    axes.set_xlim(0, 1.4 * max(values))


def drift_figure(drift: pd.DataFrame, *, width: float = look.WIDE) -> Figure:
    """Return the drift of outcomes with the LLM's share: counts relative to the largest share, and states.

    Lines are means over seeds, with 95 % intervals. It has two panels, so it takes no `ax`.

    Args:
        drift: Columns `share`, `seed`, `outcome`, `value`, `relative`: the table of `prism distill --drift`.
        width: Width of the figure in centimetres.
    """
    narrow = look.is_narrow(width)
    figure = look.new_figure(width, 18.0 if narrow else 9.5)
    left, right = figure.subplots(2, 1) if narrow else figure.subplots(1, 2)
    full = drift["share"].max()
    is_state = drift["outcome"].str.startswith("share ")
    for place, (name, rows) in enumerate(drift[~is_state].groupby("outcome", sort=False)):
        _moved(left, rows.assign(moved=rows["relative"]), place, look.series_color(place), str(name))
    for place, (name, rows) in enumerate(drift[is_state].groupby("outcome", sort=False)):
        state = AgentState(str(name).removeprefix("share "))
        # the colour of idle is too light for a line
        color = look.GREY if state is AgentState.IDLE else STATE_COLORS[state]
        at_full = rows["seed"].map(rows[rows["share"] == full].groupby("seed")["value"].mean())
        _moved(right, rows.assign(moved=100 * (rows["value"] - at_full)), place, color, state.value)
    titles = (f"Outcomes, times those at {100 * full:g} %", f"Agent-ticks in each state, points from {100 * full:g} %")
    for axes, level, title in zip((left, right), (1, 0), titles, strict=True):
        axes.axhline(level, color=look.GREY, lw=0.8, ls=":")
        axes.set_xlabel(_SHARE, fontsize=look.TEXT)
        look.tidy(axes, title)
        look.percent_axis(axes.xaxis)
        look.Panel(figure, axes, True, look.NARROW).legend_below(2)
    n = drift["seed"].nunique()
    means = f"Means over n = {n:,} seeds" + ("; bands: 95 % intervals" if n > 1 else "")
    by = "by the share of open choices that the LLM answers, and not the model distilled from it"
    look.write_caption(figure, f"{means}; {by}.", width)
    return figure


def _moved(axes: Axes, rows: pd.DataFrame, place: int, color: str, label: str) -> None:
    """Draw means over seeds by share, with intervals."""
    band = interval_band(rows, "moved", by="share")
    if band.n_seeds > 1:  # equal seeds give an interval of width zero
        low, high = (np.where(np.isfinite(end), end, band.mean) for end in (band.low, band.high))
        band = replace(band, low=low, high=high)
    draw_band(
        axes, band, color=color, label=label, ls=look.series_dashes(place), marker=look.series_marker(place), ms=4
    )


def draw_distilled(folder: str | Path, report: Mapping[str, Any], drift: pd.DataFrame | None = None) -> list[Path]:
    """Draw distilled.png, and drift.png if there is a drift, into a folder, and return their paths."""
    judged = next(choice for choice in report["choices"] if "scores" in choice)
    figures = {"distilled": distilled_figure(judged)}
    if drift is not None:
        figures["drift"] = drift_figure(drift)
    return [save(figure, Path(folder) / f"{name}.png") for name, figure in figures.items()]
