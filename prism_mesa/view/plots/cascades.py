"""How far posts spread: the sizes of cascades."""

import os
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from prism_mesa.errors import ConfigError, DataError, counted, shortened
from prism_mesa.params import shown
from prism_mesa.runs.measures import ccdf
from prism_mesa.view.page.trees import tree_layout
from prism_mesa.view.plots import style as look
from prism_mesa.view.plots.rounds import Band, draw_band, of_agents, range_band, rounds_axis, seeds_note
from prism_mesa.view.plots.sources import Drawable, Group, RunTables, one_run, to_groups

type Real = bool | str | os.PathLike[str] | Mapping[str, npt.ArrayLike]
"""What runs are held against: data that PRISM carries, a folder with them, or sizes by name."""

CARRIED: Final = "VoterFraud2020"
_MOST_POINTS: Final = 200
_FEW: Final = 20
"""Fewer distinct sizes than that are marked one by one."""

type Floats = npt.NDArray[np.float64]


def cascades_figure(of: Drawable, *, real: Real = False, ax: Axes | None = None, width: float = look.WIDE) -> Figure:
    """Return the share of posts whose cascade reaches a size (CCDF), both axes logarithmic.

    Args:
        of: As for `states_figure`.
        real: Data to draw beside it: True for the values of VoterFraud2020 (Twitter) that PRISM carries, the folder of
            the data as for ``prism validate --data``, or sizes of cascades by name. False draws none.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there are no cascades to draw, or no such data.
        ConfigError: If `real` is none of these, or has sizes below 1.
    """
    groups, others = to_groups(of), _real(real)
    panel = look.open_panel(ax, width)
    axes, total, is_there = panel.axes, 0, False
    names = look.short_labels([group.label or "simulated" for group in groups], look.letters(panel.width) // 2 - 12)
    for place, (group, name) in enumerate(zip(groups, names, strict=True)):
        curves, n = _curves(group)
        total, is_there = total + n, is_there or any(len(sizes) for sizes, _ in curves)
        of_how_many = f" (n = {n:,})" if n else ""
        label = f"{name}{of_how_many}" if len(groups) > 1 or others else ""
        _draw(axes, curves, place, label)
    for place, (name, (sizes, shares)) in enumerate(others.items()):
        few = len(sizes) < _FEW
        style: dict[str, Any] = {"ls": (":", "-.")[place % 2] if few else "-", "marker": "D" if few else "", "ms": 3.5}
        axes.plot(sizes, shares, color=look.INK, lw=1.2, label=name, zorder=5, **style)
    axes.set_xlabel("cascade size s (a post and its reshares)", fontsize=look.TEXT)
    axes.set_ylabel("share of posts with size ≥ s", fontsize=look.TEXT)
    if is_there:
        axes.set(xscale="log", yscale="log")
        if axes.get_xlim()[1] < 10:  # small cascades get ticks such as 2 and 3, because 2 x 10^0 and 3 x 10^0 overlap
            axes.xaxis.set_major_formatter(LogFormatter())
            axes.xaxis.set_minor_formatter(LogFormatter())
    else:
        axes.text(0.5, 0.5, "nobody posted", transform=axes.transAxes, ha="center", fontsize=look.SMALL)
        axes.set(xticks=[], yticks=[])
    panel.title("How far posts spread")
    if len(groups) > 1 or others:
        panel.legend(loc="lower left" if not panel.is_narrow else "upper right")
    source = f" {CARRIED}: Twitter, as PRISM carries it." if real is True else ""
    seeds = seeds_note(groups, band="from the lowest to the highest seed")
    whose = f"n = {counted(total, 'post')}" if total else "posts, as the study collects them"
    text = f"Sizes of the cascades of {whose}{of_agents(groups) if total else ''}.{seeds}"
    panel.caption(f"{text if is_there else 'There are no cascades: no post appeared.'}{source}", of)
    return panel.figure


def _real(real: Real) -> dict[str, tuple[Floats, Floats]]:
    """Return sizes and shares of the real data, by name."""
    if real is False:
        return {}
    # loading scipy takes as long as a small run
    from prism_mesa.studies.validation.real import built_in_values, load_real_values

    if real is True:
        return {f"{CARRIED} (real)": built_in_values().curves["cascade_sizes"]}
    if isinstance(real, str | os.PathLike):
        return {f"{CARRIED} (real)": load_real_values(os.fspath(real)).curves["cascade_sizes"]}
    if not isinstance(real, Mapping):
        raise ConfigError(f"real: give True, a folder of data, or sizes by name, not {shown(real)}")
    return {str(name): _ccdf(str(name), sizes) for name, sizes in real.items()}


def _ccdf(name: str, sizes: npt.ArrayLike) -> tuple[Floats, Floats]:
    try:
        numbers = np.asarray(sizes, np.float64)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if numbers.ndim != 1 or not len(numbers) or not (numbers >= 1).all():
        raise ConfigError(f"real: {name!r}: give sizes of cascades, each at least 1, in one list, not {shown(sizes)}")
    return ccdf(numbers)


def _curves(group: Group) -> tuple[list[tuple[Floats, Floats]], int]:
    """Return sizes and shares of each run, and the number of posts."""
    if not group.has("cascades") and group.has("curves"):
        curves_table = group.table("curves", ["curve", "x", "y"])
        rows = curves_table[curves_table["curve"] == "cascade_sizes"]
        return [(curve["x"].to_numpy(), curve["y"].to_numpy()) for _, curve in rows.groupby("seed")], 0
    curves, n = [], 0
    for run in group.runs:
        trees = run.table("cascades", ["size", "kind"])
        sizes = trees.loc[trees["kind"] == "post", "size"]
        n += len(sizes)
        curves.append(ccdf(sizes))
    return curves, n


def _draw(axes: Axes, curves: list[tuple[Floats, Floats]], place: int, label: str) -> None:
    color = look.series_color(place)
    if len(curves) == 1:
        sizes, shares = curves[0]
        marker = look.series_marker(place) if len(sizes) < 4 * _FEW else ""
        axes.plot(sizes, shares, color=color, marker=marker, ms=3, lw=1.2, label=label, ls=look.series_dashes(place))
    elif any(len(sizes) for sizes, _ in curves):
        draw_band(axes, _over_seeds(curves), color=color, label=label, ls=look.series_dashes(place))


def _over_seeds(curves: list[tuple[Floats, Floats]]) -> Band:
    """Return shares by seed at log-spaced sizes, up to the largest of all seeds.

    The share is 0 at sizes that a seed does not reach.
    """
    most = max(float(sizes[-1]) for sizes, _ in curves if len(sizes))
    at = np.unique(np.geomspace(1, most, _MOST_POINTS).round())
    rows = []
    for sizes, shares in curves:
        place = np.searchsorted(sizes, at)  # the smallest size that occurs and is not below it
        rows.append(np.append(shares, 0.0)[np.minimum(place, len(sizes))])
    return range_band(at, rows)


type Ints = npt.NDArray[np.int64]

_DEPTHS: Final = 5
"""Depths that have a colour of their own; what is deeper shares the last one."""
_ROW_CM: Final = 0.16
_LEAST_CM, _MOST_CM = 5.0, 16.0


def cascade_tree_figure(
    of: Drawable, *, root: int | None = None, ax: Axes | None = None, width: float = look.WIDE
) -> Figure:
    """Return a post and its reshares as a tree: rounds from left to right, each reshare joined to its parent.

    Args:
        of: A run, or a live model.
        root: Row in `posts` of the cascade's root; None for the largest cascade.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there is no such post, or no post at all.
    """
    run = one_run(of)
    posts = run.table("posts", ["post", "round", "author", "kind", "parent", "root"])
    first = _root(run, posts, root)
    tree = cascade_tree(posts, first)
    n_rows = int(tree["row"].max()) + 1
    panel = look.open_panel(
        ax,
        width,
        height=float(np.clip(3.2 + _ROW_CM * n_rows, _LEAST_CM, _MOST_CM)),
        legend_lines=1 if width > look.NARROW else 2,
    )
    _draw_tree(panel.axes, tree)
    rounds_axis(panel.axes)
    panel.axes.set_ylim(n_rows - 0.4, -0.6 - 0.02 * n_rows)
    panel.axes.set_yticks([])
    panel.axes.spines["left"].set_visible(False)
    panel.axes.grid(visible=False, axis="y")
    panel.title(f"The cascade of post {first:,}, {_by(run, int(tree['author'].iloc[0]), panel)}")
    if len(tree) > 1:
        panel.legend_below(3 if panel.is_narrow else _DEPTHS + 1, scatterpoints=1)
    panel.caption(_caption(run, tree, first), of)
    return panel.figure


def _root(run: RunTables, posts: pd.DataFrame, root: int | None) -> int:
    """Return the root of the cascade to draw: the given post, or the earliest with the most reshares."""
    if posts.empty:
        raise DataError(f"{run.name}: nobody posted: there is no cascade to draw")
    if root is None:
        joins = posts.loc[posts["kind"] == "reshare", "root"]
        roots = posts.loc[posts["kind"] == "post", "post"]
        sizes = joins[joins.isin(roots)].value_counts()
        return int(sizes.index[sizes == sizes.max()].min()) if len(sizes) else int(posts["post"].iloc[0])
    chosen = posts[posts["post"] == root]
    if isinstance(root, bool) or not isinstance(root, int | np.integer) or chosen.empty:
        raise DataError(f"root: {shown(root)}: is no post of {run.name} (0 to {int(posts['post'].max()):,})")
    if chosen["kind"].iloc[0] == "reshare":
        raise DataError(f"root: post {root} is a reshare: its cascade is that of post {int(chosen['root'].iloc[0])}")
    return int(root)


def cascade_tree(posts: pd.DataFrame, root: int) -> pd.DataFrame:
    """Return a cascade, with a position for each post.

    Args:
        posts: Columns `post`, `round`, `author`, `kind`, `parent` and `root`; parents precede their reshares.
        root: The post at its root.

    Returns:
        Columns `post`, `round`, `author`, `parent`, `above` (index of its parent here), `depth` and `row`, the root
        first. A post without reshares gets the next row from the top; other posts stand midway between their
        reshares.
    """
    rows = posts[(posts["post"] == root) | ((posts["root"] == root) & (posts["kind"] == "reshare"))]
    rows = rows.sort_values("post")
    depth, row, above = tree_layout(rows["post"].tolist(), rows["parent"].fillna(-1).astype(int).tolist())
    columns = {name: rows[name].to_numpy() for name in ("post", "round", "author", "parent")}
    return pd.DataFrame({**columns, "above": np.maximum(above, 0), "depth": depth, "row": row})


def _draw_tree(axes: Axes, tree: pd.DataFrame) -> None:
    x, y = tree["round"].to_numpy(np.float64), tree["row"].to_numpy(np.float64)
    above = tree["above"].to_numpy()[1:]
    lines = [[(x[up], y[up]), (x[up], to), (right, to)] for up, right, to in zip(above, x[1:], y[1:], strict=True)]
    many = look.is_many(len(tree))
    axes.add_collection(LineCollection(lines, colors=look.GREY, linewidths=0.6, zorder=1, rasterized=many))
    depth = np.minimum(tree["depth"].to_numpy(), _DEPTHS)
    size = 14.0 if len(tree) < 200 else 6.0
    for level in np.unique(depth):
        of_level = depth == level
        style: dict[str, Any] = {"s": 42.0 if not level else size, "marker": "*" if not level else "o"}
        name = "the post" if not level else f"depth {level}" + (" or more" if level == _DEPTHS else "")
        color = look.INK if not level else look.series_color(int(level) - 1)
        axes.scatter(
            x[of_level], y[of_level], color=color, label=name, linewidths=0, zorder=2, rasterized=many, **style
        )
    axes.margins(x=0.03)


def _by(run: RunTables, author: int, panel: look.Panel) -> str:
    """Return the author of a post, by name if it is known."""
    names = run.table("agents", ["agent", "name"]) if run.has("agents") else pd.DataFrame({"agent": [], "name": []})
    known = names.loc[names["agent"] == author, "name"]
    name = str(known.iloc[0]) if len(known) else ""
    return f"by {shortened(name, max(12, look.letters(panel.width) // 3))}" if name else f"by agent {author}"


def _caption(run: RunTables, tree: pd.DataFrame, root: int) -> str:
    """Return a caption with size, depth and virality, as in the table of cascades."""
    depth = tree["depth"].to_numpy()
    breadth = int(np.bincount(depth)[1:].max(initial=1))
    text = (
        f"n = {counted(len(tree), 'post')}: one and {counted(len(tree) - 1, 'reshare')}, depth {int(depth.max())}, "
        f"breadth {breadth:,}"
    )
    if run.has("cascades"):
        known = run.table("cascades", ["root", "structural_virality"])
        virality = known.loc[known["root"] == root, "structural_virality"]
        text += f", structural virality {float(virality.iloc[0]):.2f} steps" if len(virality) else ""
    return f"{text}. A post stands in the round in which it is first shown; lines lead from what is passed on."
