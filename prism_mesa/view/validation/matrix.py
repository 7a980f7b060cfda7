"""The figure of null models and ablations: which targets each of them misses, and by how much."""

from math import isfinite, isnan, nan
from typing import Final

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.figure import NotebookFigure
from prism_mesa.studies.validation.rows import Row
from prism_mesa.studies.validation.validation import Validation
from prism_mesa.studies.validation.variants import FULL
from prism_mesa.view.plots.style import GREY, INK, PALETTE, SMALL, WIDTH, tidy_legend

_FARTHEST: Final = 2.0
"""Halves of what is allowed, beyond it, from which on a sign has its full size."""

_SIGNS: Final = (
    ("above what is allowed", "^", PALETTE[1]),
    ("below what is allowed", "v", PALETTE[0]),
    ("no value", "x", INK),
)


def beyond(row: Row) -> float:
    """Return by how many halves of what is allowed a mean lies beyond it, negative below; 0 inside, NaN without value.

    A mean of less than half of the seeds counts as none.
    """
    if not row.fails:
        return 0.0
    if not isfinite(row.simulated) or row.target.low <= row.simulated <= row.target.high:
        return nan
    half = (row.target.high - row.target.low) / 2
    above = row.simulated > row.target.high
    return (row.simulated - row.target.high if above else row.simulated - row.target.low) / half


def matrix_figure(found: Validation) -> Figure:
    """Return variants by targets: nothing where a mean is inside, else a sign for above, below or no value.

    The larger a sign the farther; targets that do not apply to this world are left out.
    """
    places = [place for place, row in enumerate(found.rows) if row.inside is not None]
    tables = {FULL: found.rows, **found.variants}
    figure = NotebookFigure(figsize=(WIDTH, 2.6 + 0.27 * len(tables)), layout="constrained")
    axes = figure.subplots()
    signs = [(x, y, beyond(rows[place])) for y, rows in enumerate(tables.values()) for x, place in enumerate(places)]
    for (told, marker, color), at in zip(_SIGNS, _sorted(signs), strict=True):
        x, y, sizes = zip(*at, strict=True) if at else ((), (), ())
        axes.scatter(x, y, s=sizes, marker=marker, color=color, label=told)
    _frame(axes, [found.rows[place].target.told for place in places], list(tables))
    tidy_legend(figure.legend(loc="outside lower left", ncols=3, frameon=False, fontsize=SMALL))
    return figure


def _sorted(signs: list[tuple[int, int, float]]) -> tuple[list[tuple[int, int, float]], ...]:
    """Return places and areas of what is above, of what is below, and of what has no value."""
    drawn = [(x, y, 40 + 90 * min(1.0, abs(off) / _FARTHEST), off) for x, y, off in signs if off]
    above = [one[:3] for one in drawn if one[3] > 0]
    below = [one[:3] for one in drawn if one[3] < 0]
    return above, below, [(x, y, 60.0) for x, y, off in signs if isnan(off)]


def _frame(axes: Axes, columns: list[str], lines: list[str]) -> None:
    axes.set_xticks(np.arange(len(columns)), columns, rotation=60, ha="left", rotation_mode="anchor", fontsize=8)
    axes.xaxis.tick_top()
    axes.set_yticks(np.arange(len(lines)), [name.replace("_", " ") for name in lines])
    axes.set(xlim=(-0.5, len(columns) - 0.5), ylim=(len(lines) - 0.5, -0.5))
    axes.grid(visible=True, color=GREY, alpha=0.25)
    axes.set_axisbelow(True)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
