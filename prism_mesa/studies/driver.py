"""Runs the missing runs of a study: hands jobs to an engine and journals each outcome at once."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import ConfigError, DataError, printable
from prism_mesa.llm import Ledger
from prism_mesa.runs import run_files
from prism_mesa.runs.config import Config
from prism_mesa.studies.design.study_design import PlannedRun, StudyDesign, run_text
from prism_mesa.studies.engines.executors import EngineKind, future_outcome, open_engine, runs_at_a_time
from prism_mesa.studies.engines.job import Job, Limits, Outcome
from prism_mesa.studies.engines.supervise import run_supervised
from prism_mesa.studies.folder import WHOLE, Shard, StudyFolder
from prism_mesa.studies.journal import Entry, Journal
from prism_mesa.studies.measures.catalogue import measure_version

_WAITING: Final = 4
"""Jobs to queue so that no worker idles (a quarter of the workers if that is more). More would only take memory."""

type _Todo = tuple[PlannedRun, Entry | None]


@dataclass(frozen=True)
class Engine:
    """Where and how runs are executed.

    Attributes:
        kind: `local`: processes on this machine; `dask`: a Dask scheduler; `slurm`: jobs of a cluster.
        workers: Runs at the same time; None: the number of cores divided by the threads of a run, or as many as the
            scheduler's workers can take. `slurm` needs a number.
        scheduler: Address of a running Dask scheduler.
        attempts: How often a failing run is tried.
    """

    kind: EngineKind = "local"
    workers: int | None = None
    scheduler: str | None = None
    attempts: int = 1

    def open(self, workers: int) -> AbstractContextManager[Executor]:
        """Return an executor (see `open_engine`); raise ConfigError if SLURM gets no number of workers."""
        if self.kind == "slurm" and self.workers is None:
            raise ConfigError("--engine slurm: give --workers: how many jobs SLURM is to start")
        return open_engine(self.kind, workers=workers, scheduler=self.scheduler)


@dataclass
class Progress:
    """Progress of a study: runs planned, done, failed and skipped, and LLM calls.

    Calls are those of all attempts in the folder's journals. Two kinds are missing: those that other shards make
    meanwhile, and those of killed runs without a ledger of their own (``keep: measures``).

    Attributes:
        held_back: Runs that were not begun because the limit of calls was reached.
    """

    planned: int
    done: int = 0
    failed: int = 0
    skipped: int = 0
    calls: int = 0
    held_back: int = 0


def measure_versions(design: StudyDesign) -> dict[str, str]:
    """Return the version of the code of each measure of a study, by name."""
    return {name: measure_version(name) for name in design.params.measures}


def is_complete(entry: Entry | None, design: StudyDesign, versions: Mapping[str, str]) -> bool:
    """Return whether a run succeeded and left everything that the study asks for."""
    if entry is None or not entry.done or not (entry.kept or design.params.keep == "measures"):
        return False
    return set(design.params.collect) <= set(entry.facts.get("collected", ())) and entry.has(versions)


def run_missing(
    design: StudyDesign,
    folder: StudyFolder,
    engine: Engine,
    *,
    shard: Shard = WHOLE,
    runs: Iterable[PlannedRun] | None = None,
    retry: bool = True,
    on_run: Callable[[Progress], object] = lambda progress: None,
) -> Progress:
    """Execute the missing runs of a study, whose folder exists and is locked, and return the progress.

    Args:
        design: The study.
        folder: Its folder.
        engine: Where the runs are executed.
        shard: The part that is run here.
        runs: The runs to consider; None: all.
        retry: Whether to run failed runs again.
        on_run: Called with the progress at the start and after each run.
    """
    versions, progress = measure_versions(design), Progress(0)
    todo: dict[str, _Todo] = {}
    skipped: list[PlannedRun] = []
    with folder.journals() as journals:
        progress.calls = journals.calls()
        for number, planned in enumerate(design.runs_by_seed() if runs is None else runs):
            if not shard.has(number, design):
                continue
            progress.planned += 1
            entry = journals.entry(planned.run)
            if is_complete(entry, design, versions):
                progress.done += 1
            elif planned.condition.number in design.skipped:
                progress.skipped += 1
                skipped += [] if entry is not None and entry.done else [planned]
            elif entry is not None and entry.status == "failed" and not retry:
                progress.failed += 1
            else:
                progress.planned -= planned.run in todo  # equivalent conditions share their runs
                todo.setdefault(planned.run, (planned, entry))
    if skipped:
        with closing(Journal(folder.journal(shard))) as journal:
            for planned in skipped:
                outcome = Outcome(planned.run, "skipped", printable(design.skipped[planned.condition.number]))
                journal.put(outcome, {}, planned.condition.identity, run_text(planned, design), kept=False)
    on_run(progress)
    if todo:
        _run_all(list(todo.values()), design, folder, engine, shard, progress, on_run)
    return progress


def _run_all(
    todo: list[_Todo],
    design: StudyDesign,
    folder: StudyFolder,
    engine: Engine,
    shard: Shard,
    progress: Progress,
    on_run: Callable[[Progress], object],
) -> None:
    versions, workers = measure_versions(design), engine.workers or default_workers(design.base)
    with closing(Journal(folder.journal(shard))) as journal, engine.open(workers) as pool:
        for planned, job, outcome, goes_on in _outcomes(todo, design, folder, pool, engine, progress):
            if outcome.ending == "done":
                outcome = replace(outcome, facts=outcome.facts | {"collected": list(job.collect)})
            kept = job.keep == "tables" and (folder.runs / job.run).is_dir()
            journal.put(outcome, versions, planned.condition.identity, run_text(planned, design), kept=kept)
            if not goes_on:
                progress.done += outcome.ending == "done"
                progress.failed += outcome.ending != "done"
                on_run(progress)


def default_workers(config: Config) -> int:
    """Return the number of simultaneous runs whose threads fill the cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // config.threads)


def _outcomes(
    todo: list[_Todo],
    design: StudyDesign,
    folder: StudyFolder,
    pool: Executor,
    engine: Engine,
    progress: Progress,
) -> Iterator[tuple[PlannedRun, Job, Outcome, bool]]:
    """Yield the outcome of each attempt at a run, and whether another attempt follows.

    A few more runs than workers are queued. With a limit of calls none are, because they might exceed it.
    """
    waiting: dict[Future[Outcome], tuple[PlannedRun, Job, int]] = {}
    rest = iter(todo)
    max_calls = inf if design.params.limits.calls is None else design.params.limits.calls
    try:
        while True:
            room = 0 if progress.calls >= max_calls else _max_submitted(pool, engine, design) - len(waiting)
            for planned, entry in islice(rest, max(0, room)):
                job = _job(planned, entry, design, folder)
                waiting[pool.submit(run_supervised, job)] = planned, job, 1
            if not waiting:
                progress.held_back = sum(1 for _ in rest)
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                planned, job, tried = waiting.pop(future)
                outcome = _with_calls(future_outcome(future, job), job, folder)
                progress.calls += outcome.facts.get("calls") or 0
                again = outcome.ending != "done" and tried < engine.attempts and progress.calls < max_calls
                yield planned, job, outcome, again
                if again:
                    job = replace(job, spent=_spent(job.spent, outcome.facts))
                    waiting[pool.submit(run_supervised, job)] = planned, job, tried + 1
    finally:
        for future in waiting:
            future.cancel()


def _max_submitted(pool: Executor, engine: Engine, design: StudyDesign) -> int:
    workers = engine.workers or runs_at_a_time(pool, default_workers(design.base))
    waiting = max(_WAITING, workers // 4) if design.params.limits.calls is None else 0
    return max(1, workers + waiting)


def _with_calls(outcome: Outcome, job: Job, folder: StudyFolder) -> Outcome:
    """Return the outcome, with the calls from the run's own ledger if it was killed before it could report them."""
    file = folder.runs / job.run / run_files.LEDGER
    if "calls" in outcome.facts or job.keep != "tables" or not file.is_file():
        return outcome
    try:
        with Ledger(file, read_only=True) as ledger:
            calls = sum(row.attempts for row in ledger.asked())
    except DataError:  # killed while writing
        return outcome
    return replace(outcome, facts=outcome.facts | {"calls": calls})


def _spent(*attempts: Mapping[str, Any]) -> dict[str, int]:
    return {name: sum(facts.get(name) or 0 for facts in attempts) for name in ("calls", "tokens")}


def _job(planned: PlannedRun, entry: Entry | None, design: StudyDesign, folder: StudyFolder) -> Job:
    params = design.params
    config = _with_ledger(design.config(planned), design, folder)
    has_folder = entry is not None and entry.done and entry.kept  # then only measures or rows are missing
    return Job(
        run=planned.run,
        config=config.model_dump(mode="json"),
        measures=tuple(params.measures),
        keep="measures" if has_folder else params.keep,
        collect=tuple(params.collect),
        folder=str(folder.runs.absolute()),
        path=tuple(dict.fromkeys(str(Path(place or ".").absolute()) for place in (*sys.path, "."))),
        limits=Limits(params.limits.seconds, params.limits.memory_gb),
        spent=_spent({} if entry is None else entry.facts),
    )


def _with_ledger(config: Config, design: StudyDesign, folder: StudyFolder) -> Config:
    """Return a configuration that shares LLM answers with all runs of the study, if the study has a cache."""
    reasoner = config.reasoner
    if not design.params.cache or reasoner.kind in ("rule", "distilled") or reasoner.ledger_path is not None:
        return config
    update = {"ledger": "cache", "ledger_path": str(folder.ledger.absolute())}
    return config.model_copy(update={"reasoner": reasoner.model_copy(update=update)})
