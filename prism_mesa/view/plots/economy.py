"""Figures of a run of nations, from its tables."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from prism_mesa.errors import DataError
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.run_files import read_nonempty_table, run_folder
from prism_mesa.view.plots import style as theme
from prism_mesa.view.plots.files import save_figures

MAX_NATIONS: Final = 6
"""Maximum number of nations in a picture; the others are left out."""

INDICATORS: Final = {
    "output_gap": "output gap, %",
    "inflation": "inflation, % a year",
    "unemployment": "unemployment, %",
    "policy_rate": "policy rate, %",
}
_BASELINES: Final = {"taylor": (theme.PALETTE[1], "--", "Taylor's rule"), "nothing": (theme.GREY, ":", "no policy")}
_LEVERS: Final = ("policy_rate", "spending", "taxes", "debt", "tariff", "sanction")
_MARKS: Final = {"^": "raised", "v": "lowered", "o": "set to a level", "_": "set to zero", "x": "not carried out"}
_OUTCOMES: Final = {
    "accepted": "carried out",
    "no_change": "changed nothing",
    "rejected": "rejected",
    "not_understood": "not understood",
}
_COLUMNS: Final = {
    "indicators": ["round", "quarter", "nation", *INDICATORS],
    "baselines": ["round", "nation", "policy", *INDICATORS],
    "nations": ["name", "inflation_target", "natural_unemployment"],
    "decisions": ["round", "quarter", "nation", "outcome", "measures"],
    "responses": ["quarter", "nation", "follows", *INDICATORS],
}
_COLOR: Final = theme.PALETTE[0]

type NationRun = str | os.PathLike[str]
"""A run of nations: its result, or its folder."""


def indicators_figure(source: NationRun, *, width: float = theme.WIDE) -> Figure:
    """Draw the indicators of each nation over time, and their values under other policies.

    The figure has a panel for each indicator and nation, so it takes no `ax`.

    Args:
        source: A run of nations.
        width: Width of the figure in centimetres; 8.5 or less shows two nations, wider figures six.

    Raises:
        DataError: If it is not a run of nations, or no quarter was completed.
    """
    indicators, baselines, nations = (_table(source, name) for name in ("indicators", "baselines", "nations"))
    return draw_indicators(indicators, baselines, nations, source, width=width)


def draw_indicators(
    indicators: pd.DataFrame,
    baselines: pd.DataFrame,
    nations: pd.DataFrame,
    source: NationRun | None = None,
    *,
    width: float = theme.WIDE,
) -> Figure:
    """Draw `indicators_figure` from tables that were already read; the caption names the run `source`, if given."""
    rows = nations[: 2 if theme.is_narrow(width) else MAX_NATIONS]
    names = rows["name"].tolist()
    figure = theme.new_figure(width, 14.5)
    grid = figure.subplots(len(INDICATORS), len(names), sharex=True, sharey="row", squeeze=False)
    quarters = indicators.drop_duplicates("round").set_index("round")["quarter"]
    lines: list[tuple[pd.DataFrame, dict[str, Any]]] = [(indicators, {"label": "this run", "color": _COLOR, "lw": 1.6})]
    for policy, (color, style, label) in _BASELINES.items():
        lines.append((baselines[baselines["policy"] == policy], {"label": label, "color": color, "ls": style, "lw": 1}))
    scale_rows = pd.concat([indicators, baselines[baselines["policy"] == "taylor"]])
    scale_rows = scale_rows[scale_rows["nation"].isin(names)]
    for column, (nation, title) in enumerate(zip(rows.to_dict("records"), theme.short_labels(names, 16), strict=True)):
        targets = {"inflation": nation["inflation_target"], "unemployment": nation["natural_unemployment"]}
        targets["output_gap"] = 0.0
        for axes, (indicator, label) in zip(grid[:, column], INDICATORS.items(), strict=True):
            if indicator in targets:
                axes.axhline(targets[indicator], color="#dddddd", lw=1, zorder=0)
            for table, line in lines:
                values = table[table["nation"] == nation["name"]]
                axes.plot(values["round"], values[indicator], marker="o" if len(values) == 1 else "", ms=4, **line)
            axes.spines[["top", "right"]].set_visible(False)
            axes.margins(x=0.01)
            axes.tick_params(labelsize=theme.SMALL)
            if column == 0:
                axes.set_ylabel(label, fontsize=theme.TEXT)
        grid[0, column].set_title(title, loc="left", fontsize=theme.TEXT, parse_math=False)
        _time_axis(grid[-1, column], quarters, max(2, int(width / len(names))))
    for axes, indicator in zip(grid[:, 0], INDICATORS, strict=True):
        _fit_height(axes, scale_rows[indicator])
    theme.figure_legend(figure, grid[0, 0], loc="outside upper left", ncols=3)
    scope = f"{_nations_text(names, nations)}, under the same shocks"
    text = f"Indicators at the end of each of n = {len(quarters):,} quarters, {scope}. Grey lines: the target of"
    theme.write_caption(figure, f"{text} inflation, natural unemployment, no output gap.", width, source)
    return figure


def _nations_text(names: Sequence[str], nations: pd.DataFrame) -> str:
    return f"the first {len(names)} of {len(nations)} nations" if len(names) < len(nations) else "all nations"


def _fit_height(axes: Axes, values: "pd.Series[float]") -> None:
    """Fit an axis to the run and Taylor's rule, with a margin; a diverging no-policy baseline is clipped."""
    values = values[np.isfinite(values)]
    if not values.empty:
        low, high = values.min(), values.max()
        margin = max((high - low) / 2, 1.0)
        bottom, top = axes.get_ylim()
        axes.set_ylim(max(bottom, low - margin), min(top, high + margin))


def _time_axis(axes: Axes, quarters: pd.Series, max_ticks: int = 5) -> None:
    """Label at most `max_ticks` first quarters of years, or quarters if there is no first quarter."""
    names = quarters.astype(str)
    years = names[names.str.endswith("Q1")].str[:4]
    ticks = years if len(years) else names
    ticks = ticks[:: max(1, -(-len(ticks) // min(max_ticks, 5)))]
    axes.set_xticks(ticks.index, ticks, fontsize=theme.SMALL, parse_math=False)


def policies_figure(source: NationRun, *, ax: Axes | None = None, width: float = theme.WIDE) -> Figure:
    """Draw a timeline of policies: measures by instrument and direction, and decisions that were not carried out.

    Each instrument has its own line in a nation's row, in the order of the legend.

    Args:
        source: A run of nations; the first six are shown.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If it is not a run of nations, or its decisions are missing or damaged.
    """
    decisions, nations = _table(source, "decisions"), _table(source, "nations")
    names = nations["name"].tolist()[:MAX_NATIONS]
    rows = decisions[decisions["nation"].isin(names)]
    lines = 6 if theme.is_narrow(width) else 3
    panel = theme.open_panel(ax, width, "What nations did", height=2.6 + 1.5 * len(names), legend_lines=lines)
    axes = panel.axes
    first, last = decisions["round"].min(), decisions["round"].max()
    size = float(np.clip(0.6 * panel.width * theme.CM * 72 / (last - first + 3), 2.0, 4.5))
    for index, name in enumerate(names):
        axes.axhspan(-index - 0.42, -index + 0.42, color="#f3f3f3", lw=0, zorder=0)
        for decision in rows[rows["nation"] == name].to_dict("records"):
            _draw_decision(axes, decision, -index, size)
    axes.set_yticks([-index for index in range(len(names))], theme.short_labels(names, 12, 2), parse_math=False)
    axes.set(ylim=(-len(names) + 0.5, 0.5), xlim=(first - 1, last + 1))
    _time_axis(axes, decisions.drop_duplicates("round").set_index("round")["quarter"])
    axes.grid(visible=False)
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    levers = [(theme.series_color(index), lever.replace("_", " ")) for index, lever in enumerate(_LEVERS)]
    handles: list[Artist] = [Patch(color=color, label=label) for color, label in levers]
    for marker, label in _MARKS.items():
        color = theme.GREY if marker == "x" else "#555555"
        handles.append(Line2D([], [], ls="", marker=marker, color=color, ms=4.5, label=label))
    panel.legend_below(2 if panel.is_narrow else 4, handles=handles)
    counts = rows["outcome"].value_counts()
    outcomes = ", ".join(f"{counts[name]:,} {text}" for name, text in _OUTCOMES.items() if counts.get(name, 0))
    text = f"Decisions of {_nations_text(names, nations)}, by quarter (n = {len(rows):,}: {outcomes})"
    panel.caption(f"{text}; lines of a row are instruments, in the legend's order.", source)
    return panel.figure


def _draw_decision(axes: Axes, decision: dict[str, Any], height: float, size: float) -> None:
    x = decision["round"]
    if decision["outcome"] in ("rejected", "not_understood"):
        axes.plot(x, height, "x", color=theme.GREY, ms=size)
    elif decision["outcome"] == "accepted":
        for lever, marker in _marks(decision["measures"]):
            index = _LEVERS.index(lever)
            y, edge_width = height + 0.35 - 0.7 * index / (len(_LEVERS) - 1), 1.2 if marker == "_" else 0.4
            axes.plot(x, y, marker, color=theme.series_color(index), ms=size, mew=edge_width)


def _marks(cell: str) -> list[tuple[str, str]]:
    """Return the name and marker of each instrument that a policy uses."""
    try:
        measures = {m["lever"]: m for m in json.loads(cell)["measures"]}.values()
        directions = [(m, m["size"] > 0) for m in measures if _LEVERS.index(m["lever"]) >= 0]
        return [(m["lever"], ("o" if up else "_") if m["how"] == "to" else "^" if up else "v") for m, up in directions]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise DataError(f"table 'decisions' is damaged: {cell[:80]!r} holds no measures") from None


def responses_figure(source: NationRun | pd.DataFrame, *, width: float = theme.WIDE) -> Figure:
    """Draw the responses to a policy rate that is one point higher for a year, in percent and points.

    The figure has a panel for each indicator, so it takes no `ax`.

    Args:
        source: A run of nations, or its table `responses`, which `rate_response` computes for each value of the column
            `follows`. The rate of the first nation rises.
        width: Width of the figure in centimetres.

    Raises:
        DataError: If it is not a run of nations, or has no responses.
    """
    responses = source if isinstance(source, pd.DataFrame) else _table(source, "responses")
    home = responses["nation"].iloc[0]
    columns = 2 if theme.is_narrow(width) else len(INDICATORS)
    figure = theme.new_figure(width, 3.6 * len(INDICATORS) // columns + 2.6)
    grid = figure.subplots(len(INDICATORS) // columns, columns, sharex=True, squeeze=False)
    styles = {"held": ("-", "all other rates held fixed"), "taylor": ("--", "on top of Taylor's rule")}
    at_home = responses[responses["nation"] == home]
    for axes, (indicator, label) in zip(grid.flat, INDICATORS.items(), strict=True):
        axes.axhline(0, color=theme.GREY, lw=0.8)
        for index, (follows, (style, name)) in enumerate(styles.items()):
            rows = at_home[at_home["follows"] == follows]
            axes.plot(rows["quarter"], rows[indicator], ls=style, color=theme.series_color(index), lw=1.4, label=name)
        unit = "%" if indicator == "output_gap" else "points"
        axes.set_xlabel("quarters after the rise" if axes in grid[-1] else "")
        theme.tidy(axes, f"{label.partition(',')[0]}, {unit}")
    theme.figure_legend(figure, grid[0, 0], loc="outside upper left", ncols=1 if columns == 2 else 2)
    n = at_home["quarter"].nunique()
    caption = f"{home}: effects of a policy rate that is one point higher for a year, over n = {n:,} quarters"
    run = None if isinstance(source, pd.DataFrame) else source
    theme.write_caption(figure, f"{caption}, as the model computes them without shocks.", width, run)
    return figure


def _table(source: NationRun, name: str) -> pd.DataFrame:
    """Return a table of a run of nations, which must not be empty."""
    folder = run_folder(source)
    if not read_run(folder).manifest.is_economy:
        raise DataError(f"{folder} is a run of a platform, not of nations")
    return read_nonempty_table(folder, name, _COLUMNS[name])


def draw_economy(run_dir: str | Path, *, skip_missing: bool = False) -> list[Path]:
    """Draw indicators.png, policies.png and responses.png into a run's folder, and return their paths.

    A missing or empty table raises a DataError; with `skip_missing`, its picture is left out.
    """
    folder = Path(run_dir)
    figures = {
        "indicators": lambda: indicators_figure(folder),
        "policies": lambda: policies_figure(folder),
        "responses": lambda: responses_figure(folder),
    }
    return save_figures(folder, figures, skip_missing=skip_missing)
