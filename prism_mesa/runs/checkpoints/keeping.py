"""Make checkpoints while a run goes on, and keep the last two."""

import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from prism_mesa.errors import DataError, NotRestorableError, PrismWarning, shortened
from prism_mesa.llm import Ledger
from prism_mesa.runs.checkpoints.file import (
    FOLDER,
    WORLD,
    checkpoint_name,
    checkpoint_round,
    files,
    last_round,
    sync_folder,
    write_checkpoint,
)
from prism_mesa.runs.identity import code_version
from prism_mesa.runs.process.machine import package_versions
from prism_mesa.runs.records.folder import RunFolder
from prism_mesa.snapshot import Plain

MOST_LOST_S: Final = 60.0
"""Most seconds of work that a crash loses, unless checkpoints would cost more than `MOST_SHARE` of the time."""
MOST_SHARE: Final = 0.05
"""Largest share of the time that checkpoints take."""
_AIM: Final = 0.8
"""Share of both limits to aim at, because rounds and checkpoints vary."""
_KEPT: Final = 2
_SETTLED_S: Final = 1.0
"""Seconds after which the version of the code is read; shorter runs are hardly ever resumed."""


class Policy:
    """Decides after each round whether a checkpoint is due.

    Args:
        every: Rounds between checkpoints; None decides by time, and expects the next round to take as long as the last.
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, every: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._every, self._clock = every, clock
        self._last_end = self._last_round = clock()
        self._round_s = 0.0
        self._cost_s = 0.0

    def due(self, done: int) -> bool:
        """Return whether a checkpoint is due after `done` rounds."""
        now = self._clock()
        self._round_s, self._last_round = max(now - self._last_round, 0.0), now
        if self._every is not None:
            return done % self._every == 0
        since = now - self._last_end
        is_time = since + self._round_s > _AIM * MOST_LOST_S
        return is_time and since >= self._cost_s * (1 / (_AIM * MOST_SHARE) - 1)

    def made(self, cost_s: float) -> None:
        """Note that a checkpoint has just been made in `cost_s` seconds."""
        self._cost_s = max(cost_s, 0.0)
        self._last_end = self._last_round = self._clock()


class Checkpoints:
    """Makes the checkpoints of a run (see `Checkpointing`); `name` is the run's name in ledgers.

    If a checkpoint cannot be written, a note says so, the run goes on, and the checkpoint before it stays.
    """

    def __init__(self, run: RunFolder, ledger: Ledger, name: str, every: int | None) -> None:
        self._run, self._ledger, self._name = run, ledger, name
        self._policy = Policy(every)
        self._off = False
        self._began = time.monotonic()
        self.cpu_s = 0.0
        self.world: Callable[[], Mapping[str, Plain] | None] | None = None

    def round_done(self, done: int, state: Callable[[], Mapping[str, Plain]], *, last: bool) -> None:
        """Make a checkpoint if one is due after `done` rounds; `last`: the run stops now."""
        if time.monotonic() - self._began > _SETTLED_S:
            code_version()  # now: the code may change while the run goes on
        is_due = self._policy.due(done) or last
        if self._off or not is_due:
            return
        at, wall = time.process_time(), time.monotonic()
        try:
            self._make(done, state())
        except NotRestorableError as error:
            self._off = True
            self._warn(f"no checkpoint can be made of this run: {error}")
        except (OSError, DataError) as error:
            why = getattr(error, "strerror", None) or error
            before = last_round(self._run.path)
            stays = "" if before is None else f"; the checkpoint of round {before} stays"
            self._warn(f"the checkpoint of round {done} could not be written: {why}{stays}")
        self.cpu_s += time.process_time() - at
        self._policy.made(time.monotonic() - wall)

    def _make(self, done: int, state: Mapping[str, Plain]) -> None:
        self._ledger.sync()
        answers, asked = self._ledger.sizes(self._name, done)
        head = {"code": code_version(), "packages": package_versions(), "rounds": done}
        known = {"ledger": {"run": self._name, "answers": answers, "asked": asked}, "records": self._run.snapshot()}
        folder = self._run.path / FOLDER
        folder.mkdir(exist_ok=True)
        write_checkpoint(folder / checkpoint_name(done), {**head, **known, **state})
        for old in files(self._run.path)[_KEPT:]:
            old.unlink(missing_ok=True)
        if self.world is not None:
            self._keep_world(folder / WORLD)

    def _keep_world(self, file: Path) -> None:
        """Write the drawn world once; without it, `resume` draws the world again."""
        world, self.world = self.world, None
        kept = None if file.exists() or world is None else world()
        if kept is None:
            return
        try:
            write_checkpoint(file, {"code": code_version(), **kept})
        except OSError as error:
            self._warn(f"the drawn world could not be written: {error.strerror or error}; a resumed run draws it again")

    def _warn(self, note: str) -> None:
        note = shortened(note)
        if note not in self._run.notes:
            self._run.notes.append(note)
            warnings.warn(note, PrismWarning, stacklevel=3)


def forget(run: Path, after: int = -1) -> None:
    """Remove the checkpoints after a round; -1 removes all."""
    for file in files(run):
        if checkpoint_round(file) > after:
            file.unlink(missing_ok=True)
    if after < 0 and (run / FOLDER).is_dir() and not (run / FOLDER).is_symlink():
        shutil.rmtree(run / FOLDER, ignore_errors=True)
    else:
        for part in (run / FOLDER).glob(".round-*"):
            part.unlink(missing_ok=True)
    with suppress(OSError):
        sync_folder(run)
