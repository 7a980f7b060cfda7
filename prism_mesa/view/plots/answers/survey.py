"""Pictures of a survey: what agents answered before and after a run."""

import textwrap
from collections.abc import Mapping
from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from prism_mesa.view.plots.files import save

_WAVES = {"before": ("#9a9a9a", "o", -0.14), "after": ("#4c72b0", "s", 0.14)}


def survey_figure(table: pd.DataFrame, asks: Mapping[str, str]) -> Figure:
    """Return what agents answered to closed questions before and after a run, and the change, with its intervals.

    Args:
        table: Columns `question`, `option`, `wave`, `n`, `mean`, `low`, `high`: the table of a survey, not empty.
        asks: Question -> its words, for titles.
    """
    groups = list(table.groupby("question", sort=False))
    sizes = [1.5 + 0.42 * len(rows["option"].unique()) for _, rows in groups]
    figure = Figure(figsize=(10, sum(sizes) + 0.7), layout="constrained")
    grid = figure.subplots(len(sizes), 2, squeeze=False, width_ratios=[2, 1], height_ratios=sizes)
    for (shares, changes), (question, rows) in zip(grid, groups, strict=True):
        options = list(rows["option"].unique())
        for wave, style in _WAVES.items():
            _dots(shares, rows[rows["wave"] == wave], options, style, wave)
        _dots(changes, rows[rows["wave"] == "change"], options, ("#c44e52", "D", 0.0), "change")
        shares.axvline(1 / len(options), color="#b8b8b8", lw=1, ls="--", label="all options alike")
        changes.axvline(0, color="#b8b8b8", lw=1, ls="--")
        labels = [textwrap.fill(str(option), 34) for option in options]
        shares.set_yticks(range(len(options)), labels=labels, parse_math=False)
        changes.set_yticks(range(len(options)), labels=[])
        shares.set_xlim(left=0)
        for axes in (shares, changes):
            axes.set_ylim(len(options) - 0.5, -0.5)
            axes.spines[["top", "right"]].set_visible(False)
            axes.grid(alpha=0.25, axis="x")
        n = ", ".join(f"{rows.loc[rows['wave'] == wave, 'n'].max():,} {wave}" for wave in _WAVES)
        asked = textwrap.fill(asks.get(str(question), str(question)), 60)
        shares.set_title(f"{asked}\nn = {n}", loc="left", fontsize=10, parse_math=False)
        changes.xaxis.set_major_locator(MaxNLocator(4))
        changes.set_title("change", loc="left", fontsize=10)
    for axes, text in zip(grid[-1], ("mean probability, 95 % interval over agents", "after - before"), strict=True):
        axes.set_xlabel(text)
    figure.legend(*grid[0][0].get_legend_handles_labels(), frameon=False, loc="outside lower left", ncols=3)
    return figure


def _dots(axes: Axes, rows: pd.DataFrame, options: list[str], style: tuple[str, str, float], wave: str) -> None:
    """Draw the means of one wave with their intervals, a line for each option; what nobody answered is left out."""
    color, marker, shift = style
    known = rows[rows["n"] > 0]
    places = [options.index(option) + shift for option in known["option"]]
    reach = [known["mean"] - known["low"], known["high"] - known["mean"]]
    axes.errorbar(known["mean"], places, xerr=reach, fmt=marker, color=color, ms=5, lw=1.6, capsize=3, label=wave)


def draw_survey(folder: str | Path, table: pd.DataFrame, asks: Mapping[str, str]) -> list[Path]:
    """Draw survey.png into a survey's folder, and return its path; nothing where no closed question was asked."""
    if table.empty:
        return []
    file = Path(folder) / "survey.png"
    save(survey_figure(table, asks), file)
    return [file]
