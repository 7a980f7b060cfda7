"""One cascade as a tree: who passed on a post, from whom, and when."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from prism_mesa.errors import DataError, counted, shortened
from prism_mesa.params import shown
from prism_mesa.view.page.trees import laid_out
from prism_mesa.view.plots.rounds_axis import rounds_axis
from prism_mesa.view.plots.sources import Drawable, RunTables, one_run
from prism_mesa.view.plots.style import GREY, INK, NARROW, WIDE, Panel, color_of, is_many, letters, open_panel

type Ints = npt.NDArray[np.int64]

_DEPTHS: Final = 5
"""Depths that have a colour of their own; what is deeper shares the last one."""
_ROW_CM: Final = 0.16
_LEAST_CM, _MOST_CM = 5.0, 16.0


def cascade_tree_figure(
    of: Drawable, *, root: int | None = None, ax: Axes | None = None, width: float = WIDE
) -> Figure:
    """Return a post and its reshares as a tree: rounds from left to right, each reshare joined to what it passed on.

    Args:
        of: A run, or a live model.
        root: The post whose cascade it is, its row in `posts`; None: the largest cascade of the run.
        ax: Axes to draw into; None: a new figure.
        width: Of a new figure, in centimetres.

    Raises:
        DataError: If there is no such post, or no post at all.
    """
    run = one_run(of)
    posts = run.table("posts", ["post", "round", "author", "kind", "parent", "root"])
    first = _root(run, posts, root)
    tree = tree_of(posts, first)
    n_rows = int(tree["row"].max()) + 1
    panel = open_panel(
        ax,
        width,
        height=float(np.clip(3.2 + _ROW_CM * n_rows, _LEAST_CM, _MOST_CM)),
        legend_lines=1 if width > NARROW else 2,
    )
    _draw(panel.axes, tree)
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
    """Return the post whose cascade is drawn: the one that is named, or the one with most reshares, the earliest."""
    if posts.empty:
        raise DataError(f"{run.name}: nobody posted: there is no cascade to draw")
    if root is None:
        joins = posts.loc[posts["kind"] == "reshare", "root"]
        own = posts.loc[posts["kind"] == "post", "post"]
        sizes = joins[joins.isin(own)].value_counts()
        return int(sizes.index[sizes == sizes.max()].min()) if len(sizes) else int(posts["post"].iloc[0])
    found = posts[posts["post"] == root]
    if isinstance(root, bool) or not isinstance(root, int | np.integer) or found.empty:
        raise DataError(f"root: {shown(root)}: is no post of {run.name} (0 to {int(posts['post'].max()):,})")
    if found["kind"].iloc[0] == "reshare":
        raise DataError(f"root: post {root} is a reshare: its cascade is that of post {int(found['root'].iloc[0])}")
    return int(root)


def tree_of(posts: pd.DataFrame, root: int) -> pd.DataFrame:
    """Return a cascade, with a place for each of its posts.

    Args:
        posts: Columns `post`, `round`, `author`, `kind`, `parent` and `root`; parents stand before what passes them on.
        root: The post that it began with.

    Returns:
        Columns `post`, `round`, `author`, `parent`, `above` (the place of its parent here), `depth` and `row`, the root
        first: a post without reshares has a row of its own, counted from the top, others stand in the middle of
        the reshares of them.
    """
    own = posts[(posts["post"] == root) | ((posts["root"] == root) & (posts["kind"] == "reshare"))]
    own = own.sort_values("post")
    depth, row, above = laid_out(own["post"].tolist(), own["parent"].fillna(-1).astype(int).tolist())
    columns = {name: own[name].to_numpy() for name in ("post", "round", "author", "parent")}
    return pd.DataFrame({**columns, "above": np.maximum(above, 0), "depth": depth, "row": row})


def _draw(axes: Axes, tree: pd.DataFrame) -> None:
    x, y = tree["round"].to_numpy(np.float64), tree["row"].to_numpy(np.float64)
    above = tree["above"].to_numpy()[1:]
    lines = [[(x[up], y[up]), (x[up], to), (right, to)] for up, right, to in zip(above, x[1:], y[1:], strict=True)]
    many = is_many(len(tree))
    axes.add_collection(LineCollection(lines, colors=GREY, linewidths=0.6, zorder=1, rasterized=many))
    depth = np.minimum(tree["depth"].to_numpy(), _DEPTHS)
    size = 14.0 if len(tree) < 200 else 6.0
    for level in np.unique(depth):
        of_level = depth == level
        style: dict[str, Any] = {"s": 42.0 if not level else size, "marker": "*" if not level else "o"}
        name = "the post" if not level else f"depth {level}" + (" or more" if level == _DEPTHS else "")
        color = INK if not level else color_of(int(level) - 1)
        axes.scatter(
            x[of_level], y[of_level], color=color, label=name, linewidths=0, zorder=2, rasterized=many, **style
        )
    axes.margins(x=0.03)


def _by(run: RunTables, author: int, panel: Panel) -> str:
    """Return whose post it is, by its name where one is known."""
    names = run.table("agents", ["agent", "name"]) if run.has("agents") else pd.DataFrame({"agent": [], "name": []})
    known = names.loc[names["agent"] == author, "name"]
    name = str(known.iloc[0]) if len(known) else ""
    return f"by {shortened(name, max(12, letters(panel.width) // 3))}" if name else f"by agent {author}"


def _caption(run: RunTables, tree: pd.DataFrame, root: int) -> str:
    """Return how large and deep it is; measures as the table of cascades has them."""
    depth = tree["depth"].to_numpy()
    breadth = int(np.bincount(depth)[1:].max(initial=1))
    told = (
        f"n = {counted(len(tree), 'post')}: one and {counted(len(tree) - 1, 'reshare')}, depth {int(depth.max())}, "
        f"breadth {breadth:,}"
    )
    if run.has("cascades"):
        known = run.table("cascades", ["root", "structural_virality"])
        virality = known.loc[known["root"] == root, "structural_virality"]
        told += f", structural virality {float(virality.iloc[0]):.2f} steps" if len(virality) else ""
    return f"{told}. A post stands in the round in which it is first shown; lines lead from what is passed on."
