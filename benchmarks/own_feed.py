"""What a feed of a user's own costs: rounds of the default world with one, as an expression and as a function.

They are run turn by turn beside rounds with `preference`; both say the same, and must show the same.

uv run python benchmarks/own_feed.py [--agents N] [--rounds N]
"""

import argparse
import warnings
from typing import Any

import numpy as np
from measuring import Times, at_most, cpu_s, print_targets, say

from prism_mesa import F, SocialModel
from prism_mesa.errors import PrismWarning

expression = F.post.likes / (1 + F.post.impressions) - 0.01 * F.post.age + 0.2 * F.post.in_network


def function(columns: Any) -> Any:
    """Return what `expression` says."""
    liked = columns["post.likes"] / (1 + columns["post.impressions"])
    return liked - 0.01 * columns["post.age"] + 0.2 * columns["post.in_network"]


def main() -> None:
    """Measure, print a table, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=16)
    given = parser.parse_args()
    warnings.simplefilter("ignore", PrismWarning)
    modes = ("preference", "own_feed:expression", "own_feed:function")
    models = {mode: SocialModel(agents_n=given.agents, feed_mode=mode, rounds=given.rounds) for mode in modes}
    times = {mode: Times(warm_up=given.rounds // 3) for mode in modes}
    for _ in range(given.rounds):
        for mode, model in models.items():
            times[mode].all.append(cpu_s(model.step))
    assert np.array_equal(*(models[mode].population.feed for mode in modes[1:])), "the two say the same"
    for mode, own in times.items():
        say(f"| {mode} | {own} |")
    ratio, other = (times[mode].median / times["preference"].median for mode in modes[1:])
    print_targets([at_most("a round with an expression, times one with preference", 2.0, ratio, " times")])
    say(f"a function: {other:.2f} times")


if __name__ == "__main__":
    main()
