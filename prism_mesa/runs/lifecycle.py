"""The life of a run: its folder, its manifest, its ledger and its end."""

import signal
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from prism_mesa.errors import PrismWarning, RunError, counted, format_error, one_line, shortened
from prism_mesa.llm import Ledger
from prism_mesa.params import validated
from prism_mesa.runs.checkpoints.keeping import Checkpoints, remove_checkpoints
from prism_mesa.runs.manifest import Manifest, RecordedRun
from prism_mesa.runs.process.lock import lock_run
from prism_mesa.runs.process.machine import provenance, wall_clock
from prism_mesa.runs.process.stopping import EndAtOnceError, TerminatedError, first_signal, last_tables
from prism_mesa.runs.records.folder import RunFolder
from prism_mesa.runs.run_files import LEDGER, read_manifest, read_table
from prism_mesa.runs.work import Records, RunTask
from prism_mesa.statechart.users_code import is_users_error
from prism_mesa.streams import fresh_seed
from prism_mesa.tables import TableSchema

_RESUMABLE: Final = ("social", "economy")
"""Systems with runs that can be resumed."""
_NO_MANIFEST: Final = "its manifest could not be written"


@dataclass(frozen=True, repr=False)
class RunResult:
    """The result of a run. It is an `os.PathLike`, so all functions that take a run's folder accept it.

    Attributes:
        run_dir: The run's folder.
        status: `done`, `failed` or `interrupted`; an opened run can be `running`, or `died` if its process is gone.
        summary: The results in numbers, as ``prism run --json`` prints them; empty while the run continues.
        pictures: The pictures in the folder.
        state: The status with the round if an opened run is running or died: `died in round 7 of 56`.
    """

    run_dir: Path
    status: str
    summary: dict[str, Any]
    pictures: tuple[Path, ...] = ()
    state: str = ""

    def table(self, name: str) -> pd.DataFrame:
        """Return one of `social.tables` or `economy.tables`; raises DataError if it is missing or cannot be read."""
        return read_table(self.run_dir, name)

    @property
    def manifest(self) -> dict[str, Any]:
        """The content of manifest.json: configuration, seed, versions, deciders, summary."""
        return read_manifest(self.run_dir)

    def __fspath__(self) -> str:
        return str(self.run_dir)

    @one_line
    def __repr__(self) -> str:
        summary, nations = self.summary, self.summary.get("nations")
        if isinstance(nations, list):
            counts = {"nation": len(nations), "quarter": summary.get("rounds")}
        else:
            counts = {"agent": summary.get("agents"), "round": summary.get("rounds")}
        facts = [counted(n, what) for what, n in counts.items() if isinstance(n, int)]
        facts += [f"seed {summary['seed']}"] if "seed" in summary else []
        return f"<RunResult {self.state or self.status}: {', '.join([*facts, str(self.run_dir)])}>"


class RunBrokenError(RunError):
    """A run could not continue.

    Attributes:
        result: The partial result; None if the last tables could not be written, or the run keeps no files.
        reason: The error and its round, without the folder.
    """

    def __init__(self, message: str, result: Any, reason: str = "") -> None:
        super().__init__(message)
        self.result = result
        self.reason = reason


class RunInterruptedError(KeyboardInterrupt):
    """Ctrl-C or SIGTERM ended a run; `result` is as in `RunBrokenError`."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(shortened(message))
        self.result = result


def run_to_completion(
    work: RunTask[RunFolder], out: str | Path, name: str, tables: Mapping[str, TableSchema], *, dated: bool = True
) -> RunResult:
    """Run in a new folder, and return the result; the folder's manifest says how the run ended.

    Raises:
        DataError: If the folder cannot be made.
        RunBrokenError: If the run cannot continue; its folder says `failed`, and keeps its records.
        RunInterruptedError: If the user interrupts it; its folder says `interrupted`. While the last tables are
            written, an interrupt leaves a complete run.
    """
    manifest = {**provenance(), **work.facts()}
    folder = RunFolder(Path(out), name, tables, dated=dated)
    with lock_run(folder.path) as folder.lock:
        return _complete(work, folder, manifest, name_in_ledgers(work.scope(), folder.path.name), None)


def resume_to_completion(
    work: RunTask[RunFolder], folder: RunFolder, manifest: Mapping[str, Any], name: str, round_: int
) -> RunResult:
    """Continue a restored run in its locked folder from a round on; errors are those of `run_to_completion`.

    `name` is the run's name in ledgers; empty if it has none yet.
    """
    return _complete(work, folder, manifest, name or name_in_ledgers(work.scope(), folder.path.name), round_)


def _complete(
    work: RunTask[RunFolder], folder: RunFolder, manifest: Mapping[str, Any], name: str, round_: int | None
) -> RunResult:
    """Run in a folder, from the start (None) or from a round on."""
    try:
        folder.write_manifest(manifest)
        with Ledger(folder.path / LEDGER) as ledger:
            if work.answerer is not None and round_ is None:
                work.answerer.store.begin(ledger, name)
            elif work.answerer is not None and round_ is not None:
                work.answerer.store.resume(ledger, name, round_)
            if work.checkpoint_every != 0:
                folder.checkpoints = Checkpoints(folder, ledger, name, work.checkpoint_every)
            error = work.carry_out(folder)
        with last_tables() as signals:
            folder.close()
            result = _write_end(work, folder, manifest, _ending(error))
            _forget_checkpoints(folder.path)
    except BaseException as fault:
        raise _end_early(work, folder, manifest, fault) from fault
    if signals.received is not None:
        message = f"{folder.path}: interrupted while its last tables were written (the complete run is kept there)"
        raise RunInterruptedError(message, result)
    return result


def run_in_memory(work: RunTask[Records], records: Records, name: str) -> dict[str, Any]:
    """Run without a folder, and return the summary; only a shared ledger keeps the answers, under `name`."""
    if work.answerer is not None:
        work.answerer.store.begin(None, name_in_ledgers(work.scope(), name))
    try:
        return work.finish(records, _ending(work.carry_out(records)))
    except Exception as fault:
        reason = _reason(work, fault)
        raise RunBrokenError(reason, None, reason) from fault


def name_in_ledgers(scope: str, name: str) -> str:
    """Return a unique name for a run of a scope (see `RunTask.scope`) in ledgers."""
    return f"{scope}/{name}-{fresh_seed():x}"


def _ending(error: str) -> dict[str, str]:
    return {"status": "failed", "error": error} if error else {"status": "done"}


def _reason(work: RunTask[Any], fault: BaseException) -> str:
    """Return the error that ended a run, with its round, in one line."""
    return shortened(f"{work.progress()}: {format_error(fault)}")


def _write_end(
    work: RunTask[RunFolder], folder: RunFolder, manifest: Mapping[str, Any], ending: Mapping[str, Any]
) -> RunResult:
    """Write the last tables and the last manifest, and return the result."""
    summary = work.finish(folder, ending)
    folder.write_manifest({**manifest, **ending, "ended": wall_clock(), "summary": summary})
    return RunResult(folder.path, str(ending["status"]), summary)


def _end_early(
    work: RunTask[RunFolder], folder: RunFolder, manifest: Mapping[str, Any], fault: BaseException
) -> RunBrokenError | RunInterruptedError:
    """Record how a run ended early, and return the error to raise."""
    is_interrupt = isinstance(fault, KeyboardInterrupt)
    cause = " by SIGTERM" if isinstance(fault, TerminatedError) or first_signal() == signal.SIGTERM else ""
    text = shortened(f"{work.progress()}: interrupted{cause}") if is_interrupt else _reason(work, fault)
    ending = {"status": "interrupted" if is_interrupt else "failed", "error": text}
    manifest = {**manifest, "of_own_code": True} if is_users_error(fault) else manifest
    result = None
    with last_tables():
        with _appending_errors(ending, _NO_MANIFEST):
            folder.write_manifest({**manifest, **ending})
        try:
            if isinstance(fault, EndAtOnceError):
                raise fault
            with _appending_errors(ending, "its last rows could not be written"):
                folder.close()
            with _appending_errors(ending, "its last tables could not be written"):
                result = _write_end(work, folder, manifest, ending)
        except EndAtOnceError:
            ending["error"] += "; ended at once, without its last tables"
            with _appending_errors(ending, _NO_MANIFEST):
                folder.write_manifest({**manifest, **ending})
    hint = _recovery_hint(folder.path, manifest, ending, result)
    message = f"{folder.path}: {ending['error']} (what was recorded is kept there{hint})"
    return RunInterruptedError(message, result) if is_interrupt else RunBrokenError(message, result, ending["error"])


def _forget_checkpoints(run: Path) -> None:
    """Remove the checkpoints of a run that has ended; warn if that fails."""
    try:
        remove_checkpoints(run)
    except OSError as error:
        note = f"{run}: its checkpoints are no longer needed, but could not be removed: {error.strerror or error}"
        warnings.warn(shortened(note), PrismWarning, stacklevel=4)


def _recovery_hint(run: Path, manifest: Mapping[str, Any], ending: Mapping[str, Any], result: RunResult | None) -> str:
    """Return advice on a run that ended early, to append to an error."""
    if manifest.get("system") not in _RESUMABLE:
        return ""
    summary = {} if result is None else {"rounds": result.summary.get("rounds")}
    values = {**manifest, **ending, "summary": summary}
    return RecordedRun(run, validated(Manifest, values, str(run)), "own").way_on


@contextmanager
def _appending_errors(ending: dict[str, str], failure: str) -> Iterator[None]:
    """Append an error in the block to the error that ended the run."""
    try:
        yield
    except Exception as error:
        ending["error"] += f"; {failure} ({type(error).__name__}: {error})"
