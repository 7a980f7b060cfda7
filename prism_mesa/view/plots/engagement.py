"""Likes, replies and reshares: per round, per impression, and by how often posts were seen."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, StrMethodFormatter

from prism_mesa.errors import DataError, counted
from prism_mesa.statechart import STATE_COLORS, AgentState
from prism_mesa.view.plots import style as look
from prism_mesa.view.plots.rounds import Band, draw_band, interval_band, of_agents, rounds_axis, seeds_note
from prism_mesa.view.plots.sources import Drawable, Group, shared_interventions, to_groups

type Per = Literal["impression", "round", "post"]
type Kind = Literal["likes", "replies", "reshares", "all"]

KINDS: Final = {
    "likes": (AgentState.ENGAGING_LIKE, "o"),
    "replies": (AgentState.ENGAGING_REPLY, "s"),
    "reshares": (AgentState.ENGAGING_RESHARE, "^"),
}
"""Counters, with the state of agents that do it, whose colour they have, and a marker."""

_ALL: Final = "all"
_FEW: Final = 30
"""Rounds; of more no markers are drawn."""
_FEWEST: Final = 10
"""Posts of a class that is drawn."""


def engagement_figure(
    of: Drawable, *, per: Per = "impression", kind: Kind | None = None, ax: Axes | None = None, width: float = look.WIDE
) -> Figure:
    """Return likes, replies and reshares; for several groups of runs, their sum.

    Args:
        of: As for `states_figure`.
        per: ``impression``: rates per impression by round; ``round``: counts by round; ``post``: rates per impression
            by how often posts were seen, with intervals over posts.
        kind: The only kind to draw, or ``all`` for the sum.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there is nothing to draw.
        ConfigError: If `per` or `kind` is none of these.
    """
    ways = {"impression": _by_round, "round": _by_round, "post": _by_post}
    look.check_choice("engagement", "per", per, ways)
    if kind is not None:
        look.check_choice("engagement", "kind", kind, (*KINDS, _ALL))
    groups = to_groups(of)
    kinds = [kind] if kind else list(KINDS) if len(groups) == 1 else [_ALL]
    panel = look.open_panel(ax, width, legend_lines=len(groups) if width < look.WIDE * 0.75 else 1 + len(groups) // 3)
    ways[per](panel, groups, kinds, per)
    if len(groups) > 1 or len(kinds) > 1:
        panel.legend_below(1 if panel.is_narrow and len(groups) > 1 else 3)
    panel.caption(look.figure_caption(panel.axes), of)
    return panel.figure


def _by_round(panel: look.Panel, groups: Sequence[Group], kinds: Sequence[str], per: str) -> None:
    """Draw counts or rates by round."""
    axes, seen = panel.axes, 0
    for place, (group, name) in enumerate(zip(groups, _names(panel, groups), strict=True)):
        table = group.table("rounds", ["round", "impressions", *KINDS])
        seen += int(table["impressions"].sum())
        for kind in kinds:
            count = _counts(table, kind)
            rate = count / table["impressions"].where(table["impressions"] > 0)
            band = interval_band(table.assign(value=count if per == "round" else rate), "value")
            _draw(axes, band, place if len(groups) > 1 else None, kind, name)
    rounds_axis(axes, shared_interventions(groups))
    axes.set_ylim(0, max(1.0 if per == "round" else 1e-4, _top(axes)))
    if per == "round":
        axes.set_ylabel(_engagements(kinds), fontsize=look.TEXT)
        axes.yaxis.set_major_locator(look.whole_numbers())
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
        panel.title(f"{_engagements(kinds).capitalize()} per round")
        text = f"{_engagements(kinds).capitalize()}{of_agents(groups)} in each round"
    else:
        _rates(panel, kinds)
        text = (
            f"{_engagements(kinds).capitalize()}{of_agents(groups)} per 100 impressions, round by round "
            f"(n = {counted(seen, 'impression')})"
        )
    panel.caption(f"{text}.{seeds_note(groups)}")


def _counts(table: pd.DataFrame, kind: str) -> "pd.Series[int]":
    counts: pd.Series[int] = table[list(KINDS)].sum(axis=1) if kind == _ALL else table[kind]
    return counts


def _engagements(kinds: Sequence[str]) -> str:
    return kinds[0] if len(kinds) == 1 and kinds[0] != _ALL else "engagements"


def _rates(panel: look.Panel, kinds: Sequence[str]) -> None:
    panel.axes.set_ylabel("per impression", fontsize=look.TEXT)
    look.percent_axis(panel.axes.yaxis)
    panel.title(f"{_engagements(kinds).capitalize()} per impression")


def _names(panel: look.Panel, groups: Sequence[Group]) -> list[str]:
    return look.short_labels([group.label for group in groups], look.letters(panel.width) // 2)


def _draw(axes: Axes, band: Band, place: int | None, kind: str, name: str) -> None:
    """Draw a curve in the colour of its group, or of its kind if there is one group (`place` is None)."""
    state, marker = KINDS.get(kind, (AgentState.COMPOSING, "D"))
    color = STATE_COLORS[state] if place is None else look.series_color(place)
    marker = marker if place is None else look.series_marker(place)
    label = (kind if kind != _ALL else "engagements") if place is None else name
    style = {"marker": marker if len(band.x) <= _FEW else "", "ms": 3, "ls": look.series_dashes(place or 0)}
    draw_band(axes, band, color=color, label=label, clip_on=False, **style)


def _top(axes: Axes) -> float:
    """Return the upper end of an axis: above all bands, but low enough to keep lines out of the lower half."""
    heights = [np.asarray(line.get_ydata(), np.float64) for line in axes.lines]
    return min(axes.get_ylim()[1], 2 * max(float(np.nanmax(item, initial=0)) for item in heights))


def _by_post(panel: look.Panel, groups: Sequence[Group], kinds: Sequence[str], per: str) -> None:
    """Draw rates of posts by how often they were seen, in classes of doubling width."""
    axes, posts, unseen = panel.axes, 0, 0
    numbers = Counter[int]()
    for place, (group, name) in enumerate(zip(groups, _names(panel, groups), strict=True)):
        table = group.table("posts", ["kind", "impressions", *KINDS])
        table = table[table["kind"] == "post"]
        posts, unseen = posts + len(table), unseen + int((table["impressions"] == 0).sum())
        seen = table[table["impressions"] > 0]
        seen = seen.assign(least=2 ** np.floor(np.log2(seen["impressions"])).astype(int))
        seen = seen[seen.groupby("least")["least"].transform("size") >= _FEWEST]
        numbers.update(seen["least"].tolist())
        for kind in kinds:
            _draw(axes, _class_rates(seen, kind), place if len(groups) > 1 else None, kind, name)
    if not numbers:
        raise DataError(f"{groups[0].runs[0].name}: fewer than {_FEWEST} posts were seen: there is nothing to draw")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda least, _: f"{least:,.0f}"))
    axes.set_ylim(0, max(1e-4, _top(axes)))
    axes.set_xlabel("impressions of a post", fontsize=look.TEXT)
    _rates(panel, kinds)
    _write_numbers(panel, numbers)
    bands = seeds_note(groups) or " Bands: Student's 95 % intervals over posts."
    panel.caption(
        f"{_engagements(kinds).capitalize()}{of_agents(groups)} per 100 impressions of posts that were seen so "
        "often, or up to twice as often; a post and its reshares count together "
        f"(n = {counted(posts, 'post')}, of which {unseen:,} were never seen; their numbers stand above, classes of "
        f"fewer than {_FEWEST} are left out).{bands}"
    )


def _class_rates(seen: pd.DataFrame, kind: str) -> Band:
    """Return the rate of each class, with intervals over posts for one seed and over seeds for several."""
    rows = seen.assign(count=_counts(seen, kind))
    sums = rows.groupby(["seed", "least"], as_index=False)[["count", "impressions"]].sum()
    sums = sums.assign(rate=sums["count"] / sums["impressions"])
    if sums["seed"].nunique() > 1:
        return interval_band(sums, "rate", "least")
    from scipy.stats import t  # loading it takes as long as a small run

    rates = sums.set_index("least")
    left = rows["count"] - rates["rate"].loc[rows["least"]].to_numpy() * rows["impressions"]
    squares = (left**2).groupby(rows["least"]).sum()  # variance of a ratio of sums over posts, linearised
    n = rows.groupby("least").size()
    half = (t.ppf(0.975, n - 1) * np.sqrt(squares * n / (n - 1)) / rates["impressions"]).to_numpy(np.float64)
    mean = rates["rate"].to_numpy(np.float64)
    return Band(rates.index.to_numpy(np.float64), mean, np.maximum(mean - half, 0), mean + half, 1)


def _write_numbers(panel: look.Panel, numbers: Mapping[int, int]) -> None:
    """Write the number of posts in each class above the axes, where there is room."""
    step = 1 + len(numbers) * 6 // look.letters(panel.width)
    panel.axes.set_title(panel.axes.get_title(loc="left"), loc="left", fontsize=look.TEXT, pad=15)
    where = panel.axes.get_xaxis_transform()
    for place, least in enumerate(sorted(numbers)[::step]):
        text = f"{'n = ' if not place else ''}{numbers[least]:,}"
        panel.axes.annotate(text, (least, 1.01), xycoords=where, ha="center", fontsize=look.SMALL - 1, color="#444444")
