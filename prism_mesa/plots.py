"""Pictures of a run, from its tables. Nothing is computed here but where ink goes."""

from pathlib import Path

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from prism_mesa.experiments.measures import ccdf
from prism_mesa.experiments.store import read_table
from prism_mesa.statechart import STATE_COLORS, AgentState

DPI = 150
_ENGAGEMENT = {
    "likes": (AgentState.ENGAGING_LIKE, "o"),
    "replies": (AgentState.ENGAGING_REPLY, "s"),
    "reshares": (AgentState.ENGAGING_RESHARE, "^"),
}


def _axes(title: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7.5, 4.4), layout="constrained")
    axes = figure.add_subplot()
    axes.set_title(title, loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _whole_numbers() -> MaxNLocator:
    return MaxNLocator(integer=True, min_n_ticks=1)


def states_figure(rounds: pd.DataFrame) -> Figure:
    """Return the shares of agent-ticks in each state per round, stacked, idle on top.

    Args:
        rounds: Columns `round` and `share_<state>`: the table `rounds` of a run.
    """
    figure, axes = _axes("What agents are doing")
    order = list(STATE_COLORS)[::-1]
    shares = rounds[[f"share_{state.value}" for state in order]].to_numpy().T
    edges = [*(rounds["round"] - 0.5), rounds["round"].iloc[-1] + 0.5]
    steps = [[*row, row[-1]] for row in shares]
    colors, labels = [STATE_COLORS[s] for s in order], [s.value for s in order]
    axes.stackplot(edges, steps, step="post", colors=colors, labels=labels, lw=0)
    axes.set(xlabel="round", ylabel="share of agent-ticks", xlim=(edges[0], edges[-1]), ylim=(0, 1))
    axes.xaxis.set_major_locator(_whole_numbers())
    handles, labels = axes.get_legend_handles_labels()
    axes.legend(handles[::-1], labels[::-1], loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    return figure


def cascades_figure(cascades: pd.DataFrame) -> Figure:
    """Return the share of cascades that reach a size, both axes logarithmic.

    Args:
        cascades: Column `size`: the table `cascades` of a run.
    """
    figure, axes = _axes("How far posts spread")
    sizes, shares = ccdf(cascades["size"])
    axes.loglog(sizes, shares, "o-", color="#4c72b0", ms=4, lw=1)
    axes.set(xlabel="cascade size s (post and its reshares)", ylabel="share of posts with size ≥ s")
    axes.grid(alpha=0.25, which="both")
    if not len(sizes):
        axes.text(0.5, 0.5, "nobody posted", transform=axes.transAxes, ha="center")
    return figure


def engagement_figure(rounds: pd.DataFrame) -> Figure:
    """Return likes, replies and reshares per round.

    Args:
        rounds: Columns `round`, `likes`, `replies`, `reshares`: the table `rounds` of a run.
    """
    figure, axes = _axes("Engagement per round")
    for name, (state, marker) in _ENGAGEMENT.items():
        axes.plot(
            rounds["round"],
            rounds[name],
            marker=marker,
            color=STATE_COLORS[state],
            ms=4,
            lw=1.2,
            label=name,
            clip_on=False,
        )
    axes.set(xlabel="round", ylabel="engagements", ylim=(0, max(1, axes.get_ylim()[1])))
    axes.xaxis.set_major_locator(_whole_numbers())
    axes.yaxis.set_major_locator(_whole_numbers())
    axes.legend(frameon=False)
    axes.grid(alpha=0.25)
    return figure


def draw_run(run_dir: str | Path) -> list[Path]:
    """Draw states.png, cascades.png and engagement.png into a run's folder, and return their paths.

    Raises:
        DataError: If the folder lacks a table.
    """
    folder = Path(run_dir)
    trees = read_table(folder, "cascades")
    figures = {
        "states": states_figure(read_table(folder, "rounds")),
        "cascades": cascades_figure(trees[trees["kind"] == "post"]),
        "engagement": engagement_figure(read_table(folder, "rounds")),
    }
    for name, figure in figures.items():
        figure.savefig(folder / f"{name}.png", dpi=DPI)
    return [folder / f"{name}.png" for name in figures]
