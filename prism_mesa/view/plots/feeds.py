"""Comparison of feeds or other conditions: outcomes of each, and paired differences by seed."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import fill
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from prism_mesa.errors import ConfigError, DataError, counted
from prism_mesa.runs.measures import gini
from prism_mesa.studies.statistics.significance import interval
from prism_mesa.view.plots import style as look
from prism_mesa.view.plots.sources import Drawable, Group, RunTables, to_groups

type Floats = npt.NDArray[np.float64]

_ENGAGEMENTS: Final = ["likes", "replies", "reshares"]


def feeds_figure(
    of: Drawable, *, outcome: str | None = None, ax: Axes | None = None, width: float = look.WIDE
) -> Figure:
    """Return outcomes under several feeds or other conditions, and paired differences by seed.

    Each row is an outcome. The left panel shows the runs of each condition, joined by seed. The right panel shows
    the difference of each condition from the first by seed, with the mean and its paired 95 % interval.

    Args:
        of: Several groups of runs by label, such as ``{"chronological": runs, "x_algo": runs}``, or a study's result.
        outcome: The only outcome to draw, a key of `OUTCOMES`.
        ax: Axes to draw the differences of one outcome into; None: a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there is only one group, or no outcome that all runs have.
        ConfigError: If there is no such outcome, or you pass `ax` without `outcome`.
    """
    groups = to_groups(of)
    if outcome is not None:
        look.check_choice("feeds", "outcome", outcome, OUTCOMES)
    if ax is not None and outcome is None:
        raise ConfigError("feeds: several outcomes have a row each: name one (outcome=...), or give no ax")
    if len(groups) < 2:
        raise DataError("feeds: give at least two groups of runs by label, or a study with several conditions")
    measured = _measured(groups, [outcome] if outcome else list(OUTCOMES))
    if ax is not None:
        panel, (name, values) = look.open_panel(ax, width), next(iter(measured.items()))
        _differences(panel.axes, values, look.short_labels([group.label for group in groups], 22, 2), bare=False)
        panel.title(f"{name}, less {groups[0].label}")
        panel.caption(_caption(groups, measured))
        return panel.figure
    narrow = look.is_narrow(width)
    figure = look.new_figure(width, (1.7 + 0.4 * len(groups)) * len(measured) + 2.4)
    grid = figure.subplots(len(measured), 2, squeeze=False, sharex=False)
    names = look.short_labels([group.label for group in groups], 14 if narrow else 22, 2)
    for (left, right), (name, values) in zip(grid, measured.items(), strict=True):
        _runs(left, values, names)
        _differences(right, values, names, bare=True)
        for axes in (left, right):
            look.tidy(axes, grid="x")
            axes.xaxis.set_major_locator(MaxNLocator(3 if narrow else 5))
        left.set_title(fill(name, 22 if narrow else 60), loc="left", fontsize=look.TEXT)
    grid[0][1].set_title(
        look.short_labels([f"less {groups[0].label}"], 20 if narrow else 50)[0], loc="right", fontsize=look.TEXT
    )
    look.write_caption(figure, _caption(groups, measured), width)
    return figure


def _measured(groups: Sequence[Group], outcomes: Sequence[str]) -> dict[str, list[dict[int, float]]]:
    """Return outcomes by group and seed, those that the tables of all runs can give."""
    measured = {}
    for name in outcomes:
        table, make = OUTCOMES[name]
        if all(group.has(table) for group in groups):
            by_group = [{run.seed: make(run) for run in group.runs} for group in groups]
            if np.isfinite([value for by_seed in by_group for value in by_seed.values()]).any():
                measured[name] = by_group
    if not measured:
        missing = f"what it keeps does not tell {' or '.join(outcomes)}"
        raise DataError(f"{groups[0].runs[0].name}: {missing}: nothing to compare")
    return measured


def _caption(groups: Sequence[Group], measured: Mapping[str, Sequence[Mapping[int, float]]]) -> str:
    """Return a caption with the number of pairs."""
    least = min(_paired(first, other)[0].size for first, *others in measured.values() for other in others)
    seeds = f"n = {counted(least, 'pair')} of runs with the same seed"
    bars = "bars: the mean and its 95 % interval, paired by seed" if least > 1 else "one pair has no interval"
    less = f"differences are each condition less {groups[0].label}, {seeds}; {bars}."
    return f"Each mark is a run, or a difference of two; those of a seed are joined; {less}"


def _paired(base: Mapping[int, float], other: Mapping[int, float]) -> tuple[Floats, Floats]:
    """Return the values of both sides for their common seeds."""
    both = [seed for seed in base if seed in other and np.isfinite(base[seed]) and np.isfinite(other[seed])]
    return np.array([base[seed] for seed in both]), np.array([other[seed] for seed in both])


def _runs(axes: Axes, values: Sequence[Mapping[int, float]], names: Sequence[str]) -> None:
    """Draw the runs of each group as a row of marks, joined by seed."""
    for seed in dict.fromkeys(seed for by_seed in values for seed in by_seed):
        known = [(by_seed[seed], place) for place, by_seed in enumerate(values) if seed in by_seed]
        axes.plot(*np.array(known).T, color=look.GREY, lw=0.5, alpha=0.6, zorder=1)
    style: dict[str, Any] = {"ms": 3.5, "alpha": 0.8, "ls": "", "zorder": 2}
    for place, by_seed in enumerate(values):
        axes.plot(
            [*by_seed.values()],
            [place] * len(by_seed),
            look.series_marker(place),
            color=look.series_color(place),
            **style,
        )
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _differences(axes: Axes, values: Sequence[Mapping[int, float]], names: Sequence[str], *, bare: bool) -> None:
    """Draw the difference of each group from the first by seed, with the mean and its interval."""
    axes.axvline(0, color=look.GREY, lw=0.8, ls=":")
    for place, other in enumerate(values[1:], 1):
        left, right = _paired(values[0], other)
        beyond = right - left
        axes.plot(
            beyond,
            [place - 0.17] * len(beyond),
            look.series_marker(place),
            color=look.series_color(place),
            ms=3,
            alpha=0.7,
            ls="",
        )
        if len(beyond):
            low, high = interval(beyond[:, None], np.maximum(np.abs(left), np.abs(right)).max(initial=0.0))
            axes.plot([low[0], high[0]], [place + 0.17] * 2, color=look.INK, lw=1.6, solid_capstyle="butt")
            axes.plot([beyond.mean()], [place + 0.17], "D", color=look.INK, ms=4)
    axes.set_yticks(range(1, len(names)), [] if bare else list(names[1:]), parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _share_engaged(run: RunTables) -> float:
    sums = run.table("rounds", ["impressions", *_ENGAGEMENTS]).sum()
    return float(sums[_ENGAGEMENTS].sum() / sums["impressions"]) if sums["impressions"] else np.nan


def _seen(run: RunTables) -> float:
    rounds = run.table("rounds", ["impressions"])["impressions"]
    n = run.n_agents * len(rounds)  # 0 for a run of a study that keeps only measures
    return float(rounds.sum()) / n if n else np.nan


def _mean_cascade(run: RunTables) -> float:
    trees = run.table("cascades", ["size", "kind"])
    return float(trees.loc[trees["kind"] == "post", "size"].mean())


def _unequal(run: RunTables) -> float:
    posts = run.table("posts", ["kind", "impressions"])
    return float(gini(posts.loc[posts["kind"] == "post", "impressions"].to_numpy(np.float64)))


OUTCOMES: Final[Mapping[str, tuple[str, Callable[[RunTables], float]]]] = {
    "impressions per agent and round": ("rounds", _seen),
    "engagements per impression": ("rounds", _share_engaged),
    "mean size of cascades, posts": ("cascades", _mean_cascade),
    "Gini between posts, of their impressions": ("posts", _unequal),
}
"""Outcomes: the table that they need, and what is made of it."""
