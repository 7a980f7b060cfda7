"""Calibration of the oracle: its probabilities compared with the states that agents entered."""

import json
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.errors import DataError
from prism_mesa.llm import Ledger
from prism_mesa.runs.run_files import LEDGER, check_within, folder_of, read_table
from prism_mesa.view.plots.sources import OneRun
from prism_mesa.view.plots.style import GREY, SMALL, WIDE, open_panel, percent_ticks, series_color

type Floats = npt.NDArray[np.float64]

_BINS: Final = 10
_Z: Final = 1.959964
"""The 97.5 % quantile of the normal distribution."""


def oracle_figure(of: OneRun, *, ax: Axes | None = None, width: float = WIDE) -> Figure:
    """Return a reliability diagram: how often agents entered a state against the probability that the LLM gave it.

    Each open choice that the LLM answered with probabilities counts once for each of its options but the last, whose
    probability follows from the others. Bars are Wilson's 95 % intervals (1927, doi:10.1080/01621459.1927.10502953).

    Args:
        of: A run whose LLM was asked for probabilities (`reasoner.answer`).
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If no LLM gave probabilities, or the transitions of the agents concerned were not recorded.
    """
    odds, taken = _predictions(of)
    bins = np.minimum((odds * _BINS).astype(int), _BINS - 1)
    n = np.bincount(bins, minlength=_BINS)
    sums = np.stack([np.bincount(bins, weights, _BINS) for weights in (odds, taken)])[:, n > 0]
    n = n[n > 0]
    predicted, share = sums / n
    low, high = wilson(share, n)
    panel = open_panel(ax, width, "Predicted and observed choices", height=min(width, 10.0) + 1.2)
    axes = panel.axes
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":", label="as often as predicted")
    reach = np.clip([share - low, high - share], 0, None)
    style: dict[str, Any] = {"fmt": "o", "color": series_color(0), "ms": 4, "lw": 1.2, "capsize": 2}
    axes.errorbar(predicted, share, yerr=reach, label="open choices, by predicted probability", **style)
    for x, y, number in zip(predicted, np.maximum(share, high), n, strict=True):
        axes.annotate(f"{number:,}", (x, y), (0, 4), textcoords="offset points", ha="center", fontsize=SMALL - 1)
    axes.set(xlim=(-0.02, 1.02), xlabel="probability that the LLM gave an option")
    axes.set(ylim=(-0.02, 1.1), ylabel="share in which the agent took it")
    percent_ticks(axes.xaxis, axes.yaxis)
    panel.legend_below(1 if panel.is_narrow else 2)
    error = float(np.average(np.abs(share - predicted), weights=n))
    text = f"n = {len(odds):,} options, in bins of {100 // _BINS} % with their numbers; bars: 95 % intervals (Wilson)."
    panel.caption(f"{text} Expected calibration error {100 * error:.1f} points.", of)
    return panel.figure


def wilson(share: Floats, n: npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return Wilson's 95 % intervals of shares, given the numbers of cases."""
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return middle - half, middle + half


def _predictions(of: OneRun) -> tuple[Floats, Floats]:
    """Return the probabilities of options, and 1 for each option taken, else 0."""
    folder = folder_of(of)
    file = folder / LEDGER
    if not file.is_file():
        raise DataError(f"{folder}: has no {LEDGER}: the oracle's answers are not kept")
    check_within(folder, file)
    with Ledger(file, read_only=True) as ledger:
        answers = {row.key: row for row in ledger.answers() if row.probabilities}
        asked = [(row.round, row.tick, row.agent, row.key) for row in ledger.asked() if row.key in answers]
    if not asked:
        raise DataError(f"{folder}: no LLM gave probabilities (reasoner.answer=probabilities): nothing to draw")
    moves = read_table(folder, "transitions", ["round", "tick", "agent", "to_state", "open"])
    questions = pd.DataFrame(asked, columns=["round", "tick", "agent", "key"])
    joined = questions.merge(moves[moves["open"]], on=["round", "tick", "agent"])
    rows: list[tuple[float, bool]] = []
    for key, state in zip(joined["key"], joined["to_state"], strict=True):
        try:
            options, odds = json.loads(answers[key].options), json.loads(answers[key].probabilities)
            rows += [(float(p), option == state) for option, p in zip(options, odds, strict=True)][:-1]
        except (ValueError, TypeError, RecursionError):
            raise DataError(f"ledger {file}: is damaged: an answer holds no probabilities of its options") from None
    if not rows:
        raise DataError(f"{folder}: no transition of an agent that asked was recorded (records.transitions)")
    predicted, taken = np.array(rows, np.float64).T
    if not ((predicted >= 0) & (predicted <= 1)).all():
        raise DataError(f"ledger {file}: is damaged: a probability is not from 0 to 1")
    return predicted, taken
