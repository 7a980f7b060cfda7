"""A forest fire without agents: the chart fires over columns, one cell of the grid in each row."""

import numpy as np

from prism_mesa import F, Statechart, Transition
from prism_mesa.statechart import ArrayColumns

TREE, BURNING, ASH = range(3)
forest = Statechart(
    ["tree", "burning", "ash"],
    [
        Transition("step", "tree", "burning", F.agent.burning_neighbours > 0),
        Transition("step", "burning", "ash"),
    ],
    initial="tree",
    name="forest",
)
targets = np.array([*(forest.codes[transition.target] for transition in forest.transitions), -1])


def burning_neighbours(grid):
    """Return the number of burning cells above, below, left and right of each cell."""
    burning = np.pad(grid == BURNING, 1).astype(int)
    return burning[:-2, 1:-1] + burning[2:, 1:-1] + burning[1:-1, :-2] + burning[1:-1, 2:]


def step(grid):
    """Return the grid after a step; cells without a transition stay as they are (as ash without trees does)."""
    columns = ArrayColumns({"burning_neighbours": burning_neighbours(grid).ravel()})
    result = forest.fire_many(grid.ravel(), "step", columns, ArrayColumns({}))
    new = targets[result.transition_indices].reshape(grid.shape)
    return np.where(new >= 0, new, grid)


def burn(density, size=100, steps=400, seed=1):
    """Return the grid after a fire that starts at the left edge of a forest with a share `density` of trees."""
    grid = np.where(np.random.default_rng(seed).random((size, size)) < density, TREE, ASH)
    grid[:, 0] = np.where(grid[:, 0] == TREE, BURNING, ASH)
    for _ in range(steps):
        grid = step(grid)
    return grid


def draw():
    """Return a figure: the share of trees that burn, by density."""
    from prism_mesa.figure import NotebookFigure

    densities = np.arange(0.4, 0.81, 0.04)
    burnt = [1 - (burn(density) == TREE).sum() / (density * 100**2) for density in densities]
    figure = NotebookFigure(figsize=(6, 3))
    axes = figure.subplots()
    axes.plot(densities, burnt, "o-", color="#d1610d")
    axes.set(xlabel="density of trees", ylabel="share burnt", ylim=(0, 1))
    return figure


if __name__ == "__main__":
    draw().savefig("forest-fire.png", dpi=150, bbox_inches="tight")
