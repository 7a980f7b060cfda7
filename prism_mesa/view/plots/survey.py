"""Figures of a survey: agents' answers before and after a run."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from prism_mesa.view.plots import style as look
from prism_mesa.view.plots.files import save

_WAVES: Final = {
    "before": (look.GREY, "o", -0.14),
    "after": (look.PALETTE[0], "s", 0.14),
    "change": (look.PALETTE[1], "D", 0.0),
}
"""Colour, marker and vertical shift of each wave."""


def survey_figure(table: pd.DataFrame, asks: Mapping[str, str], *, width: float = look.WIDE) -> Figure:
    """Return answers to closed questions before and after a run, and their change with intervals.

    It has two panels for each question, so it takes no `ax`.

    Args:
        table: The table of a survey, with columns `question`, `option`, `wave`, `n`, `mean`, `low`, `high`; not empty.
        asks: Wording of each question, for titles.
        width: Width of the figure in centimetres.
    """
    narrow, questions = look.is_narrow(width), dict(list(table.groupby("question", sort=False)))
    titles = [_title(rows, asks.get(str(name), str(name)), width) for name, rows in questions.items()]
    heights = [
        0.8 + 0.75 * rows["option"].nunique() + 0.36 * title.count("\n")
        for rows, title in zip(questions.values(), titles, strict=True)
    ]
    figure = look.new_figure(width, sum(heights) + 2.8)
    grid = figure.subplots(len(heights), 2, squeeze=False, width_ratios=[2, 1], height_ratios=heights)
    for (shares, changes), rows, title in zip(grid, questions.values(), titles, strict=True):
        _draw_question(shares, changes, rows, 15 if narrow else 28)
        look.tidy(shares, title, grid="x")
        look.tidy(changes, grid="x")
    grid[-1][0].set_xlabel("mean probability")
    grid[-1][1].set_xlabel("change, points")
    entries = [artist for axes in grid[0] for artist in axes.get_legend_handles_labels()[0]]
    look.figure_legend(figure, entries, loc="outside upper left", ncols=2 if narrow else 4)
    means = "Mean probabilities of options over the n agents that answered, before and after the run"
    bars = "bars: 95 % intervals (Student's, over agents; of changes, after - before, paired)."
    look.write_caption(figure, f"{means}; {bars}", width)
    return figure


def _title(rows: pd.DataFrame, question: str, width: float) -> str:
    """Return the title of a question, with the number of answers."""
    n = ", ".join(f"{rows.loc[rows['wave'] == wave, 'n'].max():,} {wave}" for wave in ("before", "after"))
    return f"{fill(question, look.letters(0.72 * width, look.TEXT))}\nn = {n}"


def _draw_question(shares: Axes, changes: Axes, rows: pd.DataFrame, label_letters: int) -> None:
    """Draw the mean answers to one question with intervals, and their change; options without answers are left out."""
    options = list(rows["option"].unique())
    for wave, (color, marker, shift) in _WAVES.items():
        answered = rows[(rows["wave"] == wave) & (rows["n"] > 0)]
        places = [options.index(option) + shift for option in answered["option"]]
        reach = [answered["mean"] - answered["low"], answered["high"] - answered["mean"]]
        axes = changes if wave == "change" else shares
        style = {"fmt": marker, "color": color, "ms": 4, "lw": 1.2, "capsize": 2, "label": wave}
        axes.errorbar(answered["mean"], places, xerr=reach, **style)
    shares.axvline(1 / len(options), color=look.GREY, lw=0.8, ls="--", label="all options alike")
    changes.axvline(0, color=look.GREY, lw=0.8, ls="--")
    labels = look.short_labels(list(map(str, options)), label_letters, 2)
    for axes, names, n_ticks in ((shares, labels, 4), (changes, [""] * len(options), 3)):
        axes.set_yticks(range(len(options)), names, parse_math=False)
        axes.set_ylim(len(options) - 0.5, -0.5)
        axes.xaxis.set_major_locator(MaxNLocator(n_ticks))
    shares.set_xlim(left=0)
    look.percent_ticks(shares.xaxis)
    changes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g}"))


def draw_survey(folder: str | Path, table: pd.DataFrame, asks: Mapping[str, str]) -> list[Path]:
    """Draw survey.png into a survey's folder, and return its path; no path if no closed question was asked."""
    return [] if table.empty else [save(survey_figure(table, asks), Path(folder) / "survey.png")]
