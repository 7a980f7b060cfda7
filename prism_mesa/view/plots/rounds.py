"""Means over seeds with their intervals, and axes of rounds."""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from prism_mesa.errors import DataError, format_count
from prism_mesa.social.params.interventions import acts_by_key
from prism_mesa.view.plots.sources import Group
from prism_mesa.view.plots.style import BAND, INK, SMALL, whole_numbers


@dataclass(frozen=True)
class Band:
    """Means over seeds at coordinates `x`, and bounds that are NaN if there is no band, as for a single seed."""

    x: npt.ArrayLike
    mean: npt.ArrayLike
    low: npt.ArrayLike
    high: npt.ArrayLike


def interval_band(frame: pd.DataFrame, column: str, by: str = "round") -> Band:
    """Return the mean of a column over seeds with its 95 % interval, at coordinates where all seeds have values."""
    if frame.duplicated(["seed", by]).any():
        raise DataError(f"a table has the same {by} twice: it is damaged")
    values = frame.pivot(index="seed", columns=by, values=column).dropna(axis="columns")
    numbers = values.to_numpy(np.float64)
    low, high = np.full((2, numbers.shape[1]), np.nan)
    if len(numbers) > 1 and numbers.shape[1]:
        # loading scipy.stats takes as long as a small run
        from prism_mesa.studies.statistics.significance import interval

        low, high = interval(numbers)
    return Band(values.columns.to_numpy(np.float64), numbers.mean(axis=0), low, high)


def range_band(x: npt.ArrayLike, curves: Sequence[npt.ArrayLike]) -> Band:
    """Return the mean of curves, with a band from the lowest to the highest; a single curve has no band."""
    numbers = np.array(curves, np.float64)
    bounds = (numbers.min(axis=0), numbers.max(axis=0)) if len(numbers) > 1 else np.full((2, numbers.shape[1]), np.nan)
    return Band(x, numbers.mean(axis=0), *bounds)


def draw_band(axes: Axes, band: Band, *, color: str, label: str = "", **line: Any) -> None:
    """Draw the mean as a line, with its band if there is one."""
    if np.isfinite(band.low).any():
        axes.fill_between(band.x, band.low, band.high, color=color, alpha=BAND, lw=0)
    axes.plot(band.x, band.mean, color=color, label=label, **({"lw": 1.2} | line))


def seeds_note(groups: Sequence[Group], *, band: str = "95 % interval of the mean") -> str:
    """Return a note on the number of seeds and the meaning of bands; empty if each line is one run."""
    smallest, largest = (extreme(len(group.runs) for group in groups) for extreme in (min, max))
    if largest == 1:
        return ""
    n = f"{largest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
    return f" Lines: means of n = {n} seeds; bands: {band}."


def agents_note(groups: Sequence[Group]) -> str:
    """Return a note on the number of agents; empty if it is unknown for a group."""
    smallest, largest = (extreme(group.runs[0].n_agents for group in groups) for extreme in (min, max))
    if not smallest:
        return ""
    return f" of {format_count(largest, 'agent')}" if smallest == largest else f" of {smallest:,} to {largest:,} agents"


def rounds_axis(axes: Axes, interventions: Sequence[Mapping[str, Any]] = (), *, n_ticks: int = 9) -> None:
    """Label an axis of rounds, with about `n_ticks` whole-number ticks, and mark where interventions begin and end.

    Interventions are as in a manifest.
    """
    axes.set_xlabel("round")
    axes.xaxis.set_major_locator(whole_numbers(n_ticks))
    style: dict[str, Any] = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points", "rotation": 90}
    style |= {"va": "top", "ha": "left", "fontsize": SMALL - 1, "parse_math": False}
    for intervention in interventions:
        kind = next((key for key in acts_by_key() if intervention.get(key)), "")
        settings = ", ".join(f"{key}={value}" for key, value in intervention["set"].items())
        text = textwrap.shorten(settings or f"{kind}{f' ({name})' if (name := intervention.get('name')) else ''}", 40)
        is_targeted = bool(intervention.get("agents")) or intervention.get("share") is not None
        labels = {"at": f"{text}{' (some agents)' if is_targeted else ''}", "until": "ends"}
        for end, label in labels.items():
            if intervention.get(end) is not None:
                x = intervention[end] - 0.5
                axes.axvline(x, color=INK, lw=0.8, ls="--")
                axes.annotate(label, (x, 0.98), xytext=(2, 0), **style)
