"""Outcomes of runs: compared between feeds or other conditions, and their inequality between agents."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import fill
from typing import Any, Final, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from prism_mesa.arrays import Floats
from prism_mesa.errors import ConfigError, DataError, format_count
from prism_mesa.runs.measures import gini
from prism_mesa.studies.measures.curves import SHARES, lorenz
from prism_mesa.studies.statistics.significance import interval
from prism_mesa.view.plots import style as theme
from prism_mesa.view.plots.rounds import draw_band, range_band, seeds_note
from prism_mesa.view.plots.sources import ENGAGEMENTS, Drawable, Group, RunTables, to_groups

type Values = Sequence[Mapping[int, float]]
"""An outcome by seed, for each group."""


def feeds_figure(
    source: Drawable, *, outcome: str | None = None, ax: Axes | None = None, width: float = theme.WIDE
) -> Figure:
    """Draw outcomes under several feeds or other conditions, and paired differences by seed.

    Each row is an outcome. The left panel shows the runs of each condition, joined by seed. The right panel shows
    the difference of each condition from the first by seed, with the mean and its paired 95 % interval.

    Args:
        source: Groups of runs by label, such as ``{"chronological": runs, "x_algo": runs}``, or a study's result.
        outcome: The only outcome to draw, a key of `OUTCOMES`.
        ax: Axes to draw the differences of one outcome into; None: a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there is only one group, or the runs have no outcome in common.
        ConfigError: If there is no such outcome, or you pass `ax` without `outcome`.
    """
    groups = to_groups(source)
    if outcome is not None:
        theme.check_choice("feeds", "outcome", outcome, OUTCOMES)
    if ax is not None and outcome is None:
        raise ConfigError("feeds: several outcomes have a row each: name one (outcome=...), or give no ax")
    if len(groups) < 2:
        raise DataError("feeds: give at least two groups of runs by label, or a study with several conditions")
    outcomes = _measure_outcomes(groups, [outcome] if outcome else list(OUTCOMES))
    labels = [group.label for group in groups]
    if ax is not None:
        [(name, values)] = outcomes.items()
        panel = theme.open_panel(ax, width, f"{name}, less {labels[0]}")
        _draw_differences(panel.axes, values, theme.short_labels(labels, 22, 2))
        panel.caption(_caption(labels[0], outcomes))
        return panel.figure
    is_narrow = theme.is_narrow(width)
    figure = theme.new_figure(width, (1.7 + 0.4 * len(groups)) * len(outcomes) + 2.4)
    grid = figure.subplots(len(outcomes), 2, squeeze=False)
    names = theme.short_labels(labels, 14 if is_narrow else 22, 2)
    for (left, right), (name, values) in zip(grid, outcomes.items(), strict=True):
        _draw_runs(left, values, names)
        _draw_differences(right, values, [""] * len(names))
        for axes, title in ((left, fill(name, 22 if is_narrow else 60)), (right, "")):
            theme.tidy(axes, title, grid="x")
            axes.xaxis.set_major_locator(MaxNLocator(3 if is_narrow else 5))
    [base] = theme.short_labels([f"less {labels[0]}"], 20 if is_narrow else 50)
    grid[0][1].set_title(base, loc="right", fontsize=theme.TEXT)
    theme.write_caption(figure, _caption(labels[0], outcomes), width)
    return figure


def _measure_outcomes(groups: Sequence[Group], names: Sequence[str]) -> dict[str, Values]:
    """Return the outcomes that can be computed from the tables of all runs."""
    outcomes: dict[str, Values] = {}
    for name in names:
        table, measure = OUTCOMES[name]
        if all(group.has(table) for group in groups):
            values = [{run.seed: measure(run) for run in group.runs} for group in groups]
            if np.isfinite([value for by_seed in values for value in by_seed.values()]).any():
                outcomes[name] = values
    if not outcomes:
        missing = f"its tables do not give {' or '.join(names)}"
        raise DataError(f"{groups[0].runs[0].name}: {missing}: nothing to compare")
    return outcomes


def _caption(base: str, outcomes: Mapping[str, Values]) -> str:
    """Return a caption with the smallest number of pairs."""
    n_pairs = min(_common_values(first, other)[0].size for first, *others in outcomes.values() for other in others)
    seeds = f"n = {format_count(n_pairs, 'pair')} of runs with the same seed"
    bars = "bars: the mean and its 95 % interval, paired by seed" if n_pairs > 1 else "one pair has no interval"
    differences = f"differences are each condition less {base}, {seeds}; {bars}"
    return f"Each mark is a run, or a difference of two; lines join runs of the same seed; {differences}."


def _common_values(base: Mapping[int, float], other: Mapping[int, float]) -> tuple[Floats, Floats]:
    """Return the values of two groups for the seeds that both have."""
    seeds = [seed for seed in base if seed in other and np.isfinite([base[seed], other[seed]]).all()]
    return np.array([base[seed] for seed in seeds]), np.array([other[seed] for seed in seeds])


def _draw_row(axes: Axes, values: Floats, index: int, shift: float, **style: Any) -> None:
    marker, color = theme.series_marker(index), theme.series_color(index)
    axes.plot(values, np.full(len(values), index + shift), marker, color=color, ls="", **style)


def _draw_runs(axes: Axes, values: Values, names: Sequence[str]) -> None:
    """Draw the runs of each group as a row of marks, joined by seed."""
    for seed in dict.fromkeys(seed for by_seed in values for seed in by_seed):
        points = [(by_seed[seed], index) for index, by_seed in enumerate(values) if seed in by_seed]
        axes.plot(*np.array(points).T, color=theme.GREY, lw=0.5, alpha=0.6, zorder=1)
    for index, by_seed in enumerate(values):
        _draw_row(axes, np.array([*by_seed.values()]), index, 0, ms=3.5, alpha=0.8, zorder=2)
    axes.set_yticks(range(len(names)), names, parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _draw_differences(axes: Axes, values: Values, names: Sequence[str]) -> None:
    """Draw the difference of each group from the first by seed, with the mean and its interval."""
    axes.axvline(0, color=theme.GREY, lw=0.8, ls=":")
    for index, other in enumerate(values[1:], 1):
        left, right = _common_values(values[0], other)
        differences = right - left
        _draw_row(axes, differences, index, -0.17, ms=3, alpha=0.7)
        if len(differences):
            low, high = interval(differences[:, None], np.maximum(np.abs(left), np.abs(right)).max(initial=0.0))
            axes.plot([low[0], high[0]], [index + 0.17] * 2, color=theme.INK, lw=1.6, solid_capstyle="butt")
            axes.plot([differences.mean()], [index + 0.17], "D", color=theme.INK, ms=4)
    axes.set_yticks(range(1, len(names)), names[1:], parse_math=False)
    axes.set_ylim(len(names) - 0.5, -0.5)


def _engagement_rate(run: RunTables) -> float:
    sums = run.table("rounds", ["impressions", *ENGAGEMENTS]).sum()
    return float(sums[ENGAGEMENTS].sum() / sums["impressions"]) if sums["impressions"] else np.nan


def _impression_rate(run: RunTables) -> float:
    rounds = run.table("rounds", ["impressions"])["impressions"]
    n = run.n_agents * len(rounds)  # 0 if a study kept only measures of the run
    return float(rounds.sum()) / n if n else np.nan


def _mean_cascade(run: RunTables) -> float:
    trees = run.table("cascades", ["size", "kind"])
    return float(trees.loc[trees["kind"] == "post", "size"].mean())


def _impression_gini(run: RunTables) -> float:
    posts = run.table("posts", ["kind", "impressions"])
    return float(gini(posts.loc[posts["kind"] == "post", "impressions"].to_numpy(np.float64)))


OUTCOMES: Final[Mapping[str, tuple[str, Callable[[RunTables], float]]]] = {
    "impressions per agent and round": ("rounds", _impression_rate),
    "engagements per impression": ("rounds", _engagement_rate),
    "mean size of cascades, posts": ("cascades", _mean_cascade),
    "Gini between posts, of their impressions": ("posts", _impression_gini),
}
"""For each outcome, the table that it needs and the function that measures it."""


type Quantity = Literal["impressions", "engagements", "followers", "activity"]

_MEANINGS: Final = {
    "impressions": "impressions of what each agent wrote",
    "engagements": "likes, replies and reshares of what each agent wrote",
    "followers": "followers of each agent",
    "activity": "posts, likes, replies and reshares of each agent",
}


def lorenz_figure(
    source: Drawable, *, what: Quantity = "impressions", ax: Axes | None = None, width: float = theme.WIDE
) -> Figure:
    """Draw a Lorenz curve (Lorenz 1905), with agents in ascending order, and its Gini coefficient.

    Args:
        source: As for `states_figure`.
        what: ``impressions`` or ``engagements`` that each agent's posts received, ``followers``, or ``activity``:
            the posts, likes, replies and reshares that it made.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there is nothing to draw.
        ConfigError: If `what` is not one of these.
    """
    theme.check_choice("lorenz", "what", what, _MEANINGS)
    groups = to_groups(source)
    panel = theme.open_panel(ax, width, f"Inequality of {what}", height=min(width, 10.0) + 1.2)
    axes, sizes = panel.axes, set[int]()
    names = theme.short_labels([group.label for group in groups], theme.letters(panel.width) // 2 - 14)
    for index, (group, name) in enumerate(zip(groups, names, strict=True)):
        amounts = [_amounts(run, what) for run in group.runs]
        sizes |= {len(amount) for amount in amounts}
        if not any(amount.sum() for amount in amounts):
            raise DataError(f"{group.runs[0].name}: there are no {_MEANINGS[what]}: nothing to draw")
        band = range_band(SHARES, [lorenz(amount) for amount in amounts if amount.sum()])
        label = f"{name and f'{name}: '}Gini {float(np.mean([gini(amount) for amount in amounts])):.2f}"
        draw_band(axes, band, color=theme.series_color(index), label=label, ls=theme.series_dashes(index))
    axes.plot([0, 1], [0, 1], color=theme.GREY, lw=0.8, ls=":", label="all equal: Gini 0")
    total = "activity" if what == "activity" else f"all {what}"
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="share of agents, lowest first", ylabel=f"their share of {total}")
    theme.percent_ticks(axes.xaxis, axes.yaxis)
    theme.axes_legend(axes, loc="upper left")
    n = " to ".join(f"{size:,}" for size in dict.fromkeys([min(sizes), max(sizes)]))
    seeds = seeds_note(groups, band="from the lowest to the highest seed")
    panel.caption(f"{_MEANINGS[what].capitalize()}: n = {n} agents.{seeds}", source)
    return panel.figure


def _amounts(run: RunTables, what: Quantity) -> Floats:
    """Return each agent's amount, shape (agents,); engagements with a reshare count for the author of its root."""
    agents = run.table("agents", ["agent", "followers"] if what == "followers" else ["agent"])
    if what == "followers":
        return np.asarray(agents["followers"], np.float64)
    if what == "activity":
        posts = run.table("posts", ["author", "kind"])
        engagements = run.count_rows("engagements", ["agent"])
        post_authors = posts.loc[posts["kind"] == "post", "author"]
        authors, counts = [*post_authors, *engagements["agent"]], [*([1] * len(post_authors)), *engagements["n"]]
    else:
        columns = ENGAGEMENTS if what == "engagements" else [what]
        posts = run.table("posts", ["author", *columns])
        authors, counts = posts["author"].tolist(), posts[columns].sum(axis=1).tolist()
    if authors and not 0 <= min(authors) <= max(authors) < len(agents):
        raise DataError(f"{run.name}: a table names agents that table 'agents' lacks: it is damaged")
    return np.bincount(np.array(authors, np.int64), counts, minlength=len(agents)).astype(np.float64)
