"""How far posts spread: the sizes of cascades."""

import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from prism_mesa.errors import ConfigError, counted
from prism_mesa.params import shown
from prism_mesa.runs.measures import ccdf
from prism_mesa.view.plots.bands import Band, agents_in_words, draw_band, range_band, seeds_in_words
from prism_mesa.view.plots.sources import Drawable, Group, groups_of
from prism_mesa.view.plots.style import (
    INK,
    SMALL,
    TEXT,
    WIDE,
    color_of,
    dashes_of,
    labels_of,
    letters,
    marker_of,
    open_panel,
)

type Real = bool | str | os.PathLike[str] | Mapping[str, npt.ArrayLike]
"""What runs are held against: data that PRISM carries, a folder with them, or sizes by name."""

CARRIED: Final = "VoterFraud2020"
_MOST_POINTS: Final = 200
_FEW: Final = 20
"""Fewer distinct sizes than that are marked one by one."""

type Floats = npt.NDArray[np.float64]


def cascades_figure(of: Drawable, *, real: Real = False, ax: Axes | None = None, width: float = WIDE) -> Figure:
    """Return the share of posts whose cascade reaches a size (CCDF), both axes logarithmic.

    Args:
        of: As for `states_figure`.
        real: What is drawn beside it: True for the values of VoterFraud2020 (Twitter) that PRISM carries, the folder of
            the data, as ``prism validate --data`` takes it, or sizes of cascades by name. False: nothing.
        ax: Axes to draw into; None: a new figure.
        width: Of a new figure, in centimetres.

    Raises:
        DataError: If there are no cascades to draw, or no such data.
        ConfigError: If `real` is none of these, or has sizes below 1.
    """
    groups, others = groups_of(of), _real(real)
    panel = open_panel(ax, width)
    axes, total, is_there = panel.axes, 0, False
    names = labels_of([group.label or "simulated" for group in groups], letters(panel.width) // 2 - 12)
    for place, (group, name) in enumerate(zip(groups, names, strict=True)):
        curves, n = _curves_of(group)
        total, is_there = total + n, is_there or any(len(sizes) for sizes, _ in curves)
        of_how_many = f" (n = {n:,})" if n else ""
        label = f"{name}{of_how_many}" if len(groups) > 1 or others else ""
        _draw(axes, curves, place, label)
    for place, (name, (sizes, shares)) in enumerate(others.items()):
        few = len(sizes) < _FEW
        style: dict[str, Any] = {"ls": (":", "-.")[place % 2] if few else "-", "marker": "D" if few else "", "ms": 3.5}
        axes.plot(sizes, shares, color=INK, lw=1.2, label=name, zorder=5, **style)
    axes.set_xlabel("cascade size s (a post and its reshares)", fontsize=TEXT)
    axes.set_ylabel("share of posts with size ≥ s", fontsize=TEXT)
    if is_there:
        axes.set(xscale="log", yscale="log")
        if axes.get_xlim()[1] < 10:  # small cascades: 2 and 3 rather than 2 x 10^0 and 3 x 10^0, which overlap
            axes.xaxis.set_major_formatter(LogFormatter())
            axes.xaxis.set_minor_formatter(LogFormatter())
    else:
        axes.text(0.5, 0.5, "nobody posted", transform=axes.transAxes, ha="center", fontsize=SMALL)
        axes.set(xticks=[], yticks=[])
    panel.title("How far posts spread")
    if len(groups) > 1 or others:
        panel.legend(loc="lower left" if not panel.is_narrow else "upper right")
    seeds = seeds_in_words(groups, band="from the lowest to the highest seed")
    whose = f"n = {counted(total, 'post')}" if total else "posts, as the study collects them"
    told = f"Sizes of the cascades of {whose}{agents_in_words(groups) if total else ''}.{seeds}"
    panel.caption(f"{told if is_there else 'There are no cascades: no post appeared.'}{_source(real)}", of)
    return panel.figure


def _source(real: Real) -> str:
    return f" {CARRIED}: Twitter, as PRISM carries it." if real is True else ""


def _real(real: Real) -> dict[str, tuple[Floats, Floats]]:
    """Return sizes and shares of what is real, by name."""
    if real is False:
        return {}
    from prism_mesa.studies.validation.real import carried, load_real_values  # loads scipy, as long as a small run

    if real is True:
        return {f"{CARRIED} (real)": carried().curves["cascade_sizes"]}
    if isinstance(real, str | os.PathLike):
        return {f"{CARRIED} (real)": load_real_values(os.fspath(real)).curves["cascade_sizes"]}
    if not isinstance(real, Mapping):
        raise ConfigError(f"real: give True, a folder of data, or sizes by name, not {shown(real)}")
    return {str(name): _ccdf_of(str(name), sizes) for name, sizes in real.items()}


def _ccdf_of(name: str, sizes: npt.ArrayLike) -> tuple[Floats, Floats]:
    try:
        numbers = np.asarray(sizes, np.float64)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if numbers.ndim != 1 or not len(numbers) or not (numbers >= 1).all():
        raise ConfigError(f"real: {name!r}: give sizes of cascades, each at least 1, in one list, not {shown(sizes)}")
    return ccdf(numbers)


def _curves_of(group: Group) -> tuple[list[tuple[Floats, Floats]], int]:
    """Return sizes and shares of each run, and of how many posts they are."""
    if not group.has("cascades") and group.has("curves"):
        found = group.table("curves", ["curve", "x", "y"])
        own = found[found["curve"] == "cascade_sizes"]
        return [(one["x"].to_numpy(), one["y"].to_numpy()) for _, one in own.groupby("seed")], 0
    curves, n = [], 0
    for run in group.runs:
        trees = run.table("cascades", ["size", "kind"])
        sizes = trees.loc[trees["kind"] == "post", "size"]
        n += len(sizes)
        curves.append(ccdf(sizes))
    return curves, n


def _draw(axes: Axes, curves: list[tuple[Floats, Floats]], place: int, label: str) -> None:
    color = color_of(place)
    if len(curves) == 1:
        sizes, shares = curves[0]
        marker = marker_of(place) if len(sizes) < 4 * _FEW else ""
        axes.plot(sizes, shares, color=color, marker=marker, ms=3, lw=1.2, label=label, ls=dashes_of(place))
    elif any(len(sizes) for sizes, _ in curves):
        draw_band(axes, _over_seeds(curves), color=color, label=label, ls=dashes_of(place))


def _over_seeds(curves: list[tuple[Floats, Floats]]) -> Band:
    """Return shares over seeds at sizes that lie evenly on a logarithmic axis, up to the largest of all seeds.

    A seed that does not reach a size has the share 0 there.
    """
    most = max(float(sizes[-1]) for sizes, _ in curves if len(sizes))
    at = np.unique(np.geomspace(1, most, _MOST_POINTS).round())
    rows = []
    for sizes, shares in curves:
        place = np.searchsorted(sizes, at)  # the smallest size there is that is no smaller
        rows.append(np.append(shares, 0.0)[np.minimum(place, len(sizes))])
    return range_band(at, rows)
