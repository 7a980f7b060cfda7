"""Means over seeds with their intervals, and axes of rounds."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes

from prism_mesa.errors import DataError, counted
from prism_mesa.view.plots.sources import Group
from prism_mesa.view.plots.style import BAND, INK, SMALL, TEXT, whole_numbers

type Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Band:
    """A curve of one or more seeds.

    Attributes:
        x: Horizontal coordinates, shape (n,).
        mean: Means over seeds, shape (n,).
        low: Lower bounds, shape (n,); NaN where there is no band, as with one seed.
        high: Upper bounds, shape (n,).
        n_seeds: Number of seeds.
    """

    x: Floats
    mean: Floats
    low: Floats
    high: Floats
    n_seeds: int


def interval_band(frame: pd.DataFrame, column: str, by: str = "round") -> Band:
    """Return the mean over seeds with its 95 % interval, where all seeds have values.

    Args:
        frame: Columns `seed`, `by` and `column`, with each (seed, by) once.
        column: The column to average.
        by: The column of horizontal coordinates.

    Raises:
        DataError: If a seed has two values at one coordinate.
    """
    if frame.duplicated(["seed", by]).any():
        raise DataError(f"the same {by} stands twice in a table of one run: it is damaged")
    values = frame.pivot(index="seed", columns=by, values=column).dropna(axis="columns")
    numbers = values.to_numpy(np.float64)
    low, high = np.full((2, numbers.shape[1]), np.nan)
    if len(numbers) > 1 and numbers.shape[1]:
        # loading scipy.stats takes as long as a small run
        from prism_mesa.studies.statistics.significance import interval

        low, high = interval(numbers)
    return Band(values.columns.to_numpy(np.float64), numbers.mean(axis=0), low, high, len(numbers))


def range_band(x: npt.ArrayLike, curves: Sequence[npt.ArrayLike]) -> Band:
    """Return the mean of curves, with a band from the lowest to the highest; a single curve has no band."""
    numbers = np.array(curves, np.float64)
    low, high = (
        (numbers.min(axis=0), numbers.max(axis=0)) if len(numbers) > 1 else np.full((2, numbers.shape[1]), np.nan)
    )
    return Band(np.asarray(x, np.float64), numbers.mean(axis=0), low, high, len(numbers))


def draw_band(axes: Axes, band: Band, *, color: str, label: str = "", **line: Any) -> None:
    """Draw the mean as a line, and the band around it if there is one."""
    if np.isfinite(band.low).any():
        axes.fill_between(band.x, band.low, band.high, color=color, alpha=BAND, lw=0)
    axes.plot(band.x, band.mean, color=color, label=label, **({"lw": 1.2} | line))


def seeds_note(groups: Sequence[Group], *, band: str = "95 % interval of the mean") -> str:
    """Return a note on the number of seeds; empty if each line is one run.

    Args:
        groups: The groups that are drawn.
        band: Description of a band.
    """
    numbers = sorted({group.n_seeds for group in groups})
    if numbers == [1]:
        return ""
    n = f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"
    return f" Lines: means of n = {n} seeds; bands: {band}."


def of_agents(groups: Sequence[Group]) -> str:
    """Return a note on the number of agents; empty if it is unknown.

    >>> of_agents([])
    ''
    """
    numbers = sorted({group.n_agents for group in groups})
    if not numbers or not numbers[0]:
        return ""
    return (
        f" of {counted(numbers[0], 'agent')}" if len(numbers) == 1 else f" of {numbers[0]:,} to {numbers[-1]:,} agents"
    )


def named(groups: Sequence[Group], name: Callable[[Group], str]) -> list[str]:
    """Return a name for each group; a single group without a label has an empty name."""
    return [name(group) if group.label or len(groups) > 1 else "" for group in groups]


def rounds_axis(axes: Axes, changes: Sequence[Mapping[str, Any]] = (), *, most: int = 9) -> None:
    """Label an axis of rounds, with about `most` whole-number ticks, and mark changes of settings."""
    axes.set_xlabel("round", fontsize=TEXT)
    axes.xaxis.set_major_locator(whole_numbers(most))
    mark_changes(axes, changes)


def mark_changes(axes: Axes, changes: Sequence[Mapping[str, Any]]) -> None:
    """Draw a labelled line where an intervention begins or ends.

    Args:
        axes: Axes of rounds.
        changes: Interventions as in a manifest: `at`, `until`, `set`, `agents`.
    """
    for change in changes:
        words = ", ".join(f"{key}={value}" for key, value in change["set"].items())
        some = " (some agents)" if change.get("agents") else ""
        texts = {"at": f"{textwrap.shorten(words, 40)}{some}", "until": "ends"}
        for end, text in texts.items():
            if change.get(end) is not None:
                place = change[end] - 0.5
                axes.axvline(place, color=INK, lw=0.8, ls="--")
                style: dict[str, Any] = {"rotation": 90, "va": "top", "ha": "left", "fontsize": SMALL - 1}
                axes.annotate(
                    text,
                    (place, 0.98),
                    xycoords=axes.get_xaxis_transform(),
                    xytext=(2, 0),
                    textcoords="offset points",
                    parse_math=False,
                    **style,
                )
