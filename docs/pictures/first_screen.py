"""The picture at the top of the README: the largest cascade of a run, in the network and as a tree. Takes seconds.

uv run python docs/pictures/first_screen.py
"""

from pathlib import Path
from tempfile import mkdtemp

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from prism_mesa import RunResult, run
from prism_mesa.studies.measures.finished import finished_run
from prism_mesa.view.page.network_view import lay_out, sample_follows
from prism_mesa.view.page.source import Follows
from prism_mesa.view.plots import save
from prism_mesa.view.plots.cascades import cascade_tree
from prism_mesa.view.plots.style import CM, INK, PALETTE, SMALL, TEXT, WIDE

AGENTS = 1000
WORLD = {
    "agents.n": AGENTS,
    "rounds": 48,
    "seed": 1,
    "feed.mode": "x_algo",
    "network.kind": "stochastic_block",
    "network.blocks": 6,
    "network.mean_degree": 20,
    "reasoner.kind": "rule",
}
DEEPEST = 5
"""Depths with their own colour, as in the tree."""


def draw_network(ax: Axes, result: RunResult, root: int) -> None:
    """Draw all agents and their follows in grey, and over them the path of a post."""
    ends = finished_run(result.run_dir).follows()
    src, dst = ends["src"].to_numpy(), ends["dst"].to_numpy()
    follows = Follows(src, dst, np.bincount(src, minlength=AGENTS))
    drawn = lay_out(follows)
    src, dst = sample_follows(drawn.agents, follows)
    at = drawn.points
    lines = np.stack([at[src], at[dst]], axis=1)
    ax.add_collection(LineCollection(list(lines), colors="#9fb3c8", linewidths=0.25, alpha=0.16, rasterized=True))
    ax.scatter(*at.T, s=3 + 0.12 * follows.followers, color="#b9c6d3", linewidths=0, zorder=2)
    tree = cascade_tree(result.table("posts"), root)
    author, above = tree["author"].to_numpy(), tree["above"].to_numpy()
    passed = np.stack([at[author[above[1:]]], at[author[1:]]], axis=1)
    ax.add_collection(LineCollection(list(passed), colors=INK, linewidths=0.7, zorder=3))
    depth = np.minimum(tree["depth"].to_numpy()[1:], DEEPEST)
    ax.scatter(*at[author[1:]].T, s=20, c=[PALETTE[level - 1] for level in depth], linewidths=0, zorder=4)
    ax.scatter(*at[author[0]], s=90, marker="*", color=INK, linewidths=0, zorder=5)
    ax.set(aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.set_title(f"{AGENTS:,} agents, and who passed on the post", loc="left", fontsize=TEXT)


def first_screen(result: RunResult) -> Figure:
    """Return the picture of a run."""
    figure = Figure(figsize=(WIDE * CM, 7.6 * CM), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(4, 5))
    posts = result.table("posts")
    own = posts.loc[posts["kind"] == "post", "post"]
    root = int(posts.loc[(posts["kind"] == "reshare") & posts["root"].isin(own), "root"].mode()[0])
    result.plot.cascade_tree(root, ax=right)
    handles, names = right.get_legend_handles_labels()
    right.get_legend().remove()
    figure.legend(handles, names, loc="outside lower right", ncols=len(names), fontsize=SMALL, frameon=False)
    draw_network(left, result, root)
    return figure


if __name__ == "__main__":
    made = run(WORLD, out=mkdtemp(), pictures=False)
    save(first_screen(made), Path(__file__).parent / "first-screen.png")
