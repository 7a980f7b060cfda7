"""Figures of a survey: agents' answers before and after a run."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from prism_mesa.view.plots import style as look
from prism_mesa.view.plots.files import save

_WAVES: Final = {"before": (look.GREY, "o", -0.14), "after": (look.PALETTE[0], "s", 0.14)}
_CHANGE: Final = (look.PALETTE[1], "D", 0.0)


def survey_figure(table: pd.DataFrame, asks: Mapping[str, str], *, width: float = look.WIDE) -> Figure:
    """Return answers to closed questions before and after a run, and their change with intervals.

    It has two panels for each question, so it takes no `ax`.

    Args:
        table: The table of a survey, with columns `question`, `option`, `wave`, `n`, `mean`, `low`, `high`; not empty.
        asks: Wording of each question, for titles.
        width: Width of the figure in centimetres.
    """
    groups = list(table.groupby("question", sort=False))
    longest = 15 if look.is_narrow(width) else 28
    titles = [_title(rows, asks.get(str(question), str(question)), width) for question, rows in groups]
    sizes = [
        0.8 + 0.75 * len(rows["option"].unique()) + 0.36 * title.count("\n")
        for (_, rows), title in zip(groups, titles, strict=True)
    ]
    figure = look.new_figure(width, sum(sizes) + 2.8)
    grid = figure.subplots(len(sizes), 2, squeeze=False, width_ratios=[2, 1], height_ratios=sizes)
    for line, (_, rows), title in zip(grid, groups, titles, strict=True):
        _question(line[0], line[1], rows, longest)
        line[0].set_title(title, loc="left", fontsize=look.TEXT, parse_math=False)
    for axes, text in zip(grid[-1], ("mean probability", "change, points"), strict=True):
        axes.set_xlabel(text, fontsize=look.TEXT)
    entries = [artist for axes in grid[0] for artist in axes.get_legend_handles_labels()[0]]
    look.figure_legend(figure, entries, loc="outside upper left", ncols=2 if longest == 15 else 4)
    means = "Mean probabilities of options over the n agents that answered, before and after the run"
    bars = "bars: 95 % intervals (Student's, over agents; of changes, after - before, paired)."
    look.write_caption(figure, f"{means}; {bars}", width)
    return figure


def _title(rows: pd.DataFrame, question: str, width: float) -> str:
    """Return the title of a question, with the number of answers."""
    n = ", ".join(f"{rows.loc[rows['wave'] == wave, 'n'].max():,} {wave}" for wave in _WAVES)
    return f"{fill(question, look.letters(0.72 * width, look.TEXT))}\nn = {n}"


def _question(shares: Axes, changes: Axes, rows: pd.DataFrame, longest: int) -> None:
    """Draw the answers to one question, and their change."""
    options = list(rows["option"].unique())
    for wave, style in _WAVES.items():
        _dots(shares, rows[rows["wave"] == wave], options, style, wave)
    _dots(changes, rows[rows["wave"] == "change"], options, _CHANGE, "change")
    shares.axvline(1 / len(options), color=look.GREY, lw=0.8, ls="--", label="all options alike")
    changes.axvline(0, color=look.GREY, lw=0.8, ls="--")
    for axes in (shares, changes):
        look.tidy(axes, grid="x")
        axes.set_ylim(len(options) - 0.5, -0.5)
    shares.set_yticks(
        range(len(options)), labels=look.short_labels(list(map(str, options)), longest, 2), parse_math=False
    )
    changes.set_yticks(range(len(options)), labels=[])
    shares.set_xlim(left=0)
    look.percent_axis(shares.xaxis)
    changes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}")
    shares.xaxis.set_major_locator(MaxNLocator(4))
    changes.xaxis.set_major_locator(MaxNLocator(3))


def _dots(axes: Axes, rows: pd.DataFrame, options: list[str], style: tuple[str, str, float], wave: str) -> None:
    """Draw the means of one wave with intervals, a row for each option; options without answers are left out."""
    color, marker, shift = style
    known = rows[rows["n"] > 0]
    places = [options.index(option) + shift for option in known["option"]]
    reach = [known["mean"] - known["low"], known["high"] - known["mean"]]
    axes.errorbar(known["mean"], places, xerr=reach, fmt=marker, color=color, ms=4, lw=1.2, capsize=2, label=wave)


def draw_survey(folder: str | Path, table: pd.DataFrame, asks: Mapping[str, str]) -> list[Path]:
    """Draw survey.png into a survey's folder, and return its path; None if no closed question was asked."""
    if table.empty:
        return []
    return [save(survey_figure(table, asks), Path(folder) / "survey.png")]
