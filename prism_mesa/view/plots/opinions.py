"""The distribution of stances by round."""

from collections.abc import Mapping

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import PowerNorm
from matplotlib.figure import Figure

from prism_mesa.errors import DataError
from prism_mesa.view.plots.rounds import rounds_axis
from prism_mesa.view.plots.sources import Drawable, Group, one_run, shared_interventions
from prism_mesa.view.plots.style import INK, SMALL, TEXT, WIDE, open_panel


def opinions_figure(of: Drawable, *, ax: Axes | None = None, width: float = WIDE) -> Figure:
    """Return the share of agents at each stance by round, darker for more, and the mean stance.

    Args:
        of: A run in which opinions change.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If opinions do not change, or a table is damaged.
    """
    run = one_run(of)
    group = Group("", (run,))
    means, stances = group.table("opinions", ["round", "mean"]), group.table("stances", ["round", "stance", "agents"])
    if stances.duplicated(["round", "stance"]).any() or stances["stance"].nunique() < 2:
        raise DataError(f"{run.name}: table 'stances' does not have each part of the range once (it is damaged)")
    panel = open_panel(ax, width)
    axes = panel.axes
    axes.grid(visible=False)
    counts = stances.pivot(index="stance", columns="round", values="agents")
    share = counts.to_numpy(np.float64) / np.maximum(counts.sum().to_numpy(np.float64), 1)
    middles, rounds = counts.index.to_numpy(), counts.columns.to_numpy()
    half = (middles[1] - middles[0]) / 2
    edges = [*(rounds - 0.5), rounds[-1] + 0.5], [*(middles - half), middles[-1] + half]
    norm = PowerNorm(0.5, 0, max(float(np.nanmax(share)), 1e-9))
    image = axes.pcolormesh(*edges, share, cmap="Blues", norm=norm, rasterized=True)
    axes.plot(means["round"], means["mean"], color=INK, lw=1, label="mean")
    axes.set(ylim=(edges[1][0], edges[1][-1]))
    params = run.config.get("opinions")
    name = params.get("of") if isinstance(params, Mapping) else None
    axes.set_ylabel(f"{name!s:.60}", parse_math=False, fontsize=TEXT)
    rounds_axis(axes, shared_interventions([group]))
    bar = panel.figure.colorbar(image, ax=axes)
    bar.set_label("share of agents", fontsize=TEXT)
    bar.ax.tick_params(labelsize=SMALL)
    panel.title("What agents hold")
    panel.legend(loc="lower right", bbox_to_anchor=(1, 1), borderaxespad=0.2)
    n = int(counts.iloc[:, -1].sum())
    panel.caption(
        f"Shares of agents (n = {n:,} in the last round) in {len(middles)} equal parts of the range; round -1 is "
        "before the first.",
        of,
    )
    return panel.figure
