"""A round of `SocialModel` and all that belongs to it, measured in one run: CPU, memory, threads, files, records.

Measured: building the model; `step()` without a recorder, as the median and minimum over the rounds after the
first; agent-ticks per second (all agents, idle ones too, times ticks per round); the same for a plain Mesa model of
the same rules, turn by turn; the round in each feed mode and with other charts; and what `scale`, `footprint` and
`bandwidth` say. The world is that of `worlds`: a configuration network of 20 followees, 10 ticks, feeds of 10, the
rule-based reasoner, no history. CPU seconds are those of the process, one thread, unless it says wall.

Everything is measured by this one command, in this process, but for three things: memory is that of a child, because a
process that has run other worlds cannot tell what one takes; a first start is by its nature that of a fresh process;
and with `--before` a checkout of other code is measured beside this one (see `before`). Large worlds come first, so
that their peak of memory is not that of something before them.

It asserts results, not times: the same seed twice gives the same counters, states and feeds, with one thread or two,
with or without records; files give the network that was written; and both models agree on totals and shares of states
as far as chance allows (`agreement.assert_agreement`). Targets are printed as met or not, by the medians.

    uv run --group bench python benchmarks/round.py
    uv run --group bench python benchmarks/round.py --before ../before
    uv run --group bench python benchmarks/round.py --sizes 20000 100000 --only sizes records
    uv run --group bench python benchmarks/round.py --quick
"""

import argparse
import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from agreement import assert_agreement
from bandwidth import measured_bandwidth, report_bandwidth, touched_bytes
from before import report_before
from footprint import report_memory, report_start
from measuring import (
    Target,
    Times,
    at_least,
    at_most,
    cpu_s,
    forget_peak,
    machine,
    peak_bytes,
    print_targets,
    rounds_of,
    say,
)
from reference_mesa import ReferenceModel
from scale import assert_equal, report_networks, report_records, report_threads
from worlds import TICKS, columns_model, warm_up

from prism_mesa.social.behavior import build_chart, viral_chart
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import FEED_MODES

MODES: Final = tuple(mode for mode in FEED_MODES if mode not in ("bridging", "diverse"))  # these need an attribute
PARTS: Final = ("sizes", "bandwidth", "memory", "threads", "networks", "records", "modes", "charts", "start", "before")
SIZES: Final = (1000, 10_000, 100_000, 1_000_000, 10_000_000)
SMALL, MIDDLE, LARGE = 100_000, 1_000_000, 10_000_000
STREAMED: Final = 1 << 26
"""Elements of the arrays that the bandwidth is measured on: 512 MB each, more than four times the largest caches."""


@dataclass
class Size:
    """What was measured at one number of agents.

    Attributes:
        peak: Bytes; None where the reference was in the same process.
        touched: Bytes that a round touches at least; see `bandwidth`.
        reference: Of the plain Mesa model; None where it was not run.
        difference: Largest relative difference between the two models' totals and shares.
    """

    n: int
    build_s: float = 0.0
    columns: Times = field(default_factory=rounds_of)
    peak: int | None = None
    touched: dict[str, int] = field(default_factory=dict)
    reference_build_s: float = 0.0
    reference: Times | None = None
    difference: float = 0.0

    @property
    def ns(self) -> float:
        """Nanoseconds per agent and round."""
        return self.columns.median / self.n * 1e9

    @property
    def ratio(self) -> float | None:
        """How many times faster the columns are, by the medians."""
        return self.reference.median / self.columns.median if self.reference else None


def measured(n: int, rounds: int, *, with_reference: bool) -> Size:
    """Measure a model of `n` agents, and the reference a round after each round of it."""
    gc.collect()
    forget_peak()
    size, made = Size(n), list[SocialModel]()
    size.build_s = cpu_s(lambda: made.append(columns_model(n)))
    model = made.pop()
    if with_reference:
        _with_reference(size, model, rounds)
    else:
        for _ in range(rounds):
            _one_round(size, model)
        size.peak = peak_bytes()
    size.touched = touched_bytes(model)
    if n <= MIDDLE:  # two larger ones might not fit
        again = columns_model(n)
        for _ in range(rounds):
            again.step()
        assert_equal(model, again)
    return size


def _one_round(size: Size, model: SocialModel) -> None:
    size.columns.all.append(cpu_s(model.step))
    say(f"{size.n:,} agents, round {model.round}: {size.columns.all[-1]:.4f} s")


def _with_reference(size: Size, model: SocialModel, rounds: int) -> None:
    made: list[ReferenceModel] = []
    size.reference_build_s = cpu_s(lambda: made.append(ReferenceModel(model)))
    reference, size.reference = made.pop(), rounds_of()
    for _ in range(rounds):
        _one_round(size, model)
        size.reference.all.append(cpu_s(reference.step))
        say(f"{size.n:,} agents, reference: {size.reference.all[-1]:.3f} s")
    size.difference = assert_agreement(model, reference)


def report_sizes(sizes: list[Size]) -> list[Target]:
    """Print one row per number of agents, of each model, as Markdown."""
    print(
        "\n| agents | build s | round s, median (min) | agent-ticks/s | ns per agent-round | peak RSS, GB |\n"
        "|--:|--:|--:|--:|--:|--:|"
    )
    for size in sizes:
        peak = "" if size.peak is None else f"{size.peak / 1e9:.2f}"
        rate = size.n * TICKS / size.columns.median / 1e6
        print(f"| {size.n:,} | {size.build_s:.2f} | {size.columns} | {rate:.1f} M | {size.ns:.0f} | {peak} |")
    report_references([size for size in sizes if size.reference])
    return size_targets({size.n: size for size in sizes})


def report_references(sizes: list[Size]) -> None:
    """Print one row per number of agents, of the plain Mesa model beside the columns, as Markdown."""
    if not sizes:
        return
    print(
        "\n| agents | reference: build s | round s, median (min) | agent-ticks/s "
        "| **times faster**, medians (minima) | largest difference of results |\n|--:|--:|--:|--:|--:|--:|"
    )
    for size in sizes:
        if size.reference is not None:
            minima = size.reference.minimum / size.columns.minimum
            rate = size.n * TICKS / size.reference.median / 1e6
            print(
                f"| {size.n:,} | {size.reference_build_s:.2f} | {size.reference} | {rate:.3f} M "
                f"| **{size.ratio:.1f}** ({minima:.1f}) | {size.difference:.1%} |"
            )


def size_targets(by_n: dict[int, Size]) -> list[Target]:
    """Return the targets of rounds without records."""
    small, middle, large = by_n.get(SMALL), by_n.get(MIDDLE), by_n.get(LARGE)
    peak = large.peak / 1e9 if large and large.peak else None
    growth, most = (size.ns / small.ns if size and small else None for size in (middle, large))
    return [
        at_least("100,000 agents, times the plain Mesa reference", 100, small.ratio if small else None),
        at_most("1 M agents, a round", 0.5, middle.columns.median if middle else None, " CPU s"),
        at_most("10 M agents, a round", 7, large.columns.median if large else None, " CPU s"),
        at_most("10 M agents, peak RSS", 6, peak, " GB"),
        at_most("cost per agent at 1 M, times that at 100,000", 1.3, growth),
        at_most("cost per agent at 10 M, times that at 100,000", 1.6, most),
    ]


def measured_rounds(model: SocialModel, rounds: int, name: str) -> Times:
    """Measure the rounds of one model."""
    times = rounds_of()
    for _ in range(rounds):
        times.all.append(cpu_s(model.step))
    assert model.totals["impressions"] > 0
    say(f"{name}: {times.median:.4f} s")
    return times


def report_modes(n: int, rounds: int) -> list[Target]:
    """Measure and print the feed modes."""
    print(f"\n| feed mode, {n:,} agents | round s, median (min) | impressions a round |\n|---|--:|--:|")
    for mode in MODES:
        model = columns_model(n, feed_mode=mode)
        times = measured_rounds(model, rounds, mode)
        print(f"| {mode} | {times} | {model.totals['impressions'] // rounds:,} |")
    return []


def report_charts(n: int, rounds: int) -> list[Target]:
    """Measure and print the default chart, one whose guard reads counters of posts, and one with a guard in Python."""
    in_python = build_chart(engages=lambda agent, post: post.relevance > agent.high_threshold)  # type: ignore[arg-type]
    charts = {"default": None, "viral_chart": viral_chart, "the default's guard as a Python function": in_python}
    print(f"\n| chart, {n:,} agents | round s, median (min) | open choices a round |\n|---|--:|--:|")
    totals = []
    for name, chart in charts.items():
        model = columns_model(n, chart=chart)
        times = measured_rounds(model, rounds, name)
        assert bool(model.row_by_row_guards) == (chart is in_python), (name, model.row_by_row_guards)
        totals.append(model.totals)
        print(f"| {name} | {times} | {model.totals['open'] // rounds:,} |")
    assert totals[0] == totals[2], "the same guard as an expression and as a function gives other results"
    return []


def parsed() -> argparse.Namespace:
    """Return what the command line says."""
    options = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    options.add_argument("--sizes", type=int, nargs="+", default=SIZES, help="numbers of agents")
    options.add_argument("--rounds", type=int, default=8, help="rounds of each model, the first does not count")
    options.add_argument("--reference-up-to", type=int, default=SMALL, help="most agents of the reference")
    options.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="what to measure")
    options.add_argument("--before", type=Path, metavar="CHECKOUT", help="the code before, measured beside this one")
    options.add_argument("--no-gc", action="store_true", help="switch Python's garbage collector off, for both models")
    options.add_argument("--quick", action="store_true", help="see in seconds that everything runs; times mean nothing")
    given = options.parse_args()
    if given.quick:
        given.sizes, given.rounds = [1000, 2000], 3
    if given.rounds < 2:
        options.error("--rounds: the first round does not count, so give at least 2")
    return given


def measured_sizes(given: argparse.Namespace) -> list[Size]:
    """Measure each size, the largest first; return them by size."""
    if not {"sizes", "bandwidth"} & set(given.only):
        return []
    compares = "sizes" in given.only
    largest_first = sorted(set(given.sizes), reverse=True)
    found = [measured(n, given.rounds, with_reference=compares and n <= given.reference_up_to) for n in largest_first]
    return found[::-1]


def report_shares(sizes: list[Size], *, is_quick: bool) -> list[Target]:
    """Measure the machine's bandwidth, and print the share of it that rounds reach."""
    speed = measured_bandwidth(1 << 20 if is_quick else STREAMED, 15)
    report_bandwidth({size.n: (size.touched, size.columns.median) for size in sizes}, speed)
    return []


def main() -> None:
    """Measure and print."""
    given = parsed()
    rounds, quick = given.rounds, given.quick
    most = max([n for n in given.sizes if n <= MIDDLE], default=min(given.sizes))
    few = max([n for n in given.sizes if n <= SMALL], default=min(given.sizes))
    print(f"{machine('mesa', 'numpy', 'numba')}; garbage collector {'off' if given.no_gc else 'on'}", flush=True)
    if given.no_gc:
        gc.disable()
    warm_up()  # also for the processes that are measured: kernels are on disk then
    sizes = measured_sizes(given)
    reports: dict[str, Callable[[], list[Target]]] = {
        "sizes": lambda: report_sizes(sizes),
        "bandwidth": lambda: report_shares(sizes, is_quick=quick),
        "memory": lambda: report_memory(most, rounds),
        "threads": lambda: report_threads(most, rounds),
        "networks": lambda: report_networks(most),
        "records": lambda: report_records(most, rounds),
        "modes": lambda: report_modes(few, rounds),
        "charts": lambda: report_charts(few, rounds),
        "start": lambda: report_start(1 if quick else 5, given.before),
        "before": lambda: report_before(given.before, is_quick=quick),
    }
    targets: list[Target] = []
    for part in PARTS:
        if part in given.only:
            gc.collect()
            targets += reports[part]()
            sys.stdout.flush()
    print_targets(targets)


if __name__ == "__main__":
    main()
