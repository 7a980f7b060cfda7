"""Pictures of distilled models: how well one answers, and how outcomes move with the share of the LLM."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from prism_mesa.statechart import STATE_COLORS, AgentState
from prism_mesa.view.plots.files import save

_COMPARED = {"llm": "#4d4d4d", "logistic": "#4c72b0", "boosting": "#55a868", "rule": "#c44e52", "majority": "#b8b8b8"}


def distilled_figure(judged: Mapping[str, Any]) -> Figure:
    """Return how well a distilled model does on held-out personas and posts: calibration, log loss, and AUC.

    Args:
        judged: One of the `choices` of a report of `prism distill`.
    """
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    curves, *bars = figure.subplots(1, 3, width_ratios=[1.2, 1, 1])
    first, second = judged["options"][0], "log loss (nats; lower is better)"
    curves.plot([0, 1], [0, 1], color="#b8b8b8", lw=1, ls="--")
    for name, groups in judged["calibration"].items():
        said, true = ([group[side] for group in groups] for side in ("said", "true"))
        curves.plot(said, true, "o-", color=_COMPARED[name], ms=4, lw=1.2, label=name)
    curves.set(xlabel=f"P({first}) as predicted", ylabel="as the LLM gave it", xlim=(0, 1), ylim=(0, 1))
    curves.set_title(f"Calibration, {judged['rows']:,} decisions", loc="left")
    curves.legend(frameon=False)
    for axes, (measure, title) in zip(bars, (("log_loss", second), ("auc", "AUC (higher is better)")), strict=True):
        names = [name for name in _COMPARED if name in judged["scores"]]
        values = [judged["scores"][name][measure] for name in names]
        axes.barh(names[::-1], values[::-1], color=[_COMPARED[name] for name in names[::-1]])
        for place, value in enumerate(values[::-1]):
            axes.text(value, place, f" {value:.3f}", va="center")
        axes.set_title(title, loc="left")
        axes.set_xlim(0, 1.25 * max(values))
    for axes in (curves, *bars):
        axes.spines[["top", "right"]].set_visible(False)
    return figure


def drift_figure(drift: pd.DataFrame) -> Figure:
    """Return how outcomes move with the share of the LLM: counts against those of the largest share, and states.

    Args:
        drift: Columns `share`, `seed`, `outcome`, `value`, `relative`: the table of `prism distill --drift`.
    """
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    full = drift["share"].max()
    is_state = drift["outcome"].str.startswith("share ")
    for name, rows in drift[~is_state].groupby("outcome", sort=False):
        means = rows.groupby("share")["relative"].mean()
        left.plot(means.index, means, "o-", ms=4, lw=1.2, label=name)
    left.axhline(1, color="#b8b8b8", lw=1, ls="--")
    left.set(xlabel="share of open choices that the LLM answers", ylabel=f"outcome / outcome with share {full:g}")
    left.set_title("Outcomes", loc="left")
    for name, rows in drift[is_state].groupby("outcome", sort=False):
        means = rows.groupby("share")["value"].mean() * 100
        state = AgentState(str(name).removeprefix("share "))
        right.plot(means.index, means - means[full], "o-", color=STATE_COLORS[state], ms=4, lw=1.2, label=state.value)
    right.axhline(0, color="#b8b8b8", lw=1, ls="--")
    right.set(xlabel="share of open choices that the LLM answers", ylabel="percentage points")
    right.set_title(f"Agent-ticks in each state, against share {full:g}", loc="left")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.01, 0.5))
    return figure


def draw_distilled(folder: str | Path, report: Mapping[str, Any], drift: pd.DataFrame | None = None) -> list[Path]:
    """Draw distilled.png, and drift.png if there is a drift, into a folder, and return their paths."""
    judged = next(choice for choice in report["choices"] if "scores" in choice)
    figures = {"distilled": distilled_figure(judged)}
    if drift is not None:
        figures["drift"] = drift_figure(drift)
    for name, figure in figures.items():
        save(figure, Path(folder) / f"{name}.png")
    return [Path(folder) / f"{name}.png" for name in figures]
