"""Pictures of a survey: what agents answered before and after a run."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from prism_mesa.view.plots.files import save
from prism_mesa.view.plots.style import (
    GREY,
    NARROW,
    PALETTE,
    SMALL,
    TEXT,
    WIDE,
    Panel,
    labels_of,
    letters,
    new_figure,
    percent_axis,
    tidy,
    tidy_legend,
)

_WAVES: Final = {"before": (GREY, "o", -0.14), "after": (PALETTE[0], "s", 0.14)}
_CHANGE: Final = (PALETTE[1], "D", 0.0)


def survey_figure(table: pd.DataFrame, asks: Mapping[str, str], *, width: float = WIDE) -> Figure:
    """Return what agents answered to closed questions before and after a run, and the change, with its intervals.

    It has two panels for each question, so it takes no `ax`.

    Args:
        table: Columns `question`, `option`, `wave`, `n`, `mean`, `low`, `high`: the table of a survey, not empty.
        asks: Question -> its words, for titles.
        width: Of the figure, in centimetres.
    """
    groups = list(table.groupby("question", sort=False))
    longest = 15 if width < (NARROW + WIDE) / 2 else 28
    titles = [_title(rows, asks.get(str(question), str(question)), width) for question, rows in groups]
    sizes = [
        0.8 + 0.75 * len(rows["option"].unique()) + 0.36 * title.count("\n")
        for (_, rows), title in zip(groups, titles, strict=True)
    ]
    figure = new_figure(width, sum(sizes) + 2.8)
    grid = figure.subplots(len(sizes), 2, squeeze=False, width_ratios=[2, 1], height_ratios=sizes)
    for line, (_, rows), title in zip(grid, groups, titles, strict=True):
        _question(line[0], line[1], rows, longest)
        line[0].set_title(title, loc="left", fontsize=TEXT, parse_math=False)
    for axes, text in zip(grid[-1], ("mean probability", "change, points"), strict=True):
        axes.set_xlabel(text, fontsize=TEXT)
    parts = [axes.get_legend_handles_labels() for axes in grid[0]]
    handles, labels = ([one for part in parts for one in part[end]] for end in (0, 1))
    options = {"ncols": 2 if longest == 15 else 4, "frameon": False, "fontsize": SMALL}
    tidy_legend(figure.legend(handles, labels, loc="outside upper left", **options))
    told = (
        "Mean probabilities of options over the n agents that answered, before and after the run; bars: 95 % intervals"
    )
    Panel(figure, grid[0, 0], True, width).caption(
        f"{told} (Student's, over agents; of changes, after - before, paired)."
    )
    return figure


def _title(rows: pd.DataFrame, asked: str, width: float) -> str:
    """Return a question and how many answered it."""
    n = ", ".join(f"{rows.loc[rows['wave'] == wave, 'n'].max():,} {wave}" for wave in _WAVES)
    return f"{fill(asked, letters(0.72 * width, TEXT))}\nn = {n}"


def _question(shares: Axes, changes: Axes, rows: pd.DataFrame, longest: int) -> None:
    """Draw the answers to one question, and how they changed."""
    options = list(rows["option"].unique())
    for wave, style in _WAVES.items():
        _dots(shares, rows[rows["wave"] == wave], options, style, wave)
    _dots(changes, rows[rows["wave"] == "change"], options, _CHANGE, "change")
    shares.axvline(1 / len(options), color=GREY, lw=0.8, ls="--", label="all options alike")
    changes.axvline(0, color=GREY, lw=0.8, ls="--")
    for axes in (shares, changes):
        tidy(axes, grid="x")
        axes.set_ylim(len(options) - 0.5, -0.5)
    shares.set_yticks(range(len(options)), labels=labels_of(list(map(str, options)), longest, 2), parse_math=False)
    changes.set_yticks(range(len(options)), labels=[])
    shares.set_xlim(left=0)
    percent_axis(shares.xaxis)
    changes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}")
    shares.xaxis.set_major_locator(MaxNLocator(4))
    changes.xaxis.set_major_locator(MaxNLocator(3))


def _dots(axes: Axes, rows: pd.DataFrame, options: list[str], style: tuple[str, str, float], wave: str) -> None:
    """Draw the means of one wave with their intervals, a line for each option; what nobody answered is left out."""
    color, marker, shift = style
    known = rows[rows["n"] > 0]
    places = [options.index(option) + shift for option in known["option"]]
    reach = [known["mean"] - known["low"], known["high"] - known["mean"]]
    axes.errorbar(known["mean"], places, xerr=reach, fmt=marker, color=color, ms=4, lw=1.2, capsize=2, label=wave)


def draw_survey(folder: str | Path, table: pd.DataFrame, asks: Mapping[str, str]) -> list[Path]:
    """Draw survey.png into a survey's folder, and return its path; nothing where no closed question was asked."""
    if table.empty:
        return []
    file = Path(folder) / "survey.png"
    save(survey_figure(table, asks), file)
    return [file]
