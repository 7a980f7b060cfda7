"""What a network that moves costs: its rounds beside those of the same world with a fixed network, turn by turn.

Two worlds: the default one, whose rates come to some .2 % of all follows a day, and that of `worlds` (20 followees, 10
ticks), with rates by which about 1 % of all follows begin or end in each round. It asserts that two threads make the
same network, and prints what moved. CPU seconds of the process, one thread.

    uv run --group bench python benchmarks/live.py
    uv run --group bench python benchmarks/live.py --quick
"""

import argparse
import gc
from collections.abc import Callable
from typing import Any, Final

from measuring import Target, at_most, cpu_s, machine, print_targets, rounds_of, say
from worlds import columns_model, warm_up

from prism_mesa.social.model import SocialModel

MUCH: Final = {
    "network_dynamics": "live",
    "network_rates_follow": 0.002,
    "network_rates_triad": 0.3,
    "network_rates_unfollow": 0.045,
    "network_rates_mute": 0.00001,
    "network_rates_block": 0.00001,
}
"""Rates by which about 1 % of the follows of `worlds` change in a round."""


def default_model(n: int, **other: Any) -> SocialModel:
    """Return the default world of `n` agents, decided by rule."""
    return SocialModel(agents_n=n, reasoner_kind="rule", **other)


def compared(make: Callable[..., SocialModel], n: int, rounds: int, live: dict[str, Any], name: str) -> float:
    """Measure rounds with a fixed network and with one that moves, turn by turn; return how many times they take."""
    gc.collect()
    fixed, moving = make(n), make(n, **live)
    times, more = rounds_of(), rounds_of()
    for i in range(rounds):
        times.all.append(cpu_s(fixed.step))
        more.all.append(cpu_s(moving.step))
        say(f"{name}, {n:,} agents, round {i}: fixed {times.all[-1]:.4f} s, live {more.all[-1]:.4f} s")
    counts, follows = moving.relations.counts, moving.network.n_edges
    share = (counts["follow"] + counts["unfollow"]) / rounds / fixed.network.n_edges
    ratio, least = more.median / times.median, more.minimum / times.minimum
    print(f"| {name} | {n:,} | {follows:,} | {share:.3%} | {times} | {more} | {ratio:.2f} ({least:.2f}) |", flush=True)
    assert counts["follow"], "nothing moved"
    return ratio


def assert_threads_agree(n: int, rounds: int) -> None:
    """Assert that the network does not depend on the number of threads."""
    one, two = columns_model(n, **MUCH), columns_model(n, **MUCH, threads=2)
    for _ in range(rounds):
        one.step()
        two.step()
    assert one.network.checksum == two.network.checksum != one.first_network.checksum


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    options.add_argument("--agents", type=int, nargs=2, default=[100_000, 1_000_000], help="of each world")
    options.add_argument(
        "--rounds", type=int, nargs=2, default=[25, 10], help="of each world; the first does not count"
    )
    options.add_argument("--quick", action="store_true", help="see in seconds that everything runs; times mean nothing")
    given = options.parse_args()
    (few, many), (long, short) = ([2000, 3000], [4, 4]) if given.quick else (given.agents, given.rounds)
    print(machine("mesa", "numpy", "numba"), flush=True)
    warm_up()
    assert_threads_agree(min(few, 20_000), 4)
    print(
        "\n| world | agents | follows | changed a round | fixed, s a round, median (min) | live "
        "| **times**, medians (minima) |"
        "\n|---|--:|--:|--:|--:|--:|--:|",
        flush=True,
    )
    small = compared(default_model, few, long, {"network_dynamics": "live"}, "default")
    large = compared(columns_model, many, short, MUCH, "20 followees, 10 ticks")
    targets: list[Target] = [
        at_most("live network at 100,000 agents, times a fixed round", 1.6, None if given.quick else small),
        at_most("a million agents with 1 % of follows changing, times", 1.5, None if given.quick else large),
    ]
    print_targets(targets)


if __name__ == "__main__":
    main()
