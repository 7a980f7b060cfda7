"""The picture of opinions: how stances are spread, round by round."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from prism_mesa.errors import DataError
from prism_mesa.runs.run_files import filled_table, has_table, read_manifest
from prism_mesa.view.plots.files import save_figures
from prism_mesa.view.plots.rounds_axis import rounds_axis
from prism_mesa.view.plots.sources import groups_of, interventions_of
from prism_mesa.view.plots.style import INK, SMALL, TEXT, WIDE, open_panel


def opinions_figure(
    opinions: pd.DataFrame, stances: pd.DataFrame, of: str, changes: Sequence[Mapping[str, Any]] = ()
) -> Figure:
    """Return the share of agents at each stance per round, the darker the more, and their mean.

    Args:
        opinions: Columns `round` and `mean`: the table `opinions` of a run.
        stances: Columns `round`, `stance`, `agents`: the table `stances`.
        of: The attribute that moves.
        changes: The interventions of the run, as the manifest holds them: `at`, `until`, `set`.
    """
    panel = open_panel(None, WIDE)
    figure, axes = panel.figure, panel.axes
    axes.grid(visible=False)
    panel.title("What agents hold")
    counts = stances.pivot(index="stance", columns="round", values="agents")
    share = counts.to_numpy(np.float64) / np.maximum(counts.sum().to_numpy(np.float64), 1)
    middles, rounds = counts.index.to_numpy(), counts.columns.to_numpy()
    half = (middles[1] - middles[0]) / 2
    edges = [*(rounds - 0.5), rounds[-1] + 0.5], [*(middles - half), middles[-1] + half]
    image = axes.pcolormesh(
        *edges, share, cmap="Blues", norm=PowerNorm(0.5, 0, max(share.max(), 1e-9)), rasterized=True
    )
    axes.plot(opinions["round"], opinions["mean"], color=INK, lw=1, label="mean")
    axes.set(ylim=(edges[1][0], edges[1][-1]))
    axes.set_ylabel(of, parse_math=False, fontsize=TEXT)
    rounds_axis(axes, changes)
    axes.set_xlabel("round (-1: before the first)", fontsize=TEXT)
    bar = figure.colorbar(image)
    bar.set_label(f"share of agents, of {len(middles)} equal parts", fontsize=TEXT)
    bar.ax.tick_params(labelsize=SMALL)
    panel.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    return figure


def draw_opinions(folder: Path, *, partly: bool = False) -> list[Path]:
    """Draw opinions.png into a run's folder, and return its path; nothing where nobody's opinions move.

    Args:
        folder: The folder.
        partly: Whether it is left out where there are no rows.

    Raises:
        DataError: If a table has no rows, or is damaged; not with `partly`.
    """
    if not has_table(folder, "opinions"):
        return []

    def figure() -> Figure:
        means = filled_table(folder, "opinions", ["round", "mean"])
        stances = filled_table(folder, "stances", ["round", "stance", "agents"])
        if stances.duplicated(["round", "stance"]).any() or stances["stance"].nunique() < 2:
            raise DataError(f"{folder}: table 'stances' does not have each part of the range once (it is damaged)")
        return opinions_figure(means, stances, _moving(folder), interventions_of(groups_of(folder)))

    return save_figures(folder, {"opinions": figure}, partly=partly)


def _moving(folder: Path) -> str:
    """Return the attribute that moves, as the manifest says; it may say anything, and is only shown."""
    config = read_manifest(folder).get("config")
    opinions = config.get("opinions") if isinstance(config, dict) else None
    return f"{opinions.get('of') if isinstance(opinions, dict) else None!s:.60}"
