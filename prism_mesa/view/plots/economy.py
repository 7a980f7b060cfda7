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
from prism_mesa.runs.run_files import filled_table, run_folder
from prism_mesa.view.plots import style as look
from prism_mesa.view.plots.files import save_figures

MOST_NATIONS: Final = 6
"""Nations that a picture shows; of more the first."""

INDICATORS: Final = {
    "output_gap": "output gap, %",
    "inflation": "inflation, % a year",
    "unemployment": "unemployment, %",
    "policy_rate": "policy rate, %",
}
_BASELINES: Final = {"taylor": (look.PALETTE[1], "--", "Taylor's rule"), "nothing": (look.GREY, ":", "no policy")}
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
_COLOR: Final = look.PALETTE[0]

type NationRun = str | os.PathLike[str]
"""A run of nations: its result, or its folder."""


def indicators_figure(of: NationRun, *, width: float = look.WIDE) -> Figure:
    """Return the indicators of each nation over time, beside what they would be under other policies.

    It has a panel for each indicator and nation, so it takes no `ax`.

    Args:
        of: A run of nations.
        width: Width of the figure in centimetres; 8.5 or less shows two nations, wider figures six.

    Raises:
        DataError: If it is not a run of nations, or no quarter was completed.
    """
    tables = (_table(of, name) for name in ("indicators", "baselines", "nations"))
    figure = figure_of_indicators(*tables, width=width)
    look.write_caption(figure, look.figure_caption(figure), width, of)
    return figure


def figure_of_indicators(
    indicators: pd.DataFrame, baselines: pd.DataFrame, nations: pd.DataFrame, *, width: float = look.WIDE
) -> Figure:
    """Draw `indicators_figure` from tables that were already read."""
    narrow = look.is_narrow(width)
    names = nations["name"].tolist()[: 2 if narrow else MOST_NATIONS]
    figure = look.new_figure(width, 14.5)
    grid = figure.subplots(len(INDICATORS), len(names), sharex=True, sharey="row", squeeze=False)
    quarters = indicators.drop_duplicates("round").set_index("round")["quarter"]
    for column, name in enumerate(names):
        nation = nations[nations["name"] == name].iloc[0]
        aims = {"inflation": nation["inflation_target"], "unemployment": nation["natural_unemployment"]}
        aims["output_gap"] = 0.0
        for row, indicator in enumerate(INDICATORS):
            axes = grid[row, column]
            if indicator in aims:
                axes.axhline(aims[indicator], color="#dddddd", lw=1, zorder=0)
            _line(axes, indicators, name, indicator, color=_COLOR, lw=1.6)
            for policy, (color, style, _) in _BASELINES.items():
                _line(axes, baselines[baselines["policy"] == policy], name, indicator, color=color, ls=style, lw=1)
            if column == 0:
                axes.set_ylabel(INDICATORS[indicator], fontsize=look.TEXT)
            axes.tick_params(labelsize=look.SMALL)
        title = look.short_labels(names, 16)[column]
        grid[0, column].set_title(title, loc="left", fontsize=look.TEXT, parse_math=False)
        _time_axis(grid[-1, column], quarters, max(2, int(width / len(names))))
    _fit_rows(grid, indicators, baselines, names)
    handles = [Line2D([], [], color=_COLOR, lw=1.6, label="this run")]
    handles += [Line2D([], [], color=color, ls=style, lw=1, label=label) for color, style, label in _BASELINES.values()]
    look.figure_legend(figure, handles, loc="outside upper left", ncols=3)
    shown = f"the first {len(names)} of {len(nations)} nations" if len(names) < len(nations) else "all nations"
    caption = f"Indicators at the end of each of n = {len(quarters):,} quarters, {shown}, under the same shocks. "
    caption += "Grey levels: the target of inflation, natural unemployment, no output gap."
    look.write_caption(figure, caption, width)
    return figure


def _line(axes: Axes, table: pd.DataFrame, nation: str, indicator: str, **style: Any) -> None:
    rows = table[table["nation"] == nation]
    axes.plot(rows["round"], rows[indicator], marker="o" if len(rows) == 1 else "", ms=4, **style)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.01)


def _fit_rows(grid: Any, indicators: pd.DataFrame, baselines: pd.DataFrame, names: Sequence[str]) -> None:
    """Clip a diverging no-policy baseline: each row fits the run and Taylor's rule, with some margin."""
    shown = pd.concat([indicators, baselines[baselines["policy"] == "taylor"]])
    shown = shown[shown["nation"].isin(names)]
    for row, indicator in zip(grid, INDICATORS, strict=True):
        values = shown[indicator][np.isfinite(shown[indicator])]
        if values.empty:
            continue
        low, high = values.min(), values.max()
        room = max((high - low) / 2, 1.0)
        bottom, top = row[0].get_ylim()
        row[0].set_ylim(max(bottom, low - room), min(top, high + room))


def _time_axis(axes: Axes, quarters: pd.Series, most: int = 5) -> None:
    """Label the first quarters of years, at most `most` of them."""
    firsts = [(n, str(name)[:4]) for n, name in quarters.items() if str(name).endswith("Q1")]
    firsts = firsts or [(n, str(name)) for n, name in quarters.items()]
    step = max(1, -(-len(firsts) // min(most, 5)))
    axes.set_xticks(
        [n for n, _ in firsts[::step]], [name for _, name in firsts[::step]], fontsize=look.SMALL, parse_math=False
    )


def policies_figure(of: NationRun, *, ax: Axes | None = None, width: float = look.WIDE) -> Figure:
    """Return a timeline of policies: measures by instrument and direction, and decisions that were not carried out.

    Each instrument has its own line in a nation's row, in the order of the legend.

    Args:
        of: A run of nations; the first six are shown.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If it is not a run of nations, there are no decisions, or they are damaged.
    """
    decisions, nations = _table(of, "decisions"), _table(of, "nations")
    names = nations["name"].tolist()[:MOST_NATIONS]
    shown = decisions[decisions["nation"].isin(names)]
    lines = 6 if look.is_narrow(width) else 3
    panel = look.open_panel(ax, width, height=2.6 + 1.5 * len(names), legend_lines=lines)
    axes = panel.axes
    axes.grid(visible=False)
    first, last = decisions["round"].min(), decisions["round"].max()
    size = float(np.clip(0.6 * panel.width * look.CM * 72 / (last - first + 3), 2.0, 4.5))
    for place, name in enumerate(names):
        axes.axhspan(-place - 0.42, -place + 0.42, color="#f3f3f3", lw=0, zorder=0)
        for decision in shown[shown["nation"] == name].to_dict("records"):
            _event(axes, decision, -place, size)
    axes.set_yticks([-place for place in range(len(names))], look.short_labels(names, 12, 2), parse_math=False)
    axes.set(ylim=(-len(names) + 0.5, 0.5), xlim=(first - 1, last + 1))
    _time_axis(axes, decisions.drop_duplicates("round").set_index("round")["quarter"])
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)
    panel.title("What nations did")
    handles: list[Artist] = [
        Patch(color=look.series_color(place), label=lever.replace("_", " ")) for place, lever in enumerate(_LEVERS)
    ]
    handles += [
        Line2D([], [], ls="", marker=mark, color=look.GREY if mark == "x" else "#555555", ms=4.5, label=label)
        for mark, label in _MARKS.items()
    ]
    panel.legend_below(2 if panel.is_narrow else 4, handles=handles)
    panel.caption(_decisions_caption(shown, len(names), len(nations)), of)
    return panel.figure


def _decisions_caption(decisions: pd.DataFrame, shown: int, n: int) -> str:
    """Return a caption with the number of decisions and their outcomes."""
    counts = decisions["outcome"].value_counts()
    outcomes = ", ".join(f"{counts[name]:,} {text}" for name, text in _OUTCOMES.items() if counts.get(name, 0))
    who = f"the first {shown} of {n} nations" if shown < n else "all nations"
    lines = "lines of a row are instruments, in the legend's order"
    return f"Decisions of {who}, by quarter (n = {len(decisions):,}: {outcomes}); {lines}."


def _event(axes: Axes, decision: dict[str, Any], height: float, size: float) -> None:
    if decision["outcome"] in ("rejected", "not_understood"):
        axes.plot(decision["round"], height, "x", color=look.GREY, ms=size)
    elif decision["outcome"] == "accepted":
        for lever, mark in _marks(decision["measures"]):
            place = _LEVERS.index(lever)
            line = height + 0.35 - 0.7 * place / (len(_LEVERS) - 1)
            axes.plot(
                decision["round"], line, mark, color=look.series_color(place), ms=size, mew=1.2 if mark == "_" else 0.4
            )


def _marks(cell: str) -> list[tuple[str, str]]:
    """Return the name and marker of each instrument that a policy uses.

    Raises:
        DataError: If the text is not a policy in JSON.
    """
    try:
        measures = {m["lever"]: m for m in json.loads(cell)["measures"]}.values()
        ups = [(m, m["size"] > 0) for m in measures if _LEVERS.index(m["lever"]) >= 0]
        return [(m["lever"], ("o" if up else "_") if m["how"] == "to" else "^" if up else "v") for m, up in ups]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise DataError(f"table 'decisions' is damaged: {cell[:80]!r} holds no measures") from None


def responses_figure(of: NationRun | pd.DataFrame, *, width: float = look.WIDE) -> Figure:
    """Return impulse responses to a rise of the policy rate by one point for a year, in percent and points.

    It has a panel for each indicator, so it takes no `ax`.

    Args:
        of: A run of nations, or its table `responses`, which `rate_response` computes for each value of the column
            `follows`. The rate of the first nation rises.
        width: Width of the figure in centimetres.

    Raises:
        DataError: If it is not a run of nations, or has no responses.
    """
    responses = of if isinstance(of, pd.DataFrame) else _table(of, "responses")
    home = responses["nation"].iloc[0]
    columns = 2 if look.is_narrow(width) else len(INDICATORS)
    figure = look.new_figure(width, 3.6 * len(INDICATORS) // columns + 2.6)
    grid = figure.subplots(len(INDICATORS) // columns, columns, sharex=True, squeeze=False)
    styles = {"held": ("-", "all rates held otherwise"), "taylor": ("--", "on top of Taylor's rule")}
    rows_of_home = responses[responses["nation"] == home]
    for axes, (indicator, label) in zip(grid.flat, INDICATORS.items(), strict=True):
        axes.axhline(0, color=look.GREY, lw=0.8)
        for place, (follows, (style, name)) in enumerate(styles.items()):
            rows = rows_of_home[rows_of_home["follows"] == follows]
            axes.plot(rows["quarter"], rows[indicator], ls=style, color=look.series_color(place), lw=1.4, label=name)
        unit = "%" if indicator == "output_gap" else "points"
        look.tidy(axes, f"{label.partition(',')[0]}, {unit}")
    for axes in grid[-1]:
        axes.set_xlabel("quarters after the rise", fontsize=look.TEXT)
    look.figure_legend(figure, grid[0, 0], loc="outside upper left", ncols=1 if columns == 2 else 2)
    n = rows_of_home["quarter"].nunique()
    caption = f"{home}: what a policy rate that is one point higher for a year changes there, over n = {n:,} quarters"
    run = None if isinstance(of, pd.DataFrame) else of
    look.write_caption(figure, f"{caption}, as the model computes it without shocks.", width, run)
    return figure


def _table(of: NationRun, name: str) -> pd.DataFrame:
    """Return a table of a run of nations, which must not be empty."""
    folder = run_folder(of)
    if not read_run(folder).manifest.of_nations:
        raise DataError(f"{folder}: is a run of a platform, not of nations")
    return filled_table(folder, name, _COLUMNS[name])


def draw_economy(run_dir: str | Path, *, partly: bool = False) -> list[Path]:
    """Draw indicators.png, policies.png and responses.png into a run's folder, and return their paths.

    Args:
        run_dir: The folder.
        partly: Whether to leave out pictures whose table is missing or empty.

    Raises:
        DataError: If the folder lacks a table, or no quarter was completed (unless `partly`).
    """
    folder = Path(run_dir)
    figures = {
        "indicators": lambda: indicators_figure(folder),
        "policies": lambda: policies_figure(folder),
        "responses": lambda: responses_figure(folder),
    }
    return save_figures(folder, figures, partly=partly)
