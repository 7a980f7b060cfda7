"""What pictures of runs have in common: axes, lines where settings change, and how they are written."""

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from prism_mesa.errors import DataError
from prism_mesa.runs.run_files import read_manifest, read_table
from prism_mesa.social.params import InterventionParams

DPI: Final = 150


def framed(title: str) -> tuple[Figure, Axes]:
    """Return a figure with axes under a title."""
    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def whole_numbers() -> MaxNLocator:
    """Return what places ticks at whole numbers."""
    return MaxNLocator(integer=True, min_n_ticks=1)


def mark_changes(axes: Axes, changes: Sequence[Mapping[str, Any]]) -> None:
    """Draw a line where settings begin or end to hold, and say which."""
    for change in changes:
        said = ", ".join(f"{key}={value}" for key, value in change["set"].items())
        some = " (some agents)" if change.get("agents") else ""
        texts = {"at": f"{textwrap.shorten(said, 40)}{some}", "until": "ends"}
        for end, text in texts.items():
            if change.get(end) is not None:
                place = change[end] - 0.5
                axes.axvline(place, color="black", lw=0.8, ls="--")
                style: dict[str, Any] = {"rotation": 90, "va": "top", "ha": "left", "fontsize": "x-small"}
                axes.annotate(
                    text,
                    (place, 0.98),
                    xycoords=axes.get_xaxis_transform(),
                    xytext=(2, 0),
                    textcoords="offset points",
                    **style,
                )


def changes_of(folder: Path) -> list[dict[str, Any]]:
    """Return the interventions of a run, as its manifest holds them; none where it says nothing of the kind."""
    try:
        own = read_manifest(folder)["config"]["interventions"]
        return [InterventionParams.model_validate(one).model_dump() for one in own]
    except (DataError, LookupError, TypeError, ValueError):  # pydantic's ValidationError is a ValueError
        return []


def filled_table(folder: Path, name: str, columns: Sequence[str]) -> pd.DataFrame:
    """Return some columns of a table of a run that has rows.

    Raises:
        DataError: If it is not there, or has none.
    """
    table = read_table(folder, name, columns)
    if table.empty:
        raise DataError(f"{folder}: table {name!r} has no rows: there is nothing to draw")
    return table


def save_figures(folder: Path, figures: Mapping[str, Callable[[], Figure]], dpi: int, *, partly: bool) -> list[Path]:
    """Write figures as PNG files of these names, and return their paths.

    Args:
        folder: Where to.
        figures: Name -> what makes the figure.
        dpi: Dots per inch.
        partly: Whether one that data are missing for is left out; else its error is raised.
    """
    drawn = []
    for name, make in figures.items():
        try:
            figure = make()
        except DataError:
            if not partly:
                raise
            continue
        drawn.append(folder / f"{name}.png")
        save(figure, drawn[-1], dpi)
    return drawn


def save(figure: Figure, file: Path, dpi: int = DPI) -> None:
    """Write a figure in place of what is there: a link, by whoever made the folder, is not written through."""
    file.unlink(missing_ok=True)
    figure.savefig(file, dpi=dpi)
