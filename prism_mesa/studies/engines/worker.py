"""Carry out a job: run the model and compute the measures."""

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

from prism_mesa.errors import DataError, NotedWarning, PrismError, printable, shorten
from prism_mesa.llm import Ledger
from prism_mesa.runs.config import Config, make_config
from prism_mesa.runs.ledgers import tokens_spent
from prism_mesa.runs.lifecycle import RunBrokenError
from prism_mesa.runs.process.machine import peak_memory_mb
from prism_mesa.runs.records.in_memory import RowsInMemory
from prism_mesa.runs.resume import resume_in
from prism_mesa.runs.run_files import LEDGER
from prism_mesa.runs.social import PlatformRun, start_run
from prism_mesa.social.world.build import KeptWorld
from prism_mesa.studies.engines.job import Job, Outcome
from prism_mesa.studies.measures.catalogue import FinishedRun, compute_measures, find_measure
from prism_mesa.studies.measures.curves import CURVE_TABLES, CURVES, run_curves

_INSTALL_PATHS: Final = tuple(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))
_PRISM: Final = str(Path(__file__).parents[2])

_IGNORED_WARNINGS: Final = (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning)


def carry_out(job: Job) -> Outcome:
    """Run a job in this process, and return its outcome; an error becomes the reason, and warnings become notes."""
    sys.path.extend(folder for folder in job.path if folder not in sys.path)
    started = time.process_time()
    with warnings.catch_warnings(record=True) as caught_warnings:
        warnings.simplefilter("default")
        for category in _IGNORED_WARNINGS:
            warnings.simplefilter("ignore", category)
        facts: dict[str, Any] = {}
        try:
            outcome = _run_and_measure(job, facts)
        except BaseException as error:  # also SystemExit, which a chart or a measure may raise
            outcome = Outcome(job.run, "raised", _describe_error(error), facts=facts)
    has_notes = "notes" in outcome.facts
    messages = [str(w.message) for w in caught_warnings if not (has_notes and issubclass(w.category, NotedWarning))]
    notes = map(printable, (*outcome.facts.get("notes", ()), *messages))
    outcome.facts.update(cpu_s=time.process_time() - started, peak_memory_mb=peak_memory_mb(), signal=None)
    outcome.facts["notes"] = list(dict.fromkeys(notes))
    return outcome


def _run_and_measure(job: Job, facts: dict[str, Any]) -> Outcome:
    """Run the model and compute the measures; fill `facts`, even if the run ends in an error."""
    config, runner = make_config(job.config, job.run), _Runner()
    try:
        summary, table = (
            _run_in_folder(job, config, runner) if job.keep == "tables" else _run_in_memory(job, runner(config))
        )
    finally:
        facts |= runner.costs()
    run = runner.run
    facts |= {name: summary["decisions"][name] for name in ("decided_by", "open", "by_source")}
    facts |= {"fallback": facts["by_source"].get("fallback", 0), "notes": list(summary["notes"])}
    if summary["status"] != "done":
        return Outcome(job.run, "raised", printable(str(summary["error"])), facts=facts)
    edges = run.model.network.edges
    finished = FinishedRun(
        run.config, summary, cache(table), lambda: pd.DataFrame(dict(zip(("src", "dst"), edges(), strict=True)))
    )
    measures = compute_measures(finished, job.measures)
    return Outcome(job.run, "done", "", measures, facts, _collect_tables(job, finished, facts["notes"]))


class _Runner:
    """Starts the run of a job, and counts its costs. A run that cannot resume is started twice.

    Attributes:
        run: The run that was started last.
        cpu_s: CPU seconds for building models.
        reported: LLM calls and tokens that earlier attempts reported.
    """

    def __init__(self) -> None:
        self.run: PlatformRun
        self.cpu_s = 0.0
        self.reported: Mapping[str, int] = {}

    def __call__(self, config: Config, world: KeptWorld | None = None) -> PlatformRun:
        """Start the run."""
        started = time.process_time()
        self.run = start_run(config, world=world)
        self.cpu_s += time.process_time() - started
        return self.run

    def costs(self) -> dict[str, float]:
        """Return calls and tokens of all LLMs, and CPU seconds, also for a failed run."""
        run: PlatformRun | None = getattr(self, "run", None)
        llms = [] if run is None else [llm for llm in (run.answerer, run.model.writer) if llm is not None]
        calls = sum(llm.usage["calls"] for llm in llms)
        tokens = sum(llm.usage["prompt_tokens"] + llm.usage["completion_tokens"] for llm in llms)
        return {
            "calls": max(0, calls - self.reported.get("calls", 0)),
            "tokens": max(0, tokens - self.reported.get("tokens", 0)),
            "model_cpu_s": self.cpu_s + (0.0 if run is None else sum(run.timer.rounds)),
        }


type _TableReader = Callable[[str], pd.DataFrame]


def _run_in_folder(job: Job, config: Config, runner: _Runner) -> tuple[Mapping[str, Any], _TableReader]:
    """Run, or resume from a checkpoint, with tables in a folder; return the summary and a reader of tables."""
    folder = Path(job.folder) / job.run
    runner.reported = _reported_spending(folder, job.spent)
    result = resume_in(folder, config, partial(runner, config))
    if result is None:
        runner.reported = {}
        result = runner(config).run_in_folder(job.folder, job.run, has_date=False)
    return result.summary, result.table


def _reported_spending(folder: Path, spent: Mapping[str, int]) -> dict[str, int]:
    if not any(spent.values()) or not (folder / LEDGER).is_file():
        return {}
    try:
        with Ledger(folder / LEDGER, read_only=True) as ledger:
            requests = ledger.asked()
            calls, tokens = sum(row.attempts for row in requests), tokens_spent(ledger.answers(), requests)
    except DataError:
        return {}
    return {name: min(spent.get(name, 0), n) for name, n in (("calls", calls), ("tokens", tokens))}


def _run_in_memory(job: Job, run: PlatformRun) -> tuple[Mapping[str, Any], _TableReader]:
    """Run without files, and return the summary and a reader of tables."""
    tables = [find_measure(name).tables for name in job.measures] + [CURVE_TABLES if CURVES in job.collect else ()]
    table_names = {*job.collect, *(table for names in tables for table in names or ())}
    records = RowsInMemory(run.tables, None if None in tables else table_names)
    return run.run_in_memory(records, job.run), records.table


def _collect_tables(job: Job, run: FinishedRun, notes: list[str]) -> dict[str, bytes]:
    """Return the collected tables as Arrow streams; note tables that this run lacks."""
    streams = {}
    for name in job.collect:
        try:
            frame = run_curves(run) if name == CURVES else run.table(name)
            rows = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
        except DataError as error:
            notes.append(f"collect: {error}")
            continue
        stream = pa.BufferOutputStream()
        with pa.ipc.new_stream(stream, rows.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(rows)
        streams[name] = stream.getvalue().to_pybytes()
    return streams


def _describe_error(error: BaseException) -> str:
    """Describe an error and its location in one line. For PRISM's errors, only locations in the user's code count."""
    message, source = str(error), error
    if isinstance(error, RunBrokenError):
        message, source = error.reason, error.__cause__ or error
    elif not isinstance(error, PrismError):
        message = f"{type(error).__name__}: {error}"
    if getattr(source, "__notes__", ()):
        location = ""  # the notes name the location
    elif isinstance(source, PrismError):
        location = "" if source.__cause__ is None else _error_location(source.__cause__, only_user_code=True)
    else:
        location = _error_location(source)
    return shorten(printable(f"{message}{location}"))


def _error_location(error: BaseException, *, only_user_code: bool = False) -> str:
    """Return the location of an error: the last frame in the user's code, or else in PRISM, or else anywhere."""
    frames = traceback.extract_tb(error.__traceback__)
    outside_packages = [frame for frame in frames if not frame.filename.startswith((*_INSTALL_PATHS, "<"))]
    user_frames = [frame for frame in outside_packages if not frame.filename.startswith(_PRISM)]
    if not user_frames and (only_user_code or not frames):
        return ""
    frame = (user_frames or outside_packages or frames)[-1]
    return f" ({Path(frame.filename).name}, line {frame.lineno}, in {frame.name})"
