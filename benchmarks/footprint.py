"""Memory of a world, and the CPU of a first start: each in fresh processes, where nothing else has left its traces.

As a script it measures one world and prints one line of JSON:

    uv run python benchmarks/footprint.py 1000000 4
"""

import gc
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from measuring import ROOT, Target, Times, at_most, environment, forget_peak, peak_bytes, rss_bytes, say
from worlds import PLAIN_KEYWORDS, columns_model, warm_up

TARGET_AGENTS: Final = 1_000_000
_START: Final = """
from time import process_time
import mesa, numba
others = process_time()
from prism_mesa import SocialModel
imported = process_time()
SocialModel(agents_n=1000, **{plain}).step()
print(others, imported - others, process_time() - imported)
"""


@dataclass(frozen=True)
class Memory:
    """Bytes in RAM of one process.

    Attributes:
        before: When a small world had run and was let go: interpreter, libraries, compiled kernels.
        built: When the world was built; `after` when it had run, `peak` the most in between.
    """

    n: int
    n_edges: int
    before: int
    built: int
    after: int
    peak: int

    def per_agent(self, when: str) -> float:
        """Return the bytes per agent of `built`, `after` or `peak`, above those of `before`."""
        return (int(getattr(self, when)) - self.before) / self.n


def own_memory(n: int, rounds: int) -> Memory:
    """Measure this process, which must be a fresh one."""
    warm_up()
    gc.collect()
    forget_peak()
    before = rss_bytes()
    model = columns_model(n)
    built = rss_bytes()
    for _ in range(rounds):
        model.step()
    return Memory(n, model.network.n_edges, before, built, rss_bytes(), peak_bytes())


def measured_memory(n: int, rounds: int) -> Memory:
    """Measure a world in a process of its own."""
    say(f"memory of {n:,} agents")
    command = [sys.executable, str(Path(__file__)), str(n), str(rounds)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return Memory(**json.loads(done.stdout))


def report_memory(n: int, rounds: int) -> list[Target]:
    """Measure and print what agents and their histories take."""
    memory, depth, few = measured_memory(n, rounds), 8, 1000
    ring = columns_model(few, statechart_max_history_depth=depth).history.ring
    entry = ring.nbytes / (few * depth)
    print(
        f"\nMemory of {n:,} agents and {memory.n_edges:,} edges, in a process of its own, above the "
        f"{memory.before / 1e6:.0f} MB of that process after a small world; {rounds} rounds, no history:\n"
    )
    print("| | MB | bytes per agent |\n|---|--:|--:|")
    for when, name in (("built", "after building"), ("after", "after the rounds"), ("peak", "at most")):
        each = memory.per_agent(when)
        print(f"| {name} | {each * n / 1e6:.1f} | {each:.0f} |")
    print(f"| an entry of history | | {entry:.0f} |")
    is_size = n == TARGET_AGENTS
    return [
        at_most("1 M agents, memory after the rounds", 450, memory.per_agent("after") if is_size else None, " B/agent"),
        at_most("1 M agents, memory at most", 450, memory.per_agent("peak") if is_size else None, " B/agent"),
        at_most("an entry of history", 10, entry, " B"),
    ]


def start_s(checkout: Path, byte_code: Path | None) -> list[float]:
    """Return what a fresh Python takes, in CPU s: `import mesa, numba`, our own imports, the first world and round.

    Args:
        checkout: Where it finds `prism_mesa`.
        byte_code: Where it keeps compiled modules; None: it compiles all anew.
    """
    env = environment(checkout)
    if byte_code is None:
        env |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": str(checkout / "nothing")}
    else:
        env |= {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(byte_code)}
    command = [sys.executable, "-P", "-c", _START.format(plain=PLAIN_KEYWORDS)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=env)
    return [float(seconds) for seconds in done.stdout.split()]


def measured_starts(times: int, checkouts: Sequence[Path], byte_code: Path | None) -> list[tuple[Times, Times, Times]]:
    """Return what starts take with each of some checkouts, whose processes take turns."""
    found = [(Times(), Times(), Times()) for _ in checkouts]
    for checkout in checkouts:
        start_s(checkout, byte_code)  # kernels and byte code are on disk then
    for i in range(times):
        for own, checkout in zip(found, checkouts, strict=True):
            for part, seconds in zip(own, start_s(checkout, byte_code), strict=True):
                part.all.append(seconds)
        say(f"first start {i}: {', '.join(f'{own[2].all[-1]:.2f} s' for own in found)}")
    return found


def report_start(times: int, before: Path | None) -> list[Target]:
    """Measure and print what a first world costs in a fresh process, imports apart; kernels are on disk already.

    Processes of the code `before`, if it is given, and of this one take turns. The targets are for what an installed
    package has, byte code on disk; what it takes where Python may write none is printed too.
    """
    checkouts = {"before": before, "now": ROOT} if before else {"now": ROOT}
    print(f"\n| a fresh process, kernels on disk, CPU s, median (min) | {' | '.join(checkouts)} |")
    print("|---|" + "--:|" * len(checkouts))
    with TemporaryDirectory() as folder:
        for kept, name in ((None, "no byte code"), (Path(folder), "byte code on disk")):
            found = measured_starts(times, list(checkouts.values()), kept)
            for i, part in enumerate(("`import mesa, numba`", "our own imports", "then 1,000 agents, one round")):
                print(f"| {part}; {name} | {' | '.join(str(own[i]) for own in found)} |", flush=True)
    _, imports, start = found[-1]
    return [
        at_most("imports beyond `import mesa` and `import numba`", 0.3, imports.median, " CPU s"),
        at_most("then 1,000 agents, one round", 0.4, start.median, " CPU s"),
    ]


def main() -> None:
    """Measure this process and print it as JSON."""
    print(json.dumps(asdict(own_memory(int(sys.argv[1]), int(sys.argv[2])))))


if __name__ == "__main__":
    main()
