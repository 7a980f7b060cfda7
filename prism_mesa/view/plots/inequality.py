"""Inequality between agents: Lorenz curves and Gini coefficients."""

from typing import Final, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.errors import DataError
from prism_mesa.runs.measures import gini
from prism_mesa.studies.measures.curves import SHARES, lorenz
from prism_mesa.view.plots import style as look
from prism_mesa.view.plots.rounds import draw_band, range_band, seeds_note
from prism_mesa.view.plots.sources import ENGAGEMENTS, Drawable, RunTables, to_groups

type Shared = Literal["impressions", "engagements", "followers", "activity"]
type Amounts = npt.NDArray[np.float64]

_MEANINGS: Final = {
    "impressions": "impressions of what each agent wrote",
    "engagements": "likes, replies and reshares of what each agent wrote",
    "followers": "followers of each agent",
    "activity": "posts, likes, replies and reshares of each agent",
}


def lorenz_figure(
    of: Drawable, *, what: Shared = "impressions", ax: Axes | None = None, width: float = look.WIDE
) -> Figure:
    """Return a Lorenz curve (Lorenz 1905), from the agents with least to those with most, and its Gini coefficient.

    Args:
        of: As for `states_figure`.
        what: ``impressions`` or ``engagements`` that each agent's posts received, ``followers``, or ``activity``:
            the posts, likes, replies and reshares that it made.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there is nothing to draw.
        ConfigError: If `what` is none of these.
    """
    look.check_choice("lorenz", "what", what, _MEANINGS)
    groups = to_groups(of)
    panel = look.open_panel(ax, width, f"Inequality of {what}", height=min(width, 10.0) + 1.2)
    axes, sizes = panel.axes, set[int]()
    names = look.short_labels([group.label for group in groups], look.letters(panel.width) // 2 - 14)
    for place, (group, name) in enumerate(zip(groups, names, strict=True)):
        amounts = [_amounts(run, what) for run in group.runs]
        sizes |= {len(amount) for amount in amounts}
        if not any(amount.sum() for amount in amounts):
            raise DataError(f"{group.runs[0].name}: there are no {_MEANINGS[what]}: nothing to draw")
        band = range_band(SHARES, [lorenz(amount) for amount in amounts if amount.sum()])
        label = f"{name and f'{name}: '}Gini {float(np.mean([gini(amount) for amount in amounts])):.2f}"
        draw_band(axes, band, color=look.series_color(place), label=label, ls=look.series_dashes(place))
    axes.plot([0, 1], [0, 1], color=look.GREY, lw=0.8, ls=":", label="all equal: Gini 0")
    whole = "activity" if what == "activity" else f"all {what}"
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="share of agents, lowest first", ylabel=f"their share of {whole}")
    look.percent_ticks(axes.xaxis, axes.yaxis)
    look.axes_legend(axes, loc="upper left")
    n = " to ".join(f"{size:,}" for size in dict.fromkeys([min(sizes), max(sizes)]))
    seeds = seeds_note(groups, band="from the lowest to the highest seed")
    panel.caption(f"{_MEANINGS[what].capitalize()}: n = {n} agents.{seeds}", of)
    return panel.figure


def _amounts(run: RunTables, what: Shared) -> Amounts:
    """Return an amount for each agent, shape (agents,); engagements count at roots, so copies have none."""
    agents = run.table("agents", ["agent", "followers"] if what == "followers" else ["agent"])
    if what == "followers":
        return agents["followers"].to_numpy(np.float64)
    if what == "activity":
        posts = run.table("posts", ["author", "kind"])
        done = run.counts("engagements", ["agent"])
        posted = posts.loc[posts["kind"] == "post", "author"]
        authors, counts = [*posted, *done["agent"]], [*([1] * len(posted)), *done["n"]]
    else:
        columns = ENGAGEMENTS if what == "engagements" else [what]
        posts = run.table("posts", ["author", *columns])
        authors, counts = posts["author"].tolist(), posts[columns].sum(axis=1).tolist()
    if authors and not 0 <= min(authors) <= max(authors) < len(agents):
        raise DataError(f"{run.name}: a table names agents that table 'agents' lacks: it is damaged")
    return np.bincount(np.array(authors, np.int64), counts, minlength=len(agents)).astype(np.float64)
