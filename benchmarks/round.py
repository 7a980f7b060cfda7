"""CPU seconds of a round: `SocialModel` and a plain Mesa model of the same rules, in one run, turn by turn.

Measured: building the model; `step()` without a recorder, as the median and minimum over the rounds after the
first; agent-ticks per second (all agents, idle ones too, times ticks per round); and the round in each feed mode.
Configuration network of 20 followees, 10 ticks, feeds of 10, rule-based reasoner.

It asserts results, not times: the same seed twice gives the same counters, and both models agree on totals and
shares of states as far as chance allows (`reference_mesa.assert_agreement`). Targets are printed as met or not.

    uv run --group bench python benchmarks/round.py
    uv run --group bench python benchmarks/round.py --sizes 1000 --rounds 4 --modes
"""

import argparse
import gc
import sys
from dataclasses import dataclass, field
from functools import partial
from typing import Final, get_args

from measuring import Times, cpu_s, machine, verdict
from reference_mesa import ReferenceModel, assert_agreement

from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import FeedParams

TICKS: Final = 10
MODES: Final = get_args(FeedParams.model_fields["mode"].annotation)
TARGET_AGENTS, TARGET_RATIO, TARGET_ROUND_S = 100_000, 20.0, 0.5


def columns_model(n: int, *, mode: str = "chronological", seed: int = 42) -> SocialModel:
    """Return the model that is measured; everything that could change the work is said here."""
    return SocialModel(
        rng=seed,
        agents_n=n,
        network_kind="configuration",
        network_mean_degree=20,
        ticks_per_round=TICKS,
        feed_size=10,
        feed_mode=mode,
        reasoner_kind="rule",
    )


@dataclass
class Size:
    """What was measured at one number of agents.

    Attributes:
        difference: Largest relative difference between the two models' totals and shares.
    """

    n: int
    build_s: float = 0.0
    reference_build_s: float = 0.0
    difference: float = 0.0
    columns: Times = field(default_factory=partial(Times, warm_up=1))
    reference: Times = field(default_factory=partial(Times, warm_up=1))

    @property
    def ratio(self) -> float:
        """How many times faster the columns are, by the medians."""
        return self.reference.median / self.columns.median

    @property
    def ratio_of_minima(self) -> float:
        """The same by the minima."""
        return self.reference.minimum / self.columns.minimum


def say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)


def measured(n: int, rounds: int) -> Size:
    """Measure both models at `n` agents, a round of one after a round of the other."""
    size = Size(n)
    models: list[SocialModel] = []
    references: list[ReferenceModel] = []
    size.build_s = cpu_s(lambda: models.append(columns_model(n)))
    size.reference_build_s = cpu_s(lambda: references.append(ReferenceModel(models[0])))
    [model], [reference] = models, references
    for i in range(rounds):
        size.columns.all.append(cpu_s(model.step))
        size.reference.all.append(cpu_s(reference.step))
        say(f"{n:,} agents, round {i}: {size.columns.all[-1]:.4f} s, reference {size.reference.all[-1]:.3f} s")
    size.difference = assert_agreement(model, reference)
    assert_repeatable(model, rounds)
    return size


def assert_repeatable(model: SocialModel, rounds: int) -> None:
    """Assert that a second model of the same seed comes to the same counters and states."""
    again = columns_model(len(model.population))
    for _ in range(rounds):
        again.step()
    assert again.totals == model.totals, (again.totals, model.totals)
    assert again.agent_ticks.tolist() == model.agent_ticks.tolist()
    assert again.population.ticks_in_state.tolist() == model.population.ticks_in_state.tolist()


def measured_mode(n: int, mode: str, rounds: int) -> tuple[Times, int]:
    """Measure the rounds of one feed mode; return also the impressions per round."""
    model, times = columns_model(n, mode=mode), Times(warm_up=1)
    for _ in range(rounds):
        times.all.append(cpu_s(model.step))
    assert model.totals["impressions"] > 0
    say(f"{n:,} agents, {mode}: {times.median:.4f} s")
    return times, model.totals["impressions"] // rounds


def report_sizes(sizes: list[Size]) -> None:
    """Print one row per number of agents, as Markdown."""
    print(
        "| agents | build s | round s, median (min) | agent-ticks/s | reference: build s | round s, median (min) "
        "| agent-ticks/s | **times faster**, medians (minima) | largest difference of results |\n"
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    )
    for size in sizes:
        ticks = size.n * TICKS
        print(
            f"| {size.n:,} | {size.build_s:.2f} | {size.columns.median:.4f} ({size.columns.minimum:.4f}) "
            f"| {ticks / size.columns.median / 1e6:.2f} M | {size.reference_build_s:.2f} "
            f"| {size.reference.median:.3f} ({size.reference.minimum:.3f}) "
            f"| {ticks / size.reference.median / 1e6:.3f} M | **{size.ratio:.1f}** ({size.ratio_of_minima:.1f}) "
            f"| {size.difference:.1%} |"
        )


def report_targets(sizes: list[Size]) -> None:
    """Print whether the targets of issue 2 are met, by the medians."""
    print()
    at = next((size for size in sizes if size.n == TARGET_AGENTS), None)
    if at is None:
        print(f"Targets hold for {TARGET_AGENTS:,} agents: not measured.")
        return
    print(
        f"- {at.n:,} agents, at least {TARGET_RATIO:.0f} times the reference: {at.ratio:.1f} by the medians, "
        f"{at.ratio_of_minima:.1f} by the minima: **{verdict(at.ratio >= TARGET_RATIO)}**\n"
        f"- {at.n:,} agents, under {TARGET_ROUND_S} CPU s a round: {at.columns.median:.3f}: "
        f"**{verdict(at.columns.median < TARGET_ROUND_S)}**"
    )


def report_modes(n: int, modes: list[str], rounds: int) -> None:
    """Measure and print the feed modes."""
    if not modes:
        return
    results = [(mode, *measured_mode(n, mode, rounds)) for mode in modes]
    print(f"\n| feed mode, {n:,} agents | round s, median (min) | impressions a round |\n|---|--:|--:|")
    for mode, times, impressions in results:
        print(f"| {mode} | {times.median:.4f} ({times.minimum:.4f}) | {impressions:,} |")


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    options.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000], help="numbers of agents")
    options.add_argument("--rounds", type=int, default=8, help="rounds of each model, the first does not count")
    options.add_argument("--modes", nargs="*", choices=MODES, default=MODES, help="feed modes; none to leave out")
    options.add_argument("--no-gc", action="store_true", help="switch Python's garbage collector off, for both")
    given = options.parse_args()
    if given.rounds < 2:
        options.error("--rounds: the first round does not count, so give at least 2")
    print(f"{machine('mesa', 'numpy')}; garbage collector {'off' if given.no_gc else 'on'}\n")
    sizes = []
    for n in given.sizes:
        gc.collect()
        if given.no_gc:
            gc.disable()
        sizes.append(measured(n, given.rounds))
    report_sizes(sizes)
    report_targets(sizes)
    report_modes(max(given.sizes), given.modes, given.rounds)


if __name__ == "__main__":
    main()
