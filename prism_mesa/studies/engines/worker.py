"""What the process of a run does: run it, measure it, and tell what became of it."""

import sys
import sysconfig
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa

from prism_mesa.errors import DataError, NotedWarning, PrismError, printable, shortened
from prism_mesa.llm import Ledger
from prism_mesa.runs.config import Config, make_config
from prism_mesa.runs.ledgers import tokens_spent
from prism_mesa.runs.lifecycle import RunBrokenError
from prism_mesa.runs.process.machine import peak_memory_mb
from prism_mesa.runs.records.in_memory import RowsInMemory
from prism_mesa.runs.resume import resume_in
from prism_mesa.runs.run_files import LEDGER
from prism_mesa.runs.social import PlatformRun, start_run
from prism_mesa.social.world.kept import KeptWorld
from prism_mesa.studies.engines.job import Job, Outcome
from prism_mesa.studies.measures.catalogue import FinishedRun, find_measure, measured
from prism_mesa.studies.measures.curves import CURVES, READ, run_curves

_INSTALLED: Final = tuple(sysconfig.get_paths()[place] for place in ("stdlib", "purelib", "platlib"))
_PRISM: Final = str(Path(__file__).parents[2])

_FOR_DEVELOPERS: Final = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


def carry_out(job: Job) -> Outcome:
    """Return what became of a run, which is run here and now.

    It raises nothing: what a run raises is the reason of its outcome, and what it warns of stands in its facts.
    """
    sys.path.extend(folder for folder in job.path if folder not in sys.path)
    at = time.process_time()
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("default")
        for what in _FOR_DEVELOPERS:
            warnings.simplefilter("ignore", what)
        facts: dict[str, Any] = {}
        try:
            outcome = _done(job, facts)
        except BaseException as error:  # also SystemExit, which a chart or a measure may raise
            outcome = Outcome(job.run, "raised", _reason(error), facts=facts)
    has_notes = "notes" in outcome.facts
    warnings_ = [str(w.message) for w in warned if not (has_notes and issubclass(w.category, NotedWarning))]
    notes = map(printable, (*outcome.facts.get("notes", ()), *warnings_))
    outcome.facts.update(cpu_s=time.process_time() - at, peak_memory_mb=peak_memory_mb(), signal=None)
    outcome.facts["notes"] = list(dict.fromkeys(notes))
    return outcome


def _done(job: Job, facts: dict[str, Any]) -> Outcome:
    """Run and measure. `facts` gets what is known of the run, also if it ends in an error."""
    config, made = make_config(job.config, job.run), _Made()
    try:
        summary, table = _kept(job, config, made) if job.keep == "tables" else _left_nothing(job, made(config))
    finally:
        facts |= made.took()
    work = made.work
    facts |= _facts(summary)
    if summary["status"] != "done":
        return Outcome(job.run, "raised", printable(str(summary["error"])), facts=facts)
    run = FinishedRun(
        work.config,
        summary,
        cache(table),
        lambda: pd.DataFrame(dict(zip(("src", "dst"), work.model.network.edges(), strict=True))),
    )
    measures = measured(run, job.measures)
    return Outcome(job.run, "done", "", measures, facts, _collected(job, run, facts["notes"]))


class _Made:
    """The run of a job, which is made once, and again if it cannot go on from a checkpoint.

    Attributes:
        runs: What has been made; the last one counts.
        reported: Calls and tokens that earlier attempts have reported already.
    """

    def __init__(self) -> None:
        self.runs: list[PlatformRun] = []
        self.cpu_s = 0.0
        self.reported: dict[str, int] = {}

    def __call__(self, config: Config, world: KeptWorld | None = None) -> PlatformRun:
        """Make the run."""
        self.runs.clear()
        at = time.process_time()
        self.runs.append(start_run(config, world=world))
        self.cpu_s += time.process_time() - at
        return self.work

    @property
    def work(self) -> PlatformRun:
        """The run that was made last."""
        return self.runs[-1]

    def took(self) -> dict[str, float]:
        """Return calls and tokens of the LLMs that decide and write, and CPU seconds, whether the run ended well."""
        usages = [llm.usage for work in self.runs for llm in (work.asked, work.model.writer) if llm is not None]
        calls = sum(usage["calls"] for usage in usages)
        tokens = sum(usage["prompt_tokens"] + usage["completion_tokens"] for usage in usages)
        spent = {"calls": max(0, calls - self.reported.get("calls", 0))}
        spent["tokens"] = max(0, tokens - self.reported.get("tokens", 0))
        return spent | {"model_cpu_s": self.cpu_s + sum(sum(work.watch.rounds) for work in self.runs)}


type _Tables = Callable[[str], pd.DataFrame]


def _kept(job: Job, config: Config, made: _Made) -> tuple[Mapping[str, Any], _Tables]:
    """Run, keep what ``prism run`` keeps, but for pictures, and return the summary and where tables are to be had.

    A run that was killed after a checkpoint goes on from there.
    """
    folder = Path(job.folder) / job.run
    made.reported = _reported(folder, job.spent)
    result = resume_in(folder, config, partial(made, config))
    if result is None:
        made.reported = {}
        result = made(config).keep(job.folder, job.run, dated=False)
    return result.summary, result.table


def _reported(folder: Path, spent: Mapping[str, int]) -> dict[str, int]:
    """Return the calls and tokens that earlier attempts reported and that the ledger in a run's folder counts too.

    Those of attempts in folders that were moved aside are not in it.
    """
    if not any(spent.values()) or not (folder / LEDGER).is_file():
        return {}
    try:
        with Ledger(folder / LEDGER, read_only=True) as ledger:
            asked = ledger.asked()
            calls, tokens = sum(row.attempts for row in asked), tokens_spent(ledger.answers(), asked)
    except DataError:
        return {}
    return {name: min(spent.get(name, 0), n) for name, n in (("calls", calls), ("tokens", tokens))}


def _left_nothing(job: Job, work: PlatformRun) -> tuple[Mapping[str, Any], _Tables]:
    """Run, keep nothing, and return the summary and where tables are to be had."""
    read = [find_measure(name).tables for name in job.measures]
    wanted = {*job.collect, *(READ if CURVES in job.collect else ()), *(t for tables in read for t in tables or ())}
    records = RowsInMemory(work.tables, None if None in read else wanted)
    return work.run_in_memory(records, job.run), records.table


def _facts(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return who decided, from the summary of a run."""
    decisions = summary["decisions"]
    facts = {name: decisions[name] for name in ("decided_by", "open", "by_source")}
    return facts | {"fallback": facts["by_source"].get("fallback", 0), "notes": list(summary["notes"])}


def _collected(job: Job, run: FinishedRun, notes: list[str]) -> dict[str, bytes]:
    """Return the rows to collect; of a table that this run does not have a note says so."""
    found = {}
    for name in job.collect:
        try:
            frame = run_curves(run) if name == CURVES else run.table(name)
            rows = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
        except DataError as error:
            notes.append(f"collect: {error}")
            continue
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, rows.schema, options=_PACKED) as writer:
            writer.write_table(rows)
        found[name] = stream.getvalue().to_pybytes()
    return found


_PACKED: Final = pa.ipc.IpcWriteOptions(compression="zstd")


def _reason(error: BaseException) -> str:
    """Return in one line what a run raised, and where in a user's code; of what is no error of PRISM's where in any."""
    message, fault = str(error), error
    if isinstance(error, RunBrokenError):
        message, fault = error.reason, error.__cause__ or error
    elif not isinstance(error, PrismError):
        message = f"{type(error).__name__}: {error}"
    if getattr(fault, "__notes__", ()):
        place = ""  # they say where
    elif isinstance(fault, PrismError):
        place = "" if fault.__cause__ is None else _place(fault.__cause__, of_users=True)
    else:
        place = _place(fault)
    return shortened(printable(f"{message}{place}"))


def _place(error: BaseException, *, of_users: bool = False) -> str:
    """Return where an error was raised, in words: the last place in a user's code, else in PRISM's, else in any.

    Args:
        error: The error.
        of_users: Whether it is nowhere if it is not in a user's code.
    """
    frames = traceback.extract_tb(error.__traceback__)
    written = [frame for frame in frames if not frame.filename.startswith((*_INSTALLED, "<"))]
    own = [frame for frame in written if not frame.filename.startswith(_PRISM)]
    if not own and (of_users or not frames):
        return ""
    frame = (own or written or frames)[-1]
    return f" ({Path(frame.filename).name}, line {frame.lineno}, in {frame.name})"
