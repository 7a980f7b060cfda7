"""Figures of ties between agents: the follow graph before and after a run, and ties between groups versus chance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from prism_mesa.arrays import Floats, Ints, Mask
from prism_mesa.errors import DataError, format_count, shorten
from prism_mesa.runs.run_files import has_table, run_folder
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.streams import Streams
from prism_mesa.studies.measures.exposure import assortativity, external_internal, sides
from prism_mesa.studies.measures.finished import finished_run, start_and_end_networks
from prism_mesa.studies.measures.measure import FinishedRun, communities, main_interests, root_authors
from prism_mesa.view.plots import style as theme
from prism_mesa.view.plots.sources import OneRun

type Pairs = tuple[Ints, Ints]

MAX_AGENTS: Final = 50_000
"""Maximum number of agents in a picture; rebuilding a larger network takes longer than all other pictures."""
_DRAWN_AGENTS: Final = 1000
_DRAWN_FOLLOWS: Final = 2500
_DRAWN_CHANGES: Final = 200
CHANGED: Final = "#d6006c"
"""Colour of follows that are in only one panel."""
_MAX_GROUPS: Final = 6
_GOLDEN_ANGLE: Final = np.pi * (3 - np.sqrt(5))
_OTHERS: Final = "others"


@dataclass(frozen=True)
class Groups:
    """Groups of agents: `codes` are indices into `names` for each agent, or -1 without a group."""

    codes: Ints
    names: Sequence[str]
    attribute: str


def attribute_groups(run: FinishedRun, by: str | None = None) -> Groups:
    """Group agents by a declared attribute (None: the first, or else communities); others raise a ConfigError."""
    declared = run.config.attributes
    by = by or next((name for name in declared if declared[name].of == "agent"), None)
    if by is not None:
        codes = sides(run, by)
        if (range_ := declared[by].range) is not None:
            middle = sum(range_) / 2
            return Groups(codes, [f"{by} up to {middle:g}", f"{by} above {middle:g}"], by)
        return Groups(codes, [str(value) for value in sorted(set(run.table("agents")[by]))], by)
    partition = communities(run)
    if run.config.network.kind == "stochastic_block":
        return Groups(partition.groups, [f"block {number}" for number in range(partition.n)], "block")
    main, interests = main_interests(run)
    names = {int(group): interests[top] for group, top in zip(partition.groups, main, strict=True) if group >= 0}
    return Groups(partition.groups, [names.get(number, "") for number in range(partition.n)], "main interest")


def largest_groups(groups: Groups) -> tuple[Ints, list[str]]:
    """Return groups and names, with small groups and agents without a group merged into a last group."""
    sizes = np.bincount(groups.codes[groups.codes >= 0], minlength=len(groups.names))
    n_largest = _MAX_GROUPS if len(groups.names) <= _MAX_GROUPS else _MAX_GROUPS - 1
    largest = np.sort(np.argsort(-sizes, kind="stable")[:n_largest])
    position = np.full(len(sizes) + 1, len(largest))  # the last entry is for agents without a group
    position[largest] = np.arange(len(largest))
    legend_group = position[groups.codes]
    names = [groups.names[group] for group in largest.tolist()]
    return legend_group, [*names, _OTHERS] if (legend_group == len(largest)).any() else names


def network_figure(source: str | Path, *, width: float = theme.WIDE) -> Figure:
    """Draw the follow graph before and after a run, with the same positions of agents; see `follow_figure`.

    Args:
        source: A finished run, or its folder.
        width: Width of the figure in centimetres.

    Raises:
        DataError: If the network did not change, is too large, or cannot be rebuilt.
    """
    folder = run_folder(source)
    if not has_table(folder, "follows"):
        raise DataError(f"{folder}: its network did not change")
    run = finished_run(folder)
    if run.config.network.dynamics != "live" or len(run.table("agents")) > MAX_AGENTS:
        raise DataError(f"{folder}: its network is fixed, or has more than {MAX_AGENTS:,} agents")
    before, after = start_and_end_networks(folder)
    groups = attribute_groups(run)
    _check_agents(folder, groups, before.n_agents)
    first_groups = replace(groups, codes=groups.codes[: before.n_agents])
    return follow_figure(before, after, first_groups, folder, width=width)


def _check_agents(folder: Path, groups: Groups, n: int) -> None:
    if len(groups.codes) < n:
        raise DataError(f"{folder}: table 'agents' has fewer rows than its network has agents: it is damaged")


def network_by_attribute_figure(
    source: OneRun, *, by: str | None = None, ax: Axes | None = None, width: float = theme.WIDE
) -> Figure:
    """Draw the follow graph at the end of a run, with agents in groups and sized by their followers.

    Args:
        source: A finished run.
        by: A declared attribute of agents; None for the first declared attribute, or else communities.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        ConfigError: If the run has no such attribute.
        DataError: If the network cannot be rebuilt.
    """
    run = finished_run(run_folder(source))
    groups, table = attribute_groups(run, by), run.follows()
    src, dst = (table[end].to_numpy(np.int64) for end in ("src", "dst"))
    n = len(groups.codes)
    _check_agents(run_folder(source), groups, 1 + max(src.max(initial=-1), dst.max(initial=-1)))
    scene = _make_scene(groups, np.bincount(src, minlength=n))
    follows = scene.drawn_follows(src, dst)
    share = min(1.0, _DRAWN_FOLLOWS / max(1, len(follows[0])))
    sampled = _sample(*follows, share)
    height = min(width * _height_by_width(scene.points), 12.0) + 1.9
    panel = theme.open_panel(ax, width, f"Who follows whom, by {shorten(groups.attribute, 40)}", height=height)
    scene.draw(panel.axes, sampled, scene.alpha(sampled))
    panel.legend_below(2 if panel.is_narrow else 4, handles=scene.legend_marks())
    lines = f"{100 * share:.0f} % of the follows among them" if share < 1 else f"all {len(sampled[0]):,} follows"
    index = external_internal(groups.codes[src], groups.codes[dst])
    n_drawn, total = int(scene.is_drawn.sum()), format_count(n, "agent")
    agents = f"{n_drawn:,} of {total}, drawn evenly" if n_drawn < n else f"All {total}"
    caption = f"{agents}, and {lines}; larger dots have more followers; dark lines lead between groups"
    panel.caption(f"{caption}. E-I index of all follows: {index:.2f} (-1: all inside groups, 1: all between).", source)
    return panel.figure


@dataclass(frozen=True)
class _Scene:
    """Agents to draw, and the names and colours of their groups."""

    points: Floats  # shape (n, 2); NaN if an agent is not drawn
    legend_group: Ints  # index of each agent's group in `names`
    group: Ints  # each agent's group before small ones were merged
    followers: Ints
    names: list[str]
    palette: list[str]

    @property
    def is_drawn(self) -> Mask:
        """Whether each agent is drawn, shape (n,)."""
        return np.isfinite(self.points[:, 0])

    def drawn_follows(self, src: npt.NDArray[Any], dst: npt.NDArray[Any]) -> Pairs:
        """Return the follows between drawn agents."""
        is_known = (src < len(self.points)) & (dst < len(self.points))
        src, dst = src[is_known].astype(np.int64), dst[is_known].astype(np.int64)
        is_between = self.is_drawn[src] & self.is_drawn[dst]
        return src[is_between], dst[is_between]

    def alpha(self, *samples: Pairs) -> float:
        """Return the opacity of lines between groups; it decreases with their number."""
        largest = max(int((self.group[src] != self.group[dst]).sum()) for src, dst in samples)
        return float(np.clip(100 / max(1, largest), 0.07, 0.2))

    def lines(self, pairs: Pairs) -> list[Floats]:
        """Return each follow as a line from the follower to the followed."""
        src, dst = pairs
        return list(np.stack([self.points[dst], self.points[src]], axis=1))

    def draw(self, axes: Axes, follows: Pairs, alpha: float) -> None:
        """Draw follows, dark between groups and else in the group's colour, and agents on top of them."""
        src, dst = follows
        colors = np.array(self.palette)[self.legend_group]
        is_within = self.group[src] == self.group[dst]
        style: dict[str, Any] = {"colors": list(colors[src[is_within]]), "alpha": 0.25, "lw": 0.6, "zorder": 1}
        axes.add_collection(LineCollection(self.lines((src[is_within], dst[is_within])), **style))
        between = self.lines((src[~is_within], dst[~is_within]))
        axes.add_collection(LineCollection(between, colors=theme.INK, alpha=alpha, lw=0.6, zorder=2))
        points, followers = self.points[self.is_drawn], self.followers[self.is_drawn]
        sizes = 5 + 40 * np.sqrt(followers / max(1, int(followers.max(initial=0))))
        style = {"c": list(colors[self.is_drawn]), "edgecolors": "white", "linewidths": 0.5, "zorder": 3}
        axes.scatter(points[:, 0], points[:, 1], s=sizes, **style)
        axes.set_aspect("equal")
        axes.axis("off")
        axes.margins(0.03)

    def legend_marks(self) -> list[Line2D]:
        """Return the legend entries of the groups."""
        style: dict[str, Any] = {"ls": "", "marker": "o", "ms": 5, "mec": "white"}
        groups = zip(self.names, self.palette, strict=True)
        return [Line2D([], [], color=color, label=shorten(name, 24), **style) for name, color in groups]


def _make_scene(groups: Groups, followers: Ints) -> _Scene:
    """Return positions and colours of agents; many agents are sampled evenly."""
    legend_group, names = largest_groups(groups)
    n = len(followers)
    sampled = np.sort(np.argsort(Streams(0).uniform("agents drawn", np.arange(n)), kind="stable")[:_DRAWN_AGENTS])
    points = np.full((n, 2), np.nan)
    points[sampled] = _place_agents(legend_group[sampled], len(names), followers[sampled])
    last = theme.GREY if names[-1] == _OTHERS else theme.PALETTE[len(names) - 1]
    return _Scene(points, legend_group, groups.codes, followers, names, [*theme.PALETTE[: len(names) - 1], last])


def follow_figure(
    before: FollowNetwork, after: FollowNetwork, groups: Groups, run: OneRun | None = None, *, width: float = theme.WIDE
) -> Figure:
    """Draw two networks of the same agents side by side, or stacked if the figure is narrow.

    The figure has two panels, so it takes no `ax`. The caption names `run`, if given.
    """
    scene = _make_scene(groups, np.bincount(before.edges()[0], minlength=before.n_agents))
    edges = [scene.drawn_follows(*network.edges()) for network in (before, after)]
    share = min(1.0, _DRAWN_FOLLOWS / max(1, *(len(src) for src, _ in edges)))
    samples = [_sample(*pairs, share) for pairs in edges]
    alpha = scene.alpha(*samples)  # the same in both panels, so that more lines look darker
    changed, share_changed = _changed_follows(*edges)
    columns = 1 if theme.is_narrow(width) else 2
    height = width / columns * _height_by_width(scene.points)
    figure = theme.new_figure(width, (height + 0.6) * (2 // columns) + (3.9 if columns == 1 else 2.5))
    panels = figure.subplots(2 // columns, columns, squeeze=False).flat
    rows = zip(panels, (before, after), samples, changed, ("Before", "After"), strict=True)
    for axes, network, pairs, changed_pairs, title in rows:
        scene.draw(axes, pairs, alpha)
        axes.add_collection(LineCollection(scene.lines(changed_pairs), colors=CHANGED, alpha=0.6, lw=0.7, zorder=2.5))
        index = external_internal(*(groups.codes[end] for end in network.edges()))
        title = f"{title}: E-I index {index:.3f}, {network.n_edges:,} follows"
        axes.set_title(title, loc="left", fontsize=theme.TEXT)
    handles = scene.legend_marks()
    handles.append(Line2D([], [], color=scene.palette[0], alpha=0.5, lw=1.6, label="follow inside a group"))
    handles.append(Line2D([], [], color=theme.INK, alpha=0.7, lw=1.6, label="follow between groups"))
    handles.append(Line2D([], [], color=CHANGED, lw=1.6, label="ended, or new"))
    style = {"title": f"Who follows whom, by {shorten(groups.attribute, 40)}", "title_fontsize": theme.TEXT}
    style |= {"loc": "outside upper left", "alignment": "left", "ncols": 2 if columns == 1 else min(len(handles), 4)}
    theme.figure_legend(figure, handles, **style)
    n, n_drawn = before.n_agents, int(scene.is_drawn.sum())
    agents = f"{n_drawn:,} of {n:,} agents, drawn evenly" if n_drawn < n else "All agents at the beginning"
    lines = f"{100 * share:.0f} % of the follows among them" if share < 1 else "all follows among them"
    lines += f", and {100 * share_changed:.0f} % of those that ended or are new" if share_changed < 1 else ""
    sizes = "the same in both; larger dots have more followers at the beginning"
    index_text = "E-I index of all follows: -1 all inside groups, 1 all between."
    theme.write_caption(figure, f"{agents}, and {lines}, {sizes}. {index_text}", width, run)
    return figure


def _height_by_width(points: Floats) -> float:
    points = points[np.isfinite(points[:, 0])]
    width, height = np.maximum(np.ptp(points, axis=0), 1e-6) if len(points) else (1.0, 1.0)
    return float(np.clip(height / width, 0.35, 1.0))


def _place_agents(legend_group: Ints, n_groups: int, followers: Ints) -> Floats:
    """Place agents: each group fills a disc of its size, with the most followed agents in the middle."""
    sizes = np.bincount(legend_group, minlength=n_groups)
    radius = np.sqrt(np.maximum(sizes, 1) / max(1, len(legend_group)))
    angle = np.pi - 2 * np.pi * np.arange(n_groups) / n_groups
    ring = 0.0 if n_groups == 1 else max(0.95, 1.12 * float(radius.max()) / np.sin(np.pi / n_groups))
    points = np.empty((len(legend_group), 2))
    for group in range(n_groups):
        agents = np.flatnonzero(legend_group == group)
        agents = agents[np.argsort(-followers[agents], kind="stable")]
        distances = radius[group] * np.sqrt((np.arange(len(agents)) + 0.5) / max(1, len(agents)))
        angles = _GOLDEN_ANGLE * np.arange(len(agents))
        points[agents, 0] = ring * np.cos(angle[group]) + distances * np.cos(angles)
        points[agents, 1] = ring * np.sin(angle[group]) + distances * np.sin(angles)
    return points


def _sample(src: Ints, dst: Ints, share: float) -> Pairs:
    """Return a sample of pairs; whether a pair is sampled does not depend on the others."""
    is_kept = Streams(0).uniform("follows drawn", dst, index=src) < share
    return src[is_kept], dst[is_kept]


def _changed_follows(*edges: Pairs) -> tuple[tuple[Pairs, ...], float]:
    """Return samples of the pairs that only the first and only the second network has, and the sampled share."""
    keys = [src << 32 | dst for src, dst in edges]
    differences = [np.setdiff1d(keys[0], keys[1]), np.setdiff1d(keys[1], keys[0])]
    share = min(1.0, _DRAWN_CHANGES / max(1, *map(len, differences)))
    return tuple(_sample(key >> 32, key & 0xFFFFFFFF, share) for key in differences), share


type Tie = Literal["follows", "impressions", "engagements"]

_TIES: Final[Mapping[str, tuple[str, str, str]]] = {
    "follows": ("Follows", "who is followed", "who follows"),
    "impressions": ("Impressions", "who wrote", "who reads"),
    "engagements": ("Likes, replies and reshares", "who wrote", "who engages"),
}
"""Names of the ties, of the columns and of the rows."""
_RATIO_TICKS: Final = ("1/8", "1/4", "1/2", "1", "2", "4", "8")


def homophily_figure(
    source: OneRun, *, what: Tie = "follows", ax: Axes | None = None, width: float = theme.WIDE
) -> Figure:
    """Draw the number of ties between groups as a multiple of the number expected by chance.

    Rows follow, read or engage; columns are followed or wrote the post. Chance has the same row and column sums.
    Groups come from the first declared attribute of agents, or else are communities.

    Args:
        source: A finished run.
        what: ``follows`` at the end of the run, ``impressions``, or ``engagements``.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there are no such ties.
        ConfigError: If `what` is not one of these.
    """
    theme.check_choice("homophily", "what", what, _TIES)
    run = finished_run(run_folder(source))
    groups = attribute_groups(run)
    legend_group, names = largest_groups(groups)
    sources, targets = (legend_group[end] for end in _ties(run, what, len(groups.codes)))
    if not len(sources):
        raise DataError(f"{run_folder(source)}: there are no {what}: nothing to draw")
    name, xlabel, ylabel = _TIES[what]
    panel = theme.open_panel(ax, width, f"{what.capitalize()} by {groups.attribute}", height=min(width, 11.0) + 1.0)
    axes = panel.axes
    counts = mixing(sources, targets, len(names))
    multiples = ratios(counts)
    octaves = int(np.clip(np.ceil(np.nanmax(np.abs(np.log2(multiples)))), 1, 3))  # powers of 2 in the scale
    image = axes.imshow(np.log2(multiples), cmap="PuOr_r", vmin=-octaves, vmax=octaves)
    for (row, column), ratio in np.ndenumerate(multiples):
        if np.isfinite(ratio):
            text = f"{ratio:.2g}" if counts[row, column] else "0"
            color = "white" if abs(np.log2(ratio)) > 0.6 * octaves else "black"
            axes.text(column, row, text, ha="center", va="center", color=color, fontsize=theme.SMALL)
    labels = theme.short_labels(names, 12 if panel.is_narrow else 20)
    axes.set_xticks(range(len(names)), labels, rotation=45, ha="right", rotation_mode="anchor", parse_math=False)
    axes.set_yticks(range(len(names)), labels, parse_math=False)
    axes.grid(visible=False)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    bar = panel.figure.colorbar(image, ax=axes, shrink=0.8, ticks=list(range(-octaves, octaves + 1)))
    bar.ax.set_yticklabels(_RATIO_TICKS[3 - octaves : 4 + octaves], fontsize=theme.SMALL)
    bar.set_label("times what chance gives", fontsize=theme.TEXT)
    text = f"{name} from row to column, in multiples of what chance would give: n = {len(sources):,}"
    mixing_index = round(assortativity(sources, targets), 2) + 0.0  # avoids -0.00
    panel.caption(f"{text}; assortativity {mixing_index:.2f} (1: all within groups, 0: chance).", source)
    return panel.figure


def _ties(run: FinishedRun, what: Tie, n: int) -> Pairs:
    """Return both agents of each tie between the first `n` agents, whose groups are known."""
    table = run.follows() if what == "follows" else run.table(what)
    if what == "follows":
        sources, targets = table["dst"].to_numpy(np.int64), table["src"].to_numpy(np.int64)
    else:
        sources, targets = table["agent"].to_numpy(np.int64), root_authors(run, table["root"].to_numpy(np.int64))
    is_known = (sources >= 0) & (sources < n) & (targets >= 0) & (targets < n)
    return sources[is_known], targets[is_known]


def mixing(source: Ints, target: Ints, n: int) -> Ints:
    """Return the number of ties from each group to each, shape (n, n)."""
    return np.bincount(source * n + target, minlength=n * n).reshape(n, n).astype(np.int64)


def ratios(counts: Ints) -> Floats:
    """Return counts over their expectation from the sums of rows and columns; NaN where a sum is 0."""
    chance = np.outer(counts.sum(1), counts.sum(0)) / counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(chance > 0, np.maximum(counts, 0.5 * (counts == 0)) / chance, np.nan)
