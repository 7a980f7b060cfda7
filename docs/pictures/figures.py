"""The pictures of docs/figures.md: two feeds, five seeds each. Takes half a minute.

uv run python docs/pictures/figures.py
"""

from pathlib import Path
from tempfile import mkdtemp

from prism_mesa import RunResult, run
from prism_mesa.view import plots

FEEDS, SEEDS = ("chronological", "x_algo"), range(1, 6)


def runs_of(feed: str) -> list[RunResult]:
    """Return the runs with a feed, one for each seed."""
    world = {"agents.n": 1000, "rounds": 48, "reasoner.kind": "rule", "feed.mode": feed}
    return [run({**world, "seed": seed}, out=mkdtemp(), pictures=False) for seed in SEEDS]


if __name__ == "__main__":
    runs = {feed: runs_of(feed) for feed in FEEDS}
    figures = {
        "figures-states": plots.states_figure(runs),
        "figures-chart": plots.chart_figure(runs["x_algo"]),
        "figures-cascades": plots.cascades_figure(runs, real=True),
        "figures-tree": runs["x_algo"][0].plot.cascade_tree(),
        "figures-engagement": plots.engagement_figure(runs, per="post"),
    }
    for name, figure in figures.items():
        plots.save(figure, Path(__file__).parent / f"{name}.png")
