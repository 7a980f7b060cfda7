"""The axis of rounds: whole numbers, and lines where settings change."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes

from prism_mesa.view.plots.style import INK, SMALL, TEXT, whole_numbers


def rounds_axis(axes: Axes, changes: Sequence[Mapping[str, Any]] = (), *, most: int = 9) -> None:
    """Name an axis of rounds, let it have about `most` whole numbers, and mark where settings change on it."""
    axes.set_xlabel("round", fontsize=TEXT)
    axes.xaxis.set_major_locator(whole_numbers(most))
    mark_changes(axes, changes)


def mark_changes(axes: Axes, changes: Sequence[Mapping[str, Any]]) -> None:
    """Draw a line where settings begin or end to hold, and say which.

    Args:
        axes: Axes of rounds.
        changes: Interventions, as a manifest holds them: `at`, `until`, `set`, `agents`.
    """
    for change in changes:
        said = ", ".join(f"{key}={value}" for key, value in change["set"].items())
        some = " (some agents)" if change.get("agents") else ""
        texts = {"at": f"{textwrap.shorten(said, 40)}{some}", "until": "ends"}
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
