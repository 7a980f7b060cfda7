"""Figures of the LLM's answers as oracle, of distilled models, and of surveys."""

import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import fill
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from prism_mesa.arrays import Floats
from prism_mesa.domain import SHARE, AgentState, states_in
from prism_mesa.errors import DataError
from prism_mesa.llm import Ledger
from prism_mesa.runs.run_files import LEDGER, check_within, read_table, run_folder
from prism_mesa.view.plots import style as theme
from prism_mesa.view.plots.files import save
from prism_mesa.view.plots.rounds import Band, draw_band, interval_band
from prism_mesa.view.plots.sources import OneRun

_BINS: Final = 10


def oracle_figure(source: OneRun, *, ax: Axes | None = None, width: float = theme.WIDE) -> Figure:
    """Draw a reliability diagram: the share of options that agents took against the probability from the LLM.

    Each open choice that the LLM answered with probabilities counts once for each option except the last, whose
    probability follows from the others. Bars are Wilson's 95 % intervals (1927, doi:10.1080/01621459.1927.10502953).

    Args:
        source: A run whose LLM was asked for probabilities (`reasoner.answer`).
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If no LLM gave probabilities, or the transitions of the agents that asked were not recorded.
    """
    from scipy.stats import binomtest  # loading it takes as long as a small run

    predictions, outcomes = _predictions(source)
    bins = np.minimum((predictions * _BINS).astype(int), _BINS - 1)
    n = np.bincount(bins, minlength=_BINS)
    sums = np.stack([np.bincount(bins, weights, _BINS) for weights in (predictions, outcomes)])[:, n > 0]
    n = n[n > 0]
    predicted, share = sums / n
    tests = (binomtest(int(k), int(m)) for k, m in zip(sums[1], n, strict=True))
    low, high = np.transpose([test.proportion_ci(method="wilson") for test in tests])
    panel = theme.open_panel(ax, width, "Predicted and observed choices", height=min(width, 10.0) + 1.2)
    axes = panel.axes
    axes.plot([0, 1], [0, 1], color=theme.GREY, lw=0.8, ls=":", label="as often as predicted")
    error_bars = np.clip([share - low, high - share], 0, None)
    style: dict[str, Any] = {"fmt": "o", "color": theme.series_color(0), "ms": 4, "lw": 1.2, "capsize": 2}
    axes.errorbar(predicted, share, yerr=error_bars, label="open choices, by predicted probability", **style)
    for x, y, number in zip(predicted, np.maximum(share, high), n, strict=True):
        axes.annotate(f"{number:,}", (x, y), (0, 4), textcoords="offset points", ha="center", fontsize=theme.SMALL - 1)
    axes.set(xlim=(-0.02, 1.02), xlabel="probability that the LLM gave an option")
    axes.set(ylim=(-0.02, 1.1), ylabel="share in which the agent took it")
    theme.percent_ticks(axes.xaxis, axes.yaxis)
    panel.legend_below(1 if panel.is_narrow else 2)
    error = float(np.average(np.abs(share - predicted), weights=n))
    text = f"n = {len(predictions):,} options in bins of {100 // _BINS} %, with numbers; bars: 95 % intervals (Wilson)."
    panel.caption(f"{text} Expected calibration error {100 * error:.1f} points.", source)
    return panel.figure


def _predictions(run: OneRun) -> tuple[Floats, Floats]:
    """Return the probability of each option, and whether the agent took it (1 or 0)."""
    folder = run_folder(run)
    file = folder / LEDGER
    if not file.is_file():
        raise DataError(f"{folder} has no {LEDGER}: the oracle's answers were not kept")
    check_within(folder, file)
    with Ledger(file, read_only=True) as ledger:
        answers = {row.key: row for row in ledger.answers() if row.probabilities}
        asked_rows = [(row.round, row.tick, row.agent, row.key) for row in ledger.asked() if row.key in answers]
    if not asked_rows:
        raise DataError(f"{folder}: no LLM gave probabilities (reasoner.answer=probabilities): nothing to draw")
    moves = read_table(folder, "transitions", ["round", "tick", "agent", "to_state", "open"])
    questions = pd.DataFrame(asked_rows, columns=["round", "tick", "agent", "key"])
    choices = questions.merge(moves[moves["open"]], on=["round", "tick", "agent"])
    rows: list[tuple[float, bool]] = []
    for key, state in zip(choices["key"], choices["to_state"], strict=True):
        try:
            options, odds = json.loads(answers[key].options), json.loads(answers[key].probabilities)
            rows += [(float(p), option == state) for option, p in zip(options, odds, strict=True)][:-1]
        except (ValueError, TypeError, RecursionError):
            raise DataError(f"ledger {file} is damaged: an answer holds no probabilities of its options") from None
    if not rows:
        raise DataError(f"{folder}: no transition of an agent that asked was recorded (records.transitions)")
    predictions, outcomes = np.array(rows, np.float64).T
    if not ((predictions >= 0) & (predictions <= 1)).all():
        raise DataError(f"ledger {file} is damaged: a probability is not from 0 to 1")
    return predictions, outcomes


_COLORS: Final = {
    "llm": "#4d4d4d",
    "logistic": theme.PALETTE[0],
    "boosting": theme.PALETTE[2],
    "rule": theme.PALETTE[1],
    "majority": "#a8a8a8",
}


def distilled_figure(choice: Mapping[str, Any], *, width: float = theme.WIDE) -> Figure:
    """Draw a distilled model's quality on held-out personas and posts: calibration, log loss and AUC.

    The figure has several panels, so it takes no `ax`.

    Args:
        choice: One of the `choices` in a report of `prism distill`.
        width: Width of the figure in centimetres.
    """
    if theme.is_narrow(width):
        figure = theme.new_figure(width, 14.0)
        panels = figure.subplot_mosaic("cc;la", height_ratios=[1.7, 1])
    else:
        figure = theme.new_figure(width, 8.0)
        panels = figure.subplot_mosaic("cla", width_ratios=[1.5, 1, 1])
    curves = panels["c"]
    curves.plot([0, 1], [0, 1], color=theme.GREY, lw=0.8, ls=":")
    for index, (name, groups) in enumerate(choice["calibration"].items()):
        predicted, observed = ([group[side] for group in groups] for side in ("said", "true"))
        style: dict[str, Any] = {"color": _COLORS[name], "ms": 4, "lw": 1.2}
        curves.plot(predicted, observed, theme.series_marker(index) + "-", label=name, **style)
    curves.set(xlim=(0, 1), ylim=(0, 1), ylabel="share given by the LLM")
    curves.set_xlabel(f"P({choice['options'][0]}) as predicted", parse_math=False)
    theme.tidy(curves, "Calibration")
    theme.axes_legend(curves, loc="upper left")
    names = [name for name in _COLORS if name in choice["scores"]][::-1]
    for letter, measure, title in (("l", "log_loss", "Log loss, nats"), ("a", "auc", "AUC")):
        axes, values = panels[letter], [choice["scores"][name][measure] for name in names]
        bars = axes.barh(names, values, color=[_COLORS[name] for name in names])
        axes.bar_label(bars, fmt=" %.2f", fontsize=theme.SMALL)
        axes.set_xlim(0, 1.4 * max(values))
        theme.tidy(axes, title, grid="x")
    counts = f"n = {choice['rows']:,} decisions on held-out personas and posts"
    bins = "calibration in tenths of the predicted probability"
    theme.write_caption(figure, f"{counts}; {bins}. A lower log loss is better, and a higher AUC.", width)
    return figure


def drift_figure(drift: pd.DataFrame, *, width: float = theme.WIDE) -> Figure:
    """Draw how outcomes and states change with the LLM's share of answers, relative to the largest share.

    Lines are means over seeds, with 95 % intervals. The figure has two panels, so it takes no `ax`.

    Args:
        drift: Columns `share`, `seed`, `outcome`, `value`, `relative`: the table of `prism distill --drift`.
        width: Width of the figure in centimetres.
    """
    is_narrow = theme.is_narrow(width)
    figure = theme.new_figure(width, 18.0 if is_narrow else 9.5)
    counts, states = figure.subplots(2, 1) if is_narrow else figure.subplots(1, 2)
    largest = drift["share"].max()
    is_state = drift["outcome"].str.startswith("share ")
    for index, (name, rows) in enumerate(drift[~is_state].groupby("outcome", sort=False)):
        _draw_drift(counts, rows.assign(change=rows["relative"]), index, theme.series_color(index), str(name))
    states_by_name = {state.value: state for state in states_in(drift["outcome"].str.replace("share ", SHARE).unique())}
    for index, (name, rows) in enumerate(drift[is_state].groupby("outcome", sort=False)):
        state = states_by_name[str(name).removeprefix("share ")]
        # the colour of idle is too light for a line
        color = theme.GREY if state is AgentState.IDLE else state.color
        base_values = rows["seed"].map(rows[rows["share"] == largest].groupby("seed")["value"].mean())
        _draw_drift(states, rows.assign(change=100 * (rows["value"] - base_values)), index, color, state.value)
    percent = f"{100 * largest:g} %"
    titles = (f"Outcomes relative to those at {percent}", f"Agent-ticks in each state, points above {percent}")
    for axes, level, title in zip((counts, states), (1, 0), titles, strict=True):
        axes.axhline(level, color=theme.GREY, lw=0.8, ls=":")
        axes.set_xlabel("share answered by the LLM")
        theme.tidy(axes, title)
        theme.percent_ticks(axes.xaxis)
        theme.Panel(figure, axes, True, theme.NARROW).legend_below(2)
    n = drift["seed"].nunique()
    means = f"Means over n = {n:,} seeds{'; bands: 95 % intervals' if n > 1 else ''}"
    share = "by the share of open choices that the LLM answers; its distilled model answers the others"
    theme.write_caption(figure, f"{means}; {share}.", width)
    return figure


def _draw_drift(axes: Axes, rows: pd.DataFrame, series: int, color: str, label: str) -> None:
    """Draw means over seeds by share, with intervals."""
    band = interval_band(rows, "change", by="share")
    if rows["seed"].nunique() > 1:  # equal seeds have an interval of width zero
        low, high = (np.where(np.isfinite(end), end, band.mean) for end in (band.low, band.high))
        band = Band(band.x, band.mean, low, high)
    style = {"ls": theme.series_dashes(series), "marker": theme.series_marker(series), "ms": 4}
    draw_band(axes, band, color=color, label=label, **style)


def draw_distilled(folder: str | Path, report: Mapping[str, Any], drift: pd.DataFrame | None = None) -> list[Path]:
    """Draw distilled.png and, if `drift` is given, drift.png into a folder, and return their paths."""
    choice = next(choice for choice in report["choices"] if "scores" in choice)
    figures = {"distilled": distilled_figure(choice)}
    if drift is not None:
        figures["drift"] = drift_figure(drift)
    return [save(figure, Path(folder) / f"{name}.png") for name, figure in figures.items()]


_WAVES: Final = {
    "before": (theme.GREY, "o", -0.14),
    "after": (theme.PALETTE[0], "s", 0.14),
    "change": (theme.PALETTE[1], "D", 0.0),
}
"""Colour, marker and vertical shift of each wave."""


def survey_figure(table: pd.DataFrame, wordings: Mapping[str, str], *, width: float = theme.WIDE) -> Figure:
    """Draw answers to closed questions before and after a run, and their change with intervals.

    The figure has two panels for each question, so it takes no `ax`.

    Args:
        table: The table of a survey, with columns `question`, `option`, `wave`, `n`, `mean`, `low`, `high`; not empty.
        wordings: Wording of each question, by its id, for titles.
        width: Width of the figure in centimetres.
    """
    is_narrow, questions = theme.is_narrow(width), dict(list(table.groupby("question", sort=False)))
    titles = [_title(rows, wordings.get(str(name), str(name)), width) for name, rows in questions.items()]
    pairs = zip(questions.values(), titles, strict=True)
    heights = [0.8 + 0.75 * rows["option"].nunique() + 0.36 * title.count("\n") for rows, title in pairs]
    figure = theme.new_figure(width, sum(heights) + 2.8)
    grid = figure.subplots(len(heights), 2, squeeze=False, width_ratios=[2, 1], height_ratios=heights)
    for (shares, changes), rows, title in zip(grid, questions.values(), titles, strict=True):
        _draw_question(shares, changes, rows, 15 if is_narrow else 28)
        theme.tidy(shares, title, grid="x")
        theme.tidy(changes, grid="x")
    grid[-1][0].set_xlabel("mean probability")
    grid[-1][1].set_xlabel("change, points")
    entries = [artist for axes in grid[0] for artist in axes.get_legend_handles_labels()[0]]
    theme.figure_legend(figure, entries, loc="outside upper left", ncols=2 if is_narrow else 4)
    means = "Mean probabilities of options over the n agents that answered, before and after the run"
    bars = "bars: 95 % intervals (Student's, over agents; of changes, after - before, paired)."
    theme.write_caption(figure, f"{means}; {bars}", width)
    return figure


def _title(rows: pd.DataFrame, question: str, width: float) -> str:
    n = ", ".join(f"{rows.loc[rows['wave'] == wave, 'n'].max():,} {wave}" for wave in ("before", "after"))
    return f"{fill(question, theme.letters(0.72 * width, theme.TEXT))}\nn = {n}"


def _draw_question(shares: Axes, changes: Axes, rows: pd.DataFrame, label_letters: int) -> None:
    """Draw the mean answers to one question with intervals, and their change; options without answers are left out."""
    options = list(rows["option"].unique())
    for wave, (color, marker, shift) in _WAVES.items():
        wave_rows = rows[(rows["wave"] == wave) & (rows["n"] > 0)]
        positions = [options.index(option) + shift for option in wave_rows["option"]]
        error_bars = [wave_rows["mean"] - wave_rows["low"], wave_rows["high"] - wave_rows["mean"]]
        axes = changes if wave == "change" else shares
        style: dict[str, Any] = {"fmt": marker, "color": color, "ms": 4, "lw": 1.2, "capsize": 2, "label": wave}
        axes.errorbar(wave_rows["mean"], positions, xerr=error_bars, **style)
    shares.axvline(1 / len(options), color=theme.GREY, lw=0.8, ls="--", label="all options equally likely")
    changes.axvline(0, color=theme.GREY, lw=0.8, ls="--")
    labels = theme.short_labels(list(map(str, options)), label_letters, 2)
    for axes, names, n_ticks in ((shares, labels, 4), (changes, [""] * len(options), 3)):
        axes.set_yticks(range(len(options)), names, parse_math=False)
        axes.set_ylim(len(options) - 0.5, -0.5)
        axes.xaxis.set_major_locator(MaxNLocator(n_ticks))
    shares.set_xlim(left=0)
    theme.percent_ticks(shares.xaxis)
    changes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g}"))


def draw_survey(folder: str | Path, table: pd.DataFrame, wordings: Mapping[str, str]) -> list[Path]:
    """Draw survey.png into a survey's folder, and return its path; no path if no closed question was asked."""
    return [] if table.empty else [save(survey_figure(table, wordings), Path(folder) / "survey.png")]
