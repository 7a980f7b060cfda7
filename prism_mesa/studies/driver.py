"""Execute the missing runs of a study: submit jobs to an engine, and write each outcome to the journal at once."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, replace
from itertools import islice
from math import inf
from pathlib import Path
from typing import Final

from prism_mesa.errors import ConfigError, DataError, printable
from prism_mesa.llm import Ledger
from prism_mesa.runs import run_files
from prism_mesa.runs.config import Config
from prism_mesa.studies.design.study_design import PlannedRun, StudyDesign, run_text
from prism_mesa.studies.engines.executors import EngineKind, future_outcome, open_engine, runs_at_a_time
from prism_mesa.studies.engines.job import Job, Limits, Outcome
from prism_mesa.studies.engines.supervise import run_supervised
from prism_mesa.studies.folder import WHOLE, Shard, StudyFolder
from prism_mesa.studies.journal import Entry, Journal, sum_llm_use
from prism_mesa.studies.measures.catalogue import measure_version

_MIN_QUEUED: Final = 4
"""Number of queued jobs that keeps workers busy. With many workers, a quarter of their number is queued."""

type _PendingRun = tuple[PlannedRun, Entry | None]


@dataclass(frozen=True)
class Engine:
    """Where and how runs are executed.

    Attributes:
        kind: `local`: processes on this machine; `dask`: a Dask scheduler; `slurm`: jobs of a cluster.
        workers: Number of simultaneous runs. None: the number of cores divided by the threads of a run, or the capacity
            of the scheduler's workers; not allowed with `slurm`.
        scheduler: Address of a running Dask scheduler.
        attempts: Maximum number of attempts at a run that fails.
    """

    kind: EngineKind = "local"
    workers: int | None = None
    scheduler: str | None = None
    attempts: int = 1

    def open(self, workers: int) -> AbstractContextManager[Executor]:
        """Return an executor (see `open_engine`)."""
        if self.kind == "slurm" and self.workers is None:
            raise ConfigError("--engine slurm: give --workers, the number of SLURM jobs")
        return open_engine(self.kind, workers=workers, scheduler=self.scheduler)


@dataclass
class Progress:
    """Progress of a study: runs planned, done, failed and skipped, and LLM calls.

    `calls` counts the calls of all attempts in the folder's journals. It excludes calls that other shards make at the
    same time, and calls of killed runs without a ledger (``keep: measures``). `held_back` is the number of runs that
    did not start because the limit of calls was reached.
    """

    planned: int
    done: int = 0
    failed: int = 0
    skipped: int = 0
    calls: int = 0
    held_back: int = 0


def measure_versions(design: StudyDesign) -> dict[str, str]:
    """Return the code version of each measure of a study, by name."""
    return {name: measure_version(name) for name in design.params.measures}


def is_complete(entry: Entry | None, design: StudyDesign, versions: Mapping[str, str]) -> bool:
    """Return whether a run succeeded and has the measures, the tables and the folder that the study asks for."""
    if entry is None or not entry.done or not (entry.kept or design.params.keep == "measures"):
        return False
    return set(design.params.collect) <= set(entry.facts.get("collected", ())) and entry.has_current_measures(versions)


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
    """Execute the missing runs of a study, whose folder is locked, and return the progress.

    Only the shard's part of `runs` is executed (None: of all runs). Failed runs are repeated only with `retry`.
    `on_run` is called with the progress at the start and after each run.
    """
    versions, progress = measure_versions(design), Progress(0)
    pending: dict[str, _PendingRun] = {}
    skipped: list[PlannedRun] = []
    with folder.journals() as journals:
        progress.calls = journals.calls()
        for number, planned in enumerate(design.runs_by_seed() if runs is None else runs):
            if not shard.contains(number, design):
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
                progress.planned -= planned.run in pending  # equivalent conditions share their runs
                pending.setdefault(planned.run, (planned, entry))
    on_run(progress)
    if not pending and not skipped:
        return progress
    with closing(Journal(folder.journal(shard))) as journal, ExitStack() as stack:
        for planned in skipped:
            outcome = Outcome(planned.run, "skipped", printable(design.skipped[planned.condition.number]))
            journal.put(outcome, {}, planned.condition.identity, run_text(planned, design), kept=False)
        if pending:
            pool = stack.enter_context(engine.open(engine.workers or default_workers(design.base)))
            for planned, job, outcome, is_last in _outcomes(pending.values(), design, folder, pool, engine, progress):
                kept = job.keep == "tables" and (folder.runs / job.run).is_dir()
                journal.put(outcome, versions, planned.condition.identity, run_text(planned, design), kept=kept)
                if is_last:
                    progress.done += outcome.ending == "done"
                    progress.failed += outcome.ending != "done"
                    on_run(progress)
    return progress


def default_workers(config: Config) -> int:
    """Return the number of simultaneous runs that use all cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // config.threads)


def _outcomes(
    pending: Iterable[_PendingRun],
    design: StudyDesign,
    folder: StudyFolder,
    pool: Executor,
    engine: Engine,
    progress: Progress,
) -> Iterator[tuple[PlannedRun, Job, Outcome, bool]]:
    """Yield the outcome of each attempt at a run, and whether this attempt is the last.

    A few more runs than workers are submitted, unless calls are limited: queued runs might exceed the limit.
    """
    futures: dict[Future[Outcome], tuple[PlannedRun, Job, int]] = {}
    remaining = iter(pending)
    max_calls = inf if design.params.limits.calls is None else design.params.limits.calls
    try:
        while True:
            n_free = 0 if progress.calls >= max_calls else _max_submitted(pool, engine, design) - len(futures)
            for planned, entry in islice(remaining, max(0, n_free)):
                job = _make_job(planned, entry, design, folder)
                futures[pool.submit(run_supervised, job)] = planned, job, 1
            if not futures:
                progress.held_back = sum(1 for _ in remaining)
                return
            for future in wait(futures, return_when=FIRST_COMPLETED).done:
                planned, job, attempt = futures.pop(future)
                outcome = _add_calls(future_outcome(future, job), job, folder)
                if outcome.ending == "done":
                    outcome = replace(outcome, facts=outcome.facts | {"collected": list(job.collect)})
                progress.calls += outcome.facts.get("calls") or 0
                is_last = outcome.ending == "done" or attempt >= engine.attempts or progress.calls >= max_calls
                yield planned, job, outcome, is_last
                if not is_last:
                    job = replace(job, spent=sum_llm_use([job.spent, outcome.facts]))
                    futures[pool.submit(run_supervised, job)] = planned, job, attempt + 1
    finally:
        for future in futures:
            future.cancel()


def _max_submitted(pool: Executor, engine: Engine, design: StudyDesign) -> int:
    workers = engine.workers or runs_at_a_time(pool, default_workers(design.base))
    n_queued = max(_MIN_QUEUED, workers // 4) if design.params.limits.calls is None else 0
    return max(1, workers + n_queued)


def _add_calls(outcome: Outcome, job: Job, folder: StudyFolder) -> Outcome:
    """Return the outcome; if the run was killed before it reported its calls, add them from its ledger."""
    file = folder.runs / job.run / run_files.LEDGER
    if "calls" in outcome.facts or job.keep != "tables" or not file.is_file():
        return outcome
    try:
        with Ledger(file, read_only=True) as ledger:
            calls = sum(row.attempts for row in ledger.asked())
    except DataError:  # the run was killed while it wrote the ledger
        return outcome
    return replace(outcome, facts=outcome.facts | {"calls": calls})


def _make_job(planned: PlannedRun, entry: Entry | None, design: StudyDesign, folder: StudyFolder) -> Job:
    params = design.params
    config = _use_shared_ledger(design.config(planned), design, folder)
    has_folder = entry is not None and entry.done and entry.kept  # only measures or collected rows are missing
    return Job(
        run=planned.run,
        config=config.model_dump(mode="json"),
        measures=tuple(params.measures),
        keep="measures" if has_folder else params.keep,
        collect=tuple(params.collect),
        folder=str(folder.runs.absolute()),
        path=tuple(dict.fromkeys(str(Path(folder_path or ".").absolute()) for folder_path in (*sys.path, "."))),
        limits=Limits(params.limits.seconds, params.limits.memory_gb),
        spent=sum_llm_use([{} if entry is None else entry.facts]),
    )


def _use_shared_ledger(config: Config, design: StudyDesign, folder: StudyFolder) -> Config:
    """Return a configuration that caches answers in the study's shared ledger, if the study has one."""
    reasoner = config.reasoner
    if not design.params.cache or reasoner.kind in ("rule", "distilled") or reasoner.ledger_path is not None:
        return config
    update = {"ledger": "cache", "ledger_path": str(folder.ledger.absolute())}
    return config.model_copy(update={"reasoner": reasoner.model_copy(update=update)})
