"""Figures of distilled models: the quality of answers, and the drift of outcomes with the LLM's share."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.statechart import STATE_COLORS, AgentState
from prism_mesa.view.plots import style as look
from prism_mesa.view.plots.files import save
from prism_mesa.view.plots.rounds import Band, draw_band, interval_band

_COLORS: Final = {
    "llm": "#4d4d4d",
    "logistic": look.PALETTE[0],
    "boosting": look.PALETTE[2],
    "rule": look.PALETTE[1],
    "majority": "#a8a8a8",
}


def distilled_figure(judged: Mapping[str, Any], *, width: float = look.WIDE) -> Figure:
    """Return a distilled model's quality on held-out personas and posts: calibration, log loss and AUC.

    It has a panel for each of these, so it takes no `ax`.

    Args:
        judged: One of the `choices` of a report of `prism distill`.
        width: Width of the figure in centimetres.
    """
    if look.is_narrow(width):
        figure = look.new_figure(width, 14.0)
        panels = figure.subplot_mosaic("cc;la", height_ratios=[1.7, 1])
    else:
        figure = look.new_figure(width, 8.0)
        panels = figure.subplot_mosaic("cla", width_ratios=[1.5, 1, 1])
    curves = panels["c"]
    curves.plot([0, 1], [0, 1], color=look.GREY, lw=0.8, ls=":")
    for place, (name, groups) in enumerate(judged["calibration"].items()):
        predicted, true = ([group[side] for group in groups] for side in ("said", "true"))
        curves.plot(predicted, true, look.series_marker(place) + "-", color=_COLORS[name], ms=4, lw=1.2, label=name)
    curves.set(xlim=(0, 1), ylim=(0, 1), ylabel="as given by the LLM")
    curves.set_xlabel(f"P({judged['options'][0]}) as predicted", parse_math=False)
    look.tidy(curves, "Calibration")
    look.axes_legend(curves, loc="upper left")
    names = [name for name in _COLORS if name in judged["scores"]][::-1]
    for letter, measure, title in (("l", "log_loss", "Log loss, nats"), ("a", "auc", "AUC")):
        axes, values = panels[letter], [judged["scores"][name][measure] for name in names]
        axes.bar_label(
            axes.barh(names, values, color=[_COLORS[name] for name in names]), fmt=" %.2f", fontsize=look.SMALL
        )
        axes.set_xlim(0, 1.4 * max(values))
        look.tidy(axes, title, grid="x")
    counts = f"n = {judged['rows']:,} decisions on held-out personas and posts"
    bins = "calibration in tenths of the predicted probability"
    look.write_caption(figure, f"{counts}; {bins}. A lower log loss is better, and a higher AUC.", width)
    return figure


def drift_figure(drift: pd.DataFrame, *, width: float = look.WIDE) -> Figure:
    """Return the drift of outcomes with the LLM's share: counts relative to the largest share, and states.

    Lines are means over seeds, with 95 % intervals. It has two panels, so it takes no `ax`.

    Args:
        drift: Columns `share`, `seed`, `outcome`, `value`, `relative`: the table of `prism distill --drift`.
        width: Width of the figure in centimetres.
    """
    narrow = look.is_narrow(width)
    figure = look.new_figure(width, 18.0 if narrow else 9.5)
    counts, states = figure.subplots(2, 1) if narrow else figure.subplots(1, 2)
    largest = drift["share"].max()
    is_state = drift["outcome"].str.startswith("share ")
    for place, (name, rows) in enumerate(drift[~is_state].groupby("outcome", sort=False)):
        _draw_drift(counts, rows.assign(moved=rows["relative"]), place, look.series_color(place), str(name))
    for place, (name, rows) in enumerate(drift[is_state].groupby("outcome", sort=False)):
        state = AgentState(str(name).removeprefix("share "))
        # the colour of idle is too light for a line
        color = look.GREY if state is AgentState.IDLE else STATE_COLORS[state]
        at_largest = rows["seed"].map(rows[rows["share"] == largest].groupby("seed")["value"].mean())
        _draw_drift(states, rows.assign(moved=100 * (rows["value"] - at_largest)), place, color, state.value)
    percent = f"{100 * largest:g} %"
    titles = (f"Outcomes, times those at {percent}", f"Agent-ticks in each state, points from {percent}")
    for axes, level, title in zip((counts, states), (1, 0), titles, strict=True):
        axes.axhline(level, color=look.GREY, lw=0.8, ls=":")
        axes.set_xlabel("share that the LLM answers")
        look.tidy(axes, title)
        look.percent_ticks(axes.xaxis)
        look.Panel(figure, axes, True, look.NARROW).legend_below(2)
    n = drift["seed"].nunique()
    means = f"Means over n = {n:,} seeds{'; bands: 95 % intervals' if n > 1 else ''}"
    share = "by the share of open choices that the LLM answers instead of the model distilled from it"
    look.write_caption(figure, f"{means}; {share}.", width)
    return figure


def _draw_drift(axes: Axes, rows: pd.DataFrame, place: int, color: str, label: str) -> None:
    """Draw means over seeds by share, with intervals."""
    band = interval_band(rows, "moved", by="share")
    if rows["seed"].nunique() > 1:  # equal seeds have an interval of width zero
        low, high = (np.where(np.isfinite(end), end, band.mean) for end in (band.low, band.high))
        band = Band(band.x, band.mean, low, high)
    style = {"ls": look.series_dashes(place), "marker": look.series_marker(place), "ms": 4}
    draw_band(axes, band, color=color, label=label, **style)


def draw_distilled(folder: str | Path, report: Mapping[str, Any], drift: pd.DataFrame | None = None) -> list[Path]:
    """Draw distilled.png, and drift.png if there is a drift, into a folder, and return their paths."""
    judged = next(choice for choice in report["choices"] if "scores" in choice)
    figures = {"distilled": distilled_figure(judged)}
    if drift is not None:
        figures["drift"] = drift_figure(drift)
    return [save(figure, Path(folder) / f"{name}.png") for name, figure in figures.items()]
