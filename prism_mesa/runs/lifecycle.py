"""Carry out a run: make its folder, write its manifest and ledger, and record how it ends."""

import signal
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd

from prism_mesa.errors import PrismWarning, RunError, format_count, format_error, one_line, shorten
from prism_mesa.llm import Ledger
from prism_mesa.params import validate_params
from prism_mesa.runs.checkpoints.keeping import Checkpoints, remove_checkpoints
from prism_mesa.runs.manifest import Manifest, RecordedRun
from prism_mesa.runs.process.lock import lock_run
from prism_mesa.runs.process.machine import provenance, wall_clock
from prism_mesa.runs.process.stopping import EndAtOnceError, TerminatedError, first_signal, protect_last_tables
from prism_mesa.runs.records.folder import RunFolder
from prism_mesa.runs.run_files import LEDGER, read_manifest, read_table
from prism_mesa.runs.work import Records, RunTask
from prism_mesa.statechart.users_code import is_user_code_error
from prism_mesa.streams import draw_seed
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
        summary: The results in numbers, as ``prism run --json`` prints them; empty while the run is running.
        pictures: The pictures in the folder.
        state: For an opened run that is running or died, the status with the round: `died in round 7 of 56`.
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
        """The content of manifest.json: configuration, seed, versions, who decides, summary."""
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
        facts = [format_count(n, unit) for unit, n in counts.items() if isinstance(n, int)]
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
    """Ctrl-C or SIGTERM ended a run; `result` has the partial result, as for `RunBrokenError`."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(shorten(message))
        self.result = result


def run_to_completion(
    task: RunTask[RunFolder], out: str | Path, name: str, tables: Mapping[str, TableSchema], *, has_date: bool = True
) -> RunResult:
    """Run in a new folder, and return the result; the folder's manifest says how the run ended.

    Raises:
        DataError: If the folder cannot be made.
        RunBrokenError: If the run cannot continue; its status is then `failed`, and its records are kept.
        RunInterruptedError: If the user interrupts the run; its status is then `interrupted`. A run that is
            interrupted while its last tables are written is complete.
    """
    manifest = {**provenance(), **task.facts()}
    folder = RunFolder(Path(out), name, tables, has_date=has_date)
    with lock_run(folder.path) as folder.lock:
        return _complete(task, folder, manifest, name_in_ledgers(task.scope(), folder.path.name), None)


def resume_to_completion(
    task: RunTask[RunFolder], folder: RunFolder, manifest: Mapping[str, Any], name: str, round_: int
) -> RunResult:
    """Continue a restored run in its locked folder from a round on; raises the errors of `run_to_completion`.

    `name` is the run's name in ledgers; empty if it has none yet.
    """
    return _complete(task, folder, manifest, name or name_in_ledgers(task.scope(), folder.path.name), round_)


def _complete(
    task: RunTask[RunFolder], folder: RunFolder, manifest: Mapping[str, Any], name: str, round_: int | None
) -> RunResult:
    """Run in a folder from the start (if `round_` is None), or from a round on."""
    try:
        folder.write_manifest(manifest)
        with Ledger(folder.path / LEDGER) as ledger:
            if task.answerer is not None and round_ is None:
                task.answerer.store.begin(ledger, name)
            elif task.answerer is not None and round_ is not None:
                task.answerer.store.resume(ledger, name, round_)
            if task.checkpoint_every != 0:
                folder.checkpoints = Checkpoints(folder, ledger, name, task.checkpoint_every)
            error = task.carry_out(folder)
        with protect_last_tables() as signal_handler:
            folder.close()
            result = _write_end(task, folder, manifest, _ending(error))
            _discard_checkpoints(folder.path)
    except BaseException as fault:
        raise _end_early(task, folder, manifest, fault) from fault
    if signal_handler.received is not None:
        message = f"{folder.path}: interrupted while its last tables were written (the complete run is kept there)"
        raise RunInterruptedError(message, result)
    return result


def run_in_memory(task: RunTask[Records], records: Records, name: str) -> dict[str, Any]:
    """Run without a folder, and return the summary; only a shared ledger keeps the answers, under `name`."""
    if task.answerer is not None:
        task.answerer.store.begin(None, name_in_ledgers(task.scope(), name))
    try:
        return task.finish(records, _ending(task.carry_out(records)))
    except Exception as fault:
        reason = _reason(task, fault)
        raise RunBrokenError(reason, None, reason) from fault


def name_in_ledgers(scope: str, name: str) -> str:
    """Return a unique name in ledgers for a run with this scope (see `RunTask.scope`)."""
    return f"{scope}/{name}-{draw_seed():x}"


def _ending(error: str) -> dict[str, str]:
    return {"status": "failed", "error": error} if error else {"status": "done"}


def _reason(task: RunTask[Any], fault: BaseException) -> str:
    return shorten(f"{task.progress()}: {format_error(fault)}")


def _write_end(
    task: RunTask[RunFolder], folder: RunFolder, manifest: Mapping[str, Any], ending: Mapping[str, Any]
) -> RunResult:
    summary = task.finish(folder, ending)
    folder.write_manifest({**manifest, **ending, "ended": wall_clock(), "summary": summary})
    return RunResult(folder.path, str(ending["status"]), summary)


def _end_early(
    task: RunTask[RunFolder], folder: RunFolder, manifest: Mapping[str, Any], fault: BaseException
) -> RunBrokenError | RunInterruptedError:
    is_interrupt = isinstance(fault, KeyboardInterrupt)
    cause = " by SIGTERM" if isinstance(fault, TerminatedError) or first_signal() == signal.SIGTERM else ""
    text = shorten(f"{task.progress()}: interrupted{cause}") if is_interrupt else _reason(task, fault)
    ending = {"status": "interrupted" if is_interrupt else "failed", "error": text}
    manifest = {**manifest, "of_own_code": True} if is_user_code_error(fault) else manifest
    result = None
    with protect_last_tables():
        with _append_errors(ending, _NO_MANIFEST):
            folder.write_manifest({**manifest, **ending})
        try:
            if isinstance(fault, EndAtOnceError):
                raise fault
            with _append_errors(ending, "its last rows could not be written"):
                folder.close()
            with _append_errors(ending, "its last tables could not be written"):
                result = _write_end(task, folder, manifest, ending)
        except EndAtOnceError:
            ending["error"] += "; ended at once, without its last tables"
            with _append_errors(ending, _NO_MANIFEST):
                folder.write_manifest({**manifest, **ending})
    hint = _recovery_hint(folder.path, manifest, ending, result)
    message = f"{folder.path}: {ending['error']} (what was recorded is kept there{hint})"
    return RunInterruptedError(message, result) if is_interrupt else RunBrokenError(message, result, ending["error"])


def _discard_checkpoints(run: Path) -> None:
    try:
        remove_checkpoints(run)
    except OSError as error:
        note = f"{run}: its checkpoints are no longer needed, but could not be removed: {error.strerror or error}"
        warnings.warn(shorten(note), PrismWarning, stacklevel=4)


def _recovery_hint(run: Path, manifest: Mapping[str, Any], ending: Mapping[str, Any], result: RunResult | None) -> str:
    if manifest.get("system") not in _RESUMABLE:
        return ""
    summary = {} if result is None else {"rounds": result.summary.get("rounds")}
    values = {**manifest, **ending, "summary": summary}
    return RecordedRun(run, validate_params(Manifest, values, str(run)), "own").advice


@contextmanager
def _append_errors(ending: dict[str, str], failure: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        ending["error"] += f"; {failure} ({type(error).__name__}: {error})"
