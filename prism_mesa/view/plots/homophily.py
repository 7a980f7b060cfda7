"""Ties between groups of agents, compared with chance."""

from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.errors import DataError
from prism_mesa.runs.run_files import run_folder
from prism_mesa.studies.measures.exposure import assortativity
from prism_mesa.studies.measures.finished import finished_run
from prism_mesa.studies.measures.measure import FinishedRun, writers
from prism_mesa.view.plots.network import Groups, attribute_groups, largest_groups
from prism_mesa.view.plots.sources import OneRun
from prism_mesa.view.plots.style import SMALL, TEXT, WIDE, check_choice, open_panel, short_labels

type Ints = npt.NDArray[np.int64]
type Tied = Literal["follows", "impressions", "engagements"]

_KINDS: Final = {"follows": "follows", "impressions": "impressions", "engagements": "likes, replies and reshares"}
_TIMES: Final = ("1/8", "1/4", "1/2", "1", "2", "4", "8")
_MOST: Final = 3.0
"""The deepest colour is of 2 to this power at most, times or parts of what chance gives."""


def homophily_figure(of: OneRun, *, what: Tied = "follows", ax: Axes | None = None, width: float = WIDE) -> Figure:
    """Return the ties from each group to each other as a multiple of chance.

    Rows follow, read or engage; columns are followed or wrote the post. Chance keeps the sums of rows and columns.
    Groups are those of the first declared attribute of agents, else communities.

    Args:
        of: A finished run.
        what: ``follows`` at the end of the run, ``impressions``, or ``engagements``.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there are no such ties.
        ConfigError: If `what` is none of these.
    """
    check_choice("homophily", "what", what, _KINDS)
    run = finished_run(run_folder(of))
    groups = attribute_groups(run)
    kind, names = largest_groups(groups)
    ends = _ties(run, what, groups)
    sources, targets = kind[ends[0]], kind[ends[1]]
    if not len(sources):
        raise DataError(f"{run_folder(of)}: there are no {what}: nothing to draw")
    counts = mixing(sources, targets, len(names))
    panel = open_panel(ax, width, height=min(width, 11.0) + 1.0)
    axes = panel.axes
    strength = np.log2(ratios(counts))
    most = float(np.clip(np.ceil(np.nanmax(np.abs(strength))), 1, _MOST))
    picture = axes.imshow(strength, cmap="PuOr_r", vmin=-most, vmax=most)
    _write(axes, counts, most)
    short = short_labels(names, 12 if panel.is_narrow else 20)
    axes.set_xticks(range(len(names)), short, rotation=45, ha="right", rotation_mode="anchor", parse_math=False)
    axes.set_yticks(range(len(names)), short, parse_math=False)
    axes.grid(visible=False)
    axes.set_xlabel("who is followed" if what == "follows" else "who wrote", fontsize=TEXT)
    axes.set_ylabel({"follows": "who follows", "impressions": "who reads"}.get(what, "who engages"), fontsize=TEXT)
    bar = panel.figure.colorbar(picture, ax=axes, shrink=0.8, ticks=list(range(-int(most), int(most) + 1)))
    bar.ax.set_yticklabels(_TIMES[3 - int(most) : 4 + int(most)], fontsize=SMALL)
    bar.set_label("times what chance gives", fontsize=TEXT)
    panel.title(f"{what.capitalize()} by {groups.by}")
    text = f"{_KINDS[what].capitalize()} from row to column, in multiples of what chance gives: n = {len(sources):,}"
    mixed = round(assortativity(sources, targets), 2) + 0.0  # avoids -0.00
    panel.caption(f"{text}; assortativity {mixed:.2f} (1: all within groups, 0: chance).", of)
    return panel.figure


def _ties(run: FinishedRun, what: Tied, groups: Groups) -> tuple[Ints, Ints]:
    """Return both ends of each tie between agents whose groups are known, as rows."""
    if what == "follows":
        pairs = run.follows()
        sources, targets = pairs["dst"].to_numpy(np.int64), pairs["src"].to_numpy(np.int64)
    else:
        table = run.table(what)
        sources, targets = table["agent"].to_numpy(np.int64), writers(run, table["root"].to_numpy(np.int64))
    n = len(groups.of)
    known = (sources >= 0) & (sources < n) & (targets >= 0) & (targets < n)
    return sources[known], targets[known]


def mixing(source: Ints, target: Ints, n: int) -> npt.NDArray[np.int64]:
    """Return the number of ties from each group to each, shape (n, n)."""
    return np.bincount(source * n + target, minlength=n * n).reshape(n, n).astype(np.int64)


def ratios(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Return counts over their expectation from the sums of rows and columns; NaN where a sum is 0."""
    chance = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(chance > 0, np.maximum(counts, 0.5 * (counts == 0)) / chance, np.nan)


def _write(axes: Axes, counts: npt.NDArray[np.int64], most: float) -> None:
    """Write the multiple into each cell, light on dark cells."""
    for (row, column), ratio in np.ndenumerate(ratios(counts)):
        if np.isfinite(ratio):
            text = "0" if counts[row, column] == 0 else f"{ratio:.2g}"
            color = "white" if abs(np.log2(ratio)) > 0.6 * most else "black"
            axes.text(column, row, text, ha="center", va="center", fontsize=SMALL, color=color)
