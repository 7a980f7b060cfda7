"""What every run goes through, whatever is run: folder, manifest, clocks, and an end that is written down."""

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

import pandas as pd

from prism_mesa.errors import PrismWarning, RunError, counted, one_line, shortened, told
from prism_mesa.llm import Ledger
from prism_mesa.runs.folder import RunFolder
from prism_mesa.runs.lock import lock_run
from prism_mesa.runs.machine import peak_memory_mb, provenance, wall_clock
from prism_mesa.runs.run_files import LEDGER, read_manifest, read_table
from prism_mesa.runs.stopping import EndAtOnceError, TerminatedError, go_on, last_tables
from prism_mesa.runs.work import Records, Stepped, Work
from prism_mesa.streams import digest64, fresh_seed
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


class RunTimer:
    """The clocks of a run, from when it is made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.process_time()
        self.rounds: list[float] = []
        """CPU seconds of each completed round, without what went into records."""

    @contextmanager
    def round(self, folder: "Records") -> Iterator[None]:
        """Count the block as a round, without what goes into the folder in it."""
        at = time.process_time() - folder.cpu_s
        yield
        self.rounds.append(time.process_time() - folder.cpu_s - at)

    def read(self) -> dict[str, float]:
        """Return CPU and wall seconds so far, and CPU seconds of a round: the median of those after the first.

        They are of the run: its model, its rounds and its tables. Imports, and what goes on beside it, are in
        `machine.whole_process`.
        """
        return {
            "cpu_s": time.process_time() - self._cpu,
            "wall_s": time.monotonic() - self._wall,
            "round_cpu_s": median(self.rounds[1:] or self.rounds or [0.0]),
        }


@contextmanager
def as_before() -> Iterator[None]:
    """Say nothing of what a run has said already, while the block repeats it or a variant of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        yield


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
        try:
            folder.write_manifest(manifest)
            with Ledger(folder.path / LEDGER) as ledger:
                if work.asked is not None:
                    work.asked.record(ledger, _name_in_ledgers(work, folder.path.name))
                error = work.carry_out(folder)
            with last_tables() as signals:
                folder.close()
                result = _ended(work, folder, manifest, _ending(error))
        except BaseException as fault:
            raise _broken_off(work, folder, manifest, fault) from fault
    if signals.came:
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
        work.asked.record(None, _name_in_ledgers(work, name))
    try:
        return work.finish(records, _ending(work.carry_out(records)))
    except Exception as fault:
        told = _told(work, fault)
        raise RunBrokenError(told, None, told) from fault


def _name_in_ledgers(work: Work[Any], name: str) -> str:
    return f"{work.scope()}/{name}-{fresh_seed():x}"


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
    by = " by SIGTERM" if isinstance(fault, TerminatedError) else ""
    text = shortened(f"{work.where()}: interrupted{by}") if interrupted else _told(work, fault)
    ending = {"status": "interrupted" if interrupted else "failed", "error": text}
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
    kept = f"{folder.path}: {ending['error']} (what was recorded is kept there)"
    return RunInterruptedError(kept, result) if interrupted else RunBrokenError(kept, result, ending["error"])


_NO_MANIFEST: Final = "its manifest could not be written"


@contextmanager
def _going_on(ending: dict[str, str], what: str) -> Iterator[None]:
    """Add to the error that ended a run what raises in the block: whatever broke it may stand in its way again."""
    try:
        yield
    except Exception as second:
        ending["error"] += f"; {what} ({type(second).__name__}: {second})"


def run_rounds(
    model: Stepped, rounds: int, records: Records, watch: RunTimer, on_round: Callable[[int], None] | None
) -> None:
    """Step a model, its records going where they go; `on_round` is called with the rounds done, after each.

    Raises:
        KeyboardInterrupt: Also for a signal that came in a round and was lost there.
    """
    model.recorder = records
    for done in range(1, rounds + 1):
        with watch.round(records):
            model.step()
        records.round_done()
        if on_round is not None:
            on_round(done)
        go_on()


WITHOUT_EFFECT: Final = set(
    "kind model host timeout_s max_concurrency attempts backoff_s max_fallback_share ledger ledger_path".split()
)
"""Parameters of who is asked that two runs may differ in whose tables are to be the same."""


def scope_of(values: Mapping[str, Any]) -> str:
    """Return a name for all runs of these values (see `Work.scope`)."""
    return f"{digest64(json.dumps(values, sort_keys=True)):016x}"


def run_summary(
    records: Records, ending: Mapping[str, Any], found: Mapping[str, Any], watch: RunTimer
) -> dict[str, Any]:
    """Return the summary of a run of a model: where it is, how it ended, what it comes to, and what it took."""
    where = None if records.path is None else str(records.path)
    summary = {"run_dir": where, **ending, **found, **watch.read()}
    summary |= {"records_cpu_s": records.cpu_s, "peak_memory_mb": peak_memory_mb()}
    return summary | {"notes": [*found["notes"], *records.notes]}
