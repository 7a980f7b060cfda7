"""What a large world costs besides its rounds: threads, its network built and read, and everything recorded.

Each function measures, asserts what must be equal, prints a table and returns the targets.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
from measuring import Target, Times, at_least, at_most, cpu_s, rounds_of, say, wall_s
from worlds import DEGREE, SEED, columns_model

from prism_mesa.runs.records.folder import RunFolder
from prism_mesa.runs.run_files import count_rows
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import NetworkParams
from prism_mesa.social.state.network import FollowNetwork
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.social.world.follows import load_network
from prism_mesa.social.world.random_networks import generate_network
from prism_mesa.streams import Streams

TARGET_AGENTS: Final = 1_000_000


def assert_equal(one: SocialModel, other: SocialModel) -> None:
    """Assert that two models have come to the same counters, states and feeds."""
    assert one.totals == other.totals, (one.totals, other.totals)
    assert one.agent_ticks.tolist() == other.agent_ticks.tolist()
    for column in ("feed", "n_feed", "n_read", "ticks_in_state"):
        assert np.array_equal(getattr(one.population, column), getattr(other.population, column)), column


def report_threads(n: int, rounds: int) -> list[Target]:
    """Measure rounds on the wall with one thread and with two, turn by turn, and print them.

    Beside them stands what the machine gives at all: a round of one thread while another process, which shares nothing
    with it, computes such rounds too. Were two threads without any work one after the other, they would come near it.
    """
    one, two = columns_model(n), columns_model(n, threads=2)
    alone, beside, shared = rounds_of(), rounds_of(), rounds_of()
    with _other_process(n) as other:
        for i in range(rounds):
            alone.all.append(wall_s(one.step))
            shared.all.append(wall_s(two.step))
            if i == rounds - 1:
                assert_equal(one, two)
            other(signal.SIGCONT)
            beside.all.append(wall_s(one.step))
            other(signal.SIGSTOP)
            two.step()
            times = f"alone {alone.all[-1]:.4f} s, beside another {beside.all[-1]:.4f} s, two {shared.all[-1]:.4f} s"
            say(f"{n:,} agents, round {i}, on the wall: one thread {times}")
    print(f"\n| {n:,} agents | round, wall s, median (min) | times faster, medians (minima) |\n|--:|--:|--:|")
    times = alone.median / shared.median
    most, of_minima = 2 * alone.median / beside.median, 2 * alone.minimum / beside.minimum
    print(
        f"| one thread | {alone} | |\n| two threads | {shared} | {times:.2f} ({alone.minimum / shared.minimum:.2f}) |"
    )
    print(f"| two processes of one thread, both at work | {beside} | {most:.2f} ({of_minima:.2f}) |")
    return [at_least("1 M agents, two threads, times faster", 1.7, times if n == TARGET_AGENTS else None)]


@contextmanager
def _other_process(n: int) -> Iterator[Callable[[signal.Signals], None]]:
    """Start a process that computes rounds of `n` agents, and stop it; yields what sends it a signal."""
    context = get_context("spawn")
    begun = context.Event()
    process = context.Process(target=_step_for_ever, args=(n, begun), daemon=True)
    process.start()
    try:
        assert begun.wait(600), "the other process did not begin"
        os.kill(process.pid or 0, signal.SIGSTOP)
        yield lambda what: os.kill(process.pid or 0, what)
    finally:
        process.kill()
        process.join()


def _step_for_ever(n: int, begun: Event) -> None:
    while True:
        model = columns_model(n)
        for _ in range(16):
            model.step()
            begun.set()


@dataclass
class Networks:
    """CPU seconds of making and reading one network."""

    n_edges: int = 0
    build: float = 0.0
    parquet: float = 0.0
    shuffled: float = 0.0
    csv: float = 0.0
    made: list[FollowNetwork] = field(default_factory=list)


def measured_networks(n: int) -> Networks:
    """Build the network of `n` agents, write it to files and read these; assert that it stays the same."""
    found, params = Networks(), NetworkParams(kind="configuration", mean_degree=DEGREE)
    found.build = cpu_s(lambda: found.made.append(generate_network(params, n, Streams(SEED))))
    network = found.made.pop()
    found.n_edges = network.n_edges
    src, dst = network.edges()
    edges = pa.table({"src": src, "dst": dst})
    order = np.random.default_rng(SEED).permutation(len(src))
    mixed = pa.table({"src": src[order], "dst": dst[order]})
    with TemporaryDirectory() as folder:
        file = Path(folder) / "edges.parquet"
        pq.write_table(edges, file)
        found.parquet = _read_s(file, network)
        pq.write_table(mixed, file)
        found.shuffled = _read_s(file, network)
        file = Path(folder) / "edges.csv"
        pa.csv.write_csv(edges, file)
        found.csv = _read_s(file, network)
    return found


def _read_s(file: Path, network: FollowNetwork) -> float:
    read: list[FollowNetwork] = []
    seconds = cpu_s(lambda: read.append(load_network(str(file))[0]))
    say(f"{file.name}: {seconds:.2f} s")
    assert np.array_equal(read[0].indptr, network.indptr)
    assert np.array_equal(read[0].indices, network.indices)
    return seconds


def report_networks(n: int) -> list[Target]:
    """Measure and print what it costs to make a network, and to read it."""
    measured_networks(1000)  # kernels loaded
    say(f"the network of {n:,} agents")
    found = measured_networks(n)
    print(f"\n| network, {n:,} agents, {found.n_edges:,} edges | CPU s |\n|---|--:|")
    print(f"| built (configuration) | {found.build:.2f} |\n| read from Parquet, by follower | {found.parquet:.2f} |")
    print(f"| read from Parquet, in drawn order | {found.shuffled:.2f} |\n| read from CSV | {found.csv:.2f} |")
    is_size = n == TARGET_AGENTS
    return [
        at_most("1 M agents, network built", 8, found.build if is_size else None, " CPU s"),
        at_most("its edges read from Parquet", 5, found.parquet if is_size else None, " CPU s"),
        at_most("the same edges in drawn order", 5, found.shuffled if is_size else None, " CPU s"),
        at_most("its edges read from CSV", 20, found.csv if is_size else None, " CPU s"),
    ]


def report_records(n: int, rounds: int) -> list[Target]:
    """Measure rounds without records and with all of them, turn by turn, and print them.

    A part of a table is written when a million rows wait; what still waits at the end is written by `close`.
    """
    plain, recorded = rounds_of(), rounds_of()
    with TemporaryDirectory() as out:
        folder = RunFolder(Path(out), "records", SOCIAL_TABLES)
        bare = columns_model(n)
        everything = {"records_transitions": 1, "records_impressions": 1, "records_engagements": 1}
        model = columns_model(n, recorder=folder, **everything)

        def recorded_round() -> None:
            model.step()
            folder.round_done()

        _turn_by_turn(n, rounds, (bare.step, plain), (recorded_round, recorded))
        close = cpu_s(folder.close)
        assert_equal(bare, model)
        rows = count_rows(folder.path, "transitions")
        assert count_rows(folder.path, "impressions") == model.totals["impressions"]
        size = sum(file.stat().st_size for file in folder.path.rglob("*.parquet"))
    times = recorded.median / plain.median
    print(
        f"\n| records, {n:,} agents | round s, median (min) | times | transitions a round | MB a round | close s |\n"
        f"|---|--:|--:|--:|--:|--:|\n"
        f"| none | {plain} | | | | |\n"
        f"| everything | {recorded} | {times:.2f} | {rows // rounds:,} | {size / rounds / 1e6:.1f} | {close:.2f} |"
    )
    more = recorded.median - plain.median
    return [at_most("1 M agents, what recording everything adds", 1.2, more if n == TARGET_AGENTS else None, " CPU s")]


def _turn_by_turn(
    n: int, rounds: int, plain: tuple[Callable[[], None], Times], other: tuple[Callable[[], None], Times]
) -> None:
    for i in range(rounds):
        for step, times in (plain, other):
            times.all.append(cpu_s(step))
        say(f"{n:,} agents, round {i}: {plain[1].all[-1]:.4f} s, recorded {other[1].all[-1]:.4f} s")
