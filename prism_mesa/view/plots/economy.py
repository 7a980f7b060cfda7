"""Pictures of a run of nations, from its tables."""

import json
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
from prism_mesa.runs.run_files import filled_table
from prism_mesa.view.plots.files import save_figures
from prism_mesa.view.plots.style import GREY, NARROW, PALETTE, SMALL, TEXT, WIDE, Panel, labels_of, new_figure

MOST_NATIONS: Final = 6
"""Nations that a picture shows; of more the first."""

_INDICATORS: Final = {
    "output_gap": "output gap, %",
    "inflation": "inflation, % a year",
    "unemployment": "unemployment, %",
    "policy_rate": "policy rate, %",
}
_BASELINES: Final = {"taylor": (PALETTE[1], "--", "Taylor's rule"), "nothing": (GREY, ":", "no policy")}
_LEVERS: Final = {
    "policy_rate": "#4c72b0",
    "spending": "#55a868",
    "taxes": "#c44e52",
    "debt": "#8172b3",
    "tariff": "#dd8452",
    "sanction": "#2b2b2b",
}
_COLUMNS: Final = {
    "indicators": ["round", "quarter", "nation", *_INDICATORS],
    "baselines": ["round", "nation", "policy", *_INDICATORS],
    "nations": ["name", "inflation_target", "natural_unemployment"],
    "decisions": ["round", "quarter", "nation", "outcome", "measures"],
    "responses": ["quarter", "nation", "follows", *_INDICATORS],
}
_COLOR: Final = "#1f4e79"
_REFUSED: Final = "#9a9a9a"


def indicators_figure(
    indicators: pd.DataFrame, baselines: pd.DataFrame, nations: pd.DataFrame, *, width: float = WIDE
) -> Figure:
    """Return the indicators of each nation over time, beside what they would be under other policies.

    Args:
        indicators: The table `indicators` of a run.
        baselines: The table `baselines`: the same shocks under other policies.
        nations: The table `nations`, for targets and natural rates.
        width: Of the figure, in centimetres; in a column of 8.5 the first two nations are shown.
    """
    narrow = width < (NARROW + WIDE) / 2
    names = nations["name"].tolist()[: 2 if narrow else MOST_NATIONS]
    figure = new_figure(width, 14.5)
    grid = figure.subplots(len(_INDICATORS), len(names), sharex=True, sharey="row", squeeze=False)
    quarters = indicators.drop_duplicates("round").set_index("round")["quarter"]
    for column, name in enumerate(names):
        own = nations[nations["name"] == name].iloc[0]
        aims = {"inflation": own["inflation_target"], "unemployment": own["natural_unemployment"], "output_gap": 0.0}
        for row, indicator in enumerate(_INDICATORS):
            axes = grid[row, column]
            if indicator in aims:
                axes.axhline(aims[indicator], color="#dddddd", lw=1, zorder=0)
            _line(axes, indicators, name, indicator, color=_COLOR, lw=1.6)
            for policy, (color, style, _) in _BASELINES.items():
                of = baselines[baselines["policy"] == policy]
                _line(axes, of, name, indicator, color=color, ls=style, lw=1)
            if column == 0:
                axes.set_ylabel(_INDICATORS[indicator], fontsize=TEXT)
            axes.tick_params(labelsize=SMALL)
        title = labels_of(names, 16)[column]
        grid[0, column].set_title(title, loc="left", fontsize=TEXT, parse_math=False)
        _time_axis(grid[-1, column], quarters)
    _fit_rows(grid, indicators, baselines, names)
    handles = [Line2D([], [], color=_COLOR, lw=1.6, label="this run")]
    handles += [Line2D([], [], color=color, ls=style, lw=1, label=label) for color, style, label in _BASELINES.values()]
    figure.legend(handles=handles, loc="outside upper left", ncols=3, frameon=False, fontsize=SMALL)
    shown = f"the first {len(names)} of {len(nations)} nations" if len(names) < len(nations) else "all nations"
    told = f"Indicators at the end of each of n = {len(quarters):,} quarters, {shown}, under the same shocks. "
    told += "Grey levels: the target of inflation, natural unemployment, no output gap."
    Panel(figure, grid[0, 0], True, width).caption(told)
    return figure


def _line(axes: Axes, table: pd.DataFrame, nation: str, indicator: str, **style: Any) -> None:
    own = table[table["nation"] == nation]
    axes.plot(own["round"], own[indicator], marker="o" if len(own) == 1 else "", ms=4, **style)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.01)


def _fit_rows(grid: Any, indicators: pd.DataFrame, baselines: pd.DataFrame, names: Sequence[str]) -> None:
    """Cut the baseline without policy where it runs away: a row shows the run and Taylor's rule, with some room."""
    shown = pd.concat([indicators, baselines[baselines["policy"] == "taylor"]])
    shown = shown[shown["nation"].isin(names)]
    for row, indicator in zip(grid, _INDICATORS, strict=True):
        values = shown[indicator][np.isfinite(shown[indicator])]
        if values.empty:
            continue
        low, high = values.min(), values.max()
        room = max((high - low) / 2, 1.0)
        bottom, top = row[0].get_ylim()
        row[0].set_ylim(max(bottom, low - room), min(top, high + room))


def _time_axis(axes: Axes, quarters: pd.Series) -> None:
    """Label the first quarters of years, five at most."""
    firsts = [(n, str(name)[:4]) for n, name in quarters.items() if str(name).endswith("Q1")]
    firsts = firsts or [(n, str(name)) for n, name in quarters.items()]
    step = max(1, -(-len(firsts) // 5))
    axes.set_xticks(
        [n for n, _ in firsts[::step]], [name for _, name in firsts[::step]], fontsize=SMALL, parse_math=False
    )


def policies_figure(decisions: pd.DataFrame, nations: pd.DataFrame) -> Figure:
    """Return what nations did and when: measures by instrument and direction, and what was rejected or not understood.

    Args:
        decisions: The table `decisions` of a run.
        nations: The table `nations`.
    """
    names = nations["name"].tolist()[:MOST_NATIONS]
    figure = Figure(figsize=(9.5, 1.2 + 0.75 * len(names)), layout="constrained")
    axes = figure.add_subplot()
    for place, name in enumerate(names):
        axes.axhline(-place, color="#eeeeee", lw=6, zorder=0)
        for decision in decisions[decisions["nation"] == name].to_dict("records"):
            _event(axes, decision, -place)
    axes.set_yticks([-place for place in range(len(names))], names, parse_math=False)
    axes.set(ylim=(-len(names) + 0.4, 0.6), xlim=(decisions["round"].min() - 1, decisions["round"].max() + 1))
    _time_axis(axes, decisions.drop_duplicates("round").set_index("round")["quarter"])
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(axis="y", length=0)
    axes.set_title("What nations did", loc="left")
    handles: list[Artist] = [Patch(color=_LEVERS[lever], label=lever.replace("_", " ")) for lever in _LEVERS]
    marks = {"^": "raised", "v": "lowered", "o": "set to a level", "_": "set to zero", "x": "rejected, not understood"}
    for mark, label in marks.items():
        color = _REFUSED if mark == "x" else "#555555"
        handles.append(Line2D([], [], ls="", marker=mark, color=color, mew=1.5, label=label))
    figure.legend(handles=handles, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    return figure


def _event(axes: Axes, decision: dict[str, Any], height: float) -> None:
    if decision["outcome"] in ("rejected", "not_understood"):
        axes.plot(decision["round"], height, "x", color=_REFUSED, ms=5)
    elif decision["outcome"] == "accepted":
        # one mark for an instrument, whether it is used against one nation or several
        marks = _marks(decision["measures"])
        offsets = np.linspace(-0.18, 0.18, len(marks)) if len(marks) > 1 else [0.0]
        for offset, (color, mark) in zip(offsets, marks, strict=True):
            axes.plot(decision["round"], height + offset, mark, color=color, ms=6, mew=1.5)


def _marks(cell: str) -> list[tuple[str, str]]:
    """Return color and mark of each instrument that a policy, in JSON, uses, against however many nations.

    Raises:
        DataError: If that is not what stands there.
    """
    try:
        measures = {m["lever"]: m for m in json.loads(cell)["measures"]}.values()
        ups = [(m, m["size"] > 0) for m in measures]
        return [
            (_LEVERS[m["lever"]], ("o" if up else "_") if m["how"] == "to" else "^" if up else "v") for m, up in ups
        ]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise DataError(f"table 'decisions' is damaged: {cell[:80]!r} holds no measures") from None


def responses_figure(responses: pd.DataFrame) -> Figure:
    """Return what a rise of the policy rate by one point for a year does, in percent and points.

    Args:
        responses: The table `responses` of a run; the first nation in it is the one whose rate rises.
    """
    home = responses["nation"].iloc[0]
    figure = Figure(figsize=(10, 3.6), layout="constrained")
    styles = {"held": ("-", "all rates held otherwise"), "taylor": ("--", "on top of Taylor's rule")}
    panels = figure.subplots(1, len(_INDICATORS))
    for axes, (indicator, label) in zip(panels, _INDICATORS.items(), strict=True):
        axes.axhline(0, color="#cccccc", lw=1)
        for follows, (style, name) in styles.items():
            own = responses[(responses["nation"] == home) & (responses["follows"] == follows)]
            axes.plot(own["quarter"], own[indicator], ls=style, color=_COLOR, lw=1.6, label=name)
        axes.set_title(label.replace(", % a year", ", points").replace(", %", ", points"), loc="left", fontsize=10)
        axes.set_xlabel("quarters after the rise")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_title("output gap, %", loc="left", fontsize=10)
    figure.suptitle(f"{home}: the policy rate one point higher for a year", x=0.01, ha="left", parse_math=False)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


def draw_economy(run_dir: str | Path, *, partly: bool = False) -> list[Path]:
    """Draw indicators.png, policies.png and responses.png into a run's folder, and return their paths.

    Args:
        run_dir: The folder.
        partly: Whether a picture is left out for which the folder has no table or no rows.

    Raises:
        DataError: If the folder lacks a table, or no quarter was completed; not with `partly`.
    """
    folder = Path(run_dir)

    def table(name: str) -> pd.DataFrame:
        return filled_table(folder, name, _COLUMNS[name])

    figures = {
        "indicators": lambda: indicators_figure(table("indicators"), table("baselines"), table("nations")),
        "policies": lambda: policies_figure(table("decisions"), table("nations")),
        "responses": lambda: responses_figure(table("responses")),
    }
    return save_figures(folder, figures, partly=partly)
