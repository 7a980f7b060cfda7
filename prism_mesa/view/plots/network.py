"""Figures of the follow graph by groups of agents, before and after a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from prism_mesa.errors import DataError, counted, shortened
from prism_mesa.runs.run_files import has_table, run_folder
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.streams import Streams
from prism_mesa.studies.measures.exposure import external_internal, sides
from prism_mesa.studies.measures.finished import finished_run, start_and_end_networks
from prism_mesa.studies.measures.measure import FinishedRun, communities, main_interests
from prism_mesa.view.plots import style as look
from prism_mesa.view.plots.sources import OneRun

type Ints = npt.NDArray[np.int64]
type Points = npt.NDArray[np.float64]

MOST_AGENTS: Final = 50_000
"""Of larger runs no picture is drawn: making the network again would take longer than all other pictures."""
_DRAWN: Final = 1000
_FOLLOWS: Final = 2500
_CHANGES: Final = 200
CHANGED: Final = "#d6006c"
"""Colour of follows that only one panel has."""
_GROUPS: Final = 6
_GOLDEN: Final = np.pi * (3 - np.sqrt(5))
_OTHERS: Final = "others"


@dataclass(frozen=True)
class Groups:
    """Agents in groups: `of` holds each agent's group (-1 for none), `names` the groups' names, `by` the attribute."""

    of: Ints
    names: Sequence[str]
    by: str


def attribute_groups(run: FinishedRun, by: str | None = None) -> Groups:
    """Return groups by an attribute; by default by the first declared attribute of agents, else communities.

    Raises:
        ConfigError: If the run has no such attribute.
    """
    declared = run.config.attributes
    for name in [name for name in declared if declared[name].of == "agent"] if by is None else [by]:
        side = sides(run, name)
        if side is not None and name in run.table("agents"):
            if (range_ := declared[name].range) is not None:
                middle = sum(range_) / 2
                return Groups(side, [f"{name} up to {middle:g}", f"{name} above {middle:g}"], name)
            return Groups(side, [str(value) for value in sorted(set(run.table("agents")[name]))], name)
    by_ties = communities(run)
    if run.config.network.kind == "stochastic_block":
        return Groups(by_ties.of, [f"block {place}" for place in range(by_ties.n)], "block")
    main, interests = main_interests(run)
    names = {int(group): interests[interest] for group, interest in zip(by_ties.of, main, strict=True) if group >= 0}
    return Groups(by_ties.of, [names.get(place, "") for place in range(by_ties.n)], "main interest")


def network_figure(of: str | Path, *, width: float = look.WIDE) -> Figure:
    """Return the follow graph before and after a run, with each agent at the same place; see `follow_figure`.

    Args:
        of: A finished run, or its folder.
        width: Width of the figure in centimetres.

    Raises:
        DataError: If the network did not change, is too large, or cannot be made again.
    """
    folder = run_folder(of)
    if not has_table(folder, "follows"):
        raise DataError(f"{folder}: its network did not move")
    run = finished_run(folder)
    if run.config.network.dynamics != "live" or len(run.table("agents")) > MOST_AGENTS:
        raise DataError(f"{folder}: its network is fixed, or of more than {MOST_AGENTS:,} agents")
    before, after = start_and_end_networks(folder)
    groups = attribute_groups(run)
    if len(groups.of) < before.n_agents:
        raise DataError(f"{folder}: table 'agents' has fewer rows than its network has agents: it is damaged")
    first_groups = Groups(groups.of[: before.n_agents], groups.names, groups.by)
    figure = follow_figure(before, after, first_groups, width=width)
    look.write_caption(figure, look.figure_caption(figure), width, of)
    return figure


def network_by_attribute_figure(
    of: OneRun, *, by: str | None = None, ax: Axes | None = None, width: float = look.WIDE
) -> Figure:
    """Return the follow graph at the end of a run, with agents grouped, and sized by their followers.

    Args:
        of: A finished run.
        by: A declared attribute of agents; None for the first one, else communities.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        ConfigError: If the run has no such attribute.
        DataError: If the network cannot be made again.
    """
    run = finished_run(run_folder(of))
    groups, pairs = attribute_groups(run, by), run.follows()
    src, dst = (pairs[end].to_numpy(np.int64) for end in ("src", "dst"))
    n = len(groups.of)
    if len(src) and max(src.max(), dst.max()) >= n:
        raise DataError(f"{run_folder(of)}: table 'agents' has fewer rows than its network has agents: it is damaged")
    scene = _scene(groups, np.bincount(src, minlength=n))
    among = scene.among(src, dst)
    share = min(1.0, _FOLLOWS / max(1, len(among[0])))
    shown = _sampled(*among, share)
    panel = look.open_panel(ax, width, height=min(width * _height_by_width(scene.where), 12.0) + 1.9)
    scene.draw(panel.axes, shown, scene.alpha(shown))
    panel.legend_below(2 if panel.is_narrow else 4, handles=_group_marks(scene.names, scene.palette))
    panel.title(f"Who follows whom, by {shortened(groups.by, 40)}")
    n_drawn = int(scene.is_drawn.sum())
    who = f"{n_drawn:,} of {counted(n, 'agent')}, drawn evenly" if n_drawn < n else f"All {counted(n, 'agent')}"
    lines = f"{100 * share:.0f} % of the follows among them" if share < 1 else f"all {len(shown[0]):,} follows"
    index = external_internal(groups.of[src], groups.of[dst])
    caption = f"{who}, and {lines}; larger dots have more followers; dark lines lead between groups"
    panel.caption(f"{caption}. E-I index of all follows: {index:.2f} (-1: all inside groups, 1: all between).", of)
    return panel.figure


@dataclass(frozen=True)
class _Scene:
    """Agents to draw.

    Attributes:
        where: Positions, shape (n, 2); NaN if an agent is not drawn.
        kind: Index of each agent's group in `names`.
        group: Each agent's group before small ones were merged.
        followers: Each agent's number of followers.
        names: Names of groups.
        palette: Colours of groups.
    """

    where: Points
    kind: Ints
    group: Ints
    followers: Ints
    names: list[str]
    palette: list[str]

    @property
    def is_drawn(self) -> npt.NDArray[np.bool_]:
        """Whether each agent is drawn, shape (n,)."""
        return np.isfinite(self.where[:, 0])

    def among(self, src: npt.NDArray[Any], dst: npt.NDArray[Any]) -> tuple[Ints, Ints]:
        """Return the follows between drawn agents."""
        inside = (src < len(self.where)) & (dst < len(self.where))
        src, dst = src[inside].astype(np.int64), dst[inside].astype(np.int64)
        both = self.is_drawn[src] & self.is_drawn[dst]
        return src[both], dst[both]

    def alpha(self, *drawn: tuple[Ints, Ints]) -> float:
        """Return the opacity of lines between groups: lower the more there are."""
        most = max(int((self.group[src] != self.group[dst]).sum()) for src, dst in drawn)
        return float(np.clip(100 / max(1, most), 0.07, 0.2))

    def draw(self, axes: Axes, follows: tuple[Ints, Ints], alpha: float) -> None:
        """Draw agents above follows: in the colour of the followed inside groups, dark between groups."""
        src, dst = follows
        lines, colors = _lines(self.where, follows), np.array(self.palette)[self.kind]
        inside = self.group[src] == self.group[dst]
        style: dict[str, Any] = {"colors": list(colors[src[inside]]), "alpha": 0.25, "lw": 0.6, "zorder": 1}
        axes.add_collection(LineCollection(list(lines[inside]), **style))
        axes.add_collection(LineCollection(list(lines[~inside]), colors=look.INK, alpha=alpha, lw=0.6, zorder=2))
        where, followers = self.where[self.is_drawn], self.followers[self.is_drawn]
        sizes = 5 + 40 * np.sqrt(followers / max(1, int(followers.max(initial=0))))
        style = {"c": list(colors[self.is_drawn]), "edgecolors": "white", "linewidths": 0.5, "zorder": 3}
        axes.scatter(where[:, 0], where[:, 1], s=sizes, **style)
        axes.set_aspect("equal")
        axes.axis("off")
        axes.margins(0.03)


def _scene(groups: Groups, followers: Ints) -> _Scene:
    """Return positions and colours of agents; many agents are sampled evenly."""
    kind, names = largest_groups(groups)
    n = len(followers)
    drawn = np.sort(np.argsort(Streams(0).uniform("agents drawn", np.arange(n)), kind="stable")[:_DRAWN])
    where = np.full((n, 2), np.nan)
    where[drawn] = _places(kind[drawn], len(names), followers[drawn])
    last = look.GREY if names[-1] == _OTHERS else look.PALETTE[len(names) - 1]
    return _Scene(where, kind, groups.of, followers, names, [*look.PALETTE[: len(names) - 1], last])


def follow_figure(before: FollowNetwork, after: FollowNetwork, groups: Groups, *, width: float = look.WIDE) -> Figure:
    """Return two networks of the same agents side by side, or stacked if the figure is narrow.

    It has two panels, so it takes no `ax`.

    Args:
        before: Follows at the start.
        after: Follows at the end.
        groups: Groups of all agents.
        width: Width of the figure in centimetres.
    """
    scene = _scene(groups, np.bincount(before.edges()[0], minlength=before.n_agents))
    edges = [scene.among(*network.edges()) for network in (before, after)]
    share = min(1.0, _FOLLOWS / max(1, *(len(src) for src, _ in edges)))
    drawn = [_sampled(*pairs, share) for pairs in edges]
    alpha = scene.alpha(*drawn)  # the same opacity in both panels, so more lines look darker
    changed, share_changed = _changed(*edges)
    figure, panels = _panels(scene.where, width)
    titles = ("Before", "After")
    for axes, network, pairs, ends, title in zip(panels, (before, after), drawn, changed, titles, strict=True):
        scene.draw(axes, pairs, alpha)
        lines = list(_lines(scene.where, ends))
        axes.add_collection(LineCollection(lines, colors=CHANGED, alpha=0.6, lw=0.7, zorder=2.5))
        index = external_internal(*(groups.of[end] for end in network.edges()))
        look.write_title(axes, f"{title}: E-I index {index:.3f}, {network.n_edges:,} follows")
    _legend(figure, f"Who follows whom, by {shortened(groups.by, 40)}", scene.names, scene.palette, width)
    n_drawn = int(scene.is_drawn.sum())
    look.write_caption(figure, _caption(before.n_agents, n_drawn, share, share_changed), width)
    return figure


def _panels(where: Points, width: float) -> tuple[Figure, list[Axes]]:
    """Return a figure with two panels that fit the given points, and room for text."""
    columns = 1 if look.is_narrow(width) else 2
    height = width / columns * _height_by_width(where)
    figure = look.new_figure(width, (height + 0.6) * (2 // columns) + (3.9 if columns == 1 else 2.5))
    return figure, list(figure.subplots(2 // columns, columns, squeeze=False).flat)


def _height_by_width(where: Points) -> float:
    """Return the aspect ratio of the given points."""
    where = where[np.isfinite(where[:, 0])]
    wide, high = np.maximum(np.ptp(where, axis=0), 1e-6) if len(where) else (1.0, 1.0)
    return float(np.clip(high / wide, 0.35, 1.0))


def largest_groups(groups: Groups) -> tuple[Ints, list[str]]:
    """Return groups and names, with the smallest groups, and agents without one, merged into the last."""
    sizes = np.bincount(groups.of[groups.of >= 0], minlength=len(groups.names))
    many = len(groups.names) > _GROUPS
    kept = np.sort(np.argsort(-sizes, kind="stable")[: _GROUPS - 1 if many else _GROUPS])
    place = np.full(len(sizes) + 1, len(kept))  # the last entry stands for agents without a group
    place[kept] = np.arange(len(kept))
    kind = place[groups.of]
    names = [groups.names[group] for group in kept.tolist()]
    return kind, [*names, _OTHERS] if (kind == len(kept)).any() else names


def _places(kind: Ints, n_kinds: int, followers: Ints) -> Points:
    """Return positions of agents: each group fills a disc of its size, with the most followed in the middle."""
    sizes = np.bincount(kind, minlength=n_kinds)
    radius = np.sqrt(np.maximum(sizes, 1) / max(1, len(kind)))
    angle = np.pi - 2 * np.pi * np.arange(n_kinds) / n_kinds
    ring = 0.0 if n_kinds == 1 else max(0.95, 1.12 * float(radius.max()) / np.sin(np.pi / n_kinds))
    where = np.empty((len(kind), 2))
    for group in range(n_kinds):
        agents = np.flatnonzero(kind == group)
        agents = agents[np.argsort(-followers[agents], kind="stable")]
        out = radius[group] * np.sqrt((np.arange(len(agents)) + 0.5) / max(1, len(agents)))
        turn = _GOLDEN * np.arange(len(agents))
        where[agents, 0] = ring * np.cos(angle[group]) + out * np.cos(turn)
        where[agents, 1] = ring * np.sin(angle[group]) + out * np.sin(turn)
    return where


def _sampled(src: Ints, dst: Ints, share: float) -> tuple[Ints, Ints]:
    """Return a sample of pairs that does not depend on the network that holds them."""
    kept = Streams(0).uniform("follows drawn", dst, index=src) < share
    return src[kept], dst[kept]


def _changed(*edges: tuple[Ints, Ints]) -> tuple[tuple[tuple[Ints, Ints], ...], float]:
    """Return the pairs only in the first network, those only in the second, and the share of pairs returned."""
    keys = [src << 32 | dst for src, dst in edges]
    alone = [np.setdiff1d(keys[0], keys[1]), np.setdiff1d(keys[1], keys[0])]
    share = min(1.0, _CHANGES / max(1, *map(len, alone)))
    return tuple(_sampled(key >> 32, key & 0xFFFFFFFF, share) for key in alone), share


def _lines(where: Points, pairs: tuple[Ints, Ints]) -> Points:
    src, dst = pairs
    return np.stack([where[dst], where[src]], axis=1)


def _legend(figure: Figure, title: str, names: Sequence[str], colors: Sequence[str], width: float) -> None:
    handles = _group_marks(names, colors)
    handles.append(Line2D([], [], color=colors[0], alpha=0.5, lw=1.6, label="follow inside a group"))
    handles.append(Line2D([], [], color=look.INK, alpha=0.7, lw=1.6, label="follow between groups"))
    handles.append(Line2D([], [], color=CHANGED, lw=1.6, label="ended, or new"))
    place: dict[str, Any] = {"loc": "outside upper left", "alignment": "left", "title_fontsize": look.TEXT}
    n_columns = 2 if look.is_narrow(width) else min(len(handles), 4)
    look.figure_legend(figure, handles, ncols=n_columns, title=title, **place)


def _group_marks(names: Sequence[str], colors: Sequence[str]) -> list[Line2D]:
    """Return the legend's entries for groups."""
    style: dict[str, Any] = {"ls": "", "marker": "o", "ms": 5, "mec": "white"}
    named = zip(names, colors, strict=True)
    return [Line2D([], [], color=color, label=shortened(name, 24), **style) for name, color in named]


def _caption(n: int, drawn: int, share: float, share_changed: float) -> str:
    """Return a caption with the numbers drawn, and the assortativity."""
    who = f"{drawn:,} of {counted(n, 'agent')}, drawn evenly" if drawn < n else "All agents of the beginning"
    lines = f"{100 * share:.0f} % of the follows among them" if share < 1 else "all follows among them"
    lines += f", and {100 * share_changed:.0f} % of those that ended or are new" if share_changed < 1 else ""
    return (
        f"{who}, and {lines}, the same in both; the larger a dot, the more followers at the beginning. "
        "E-I index, of all follows: -1 all inside groups, 1 all between."
    )
