"""How many runs of a calibration an hour holds on two cores: 10,000 agents, 50 rounds, beside the plain Mesa reference.

Ours is measured as a calibration runs it: by two workers, each run in a process of its own, of which only measures are
kept; the first run of each worker does not count. The reference is measured over a few rounds and scaled to 50: its
build and 50 times its median round, with nothing added for processes or measures. The hours are those of two cores that
have nothing else to do, from CPU seconds; what the wall said stands beside them, and depends on what else was running.

It asserts results, not times: the measures of a run are the same by one worker and by two, and both models agree on
totals and shares of states as far as chance allows.

    uv run --group bench python benchmarks/calibrate_speed.py
    uv run --group bench python benchmarks/calibrate_speed.py --quick
"""

import argparse
from typing import Final

from agreement import assert_agreement
from measuring import Target, Times, at_most, cpu_s, machine, print_targets, rounds_of, say
from reference_mesa import ReferenceModel
from study import MEASURE, measured
from worlds import PLAIN, SEED, columns_model, warm_up

from prism_mesa.studies.engines.job import Job

CORES: Final = 2
MANY: Final = 10_000
"""Runs that are to fit into an afternoon."""


def jobs(agents: int, rounds: int, runs: int) -> list[Job]:
    """Return the runs of a calibration, which differ in what is fitted and in their seeds."""
    world = PLAIN | {
        "rounds": rounds,
        "threads": 1,
        "agents.n": agents,
        "network.kind": "configuration",
        "feed.mode": "chronological",
        "reasoner.kind": "rule",
        "statechart.max_history_depth": 0,
    }
    fitted = [{"seed": SEED + i, "agents.threshold_mean": 0.5 + 0.2 * i / runs} for i in range(runs)]
    return [Job(f"run-{i}", world | own, (MEASURE,), keep="measures") for i, own in enumerate(fitted)]


def reference_s(agents: int, rounds: int, measured_rounds: int) -> tuple[float, Times]:
    """Return the CPU seconds of one run of the reference, scaled to `rounds`, and of the rounds that were measured."""
    model = columns_model(agents)
    made: list[ReferenceModel] = []
    build = cpu_s(lambda: made.append(ReferenceModel(model)))
    times = rounds_of()
    for i in range(measured_rounds):
        model.step()
        times.all.append(cpu_s(made[0].step))
        say(f"reference, round {i}: {times.all[-1]:.3f} s")
    assert_agreement(model, made[0])
    return build + rounds * times.median, times


def report(agents: int, rounds: int, runs: int, measured_rounds: int) -> list[Target]:
    """Measure and print both."""
    own = measured(jobs(agents, rounds, runs), CORES)
    assert measured(jobs(agents, rounds, runs)[:CORES], 1).measures == own.measures[:CORES]
    ours, wall = own.cpu_s / own.runs, own.wall_s / own.runs
    plain, times = reference_s(agents, rounds, measured_rounds)
    print(
        f"\n| {agents:,} agents, {rounds} rounds | CPU s a run | runs an hour, {CORES} cores "
        f"| on the wall, as it was | hours for {MANY:,} runs |\n|---|--:|--:|--:|--:|"
    )
    print(
        f"| a calibration, {own.runs} runs | {ours:.3f} "
        f"| {an_hour(ours):,.0f} | {3600 / wall:,.0f} | {hours(ours):.2f} |"
    )
    print(f"| of that its model | {own.model_cpu_s / own.runs:.3f} | | | |")
    print(
        f"| plain Mesa, scaled from rounds of {times} s | {plain:.2f} | {an_hour(plain):,.0f} | | {hours(plain):.1f} |"
    )
    print(f"\n{plain / ours:.1f} times as many.")
    return [at_most(f"{MANY:,} runs of {agents:,} agents and {rounds} rounds on two cores", 5, hours(ours), " hours")]


def an_hour(run_s: float) -> float:
    """Return how many runs of so many CPU seconds an hour holds."""
    return CORES * 3600 / run_s


def hours(run_s: float) -> float:
    """Return the hours of `MANY` runs of so many CPU seconds."""
    return MANY / an_hour(run_s)


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    options.add_argument("--agents", type=int, default=10_000)
    options.add_argument("--rounds", type=int, default=50, help="of a run")
    options.add_argument("--runs", type=int, default=40, help="of ours")
    options.add_argument("--reference-rounds", type=int, default=8, help="rounds of the reference that are measured")
    options.add_argument("--quick", action="store_true", help="see in seconds that everything runs; times mean nothing")
    given = options.parse_args()
    if given.quick:
        given.agents, given.rounds, given.runs, given.reference_rounds = 1000, 6, 4, 3
    print(machine("mesa", "numpy", "numba"), flush=True)
    warm_up()
    targets = report(given.agents, given.rounds, given.runs, given.reference_rounds)
    print_targets([] if given.quick else targets)


if __name__ == "__main__":
    main()
