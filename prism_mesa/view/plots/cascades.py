"""Figures of cascades: the distribution of sizes, and one cascade as a tree."""

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter

from prism_mesa.arrays import Floats
from prism_mesa.errors import ConfigError, DataError, format_count, shorten
from prism_mesa.params import short_repr
from prism_mesa.runs.measures import ccdf
from prism_mesa.view.page.trees import tree_layout
from prism_mesa.view.plots import style as theme
from prism_mesa.view.plots.rounds import agents_note, draw_band, range_band, rounds_axis, seeds_note
from prism_mesa.view.plots.sources import Drawable, Group, RunTables, single_run, to_groups

type Curve = tuple[Floats, Floats]
"""Sizes, and shares of at least these sizes."""
type Real = bool | str | os.PathLike[str] | Mapping[str, npt.ArrayLike]
"""Data to compare runs with: True for the values shipped with PRISM, a folder of data, or sizes by name."""

SHIPPED_DATA: Final = "VoterFraud2020"
FEW_POINTS: Final = 20
"""Curves with fewer points have a marker at each point."""
_MAX_POINTS: Final = 200


def cascades_figure(
    source: Drawable, *, real: Real = False, ax: Axes | None = None, width: float = theme.WIDE
) -> Figure:
    """Draw the share of posts whose cascade reaches a size (CCDF), both axes logarithmic.

    Args:
        source: As for `states_figure`.
        real: Real data to compare with: True for the VoterFraud2020 values (Twitter) shipped with PRISM, a folder of
            data as for ``prism validate --data``, or sizes of cascades by name. False: none.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there are no cascades to draw, or no such data.
        ConfigError: If `real` is not one of these, or has sizes below 1.
    """
    groups, real_curves = to_groups(source), _real_curves(real)
    panel = theme.open_panel(ax, width, "How far posts spread")
    axes, total, is_empty = panel.axes, 0, True
    has_legend = len(groups) > 1 or bool(real_curves)
    names = theme.short_labels([group.label or "simulated" for group in groups], theme.letters(panel.width) // 2 - 12)
    for index, (group, name) in enumerate(zip(groups, names, strict=True)):
        curves, n = _curves(group)
        total, is_empty = total + n, is_empty and not any(len(sizes) for sizes, _ in curves)
        label = f"{name} (n = {n:,})" if n else name
        _draw_group(axes, curves, index, label if has_legend else "")
    for index, (name, (sizes, shares)) in enumerate(real_curves.items()):
        has_few_points = len(sizes) < FEW_POINTS
        style: dict[str, Any] = {"ls": (":", "-.")[index % 2] if has_few_points else "-", "ms": 3.5}
        style["marker"] = "D" if has_few_points else ""
        axes.plot(sizes, shares, color=theme.INK, lw=1.2, label=name, zorder=5, **style)
    axes.set(xlabel="cascade size s (a post and its reshares)", ylabel="share of posts with size ≥ s")
    if is_empty:
        axes.text(0.5, 0.5, "nobody posted", transform=axes.transAxes, ha="center", fontsize=theme.SMALL)
        axes.set(xticks=[], yticks=[])
    else:
        axes.set(xscale="log", yscale="log")
        if axes.get_xlim()[1] < 10:  # small cascades get ticks such as 2 and 3, because 2 x 10^0 and 3 x 10^0 overlap
            axes.xaxis.set_major_formatter(LogFormatter())
            axes.xaxis.set_minor_formatter(LogFormatter())
    if has_legend:
        theme.axes_legend(axes, loc="upper right" if panel.is_narrow else "lower left")
    posts = f"n = {format_count(total, 'post')}{agents_note(groups)}" if total else "posts, as the study collects them"
    seeds = seeds_note(groups, band="from the lowest to the highest seed")
    text = "There are no cascades: no post appeared." if is_empty else f"Sizes of the cascades of {posts}.{seeds}"
    panel.caption(text + (f" {SHIPPED_DATA}: Twitter, shipped with PRISM." if real is True else ""), source)
    return panel.figure


def _real_curves(real: Real) -> dict[str, Curve]:
    if real is False:
        return {}
    # loading scipy takes as long as a small run
    from prism_mesa.studies.validation.real import built_in_values, load_real_values

    if real is True or isinstance(real, str | os.PathLike):
        values = built_in_values() if real is True else load_real_values(os.fspath(real))
        return {f"{SHIPPED_DATA} (real)": values.curves["cascade_sizes"]}
    if not isinstance(real, Mapping):
        raise ConfigError(f"real: give True, a folder of data, or sizes by name, not {short_repr(real)}")
    return {str(name): _real_ccdf(str(name), sizes) for name, sizes in real.items()}


def _real_ccdf(name: str, sizes: npt.ArrayLike) -> Curve:
    try:
        numbers = np.asarray(sizes, np.float64)
    except (TypeError, ValueError):
        numbers = np.zeros(0)
    if numbers.ndim != 1 or not len(numbers) or not (numbers >= 1).all():
        raise ConfigError(
            f"real: {name!r}: give sizes of cascades, each at least 1, in one list, not {short_repr(sizes)}"
        )
    return ccdf(numbers)


def _curves(group: Group) -> tuple[list[Curve], int]:
    """Return the curve of each run, and the number of posts (0 if the study collected only curves)."""
    if not group.has("cascades") and group.has("curves"):
        rows = group.table("curves", ["curve", "x", "y"])
        rows = rows[rows["curve"] == "cascade_sizes"]
        return [(curve["x"].to_numpy(), curve["y"].to_numpy()) for _, curve in rows.groupby("seed")], 0
    tables = [run.table("cascades", ["size", "kind"]) for run in group.runs]
    sizes = [table.loc[table["kind"] == "post", "size"] for table in tables]
    return [ccdf(run_sizes) for run_sizes in sizes], sum(map(len, sizes))


def _draw_group(axes: Axes, curves: Sequence[Curve], index: int, label: str) -> None:
    """Draw the curve of one run, or means over seeds at log-spaced sizes up to the largest size."""
    style: dict[str, Any] = {"color": theme.series_color(index), "label": label, "ls": theme.series_dashes(index)}
    if len(curves) == 1:
        marker = theme.series_marker(index) if len(curves[0][0]) < 4 * FEW_POINTS else ""
        axes.plot(*curves[0], marker=marker, ms=3, lw=1.2, **style)
    elif any(len(sizes) for sizes, _ in curves):
        largest = max(float(sizes[-1]) for sizes, _ in curves if len(sizes))
        sizes = np.unique(np.geomspace(1, largest, _MAX_POINTS).round())
        draw_band(axes, range_band(sizes, [shares_at(sizes, curve) for curve in curves]), **style)


def shares_at(sizes: Floats, curve: Curve) -> Floats:
    """Return the share of cascades that reach each size, shape (sizes,); 0 above the largest size of the curve."""
    index = np.searchsorted(curve[0], sizes)  # of the smallest size in the curve that is at least as large
    return np.append(curve[1], 0.0)[index]


_COLORED_DEPTHS: Final = 5
"""Number of depths with their own colour; deeper posts share the last colour."""


def cascade_tree_figure(
    source: Drawable, *, root: int | None = None, ax: Axes | None = None, width: float = theme.WIDE
) -> Figure:
    """Draw a post and its reshares as a tree, with rounds from left to right and lines from parents to reshares.

    Args:
        source: A run, or a live model.
        root: Row in `posts` of the cascade's root; None for the largest cascade.
        ax: Axes to draw into; None for a new figure.
        width: Width of a new figure in centimetres.

    Raises:
        DataError: If there is no such post, or no post at all.
    """
    run = single_run(source)
    posts = run.table("posts", ["post", "round", "author", "kind", "parent", "root"])
    root = _choose_root(run, posts, root)
    tree = cascade_tree(posts, root)
    n_rows = int(tree["row"].max()) + 1
    height = float(np.clip(3.2 + 0.16 * n_rows, 5.0, 16.0))
    panel = theme.open_panel(ax, width, height=height, legend_lines=1 if width > theme.NARROW else 2)
    author = _author_label(run, int(tree["author"].iloc[0]), max(12, theme.letters(panel.width) // 3))
    theme.tidy(panel.axes, f"The cascade of post {root:,}, by {author}")
    _draw_tree(panel.axes, tree)
    rounds_axis(panel.axes)
    panel.axes.set(ylim=(n_rows - 0.4, -0.6 - 0.02 * n_rows), yticks=[])
    panel.axes.spines["left"].set_visible(False)
    panel.axes.grid(visible=False, axis="y")
    if len(tree) > 1:
        panel.legend_below(3 if panel.is_narrow else _COLORED_DEPTHS + 1, scatterpoints=1)
    panel.caption(_tree_caption(run, tree, root), source)
    return panel.figure


def _choose_root(run: RunTables, posts: pd.DataFrame, root: int | None) -> int:
    """Return the root of the cascade to draw: the given post, or the earliest with the most reshares."""
    if posts.empty:
        raise DataError(f"{run.name}: nobody posted: there is no cascade to draw")
    if root is None:
        roots = posts.loc[posts["kind"] == "post", "post"]
        reshares = posts.loc[(posts["kind"] == "reshare") & posts["root"].isin(roots), "root"]
        return int(reshares.mode().min()) if len(reshares) else int(posts["post"].iloc[0])
    rows = posts[posts["post"] == root]
    if isinstance(root, bool) or not isinstance(root, int | np.integer) or rows.empty:
        raise DataError(f"root: {short_repr(root)}: is not a post of {run.name} (0 to {int(posts['post'].max()):,})")
    if rows["kind"].iloc[0] == "reshare":
        raise DataError(f"root: post {root} is a reshare: give the root of its cascade, {int(rows['root'].iloc[0])}")
    return int(root)


def cascade_tree(posts: pd.DataFrame, root: int) -> pd.DataFrame:
    """Return a cascade, with a position for each post.

    Args:
        posts: Columns `post`, `round`, `author`, `kind`, `parent` and `root`; parents precede their reshares.
        root: The root of the cascade.

    Returns:
        Columns `post`, `round`, `author`, `parent`, `above` (index of the parent in the result), `depth` and `row`; the
        root comes first. Posts without reshares are in successive rows from the top; other posts lie midway between
        their reshares.
    """
    rows = posts[(posts["post"] == root) | ((posts["root"] == root) & (posts["kind"] == "reshare"))]
    rows = rows.sort_values("post")
    depth, row, above = tree_layout(rows["post"].tolist(), rows["parent"].fillna(-1).astype(int).tolist())
    columns = {name: rows[name].to_numpy() for name in ("post", "round", "author", "parent")}
    return pd.DataFrame({**columns, "above": np.maximum(above, 0), "depth": depth, "row": row})


def _draw_tree(axes: Axes, tree: pd.DataFrame) -> None:
    x, y = tree["round"].to_numpy(np.float64), tree["row"].to_numpy(np.float64)
    parents = tree["above"].to_numpy()[1:]
    corners = zip(x[parents], y[parents], x[1:], y[1:], strict=True)
    lines = [[(x0, y0), (x0, y1), (x1, y1)] for x0, y0, x1, y1 in corners]
    is_dense = theme.has_many_marks(len(tree))
    axes.add_collection(LineCollection(lines, colors=theme.GREY, linewidths=0.6, zorder=1, rasterized=is_dense))
    size = 14.0 if len(tree) < 200 else 6.0
    for depth, rows in tree.groupby(tree["depth"].clip(upper=_COLORED_DEPTHS)):
        style: dict[str, Any] = {"s": size, "color": theme.series_color(int(depth) - 1), "label": f"depth {depth}"}
        style["label"] += " or more" if depth == _COLORED_DEPTHS else ""
        if depth == 0:
            style = {"s": 42.0, "color": theme.INK, "label": "the post", "marker": "*"}
        axes.scatter(rows["round"], rows["row"], linewidths=0, zorder=2, rasterized=is_dense, **style)
    axes.margins(x=0.03)


def _author_label(run: RunTables, author: int, max_letters: int) -> str:
    """Return the name of an author, or its row if the name is unknown."""
    agents = run.table("agents", ["agent", "name"]) if run.has("agents") else pd.DataFrame({"agent": [], "name": []})
    names = agents.loc[agents["agent"] == author, "name"]
    return shorten(str(names.iloc[0]), max_letters) if len(names) and names.iloc[0] else f"agent {author}"


def _tree_caption(run: RunTables, tree: pd.DataFrame, root: int) -> str:
    """Return a caption with size, depth and virality, as in the table of cascades."""
    n_posts, reshares = format_count(len(tree), "post"), format_count(len(tree) - 1, "reshare")
    breadth = int(np.bincount(tree["depth"])[1:].max(initial=1))
    text = f"n = {n_posts}: one and {reshares}, depth {tree['depth'].max()}, breadth {breadth:,}"
    if run.has("cascades"):
        table = run.table("cascades", ["root", "structural_virality"]).set_index("root")["structural_virality"]
        text += f", structural virality {table[root]:.2f} steps" if root in table.index else ""
    return f"{text}. A post is drawn in the round in which it is first shown; lines lead from parents to reshares."
