"""This code and the code before it, turn by turn: each world in two processes, one of each code, which take turns.

The code before is a checkout of that commit (`git worktree add ../before <commit>`). Both run under this interpreter,
with this folder's scripts and configurations; only where `prism_mesa` is found differs. A turn is a few rounds, so that
both meet the same disturbances and neither waits for its caches in each round. Both must come to the same totals
and states: what is compared gives the same results.

As a script it is one of the two processes: for each line of its input it runs so many rounds.

    uv run python benchmarks/before.py '{"agents_n": 1000}'
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from measuring import ROOT, Target, Times, at_most, cpu_s, environment, rounds_of, say
from worlds import columns_model

from prism_mesa import load_config
from prism_mesa.social.model import SocialModel


@dataclass
class Side:
    """A world in a process of its own.

    Attributes:
        build_s: CPU seconds of building it.
        rounds: CPU seconds of its rounds; the first does not count in median and minimum.
    """

    ask: IO[str]
    answers: IO[str]
    build_s: float = 0.0
    rounds: Times = field(default_factory=rounds_of)

    @property
    def all_s(self) -> float:
        """CPU seconds of building it and of all its rounds."""
        return self.build_s + sum(self.rounds.all)

    def told(self, what: object) -> Any:
        """Return the answer to a line: `build`, a number of rounds, or `results`."""
        print(what, file=self.ask, flush=True)
        return json.loads(self.answers.readline() or sys.exit("a process of before.py has ended"))


@contextmanager
def side(checkout: Path, world: dict[str, Any]) -> Iterator[Side]:
    """Start a process whose `prism_mesa` is that of a checkout; `world` is what `made` takes."""
    command, pipe = [sys.executable, __file__, json.dumps(world)], subprocess.PIPE
    with subprocess.Popen(command, env=environment(checkout), stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Side(process.stdin, process.stdout)
        process.stdin.close()


def turn_by_turn(before: Path, world: dict[str, Any], turns: int, rounds: int) -> tuple[Side, Side]:
    """Run a world in the code before and in this one, in turns of so many rounds; return both."""
    with side(before, world) as old, side(ROOT, world) as new:
        for one in (old, new):
            one.build_s = one.told("build")
        for i in range(turns):
            for one in (old, new):
                one.rounds.all += one.told(rounds)
            say(f"turn {i}: before {old.rounds.all[-1]:.4f} s, now {new.rounds.all[-1]:.4f} s")
        assert old.told("results") == new.told("results"), "both come to the same"
    return old, new


@dataclass(frozen=True)
class Plan:
    """A world to run in both.

    Attributes:
        most: The target: how much of what it took before.
        is_whole: Whether that is of building it and of all its rounds, rather than of the median of its rounds.
    """

    name: str
    world: dict[str, Any]
    turns: int
    rounds: int
    most: float
    is_whole: bool = False

    def target(self, found: float | None = None) -> Target:
        """Return the target, met or not if it was measured."""
        return at_most(f"{self.name}: times the code before", self.most, found)


def plans() -> list[Plan]:
    """Return the worlds that are compared."""
    calibrated, default = (str(ROOT / "configs" / f"{name}.yaml") for name in ("calibrated", "default"))
    rounds = load_config(calibrated).rounds
    busy = {"file": default, "agents_n": 3000, "reasoner_kind": "rule"}
    return [
        Plan("plain, 1,000 agents, a round", {"agents_n": 1000}, 20, 20, 1.02),
        Plan("plain, 100,000 agents, a round", {"agents_n": 100_000}, 20, 1, 1.02),
        Plan("plain, 1 M agents, a round", {"agents_n": 1_000_000}, 8, 1, 1.02),
        Plan("`configs/default.yaml`, 3,000 agents, a round", busy, 14, 8, 0.7),
        Plan("`configs/calibrated.yaml`, a seed", {"file": calibrated}, rounds, 1, 0.55, is_whole=True),
    ]


def report_before(before: Path | None, *, is_quick: bool) -> list[Target]:
    """Measure and print worlds in the code before and in this one; without a checkout it names the targets only."""
    if before is None:
        return [plan.target() for plan in plans()]
    print(
        "\n| CPU s | round before, median (min) | round now | world and rounds before | now "
        "| **now / before**, medians (minima) | world and rounds |\n|---|--:|--:|--:|--:|--:|--:|"
    )
    targets = []
    for plan in plans():
        world, turns = (plan.world | {"agents_n": 1000}, 3) if is_quick else (plan.world, plan.turns)
        old, new = turn_by_turn(before, world, turns, plan.rounds)
        usual, whole = new.rounds.median / old.rounds.median, new.all_s / old.all_s
        print(
            f"| {plan.name} | {old.rounds} | {new.rounds} | {old.all_s:.4g} | {new.all_s:.4g} "
            f"| **{usual:.2f}** ({new.rounds.minimum / old.rounds.minimum:.2f}) | {whole:.2f} |",
            flush=True,
        )
        targets.append(plan.target(None if is_quick else whole if plan.is_whole else usual))
    return targets


def made(file: str | None = None, **parameters: Any) -> SocialModel:
    """Return the world of a configuration, or that of `worlds`; of one thread."""
    if file is None:
        return columns_model(**{"n": parameters.pop("agents_n")} | parameters)
    return SocialModel(load_config(file), threads=1, **parameters)


def main() -> None:
    """Run rounds as the input says, and print what they took."""
    world: dict[str, Any] = json.loads(sys.argv[1])
    models: list[SocialModel] = []
    trial = made(**world | {"agents_n": 1000})  # its kernels are loaded then
    for _ in range(3):
        trial.step()
    for line in sys.stdin:
        if line == "build\n":
            said: Any = cpu_s(lambda: models.append(made(**world)))
        elif line == "results\n":
            said = [dict(models[0].totals), models[0].agent_ticks.tolist()]
        else:
            said = [cpu_s(models[0].step) for _ in range(int(line))]
        print(json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
