"""What a run of a study costs beside its model, two workers against one, and the same runs through `mesa.batch_run`.

The runs: 500 agents, 50 rounds, decided by rule, 4 conditions x 50 seeds. What a run costs is the CPU of all processes
that have to do with it: its own, the one it is forked from, and the one that waits for it. Its model is making that and
stepping it without a recorder, in the same processes, by one worker. The first runs, which start what runs are forked
from, do not count.

It asserts results, not times: the measures of a run are the same kept or not, with one worker or two, and through
`batch_run`.

    uv run python benchmarks/study.py
    uv run python benchmarks/study.py --quick
"""

import argparse
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import mesa
from measuring import Target, at_least, at_most, machine, print_targets, say
from worlds import PLAIN, PLAIN_KEYWORDS

from prism_mesa.social.model import SocialModel
from prism_mesa.studies.engines.executors import open_engine
from prism_mesa.studies.engines.job import Job, Outcome
from prism_mesa.studies.engines.supervise import run_supervised

VALUES: Final = (("chronological", "x_algo"), (0.02, 0.1))
KEEPS: Final = ("measures", "tables")
MEASURE: Final = "reshares"
PARTS: Final = ("costs", "batch_run")


@dataclass(frozen=True)
class Size:
    """How much is run: agents and rounds of a run, and seeds of each condition."""

    agents: int = 500
    rounds: int = 50
    seeds: int = 50

    def __str__(self) -> str:
        return f"{self.runs} runs of {self.agents} agents and {self.rounds} rounds"

    @property
    def points(self) -> list[tuple[str, float, int]]:
        """Feed mode, band and seed of each run."""
        return list(product(*VALUES, range(self.seeds)))

    @property
    def runs(self) -> int:
        """How many runs there are."""
        return len(self.points)

    def jobs(self, keep: str) -> list[Job]:
        """Return the runs as jobs."""
        return [self._job(*point, keep) for point in self.points]

    def _job(self, mode: str, band: float, seed: int, keep: Any) -> Job:
        config = {
            **PLAIN,
            "seed": seed,
            "rounds": self.rounds,
            "threads": 1,
            "agents": {"n": self.agents, "band": band},
            "feed": {"mode": mode},
            "reasoner": {"kind": "rule"},
        }
        return Job(f"{mode}-{band}-{seed}", config, (MEASURE,), keep=keep)


@dataclass
class Cost:
    """What runs took, in all.

    Attributes:
        cpu_s: Of all processes.
        model_cpu_s: What making and stepping the models takes of it, if nothing is recorded.
    """

    runs: int
    wall_s: float
    cpu_s: float
    model_cpu_s: float
    measures: list[float]

    def beside_ms(self, model_cpu_s: float) -> float:
        """Return what a run costs beside its model, in CPU ms."""
        return (self.cpu_s - model_cpu_s) / self.runs * 1000


def measured(jobs: list[Job], workers: int) -> Cost:
    """Run jobs by so many workers and return what they took."""
    with TemporaryDirectory() as folder, open_engine("local", workers=workers) as engine:
        own = [replace(job, folder=folder) for job in jobs]
        list(engine.map(run_supervised, [replace(job, run=f"first-{job.run}") for job in own[:workers]]))
        cpu, at = _cpu_s(), time.perf_counter()
        outcomes: list[Outcome] = list(engine.map(run_supervised, own))
        wall_s, cpu_s = time.perf_counter() - at, _cpu_s() - cpu
    assert all(one.ending == "done" for one in outcomes), [one.reason for one in outcomes if one.reason]
    model = math.fsum(one.facts["model_cpu_s"] for one in outcomes)
    return Cost(len(jobs), wall_s, cpu_s, model, [one.measures[MEASURE] for one in outcomes])


def _cpu_s() -> float:
    """Return CPU seconds of this process, of its children, and of all those of theirs that have ended."""
    total, ticks = time.process_time(), os.sysconf("SC_CLK_TCK")
    for file in Path("/proc/self/task").glob("*/children"):
        for child in file.read_text().split():
            told = Path("/proc", child, "stat").read_text().rpartition(")")[2].split()
            total += sum(map(int, told[11:15])) / ticks  # its own, user and system, and that of children it waited for
    return total


def report_costs(size: Size) -> list[Target]:
    """Measure and print what a run costs beside its model, and what a second worker gains."""
    costs = {(keep, workers): measured(size.jobs(keep), workers) for keep in KEEPS for workers in (1, 2)}
    for of, cost in costs.items():
        say(f"{of}: {cost.wall_s:.1f} s")
        assert cost.measures == costs["measures", 1].measures, f"{of} gives other results"
    model = costs["measures", 1].model_cpu_s
    print(f"\n{size}; the model of a run takes {model / size.runs * 1000:.0f} CPU ms\n")
    print("| keep | a run, CPU ms | beside its model | runs a minute, 1 worker | 2 workers | times |")
    print("|---|--:|--:|--:|--:|--:|")
    for keep in KEEPS:
        one, two = costs[keep, 1], costs[keep, 2]
        per_minute = [cost.runs / cost.wall_s * 60 for cost in (one, two)]
        print(
            f"| {keep} | {one.cpu_s / one.runs * 1000:.0f} | {one.beside_ms(model):.0f} "
            f"| {per_minute[0]:.0f} | {per_minute[1]:.0f} | {one.wall_s / two.wall_s:.2f} |"
        )
    gains = {keep: costs[keep, 1].wall_s / costs[keep, 2].wall_s for keep in KEEPS}
    return [
        at_most("a run beside its model, keep: measures", 60, costs["measures", 1].beside_ms(model), " CPU ms"),
        at_most("a run beside its model, keep: tables", 150, costs["tables", 1].beside_ms(model), " CPU ms"),
        *(at_least(f"two workers, times one, keep: {keep}", 1.8, gain) for keep, gain in gains.items()),
    ]


def report_batch_run(size: Size) -> list[Target]:
    """Measure and print the same runs through the local engine and through Mesa."""
    print(f"\n{size}, two processes\n\n| through | wall s |\n|---|--:|")
    cost = measured(size.jobs("measures"), 2)
    print(f"| the local engine, keep: measures | {cost.wall_s:.1f} |")
    kept = measured(size.jobs("tables"), 2)
    print(f"| the local engine, keep: tables | {kept.wall_s:.1f} |", flush=True)
    at = time.perf_counter()
    rows = mesa.batch_run(
        SocialModel,
        PLAIN_KEYWORDS
        | {name: list(values) for name, values in zip(("feed_mode", "agents_band"), VALUES, strict=True)}
        | {"agents_n": size.agents, "rounds": size.rounds, "threads": 1},
        number_processes=2,
        max_steps=size.rounds,
        rng=list(range(size.seeds)),
        display_progress=False,
    )
    print(f"| mesa.batch_run | {time.perf_counter() - at:.1f} |")
    found = {(row["feed_mode"], row["agents_band"], row["rng"]): row["total_reshares"] for row in rows}
    assert [found[of] for of in size.points] == cost.measures == kept.measures, "batch_run gives other results"
    return []


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    options.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="what to measure")
    options.add_argument("--quick", action="store_true", help="see in seconds that everything runs; times mean nothing")
    given = options.parse_args()
    print(machine("mesa", "numpy", "pandas", "pyarrow"), flush=True)
    whole = Size(60, 5, 2) if given.quick else Size()
    reports: dict[str, Callable[[], list[Target]]] = {
        "costs": lambda: report_costs(replace(whole, seeds=min(whole.seeds, 10))),
        "batch_run": lambda: report_batch_run(whole),
    }
    print_targets([target for part in PARTS if part in given.only for target in reports[part]()])


if __name__ == "__main__":
    main()
