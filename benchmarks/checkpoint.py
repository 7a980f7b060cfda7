"""What checkpoints cost: CPU seconds and bytes of one, what the default spends on them, and what it takes to go on.

uv run python benchmarks/checkpoint.py [--agents N ...]
"""

import argparse
import shutil
import sys
import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
from measuring import Target, at_most, cpu_s, print_targets, say

from prism_mesa.errors import PrismWarning
from prism_mesa.runs.checkpoints.file import WORLD, checkpoint_files, read_checkpoint
from prism_mesa.runs.checkpoints.keeping import Checkpoints
from prism_mesa.runs.config import load_config
from prism_mesa.runs.resume import ResumeOptions, resume
from prism_mesa.runs.social import run, start_run

DEFAULT: Final = Path(__file__).parents[1] / "configs" / "default.yaml"
MOST_S: Final = {100_000: 0.1, 1_000_000: 1.0}
ROUNDS: Final = 12
BYTES_OF_AN_AGENT: Final = 4000
"""Memory that is used before something is timed; a run that goes on needs less."""
COLD: Final = "--cold" in sys.argv
HEADS: Final = (
    *("agents", "a checkpoint, CPU s", "wall s", "MB", "MB beside it", "times its arrays"),
    *("making the world, CPU s", "reading, CPU s", "until the next round, CPU s"),
)


@dataclass
class Costs:
    """Of one size: CPU seconds of a checkpoint, bytes, CPU seconds of making the world, reading and going on."""

    agents: int
    write_s: float = 0.0
    wall_s: float = 0.0
    size: int = 0
    in_arrays: int = 0
    build_s: float = 0.0
    read_s: float = 0.0
    go_on_s: float = 0.0

    @property
    def row(self) -> str:
        """A row of a table."""
        cells = [f"{self.agents:,}", f"{self.write_s:.3f}", f"{self.wall_s:.3f}", f"{self.size / 1e6:,.1f}"]
        cells += [
            f"{self.size / self.in_arrays:.2f}",
            f"{self.build_s:.2f}",
            f"{self.read_s:.2f}",
            f"{self.go_on_s:.2f}",
        ]
        return f"| {' | '.join(cells)} |"


def bytes_in(value: Any) -> int:
    """Return the bytes of all arrays in nested data."""
    if isinstance(value, np.ndarray):
        return value.nbytes
    held = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(bytes_in, held))


def use_memory(size: int) -> None:
    """Write to memory, and let go of it, so that this machine has it at hand.

    What a guest has not used lately its host gives it anew, page by page: up to 4 CPU s a GB, whoever asks for it.
    """
    if not COLD:
        np.empty(size, np.uint8).fill(1)


def config_of(agents: int, rounds: int = ROUNDS, **more: object) -> Any:
    """Return the default configuration at a size, decided by rule."""
    own = {"agents.n": agents, "reasoner.kind": "rule", "rounds": rounds, **more}
    return load_config(DEFAULT, [f"{key}={value}" for key, value in own.items()])


def measured(agents: int, rounds: int, out: Path) -> Costs:
    """Return the costs at a size: a run makes checkpoints every other round, is stopped, and goes on."""
    costs = Costs(agents)
    config = config_of(agents, rounds, checkpoint_every=2)
    costs.build_s = cpu_s(lambda: start_run(config))
    took: list[tuple[float, float]] = []
    made, ends = Checkpoints.round_done, dict[int, float]()
    room = agents * BYTES_OF_AN_AGENT

    def timed(self: Checkpoints, done: int, state: Any, *, last: bool) -> None:
        ends[done] = time.process_time()
        use_memory(room // 4)
        cpu, wall, before = time.process_time(), time.perf_counter(), len(checkpoint_files(self._run.path))
        made(self, done, state, last=last)
        if done % 2 == 0:
            took.append((time.process_time() - cpu, time.perf_counter() - wall))
        assert len(checkpoint_files(self._run.path)) >= min(before, 2)
        ends[-done] = time.process_time()

    def stop(done: int) -> None:
        if done == rounds - 1:
            [folder] = out.iterdir()
            shutil.copytree(folder, out.parent / "stopped")

    Checkpoints.round_done = timed  # type: ignore[method-assign]
    run(config, out=out, on_round=stop)
    Checkpoints.round_done = made  # type: ignore[method-assign]
    next_round = rounds - rounds % 2 - 1  # after the last checkpoint
    costs.write_s, costs.wall_s = (sorted(column)[len(took) // 2] for column in zip(*took, strict=True))
    stopped = out.parent / "stopped"
    newest = checkpoint_files(stopped)[0]
    costs.size = newest.stat().st_size
    world = newest.with_name(WORLD)
    use_memory(room)
    costs.read_s = sum(cpu_s(partial(read_checkpoint, file)) for file in (newest, world) if file.is_file())
    costs.in_arrays = bytes_in(read_checkpoint(newest))
    use_memory(room)
    at = time.process_time()
    first: list[float] = []
    resume(stopped, ResumeOptions(on_round=lambda done: first.append(time.process_time() - at)))
    costs.go_on_s = first[0] - (ends[next_round] - ends[-(next_round - 1)])  # that round, as the run itself needed it
    shutil.rmtree(stopped)
    return costs


def main() -> None:
    """Measure, print a table, and say which targets are met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, nargs="+", default=[1000, 100_000, 1_000_000])
    parser.add_argument("--cold", action="store_true", help="take memory as it comes (see `use_memory`)")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    warnings.simplefilter("ignore", PrismWarning)
    given, found = parser.parse_args(), list[Costs]()
    for agents in given.agents:
        with TemporaryDirectory(prefix="prism-checkpoint-") as folder:
            out = Path(folder) / "runs"
            out.mkdir()
            found.append(measured(agents, given.rounds, out))
        say(found[-1].row)
    print(f"\n| {' | '.join(HEADS)} |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    print("\n".join(one.row for one in found))
    targets: list[Target] = []
    for one in found:
        if one.agents in MOST_S:
            targets.append(at_most(f"a checkpoint, {one.agents:,} agents", MOST_S[one.agents], one.write_s, " CPU s"))
        targets.append(at_most(f"bytes of its arrays, {one.agents:,} agents", 1.5, one.size / one.in_arrays, " times"))
        more = one.go_on_s - one.read_s
        targets.append(at_most(f"going on, beside reading, {one.agents:,} agents", 3.0, more, " CPU s"))
    print_targets(targets)


if __name__ == "__main__":
    main()
