"""Damaged files of every kind that PRISM reads: whether each is read, or refused in one line, and at what cost.

uv run python benchmarks/fuzz.py [--configs N] [--files N] [--seed S] [--kind NAME [--case I]]

The kinds are those of `tests/hostile_files.py`; each is read in a process of its own, which is watched. A case is known
by its kind, its number and the seed: `--kind NAME --case I` reads one again, and says what is wrong with it.
"""

import argparse
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path

from measuring import Target, at_least, at_most, forget_peak, machine, peak_bytes, print_targets, rss_bytes, say

sys.path.append(str(Path(__file__).parents[1] / "tests"))
from hostile_files import KINDS, Kind
from hostile_jail import Jail

HANGS_S = 120
"""Seconds on the wall after which a reader is ended; the machine may have others to do for."""
_MOST_MB = 500


@dataclass
class Told:
    """What became of the files of a kind.

    Attributes:
        cases: Files read, the good ones and the bombs among them.
        accepted: Of which something was made; all others were refused in one line.
        defects: What should not have been -> in which cases.
        slowest: CPU seconds of the file that took most, and which one.
        largest: Bytes of memory that one took beside what was held before, and which one.
    """

    cases: int = 0
    accepted: int = 0
    defects: dict[str, list[str]] = field(default_factory=dict)
    slowest: tuple[float, str] = (0.0, "")
    largest: tuple[float, str] = (0.0, "")

    def add(self, label: str, accepted: bool, defect: str, cpu_s: float, bytes_: float) -> None:
        """Count a file."""
        self.cases += 1
        self.accepted += accepted
        if defect:
            self.defects.setdefault(defect, []).append(label)
        self.slowest = max(self.slowest, (cpu_s, label))
        self.largest = max(self.largest, (bytes_, label))


def cases_of(kind: Kind, n: int, seed: int) -> Iterator[tuple[str, bytes]]:
    """Yield good files, bombs, and `n` damaged files, each with its name."""
    seeds = kind.seeds()
    for i, raw in enumerate(seeds):
        yield f"good {i}", raw
    for i, raw in enumerate(kind.bombs()):
        yield f"bomb {i}", raw
    for i in range(n):
        draws = random.Random(f"{seed} {kind.name} {i}")
        yield str(i), kind.damaged(draws.choice(seeds), draws)


def read_all(kind: Kind, n: int, seed: int, first: int, sender: Connection) -> None:
    """Read all files of a kind from one on, and send what became of each; before that, which one it is."""
    os.nice(max(0, 19 - os.nice(0)))
    with tempfile.TemporaryDirectory() as around:
        jail = Jail(Path(around))
        for i, (label, raw) in enumerate(cases_of(kind, n, seed)):
            if i < first and i:  # the first good one is read for what is made once
                continue
            if i == 0:
                jail.read(kind, raw)
            if i < first:
                continue
            sender.send(label)
            forget_peak()
            before, at = rss_bytes(), time.process_time()
            reading = jail.read(kind, raw)
            cpu_s = time.process_time() - at
            defect = reading.defect or (
                "refused, and it is a good one" if label.startswith("good") and not reading.accepted else ""
            )
            sender.send((label, reading.accepted, defect, cpu_s, peak_bytes() - before))
    sender.send(None)


def fuzzed(kind: Kind, n: int, seed: int) -> Told:
    """Read all files of a kind in a process of its own; one that ends or hangs is a defect, and the next goes on."""
    told, now = Told(), ""
    while True:
        receiver, sender = multiprocessing.Pipe(duplex=False)
        reader = multiprocessing.Process(target=read_all, args=(kind, n, seed, told.cases, sender), daemon=True)
        reader.start()
        sender.close()
        try:
            while receiver.poll(HANGS_S):
                got = receiver.recv()
                if got is None:
                    reader.join()
                    return told
                if isinstance(got, str):
                    now = got
                else:
                    told.add(*got)
            fault = f"hangs for {HANGS_S} s"
        except EOFError:
            reader.join()
            fault = f"ended the process ({reader.exitcode})"
        reader.kill()
        reader.join()
        if not now:
            raise RuntimeError(f"{kind.name}: no good file could be made")
        told.add(now, False, fault, 0.0, 0.0)


def print_table(found: dict[str, Told]) -> None:
    """Print a row for each kind."""
    print(
        "| kind | files | read | refused | defects | slowest, CPU s | most memory, MB |\n|---|--:|--:|--:|--:|--:|--:|"
    )
    for name, told in found.items():
        bad = sum(map(len, told.defects.values()))
        refused = (
            told.cases
            - told.accepted
            - sum(len(labels) for what, labels in told.defects.items() if not what.startswith("outside"))
        )
        print(
            f"| {name} | {told.cases:,} | {told.accepted:,} | {refused:,} | {bad} | {told.slowest[0]:.2f} "
            f"| {told.largest[0] / 2**20:.0f} |"
        )


def targets(found: dict[str, Told], configs: int, files: int) -> list[Target]:
    """Return what was hoped for, and what came of it."""
    is_config = {kind.name for kind in KINDS if kind.is_config}
    count = Counter[bool]()
    for name, told in found.items():
        count[name in is_config] += told.cases
    bad = sum(len(labels) for told in found.values() for labels in told.defects.values())
    slow, large = max(told.slowest[0] for told in found.values()), max(told.largest[0] for told in found.values())
    return [
        at_least("fuzzed configurations", configs, count[True]),
        at_least("fuzzed files", files, count[False]),
        at_most("tracebacks, ended processes, messages of more than a line, anything outside of the folder", 0, bad),
        at_most("the slowest file", 2, slow, " CPU s"),
        at_most("memory that a file takes", _MOST_MB, large / 2**20, " MB"),
    ]


def main() -> None:
    """Fuzz, print, and end with 1 if anything is not as it should be."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("--configs", type=int, default=10_000)
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind")
    parser.add_argument("--case")
    given = parser.parse_args()
    kinds = [kind for kind in KINDS if given.kind in (None, kind.name)]
    if given.case is not None:
        raw = next(raw for label, raw in cases_of(kinds[0], 10**9, given.seed) if label == given.case)
        with tempfile.TemporaryDirectory() as around:
            print(raw[:2000], Jail(Path(around)).read(kinds[0], raw), sep="\n")
        return
    multiprocessing.set_start_method("fork")
    found = {}
    for kind in kinds:
        share = sum(other.share for other in kinds if other.is_config == kind.is_config)
        n = int((given.configs if kind.is_config else given.files) * kind.share / share) + 1
        at = time.monotonic()
        found[kind.name] = told = fuzzed(kind, n, given.seed)
        say(f"{kind.name}: {told.cases} in {time.monotonic() - at:.0f} s")
        for what, labels in told.defects.items():
            say(f"    {len(labels)} times, as {', '.join(labels[:3])}: {what}")
    print(f"\n{machine('prism-mesa', 'numpy', 'pandas', 'pyarrow')}; seed {given.seed}\n")
    print_table(found)
    reached = targets(found, given.configs, given.files)
    print_targets(reached)
    sys.exit(not all(target.met for target in reached))


if __name__ == "__main__":
    main()
