"""Make checkpoints during a run, and keep the last two."""

import shutil
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from prism_mesa.errors import DataError, NotRestorableError, PrismWarning, shorten
from prism_mesa.llm import Ledger
from prism_mesa.runs.checkpoints.file import (
    FOLDER,
    WORLD,
    checkpoint_files,
    checkpoint_name,
    checkpoint_round,
    last_round,
    sync_folder,
    write_checkpoint,
)
from prism_mesa.runs.identity import code_version
from prism_mesa.runs.process.machine import package_versions
from prism_mesa.runs.records.folder import RunFolder
from prism_mesa.snapshot import Plain

MAX_LOST_S: Final = 60.0
"""Maximum seconds of work that a crash loses, unless checkpoints would cost more than `MAX_SHARE` of the time."""
MAX_SHARE: Final = 0.05
"""Maximum share of the time that checkpoints take."""
_SAFETY: Final = 0.8
"""Share of both limits that is used, because rounds and checkpoints vary in length."""
_N_CHECKPOINTS: Final = 2
_SHORT_RUN_S: Final = 1.0
"""Seconds after which the version of the code is read; shorter runs are rarely resumed."""


class CheckpointSchedule:
    """Decides after each round whether a checkpoint is due.

    Args:
        every: Rounds between checkpoints; None decides by time, assuming that the next round takes as long as the last.
        clock: A monotonic clock, in seconds.
    """

    def __init__(self, every: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._every, self._clock = every, clock
        self._last_end = self._last_round = clock()
        self._round_s = 0.0
        self._cost_s = 0.0

    def is_due(self, n_rounds: int) -> bool:
        """Return whether a checkpoint is due after `n_rounds` rounds."""
        now = self._clock()
        self._round_s, self._last_round = max(now - self._last_round, 0.0), now
        if self._every is not None:
            return n_rounds % self._every == 0
        elapsed_s = now - self._last_end
        is_time = elapsed_s + self._round_s > _SAFETY * MAX_LOST_S
        return is_time and elapsed_s >= self._cost_s * (1 / (_SAFETY * MAX_SHARE) - 1)

    def note_cost(self, cost_s: float) -> None:
        """Note that a checkpoint was just made in `cost_s` seconds."""
        self._cost_s = max(cost_s, 0.0)
        self._last_end = self._last_round = self._clock()


class Checkpoints:
    """Makes the checkpoints of a run (see `CheckpointMaker`); `name` is the run's name in ledgers.

    If a checkpoint cannot be written, a note says so, and the run continues and keeps the previous checkpoint.
    """

    def __init__(self, run: RunFolder, ledger: Ledger, name: str, every: int | None) -> None:
        self._run, self._ledger, self._name = run, ledger, name
        self._schedule = CheckpointSchedule(every)
        self._is_disabled = False
        self._start_s = time.monotonic()
        self.cpu_s = 0.0
        self.world: Callable[[], Mapping[str, Plain] | None] | None = None

    def round_done(self, n_rounds: int, state: Callable[[], Mapping[str, Plain]], *, last: bool) -> None:
        """Make a checkpoint if one is due after `n_rounds` rounds, or if the run stops now (`last`)."""
        if time.monotonic() - self._start_s > _SHORT_RUN_S:
            code_version()  # computed now, because the code may change during the run
        must_write = self._schedule.is_due(n_rounds) or last
        if self._is_disabled or not must_write:
            return
        cpu_start, wall_start = time.process_time(), time.monotonic()
        try:
            self._make(n_rounds, state())
        except NotRestorableError as error:
            self._is_disabled = True
            self._warn(f"no checkpoint can be made of this run: {error}")
        except (OSError, DataError) as error:
            why = getattr(error, "strerror", None) or error
            before = last_round(self._run.path)
            hint = "" if before is None else f"; the checkpoint of round {before} stays"
            self._warn(f"the checkpoint of round {n_rounds} could not be written: {why}{hint}")
        self.cpu_s += time.process_time() - cpu_start
        self._schedule.note_cost(time.monotonic() - wall_start)

    def _make(self, n_rounds: int, state: Mapping[str, Plain]) -> None:
        self._ledger.sync()
        answers, asked = self._ledger.count_rows(self._name, n_rounds)
        facts = {"code": code_version(), "packages": package_versions(), "rounds": n_rounds}
        records = {"ledger": {"run": self._name, "answers": answers, "asked": asked}, "records": self._run.snapshot()}
        folder = self._run.path / FOLDER
        folder.mkdir(exist_ok=True)
        write_checkpoint(folder / checkpoint_name(n_rounds), {**facts, **records, **state})
        for old_file in checkpoint_files(self._run.path)[_N_CHECKPOINTS:]:
            old_file.unlink(missing_ok=True)
        if self.world is not None:
            self._write_world(folder / WORLD)

    def _write_world(self, file: Path) -> None:
        """Write the drawn world once; without it, `resume` draws the world again."""
        world, self.world = self.world, None
        data = None if file.exists() or world is None else world()
        if data is None:
            return
        try:
            write_checkpoint(file, {"code": code_version(), **data})
        except OSError as error:
            self._warn(f"the drawn world could not be written: {error.strerror or error}; a resumed run draws it again")

    def _warn(self, note: str) -> None:
        note = shorten(note)
        if note not in self._run.notes:
            self._run.notes.append(note)
            warnings.warn(note, PrismWarning, stacklevel=3)


def remove_checkpoints(run: Path, after: int = -1) -> None:
    """Remove the checkpoints after a round; -1 removes all."""
    for file in checkpoint_files(run):
        if checkpoint_round(file) > after:
            file.unlink(missing_ok=True)
    if after < 0 and (run / FOLDER).is_dir() and not (run / FOLDER).is_symlink():
        shutil.rmtree(run / FOLDER, ignore_errors=True)
    else:
        for part in (run / FOLDER).glob(".round-*"):
            part.unlink(missing_ok=True)
    with suppress(OSError):
        sync_folder(run)
