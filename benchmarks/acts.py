"""What acts of the platform cost: rounds of the default world with acts, turn by turn with rounds without.

A label on a tenth of the posts, a friction, and a filter for a tenth of the agents apply together. A million agents are
measured with a removal of a tenth of the posts. It asserts that no agent reads what is removed or filtered.

uv run python benchmarks/acts.py [--agents N] [--rounds N] [--large N]
"""

import argparse
import warnings
from typing import Any, Final

import numpy as np
from measuring import Times, at_most, cpu_s, print_targets, say
from worlds import columns_model, warm_up

from prism_mesa.errors import PrismWarning
from prism_mesa.social.model import SocialModel

TENTH: Final = "post.mark < 0.1"
ATTRIBUTES: Final = {"mark": {"of": "post", "range": [0, 1]}}
TOGETHER: Final = (
    {"at": 0, "label": {"posts": TENTH, "effect": {"like": -0.5, "reshare": -1}}},
    {"at": 0, "friction": {"on": "reply", "abandon": 0.1}},
    {"name": "some", "at": 0, "share": 0.1, "filter": {"posts": "post.mark > 0.9"}},
)
REMOVAL: Final = ({"at": 0, "remove": {"posts": TENTH}},)


def measured(models: dict[str, SocialModel], rounds: int) -> dict[str, Times]:
    """Run the models turn by turn, and return the CPU seconds of their rounds."""
    times = {name: Times(warm_up=rounds // 3) for name in models}
    for _ in range(rounds):
        for name, model in models.items():
            times[name].all.append(cpu_s(model.step))
    for name, all_times in times.items():
        say(f"| {len(models[name].population):,} agents, {name} | {all_times} |")
    return times


def read_marks(model: SocialModel, readers: Any) -> Any:
    """Return the marks of the posts in the feeds of some agents."""
    people = model.population
    is_shown = np.arange(people.feed.shape[1]) < people.n_feed[:, np.newaxis]
    return model.posts.attributes[people.feed[readers][is_shown[readers]], 0]


def main() -> None:
    """Measure, print a table, and say whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=16)
    parser.add_argument("--large", type=int, default=1_000_000)
    given = parser.parse_args()
    warnings.simplefilter("ignore", PrismWarning)
    warm_up()

    def make(n: int, acts: Any) -> SocialModel:
        return columns_model(n, attributes=ATTRIBUTES, interventions=acts, rounds=given.rounds)

    models = {"without acts": make(given.agents, ()), "with three acts": make(given.agents, TOGETHER)}
    plain, acting = measured(models, given.rounds).values()
    some = np.flatnonzero(models["with three acts"].platform.act_state.groups("some", given.agents) == 0)
    assert read_marks(models["with three acts"], some).max() <= 0.9, "treated agents read no filtered post"
    large = {"without acts": make(given.large, ()), "with a removal": make(given.large, REMOVAL)}
    without, removal = measured(large, 6).values()
    assert read_marks(large["with a removal"], np.arange(given.large)).min() >= 0.1, "nobody reads a removed post"
    say(f"a removal at {given.large:,} agents: {removal.median / without.median:.2f} times")
    print_targets([at_most("three acts, times none", 1.15, acting.median / plain.median, " times")])


if __name__ == "__main__":
    main()
