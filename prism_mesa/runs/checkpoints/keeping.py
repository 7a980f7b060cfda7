"""The checkpoints of a run's folder: when they are made while it runs; the last two are kept."""

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
    files,
    last_round,
    name_of,
    rounds_of,
    sync_folder,
    write_checkpoint,
)
from prism_mesa.runs.identity import code_version
from prism_mesa.runs.process.machine import package_versions
from prism_mesa.runs.records.aside import remove_aside
from prism_mesa.runs.records.folder import RunFolder
from prism_mesa.snapshot import Plain

MOST_LOST_S: Final = 60.0
"""Seconds of work that are lost at most, unless that would cost more than `MOST_SHARE`."""
MOST_SHARE: Final = 0.05
"""Share of the time that goes into checkpoints at most."""
_AIM: Final = 0.8
"""Of both, what is aimed at: rounds and checkpoints are not all alike."""
_KEPT: Final = 2
_SETTLED_S: Final = 1.0
"""Seconds; what takes longer may be stopped, and go on."""


class Policy:
    """Says after each round whether a checkpoint is due.

    Args:
        every: Every so many rounds; None: by time, of which the next round is taken to need as much as the last.
        clock: Seconds that only grow, whatever happens to the time of day.
    """

    def __init__(self, every: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._every, self._clock = every, clock
        self._last_end = self._last_round = clock()
        self._round_s = 0.0
        self._cost_s = 0.0

    def due(self, done: int) -> bool:
        """Return whether a checkpoint is to be made now, as so many rounds are done."""
        now = self._clock()
        self._round_s, self._last_round = max(now - self._last_round, 0.0), now
        if self._every is not None:
            return done % self._every == 0
        since = now - self._last_end
        is_time = since + self._round_s > _AIM * MOST_LOST_S
        return is_time and since >= self._cost_s * (1 / (_AIM * MOST_SHARE) - 1)

    def made(self, cost_s: float) -> None:
        """Take note of a checkpoint that has just been made, and of the seconds that it took."""
        self._cost_s = max(cost_s, 0.0)
        self._last_end = self._last_round = self._clock()


class Checkpoints:
    """Makes the checkpoints of a run.

    A checkpoint that cannot be written does not end the run: the one before it stands, and the run says so.

    Args:
        run: The run's folder.
        ledger: Its ledger.
        name: What the run is called in ledgers.
        every: As for `Policy`.

    Attributes:
        cpu_s: CPU seconds that went into them.
        world: As in `Checkpointing`.
    """

    def __init__(self, run: RunFolder, ledger: Ledger, name: str, every: int | None) -> None:
        self._run, self._ledger, self._name = run, ledger, name
        self._policy = Policy(every)
        self._oldest_before = run.oldest_aside
        self._off = False
        self._began = time.monotonic()
        self.cpu_s = 0.0
        self.world: Callable[[], Mapping[str, Plain] | None] | None = None

    def round_done(self, done: int, state: Callable[[], Mapping[str, Plain]], *, last: bool) -> None:
        """Make a checkpoint, if one is due.

        Args:
            done: Rounds that are complete.
            state: Returns the state of model and clocks as they stand now.
            last: Whether the run is stopped now, so that there will be no other.
        """
        if time.monotonic() - self._began > _SETTLED_S:
            code_version()  # as it is now: somebody may change it while the run goes on
        is_due = self._policy.due(done) or last
        if self._off or not is_due:
            return
        at, wall = time.process_time(), time.monotonic()
        try:
            self._make(done, state())
        except NotRestorableError as error:
            self._off = True
            self._say(f"no checkpoint can be made of this run: {error}")
        except (OSError, DataError) as error:
            why = getattr(error, "strerror", None) or error
            stands = last_round(self._run.path)
            told = "" if stands is None else f"; that of round {stands} stands"
            self._say(f"the checkpoint of round {done} could not be written: {why}{told}")
        self.cpu_s += time.process_time() - at
        self._policy.made(time.monotonic() - wall)

    def _make(self, done: int, state: Mapping[str, Plain]) -> None:
        self._ledger.sync()
        answers, asked = self._ledger.sizes(self._name, done)
        head = {"code": code_version(), "packages": package_versions(), "rounds": done}
        known = {"ledger": {"run": self._name, "answers": answers, "asked": asked}, "records": self._run.snapshot()}
        folder = self._run.path / FOLDER
        folder.mkdir(exist_ok=True)
        write_checkpoint(folder / name_of(done), {**head, **known, **state})
        for old in files(self._run.path)[_KEPT:]:
            old.unlink(missing_ok=True)
        before, self._oldest_before = self._oldest_before, self._run.oldest_aside
        remove_aside(self._run.path, range(min(before, self._oldest_before), done + 1))
        if self.world is not None:
            self._keep_world(folder / WORLD)

    def _keep_world(self, file: Path) -> None:
        """Write what was drawn of the world, once; without it, the world is drawn again when the run goes on."""
        world, self.world = self.world, None
        kept = None if file.exists() or world is None else world()
        if kept is None:
            return
        try:
            write_checkpoint(file, {"code": code_version(), **kept})
        except OSError as error:
            self._say(f"the world could not be kept: {error.strerror or error}; it is drawn again if the run goes on")

    def _say(self, told: str) -> None:
        told = shortened(told)
        if told not in self._run.notes:
            self._run.notes.append(told)
            warnings.warn(told, PrismWarning, stacklevel=3)


def forget(run: Path, after: int = -1) -> None:
    """Remove the checkpoints of a run, or those of later rounds."""
    for file in files(run):
        if rounds_of(file) > after:
            file.unlink(missing_ok=True)
    if after < 0 and (run / FOLDER).is_dir() and not (run / FOLDER).is_symlink():
        shutil.rmtree(run / FOLDER, ignore_errors=True)
    else:
        for part in (run / FOLDER).glob(".round-*"):
            part.unlink(missing_ok=True)
        remove_aside(run, range(after + 1))
    with suppress(OSError):
        sync_folder(run)
