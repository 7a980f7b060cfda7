"""The figure of the README: the paired runs of its study with two arms. Takes a few seconds.

uv run python docs/pictures/two_arms.py
"""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.figure import Figure

from prism_mesa import SocialModel, cascades
from prism_mesa.studies.statistics.significance import interval

AGENTS, SESSION, ROUNDS, SEEDS = 500, 20, 16, range(1, 11)
COLORS = {"chronological": "#4f8fc0", "x_2023": "#ec8f1c"}


def cascades_of(mode: str, seed: int) -> pd.DataFrame:
    """Return the size of each post's cascade in one run: the post and its reshares."""
    model = SocialModel(agents_n=AGENTS, agents_session=SESSION, feed_mode=mode, rng=seed)
    model.run_for(ROUNDS)
    trees = cascades(model.posts.parent, model.posts.root, model.posts.kind)
    own = model.posts.kind[trees["root"]] == 0  # posts; replies are roots too
    return trees.loc[own, ["size"]].assign(mode=mode, seed=seed)


def two_arms_figure(trees: pd.DataFrame) -> Figure:
    """Return all cascade sizes of both arms, and the mean of each seed, pair by pair.

    Args:
        trees: Columns `mode`, `seed`, `size`; one row per post.
    """
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.9), layout="constrained")
    for mode, color in COLORS.items():
        sizes = np.sort(trees.loc[trees["mode"] == mode, "size"])
        reached, first = np.unique(sizes, return_index=True)
        label = f"{mode} (n = {len(sizes):,} posts)"
        left.loglog(reached, 1 - first / len(sizes), "o-", ms=3.5, lw=1.2, color=color, label=label)
    left.set(xlabel="cascade size s (posts: one and its reshares)", ylabel="share of posts with size ≥ s")
    left.set_title(f"All cascades of {len(SEEDS)} seeds", loc="left", fontsize=11)
    left.legend(frameon=False)
    left.grid(alpha=0.25, which="both")

    means = trees.groupby(["seed", "mode"])["size"].mean().unstack()[list(COLORS)]
    right.plot([0, 1], means.to_numpy().T, "o-", color="#b5b5b5", ms=4, lw=1)
    for place, (mode, color) in enumerate(COLORS.items()):
        right.plot(place, means[mode].mean(), "_", ms=34, mew=3, color=color)
    difference = means["x_2023"] - means["chronological"]
    [low], [high] = interval(difference.to_numpy()[:, None], means.to_numpy().max())  # as `prism study run` has it
    told = f"mean difference {difference.mean():.2f} posts, 95 % interval {low:.2f} to {high:.2f}"
    right.set_title(told, loc="left", fontsize=9.5)
    right.set(xticks=[0, 1], xticklabels=list(COLORS), xlim=(-0.4, 1.4), ylim=(0, None))
    right.set(
        ylabel="mean size of a cascade (posts)", xlabel=f"feed; one line per seed (n = {len(SEEDS)}), bars: means"
    )
    right.grid(alpha=0.25, axis="y")
    figure.suptitle(f"{AGENTS} agents, some {SESSION} posts a visit, {ROUNDS} rounds, decided by rule", fontsize=11)
    return figure


if __name__ == "__main__":
    figure = two_arms_figure(pd.concat([cascades_of(mode, seed) for mode in COLORS for seed in SEEDS]))
    figure.savefig(Path(__file__).parent / "two-arms.png", dpi=110)
