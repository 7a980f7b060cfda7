"""Calibration of the oracle: its probabilities against what happened."""

import json
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.errors import DataError
from prism_mesa.llm import Ledger
from prism_mesa.runs.run_files import LEDGER, check_within, read_table, run_folder
from prism_mesa.view.plots.sources import OneRun
from prism_mesa.view.plots.style import GREY, SMALL, TEXT, WIDE, open_panel, percent_axis, series_color

_BINS: Final = 10
_Z: Final = 1.959964
"""Of a normal distribution, 95 % lie within so many standard deviations."""


def oracle_figure(of: OneRun, *, ax: Axes | None = None, width: float = WIDE) -> Figure:
    """Return a reliability diagram: how often agents entered a state against the probability that the LLM gave it.

    Each open choice that the LLM answered with probabilities counts once for each of its options but the last, whose
    probability follows from the others. Bars are Wilson's intervals of 95 % (1927, doi:10.1080/01621459.1927.10502953).

    Args:
        of: A run whose LLM was asked for probabilities (`reasoner.answer`).
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If no LLM gave probabilities, or the transitions of the agents concerned were not recorded.
    """
    odds, came = _predictions(of)
    place = np.minimum((odds * _BINS).astype(int), _BINS - 1)
    n = np.bincount(place, minlength=_BINS)
    there = n > 0
    predicted = np.bincount(place, odds, _BINS)[there] / n[there]
    share = np.bincount(place, came, _BINS)[there] / n[there]
    low, high = wilson(share, n[there])
    panel = open_panel(ax, width, height=min(width, 10.0) + 1.2)
    axes = panel.axes
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.8, ls=":", label="as often as said")
    reach = np.clip([share - low, high - share], 0, None)
    style: dict[str, Any] = {"fmt": "o", "color": series_color(0), "ms": 4, "lw": 1.2, "capsize": 2}
    axes.errorbar(predicted, share, yerr=reach, label="open choices, by what was said", **style)
    for x, y, number in zip(predicted, np.maximum(share, high), n[there], strict=True):
        axes.annotate(f"{number:,}", (x, y), (0, 4), textcoords="offset points", ha="center", fontsize=SMALL - 1)
    axes.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.1))
    axes.set_xlabel("probability that the LLM gave an option", fontsize=TEXT)
    axes.set_ylabel("share in which the agent took it", fontsize=TEXT)
    for axis in (axes.xaxis, axes.yaxis):
        percent_axis(axis)
    panel.title("What the oracle said, and what happened")
    panel.legend_below(1 if panel.is_narrow else 2)
    off = float(np.average(np.abs(share - predicted), weights=n[there]))
    text = f"n = {len(odds):,} options, in bins of {100 // _BINS} % with their numbers; bars: 95 % intervals (Wilson)."
    panel.caption(f"{text} Expected calibration error {100 * off:.1f} points.", of)
    return panel.figure


def wilson(share: npt.NDArray[np.float64], n: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.float64], ...]:
    """Return Wilson's 95 % intervals of shares, given the numbers of cases."""
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return middle - half, middle + half


def _predictions(of: OneRun) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return the probabilities of options, and 1 for each option taken, else 0."""
    folder = run_folder(of)
    file = folder / LEDGER
    if not file.is_file():
        raise DataError(f"{folder}: has no {LEDGER}: what the oracle said is not kept")
    check_within(folder, file)
    with Ledger(file, read_only=True) as ledger:
        answers = {row.key: row for row in ledger.answers() if row.probabilities}
        asked = [row for row in ledger.asked() if row.key in answers]
    if not asked:
        raise DataError(f"{folder}: no LLM gave probabilities (reasoner.answer=probabilities): nothing to draw")
    moves = read_table(folder, "transitions", ["round", "tick", "agent", "to_state", "open"])
    keys = ["round", "tick", "agent"]
    questions = pd.DataFrame([(row.round, row.tick, row.agent, row.key) for row in asked], columns=[*keys, "key"])
    joined = questions.merge(moves[moves["open"]], on=keys)
    rows: list[tuple[float, bool]] = []
    for key, state in zip(joined["key"], joined["to_state"], strict=True):
        try:
            options, values = json.loads(answers[key].options), json.loads(answers[key].probabilities)
            rows += [(float(p), option == state) for option, p in zip(options, values, strict=True)][:-1]
        except (ValueError, TypeError, RecursionError):
            raise DataError(f"ledger {file}: is damaged: an answer holds no probabilities of its options") from None
    if not rows:
        raise DataError(f"{folder}: no transition of who asked was recorded (records.transitions): nothing to draw")
    predicted, came = np.array(rows, np.float64).T
    if not ((predicted >= 0) & (predicted <= 1)).all():
        raise DataError(f"ledger {file}: is damaged: a probability is not from 0 to 1")
    return predicted, came
