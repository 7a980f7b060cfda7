"""Runs that are killed at any moment and go on: their tables are those of runs that were not, nothing is asked twice.

Each run is a process of its own, from a forkserver that has loaded all there is to load, so that a kill costs no
start-up. A moment is drawn from the whole time that a run takes, so that some lie within writing; every third run that
goes on is killed once more.

uv run python benchmarks/kill.py [--kills N]
"""

import argparse
import multiprocessing
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from measuring import say
from stand_in import StandIn
from stand_in.brains import choose_by_hash

from prism_mesa import Ledger, SocialAgent, SocialModel
from prism_mesa.errors import DataError, PrismWarning
from prism_mesa.runs.config import load_config
from prism_mesa.runs.economy import run_economy
from prism_mesa.runs.resume import ResumeOptions, resume
from prism_mesa.runs.run_files import MANIFEST
from prism_mesa.runs.social import run
from prism_mesa.streams import Streams

DEFAULT: Final = Path(__file__).parents[1] / "configs" / "default.yaml"
LOADED: Final = ("prism_mesa.runs.resume", "stand_in", "ollama")
DRAWS: Final = Streams(18)
MOST_S: Final = 300.0
POLICIES: Final = (
    "Raise the policy rate by 0.5 percentage points",
    "Keep interest rates unchanged",
    "Cut taxes by 300%",
)


class Amplifier(SocialAgent):
    """Reshares what it sees, and counts it."""

    def __init__(self, model: SocialModel, **fields: Any) -> None:
        super().__init__(model, **fields)
        self.n_seen = 0

    def step(self) -> None:
        """Read two posts a tick, and reshare every third of all."""
        for _ in range(2):
            if (post := self.read()) is None:
                return
            self.n_seen += 1
            if self.n_seen % 3 == 0:
                self.reshare(post)


def amplified(model: SocialModel) -> None:
    """Add agents with scripts, which follow everybody else."""
    for _ in range(20):
        Amplifier(model, follows=range(180), followers=range(90, 180))


def advice(body: dict[str, Any]) -> str:
    """Return what the stand-in says to a nation, or to an agent: it depends on the question only."""
    prompt = body["messages"][0]["content"]
    number = sum(prompt.encode()) * 7919
    said = POLICIES[number % len(POLICIES)]
    return f'{{"action": "{said}", "reasoning": "Reason {number % 97}.", "confidence": 0.5}}'


@dataclass(frozen=True)
class Kind:
    """A kind of run: its values by dotted key, and what it is given in Python."""

    name: str
    values: dict[str, Any]
    asks: bool = False
    nations: bool = False
    prepare: Callable[[SocialModel], object] | None = None

    def begin(self, out: str) -> None:
        """Run it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrismWarning)
            if self.nations:
                run_economy(self.values, out=out)
            else:
                config = load_config(DEFAULT, [f"{key}={value}" for key, value in self.values.items()])
                run(config, out=out, prepare=self.prepare)

    def go_on(self, folder: str) -> None:
        """Go on with it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", PrismWarning)
            resume(folder, ResumeOptions(prepare=self.prepare))


def kinds(url: str, rounds: int, large: int) -> list[Kind]:
    """Return the kinds of runs, of so many rounds; `large`: agents of the large one."""
    rule = {"reasoner.kind": "rule", "rounds": rounds, "checkpoint_every": 2}
    asks = {"reasoner.kind": "ollama", "reasoner.host": url, "reasoner.max_concurrency": 8, "reasoner.timeout_s": 20}
    few = {"agents.n": 200, "agents.band": 0.1, "agents.activity": 0.8}
    acts = {
        "attributes": "{bot: {of: agent, values: [true, false], share: [1, 4]}, mark: {of: post, range: [0, 1]}}",
        "interventions": "["
        "{name: gone, at: 1, remove: {posts: post.mark > 0.7, coverage: 0.5, delay: {median: 3}}},"
        "{name: note, at: 1, share: 0.5, label: {posts: post.mark < 0.3, effect: {like: -1}}},"
        "{at: 2, suspend: {accounts: agent.bot == True, posts: remove}, until: 5},"
        "{at: 0, cap: {reshares: 1}}, {at: 1, like: {posts: post.mark < 0.1, n: 3}}]",
    }
    texts = {"content": "template", "agents.n": min(large, 1000)}
    reasoner = {"kind": "ollama", "host": url, "timeout_s": 20}
    economy = {"rounds": rounds, "economy": {"policy": "llm"}, "reasoner": reasoner}
    return [
        Kind("200 agents, 20 with scripts", rule | {"agents.n": 180, "agents.activity": 0.8}, prepare=amplified),
        Kind(f"{large:,} agents", rule | {"agents.n": large}),
        Kind("configs/default.yaml, with texts", rule | texts),
        Kind("acts of the platform", rule | acts | {"agents.n": 400, "agents.activity": 0.8}),
        Kind("the stand-in LLM, 8 at once", rule | few | asks, asks=True),
        Kind("nations, the stand-in LLM", economy, asks=True, nations=True),
    ]


@dataclass
class Found:
    """What came of killing runs of a kind."""

    kills: int = 0
    without_manifest: int = 0
    from_checkpoint: int = 0
    different: list[str] = field(default_factory=list)
    asked_twice: int = 0


class Killer:
    """Starts runs of a kind in processes, and kills them.

    Args:
        kind: What is run.
        out: Where the folders go.
        server: Who is asked.
    """

    def __init__(self, kind: Kind, out: Path, server: StandIn) -> None:
        self.kind, self.out, self.server = kind, out, server
        self.processes = multiprocessing.get_context("forkserver")
        self.processes.set_forkserver_preload(["prism_mesa.studies.engines.preload", *LOADED])
        self.found = Found()
        whole = out / "whole"
        self.whole_s = 0.0
        for _ in range(2):  # the first also compiles what has not been compiled
            shutil.rmtree(whole, ignore_errors=True)
            self.whole_s = self._done(kind.begin, whole, None)
        self.whole = tables_of(only(whole))
        told = {body["messages"][0]["content"] for body in server.requests}
        assert self._known(only(whole)) == told, "what was asked is not what the ledger says"
        assert bool(told) == kind.asks
        shutil.rmtree(whole)

    def _done(self, work: Callable[[str], None], folder: Path, kill_after_s: float | None) -> float:
        """Let a process work, until it is done or killed, and return the seconds since there was a folder."""
        process = self.processes.Process(target=work, args=(str(folder),))
        process.start()
        while not folder.exists() and process.is_alive():
            time.sleep(0.001)
        began = time.perf_counter()
        process.join(MOST_S if kill_after_s is None else kill_after_s)
        if kill_after_s is None:
            assert process.exitcode == 0, f"{self.kind.name}: ended with {process.exitcode} in {folder}"
        process.kill()
        process.join()
        return time.perf_counter() - began

    def kill_one(self, number: int) -> None:
        """Kill a run at a moment of its own, let it go on, and look at what is there then."""
        first, second = DRAWS.uniform(f"kill {self.kind.name}", [0, 1], round_=number).tolist()
        out, found = self.out / f"kill-{number}", self.found
        self._done(self.kind.begin, out, first * self.whole_s)
        found.kills += 1
        folder = next(iter(out.iterdir()), None) if out.exists() else None
        if folder is None or not (folder / MANIFEST).exists():
            found.without_manifest += 1  # nothing was begun, and nothing is lost
            return
        known, before = self._known(folder), len(self.server.requests)
        found.from_checkpoint += any(folder.glob("checkpoints/*.npz"))
        if number % 3 == 0:
            self._done(self.kind.go_on, folder, second * self.whole_s)
            found.kills += 1
            self._count_asked_twice(known, before)
            known, before = self._known(folder), len(self.server.requests)
        self._done(self.kind.go_on, folder, None)
        self._count_asked_twice(known, before)
        now = tables_of(folder)
        names = {name for name in {*now, *self.whole} if now.get(name) != self.whole.get(name)}
        found.different += [f"{folder.parent.name}: {name}" for name in sorted(names)]
        if not names:
            shutil.rmtree(out)

    def _known(self, folder: Path) -> set[str]:
        """Return the prompts that a ledger has answers to."""
        try:
            with Ledger(folder / "decisions.sqlite", read_only=True) as ledger:
                return {answer.prompt for answer in ledger.answers()}
        except DataError:  # killed before there was one
            return set()

    def _count_asked_twice(self, known: set[str], before: int) -> None:
        asked = {body["messages"][0]["content"] for body in self.server.requests[before:]}
        self.found.asked_twice += len(asked & known)


def only(folder: Path) -> Path:
    """Return what alone lies in a folder."""
    [found] = folder.iterdir()
    return found


def tables_of(run_dir: Path) -> dict[str, bytes]:
    """Return the bytes of all files of tables, parts included."""
    files = (file for file in sorted(run_dir.rglob("*.parquet")) if file.is_file())
    return {str(file.relative_to(run_dir)): file.read_bytes() for file in files}


def kill_runs(kind: Kind, kills: int, out: Path, server: StandIn) -> Found:
    """Kill runs of a kind, and return what came of it."""
    server.brain = advice if kind.nations else choose_by_hash
    server.requests.clear()
    killer = Killer(kind, out, server)
    for number in range(kills):
        server.requests.clear()
        killer.kill_one(number)
    return killer.found


def main() -> None:
    """Kill runs of all kinds, and say what is left of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=24)
    parser.add_argument("--agents", type=int, default=20_000)
    parser.add_argument("--only", type=int, default=None, help="one of the kinds, from 0")
    given = parser.parse_args()
    with StandIn(slots=8, latency=0.002) as server, tempfile.TemporaryDirectory(prefix="prism-kill-") as folder:
        for place, kind in enumerate(kinds(server.url, given.rounds, given.agents)):
            if given.only not in (None, place):
                continue
            out = Path(folder) / str(place)
            out.mkdir()
            found = kill_runs(kind, given.kills, out, server)
            say(
                f"{kind.name}: {found.kills} kills of {given.kills} runs ({found.without_manifest} before they began, "
                f"{found.from_checkpoint} went on from a checkpoint): {len(found.different)} files differ, "
                f"{found.asked_twice} questions asked twice"
            )
            assert not found.different, found.different
            assert not found.asked_twice


if __name__ == "__main__":
    main()
