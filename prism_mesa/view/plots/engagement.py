"""Figures of likes, replies and reshares per round, per impression, and by the number of impressions of a post."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter

from prism_mesa.domain import STATE_COLORS, AgentState
from prism_mesa.errors import DataError, format_count
from prism_mesa.view.plots import style as theme
from prism_mesa.view.plots.rounds import Band, agents_note, draw_band, interval_band, rounds_axis, seeds_note
from prism_mesa.view.plots.sources import ENGAGEMENTS, Drawable, Group, shared_interventions, to_groups

_STYLES: Final = {
    "likes": (AgentState.ENGAGING_LIKE, "o"),
    "replies": (AgentState.ENGAGING_REPLY, "s"),
    "reshares": (AgentState.ENGAGING_RESHARE, "^"),
    "engagements": (AgentState.COMPOSING, "D"),
}
"""For each kind of engagement, a state (which sets the colour) and a marker; `engagements` is the sum of the others."""
_SUM: Final = "engagements"
_MARKED_ROUNDS: Final = 30
"""Curves over more rounds have no markers."""
_MIN_CLASS_SIZE: Final = 10
"""Classes with fewer posts are not drawn."""


def engagement_figure(
    source: Drawable,
    *,
    per: Literal["impression", "round", "post"] = "impression",
    kind: Literal["likes", "replies", "reshares", "all"] | None = None,
    ax: Axes | None = None,
    width: float = theme.WIDE,
) -> Figure:
    """Draw likes, replies and reshares, or their sum for several groups of runs.

    Args:
        source: As for `states_figure`.
        per: ``impression``: rates per impression by round; ``round``: counts by round; ``post``: rates per impression
            by the number of impressions of a post, with intervals over posts.
        kind: The only kind to draw, ``all`` for the sum, or None for the default.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there is nothing to draw.
        ConfigError: If `per` or `kind` is not one of these.
    """
    theme.check_choice("engagement", "per", per, ("impression", "round", "post"))
    if kind is not None:
        theme.check_choice("engagement", "kind", kind, (*ENGAGEMENTS, "all"))
    groups = to_groups(source)
    kinds = [_SUM if kind == "all" else kind] if kind else ENGAGEMENTS if len(groups) == 1 else [_SUM]
    name = kinds[0].capitalize() if len(kinds) == 1 else "Engagements"
    lines = len(groups) if width < theme.WIDE * 0.75 else 1 + len(groups) // 3
    title = f"{name} per {'round' if per == 'round' else 'impression'}"
    panel = theme.open_panel(ax, width, title, legend_lines=lines)
    if per == "round":
        panel.axes.set_ylabel(name.lower())
        panel.axes.yaxis.set_major_locator(theme.whole_numbers())
        panel.axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    else:
        panel.axes.set_ylabel("per impression")
        theme.percent_ticks(panel.axes.yaxis)
    text = (_draw_posts if per == "post" else _draw_rounds)(panel, groups, kinds, per)
    if len(groups) > 1 or len(kinds) > 1:
        panel.legend_below(1 if panel.is_narrow and len(groups) > 1 else 3)
    panel.caption(f"{name}{agents_note(groups)} {text}", source)
    return panel.figure


def _draw_rounds(panel: theme.Panel, groups: Sequence[Group], kinds: Sequence[str], per: str) -> str:
    """Draw counts or rates by round, and return the end of the caption."""
    n_impressions = 0
    for index, group in enumerate(groups):
        table = _with_sum(group.table("rounds", ["round", "impressions", *ENGAGEMENTS]))
        n_impressions += int(table["impressions"].sum())
        for kind in kinds:
            rate = table[kind] / table["impressions"].where(table["impressions"] > 0)
            band = interval_band(table.assign(value=table[kind] if per == "round" else rate), "value")
            _draw_curve(panel, groups, index, kind, band)
    rounds_axis(panel.axes, shared_interventions(groups))
    _fit_height(panel.axes, 1.0 if per == "round" else 1e-4)
    rates = f"per 100 impressions, round by round (n = {format_count(n_impressions, 'impression')})"
    return f"{'in each round' if per == 'round' else rates}.{seeds_note(groups)}"


def _with_sum(table: pd.DataFrame) -> pd.DataFrame:
    return table.assign(engagements=table[ENGAGEMENTS].sum(axis=1))


def _draw_curve(panel: theme.Panel, groups: Sequence[Group], index: int, kind: str, band: Band) -> None:
    """Draw a curve in the colour of its group, or of its kind if there is one group."""
    state, marker = _STYLES[kind]
    color, label = STATE_COLORS[state], kind
    if len(groups) > 1:
        color, marker = theme.series_color(index), theme.series_marker(index)
        label = theme.short_labels([group.label for group in groups], theme.letters(panel.width) // 2)[index]
    marker = marker if np.size(band.x) <= _MARKED_ROUNDS else ""
    style = {"marker": marker, "ms": 3, "ls": theme.series_dashes(index if len(groups) > 1 else 0), "clip_on": False}
    draw_band(panel.axes, band, color=color, label=label, **style)


def _fit_height(axes: Axes, min_top: float) -> None:
    """Extend an axis to the top of all bands, but at most to twice the height of the lines."""
    heights = [np.nanmax(np.asarray(line.get_ydata(), np.float64), initial=0) for line in axes.lines]
    axes.set_ylim(0, max(min_top, min(axes.get_ylim()[1], 2 * max(heights))))


def _draw_posts(panel: theme.Panel, groups: Sequence[Group], kinds: Sequence[str], per: str) -> str:
    """Draw rates by impressions of a post, in classes 1, 2-3, 4-7, ...; return the end of the caption."""
    axes, n_posts, n_unseen = panel.axes, 0, 0
    class_sizes = Counter[int]()
    for index, group in enumerate(groups):
        table = group.table("posts", ["kind", "impressions", *ENGAGEMENTS])
        table = _with_sum(table[table["kind"] == "post"])
        seen = table[table["impressions"] > 0]
        n_posts, n_unseen = n_posts + len(table), n_unseen + len(table) - len(seen)
        seen = seen.assign(class_start=2 ** np.floor(np.log2(seen["impressions"])).astype(int))
        seen = seen[seen.groupby("class_start")["class_start"].transform("size") >= _MIN_CLASS_SIZE]
        class_sizes.update(seen["class_start"].tolist())
        for kind in kinds:
            _draw_curve(panel, groups, index, kind, _class_rates(seen.assign(count=seen[kind])))
    if not class_sizes:
        raise DataError(f"{groups[0].runs[0].name}: fewer than {_MIN_CLASS_SIZE} posts were seen: nothing to draw")
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_xlabel("impressions of a post")
    _fit_height(axes, 1e-4)
    _write_sizes(panel, class_sizes)
    return (
        "per 100 impressions, for posts with this many impressions up to twice as many; a post and its reshares "
        f"count together (n = {format_count(n_posts, 'post')}, of which {n_unseen:,} were never seen; numbers of posts "
        f"are above, classes of fewer than {_MIN_CLASS_SIZE} are left out)."
        f"{seeds_note(groups) or ' Bands: 95 % intervals (Student) over posts.'}"
    )


def _class_rates(posts: pd.DataFrame) -> Band:
    """Return the rate of each class, with intervals over posts for one seed and over seeds for several."""
    sums = posts.groupby(["seed", "class_start"], as_index=False)[["count", "impressions"]].sum()
    sums = sums.assign(rate=sums["count"] / sums["impressions"])
    if sums["seed"].nunique() > 1:
        return interval_band(sums, "rate", "class_start")
    from scipy.stats import t  # loading it takes as long as a small run

    rates = sums.set_index("class_start")
    residuals = posts["count"] - rates["rate"].loc[posts["class_start"]].to_numpy() * posts["impressions"]
    squares = (residuals**2).groupby(posts["class_start"]).sum()  # variance of a ratio of sums over posts, linearised
    n = posts.groupby("class_start").size()
    half_width = (t.ppf(0.975, n - 1) * np.sqrt(squares * n / (n - 1)) / rates["impressions"]).to_numpy(np.float64)
    mean = rates["rate"].to_numpy(np.float64)
    return Band(rates.index.to_numpy(np.float64), mean, np.maximum(mean - half_width, 0), mean + half_width)


def _write_sizes(panel: theme.Panel, sizes: Mapping[int, int]) -> None:
    """Write the number of posts in each class above the axes, or in every n-th class if there are many."""
    axes, step = panel.axes, 1 + len(sizes) * 6 // theme.letters(panel.width)
    axes.set_title(axes.get_title(loc="left"), loc="left", fontsize=theme.TEXT, pad=15)
    style: dict[str, Any] = {"ha": "center", "color": "#444444", "fontsize": theme.SMALL - 1}
    for index, class_start in enumerate(sorted(sizes)[::step]):
        text = f"{'n = ' if not index else ''}{sizes[class_start]:,}"
        axes.annotate(text, (class_start, 1.01), xycoords=axes.get_xaxis_transform(), **style)
