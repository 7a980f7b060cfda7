"""Inequality between agents: Lorenz curves and Gini coefficients."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.errors import DataError
from prism_mesa.runs.measures import gini
from prism_mesa.studies.measures.curves import SHARES, lorenz
from prism_mesa.view.plots import style as look
from prism_mesa.view.plots.rounds import draw_band, range_band, seeds_note
from prism_mesa.view.plots.sources import Drawable, RunTables, to_groups

type Shared = Literal["impressions", "engagements", "followers", "activity"]
type Amounts = npt.NDArray[np.float64]

_MEANT: Final = {
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
    look.check_choice("lorenz", "what", what, _AMOUNTS)
    groups = to_groups(of)
    panel = look.open_panel(ax, width, height=min(width, 10.0) + 1.2)
    axes, agents = panel.axes, set[int]()
    names = look.short_labels([group.label for group in groups], look.letters(panel.width) // 2 - 14)
    for place, (group, name) in enumerate(zip(groups, names, strict=True)):
        amounts = [_AMOUNTS[what](run) for run in group.runs]
        agents |= {len(amount) for amount in amounts}
        if not any(amount.sum() for amount in amounts):
            raise DataError(f"{group.runs[0].name}: there are no {_MEANT[what]}: nothing to draw")
        band = range_band(SHARES, [lorenz(amount) for amount in amounts if amount.sum()])
        unequal = float(np.mean([gini(amount) for amount in amounts]))
        label = f"{name}: Gini {unequal:.2f}" if name else f"Gini {unequal:.2f}"
        draw_band(axes, band, color=look.series_color(place), label=label, ls=look.series_dashes(place))
    axes.plot([0, 1], [0, 1], color=look.GREY, lw=0.8, ls=":", label="all alike: Gini 0")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xlabel("share of agents, those with least first", fontsize=look.TEXT)
    axes.set_ylabel(
        f"share of {'activity' if what == 'activity' else f'all {what}'} that they hold", fontsize=look.TEXT
    )
    for axis in (axes.xaxis, axes.yaxis):
        look.percent_axis(axis)
    panel.title(f"Inequality of {what}")
    panel.legend(loc="upper left")
    n = " to ".join(f"{amount:,}" for amount in dict.fromkeys([min(agents), max(agents)]))
    seeds = seeds_note(groups, band="from the lowest to the highest seed")
    panel.caption(f"{_MEANT[what].capitalize()}: n = {n} agents.{seeds}", of)
    return panel.figure


def _written(run: RunTables, columns: list[str]) -> Amounts:
    """Return sums of counters of posts by author; engagements count at roots, so copies have none."""
    posts = run.table("posts", ["author", *columns])
    return _by_agent(run, posts["author"], posts[columns].sum(axis=1))


def _by_agent(run: RunTables, agent: "pd.Series[int]", amount: "pd.Series[int]") -> Amounts:
    """Return sums of amounts by agent, shape (agents,).

    Raises:
        DataError: If there is no such agent.
    """
    n = len(run.table("agents", ["agent"]))
    if not agent.between(0, n - 1).all():
        raise DataError(f"{run.name}: a table names agents that table 'agents' has not: it is damaged")
    return np.bincount(agent, amount, minlength=n).astype(np.float64)


def _activity(run: RunTables) -> Amounts:
    """Return the posts and engagements of each agent."""
    posts = run.table("posts", ["author", "kind"])
    authors = posts.loc[posts["kind"] == "post", "author"]
    done = run.counts("engagements", ["agent"])
    return _by_agent(run, authors, authors * 0 + 1) + _by_agent(run, done["agent"], done["n"])


_AMOUNTS: Final[Mapping[str, Callable[[RunTables], Amounts]]] = {
    "impressions": lambda run: _written(run, ["impressions"]),
    "engagements": lambda run: _written(run, ["likes", "replies", "reshares"]),
    "followers": lambda run: np.asarray(run.table("agents", ["followers"])["followers"], np.float64),
    "activity": _activity,
}
