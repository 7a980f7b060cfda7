"""What every run goes through, whatever is run: folder, manifest, clocks, and an end that is written down."""

import signal
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from prism_mesa.errors import PrismWarning, RunError, counted, one_line, shortened, told
from prism_mesa.llm import Ledger
from prism_mesa.runs.checkpoints.file import last_round
from prism_mesa.runs.checkpoints.keeping import Checkpoints, forget
from prism_mesa.runs.process.lock import lock_run
from prism_mesa.runs.process.machine import provenance, wall_clock
from prism_mesa.runs.process.state import RunState
from prism_mesa.runs.process.stopping import EndAtOnceError, TerminatedError, came_first, last_tables
from prism_mesa.runs.records.folder import RunFolder
from prism_mesa.runs.run_files import LEDGER, read_manifest, read_table
from prism_mesa.runs.work import Records, Work
from prism_mesa.statechart.users_code import is_of_own_code
from prism_mesa.streams import fresh_seed
from prism_mesa.tables import TableSchema


@dataclass(frozen=True, repr=False)
class RunResult:
    """A run and its folder; whatever takes the folder of a run takes a result too (it is an `os.PathLike`).

    Attributes:
        run_dir: Its folder.
        status: `done`, `failed` or `interrupted`; of a run that was opened also `running`, or `died` if its process is
            gone.
        summary: What it comes to; empty while it is running. ``prism run --json`` and ``prism economy --json`` print it
            with the clocks of the whole command.
        pictures: Those that were drawn into its folder.
        state: Of a run that was running when it was opened, or died, also the round: `died in round 7 of 56`.
    """

    run_dir: Path
    status: str
    summary: dict[str, Any]
    pictures: tuple[Path, ...] = ()
    state: str = ""

    def table(self, name: str) -> pd.DataFrame:
        """Return a table of the run: one of `social.tables`, or of `economy.tables` for nations.

        Raises:
            DataError: If there is no such table, or it cannot be read.
        """
        return read_table(self.run_dir, name)

    @property
    def manifest(self) -> dict[str, Any]:
        """What stands in manifest.json: configuration, seed, versions, who decided, the summary."""
        return read_manifest(self.run_dir)

    def __fspath__(self) -> str:
        return str(self.run_dir)

    @one_line
    def __repr__(self) -> str:
        told, nations = self.summary, self.summary.get("nations")
        if isinstance(nations, list):
            counts = {"nation": len(nations), "quarter": told.get("rounds")}
        else:
            counts = {"agent": told.get("agents"), "round": told.get("rounds")}
        said = [counted(n, what) for what, n in counts.items() if isinstance(n, int)]
        said += [f"seed {told['seed']}"] if "seed" in told else []
        return f"<RunResult {self.state or self.status}: {', '.join([*said, str(self.run_dir)])}>"


class RunBrokenError(RunError):
    """A run that could not go on.

    Attributes:
        result: What was kept of it; None if its last tables could not be written, or nothing was to be kept.
        reason: What ended it, and when, without where it is kept.
    """

    def __init__(self, message: str, result: Any, reason: str = "") -> None:
        super().__init__(message)
        self.result = result
        self.reason = reason


class RunInterruptedError(KeyboardInterrupt):
    """A run that Ctrl-C or SIGTERM ended; `result` is as in `RunBrokenError`."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(shortened(message))
        self.result = result


def run_to_completion(
    work: Work[RunFolder], out: str | Path, name: str, tables: Mapping[str, TableSchema], *, dated: bool = True
) -> RunResult:
    """Return the result of a run whose end, good or bad, stands in the manifest of its folder.

    Args:
        work: What is to be done.
        out: As for `RunFolder`; the folder is made when all that its manifest says is known.
        name: As for `RunFolder`.
        tables: As for `RunFolder`.
        dated: As for `RunFolder`.

    Raises:
        DataError: If the folder cannot be made.
        RunBrokenError: If the run cannot go on; its folder says `failed`, and keeps what was recorded.
        RunInterruptedError: The same for KeyboardInterrupt, but that the folder says `interrupted`; one that came while
            the last tables of a whole run were written leaves a whole run.
    """
    manifest = {**provenance(), **work.facts()}
    folder = RunFolder(Path(out), name, tables, dated=dated)
    with lock_run(folder.path) as folder.lock:
        return _to_completion(work, folder, manifest, name_in_ledgers(work.scope(), folder.path.name), None)


def go_on_to_completion(
    work: Work[RunFolder], folder: RunFolder, manifest: Mapping[str, Any], name: str, round_: int
) -> RunResult:
    """Return the result of a run that was stopped, and goes on in its folder, which is locked.

    Args:
        work: What is to be done; what it has done before is in it.
        folder: The folder as it stood then.
        manifest: What the manifest says from now on.
        name: What ledgers call it; empty if they do not know it yet.
        round_: The round that it goes on from.

    Raises:
        RunBrokenError: As `run_to_completion`; so RunInterruptedError.
    """
    return _to_completion(work, folder, manifest, name or name_in_ledgers(work.scope(), folder.path.name), round_)


def _to_completion(
    work: Work[RunFolder], folder: RunFolder, manifest: Mapping[str, Any], name: str, round_: int | None
) -> RunResult:
    """Carry out a run in a folder, from its beginning, or as one that goes on from a round."""
    try:
        folder.write_manifest(manifest)
        with Ledger(folder.path / LEDGER) as ledger:
            if work.asked is not None and round_ is None:
                work.asked.store.begin(ledger, name)
            elif work.asked is not None and round_ is not None:
                work.asked.store.go_on(ledger, name, round_)
            if work.checkpoint_every != 0:
                folder.checkpoints = Checkpoints(folder, ledger, name, work.checkpoint_every)
            error = work.carry_out(folder)
        with last_tables() as signals:
            folder.close()
            result = _ended(work, folder, manifest, _ending(error))
            _forget(folder.path)
    except BaseException as fault:
        raise _broken_off(work, folder, manifest, fault) from fault
    if signals.came is not None:
        kept = f"{folder.path}: interrupted while its last tables were written (the run is kept there, and whole)"
        raise RunInterruptedError(kept, result)
    return result


def run_without_folder(work: Work[Records], records: Records, name: str) -> dict[str, Any]:
    """Return the summary of a run that leaves nothing on disk but what it adds to a shared ledger.

    Args:
        work: What is to be done.
        records: Where its records go.
        name: What the shared ledger calls it.

    Raises:
        RunBrokenError: If the run cannot go on.
    """
    if work.asked is not None:
        work.asked.store.begin(None, name_in_ledgers(work.scope(), name))
    try:
        return work.finish(records, _ending(work.carry_out(records)))
    except Exception as fault:
        told = _told(work, fault)
        raise RunBrokenError(told, None, told) from fault


def name_in_ledgers(scope: str, name: str) -> str:
    """Return what ledgers call a run of a scope (see `Work.scope`), which no other run is called."""
    return f"{scope}/{name}-{fresh_seed():x}"


def _ending(error: str) -> dict[str, str]:
    return {"status": "failed", "error": error} if error else {"status": "done"}


def _told(work: Work[Any], fault: BaseException) -> str:
    """Return in one line what ended a run before its time, and when."""
    return shortened(f"{work.where()}: {told(fault)}")


def _ended(
    work: Work[RunFolder], folder: RunFolder, manifest: Mapping[str, Any], ending: Mapping[str, Any]
) -> RunResult:
    """Have the last tables written, write down how the run ended, and return its result."""
    summary = work.finish(folder, ending)
    folder.write_manifest({**manifest, **ending, "ended": wall_clock(), "summary": summary})
    return RunResult(folder.path, str(ending["status"]), summary)


def _broken_off(
    work: Work[RunFolder], folder: RunFolder, manifest: Mapping[str, Any], fault: BaseException
) -> RunBrokenError | RunInterruptedError:
    """Write down how a run ended before its time, and return what is to be raised."""
    interrupted = isinstance(fault, KeyboardInterrupt)
    by = " by SIGTERM" if isinstance(fault, TerminatedError) or came_first() == signal.SIGTERM else ""
    text = shortened(f"{work.where()}: interrupted{by}") if interrupted else _told(work, fault)
    ending = {"status": "interrupted" if interrupted else "failed", "error": text}
    manifest = {**manifest, "of_own_code": True} if is_of_own_code(fault) else manifest
    result = None
    with last_tables():
        with _going_on(ending, _NO_MANIFEST):
            folder.write_manifest({**manifest, **ending})
        try:
            if isinstance(fault, EndAtOnceError):
                raise fault
            with _going_on(ending, "its last rows could not be written"):
                folder.close()
            with _going_on(ending, "its last tables could not be written"):
                result = _ended(work, folder, manifest, ending)
        except EndAtOnceError:
            ending["error"] += "; ended at once, without its last tables"
            with _going_on(ending, _NO_MANIFEST):
                folder.write_manifest({**manifest, **ending})
    way_on = _way_on(folder.path, manifest, ending["status"], result)
    kept = f"{folder.path}: {ending['error']} (what was recorded is kept there{f'; {way_on}' if way_on else ''})"
    return RunInterruptedError(kept, result) if interrupted else RunBrokenError(kept, result, ending["error"])


def _forget(run: Path) -> None:
    """Remove the checkpoints of a run that has written down how it ended: it stands, whatever comes of that."""
    try:
        forget(run)
    except OSError as error:
        told = f"{run}: its checkpoints could not be removed, and are of no use: {error.strerror or error}"
        warnings.warn(shortened(told), PrismWarning, stacklevel=4)


def _way_on(run: Path, manifest: Mapping[str, Any], status: str, result: RunResult | None) -> str:
    """Return what can be done with a run that was broken off."""
    if manifest.get("system") not in _CAN_GO_ON:
        return ""
    all_done = result is not None and result.summary.get("rounds") == manifest["config"].get("rounds")
    is_over = status == "failed" and all_done and last_round(run) is None
    python = any(manifest.get("made_in_python", ()))
    own = bool(manifest.get("of_own_code")) and status == "failed"
    return RunState(status).way_on(run, from_python=python, from_start=is_over, of_own_code=own)


_CAN_GO_ON: Final = ("social", "economy")
"""Systems whose runs `resume` goes on with; a survey is asked again."""

_NO_MANIFEST: Final = "its manifest could not be written"


@contextmanager
def _going_on(ending: dict[str, str], what: str) -> Iterator[None]:
    """Add to the error that ended a run what raises in the block: whatever broke it may stand in its way again."""
    try:
        yield
    except Exception as second:
        ending["error"] += f"; {what} ({type(second).__name__}: {second})"
