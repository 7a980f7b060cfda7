"""Runs what of a study has not been run: hands jobs to an engine, and writes down what becomes of each at once."""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from prism_mesa.runs.config import INPUT_FILES, Config
from prism_mesa.studies.design.identity import measure_version
from prism_mesa.studies.design.study_design import PlannedRun, StudyDesign, told_of
from prism_mesa.studies.engines.executors import EngineKind, open_engine, outcome_of
from prism_mesa.studies.engines.job import Job, Limits
from prism_mesa.studies.engines.supervise import run_supervised
from prism_mesa.studies.folder import WHOLE, Shard, StudyFolder
from prism_mesa.studies.journal import Entry, Journal

_WAITING: Final = 4
"""Jobs that wait for each worker, so that none is idle; no more, so that memory does not grow with the study."""


@dataclass(frozen=True)
class Engine:
    """Who runs the runs.

    Attributes:
        kind: `local`: processes of this machine; `dask`: a scheduler of Dask; `slurm`: jobs of a cluster.
        workers: How many runs go on at the same time; None: one for each core that a run's threads leave.
        scheduler: Address of a Dask scheduler that is there already.
        attempts: How often a run is tried that fails.
    """

    kind: EngineKind = "local"
    workers: int | None = None
    scheduler: str | None = None
    attempts: int = 1

    def open(self, workers: int) -> AbstractContextManager[Executor]:
        """Return an executor for so many runs at the same time (see `open_engine`).

        Raises:
            ConfigError: If there is no such engine.
        """
        return open_engine(self.kind, workers=workers, scheduler=self.scheduler)


@dataclass
class Progress:
    """How far a study is: runs planned, done and failed, and calls of an LLM."""

    planned: int
    done: int = 0
    failed: int = 0
    calls: int = 0
    held_back: int = 0
    """Runs that were not begun, since `limits.calls` was reached."""
    notes: set[str] = field(default_factory=set)


def versions_of(design: StudyDesign) -> dict[str, str]:
    """Return what stands for the code of each measure of a study, by name."""
    return {name: measure_version(name) for name in design.params.measures}


def is_complete(entry: Entry | None, design: StudyDesign, versions: Mapping[str, str]) -> bool:
    """Return whether nothing is left to do for a run that came to a good end."""
    kept = entry is not None and (entry.kept or design.params.keep == "measures")
    collected = entry is not None and set(design.params.collect) <= set(entry.facts.get("collected", ()))
    return entry is not None and entry.done and kept and collected and entry.has(versions)


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
    """Run what is missing, and return how far the study is.

    Args:
        design: The study.
        folder: Where it is kept; it is there, and held (`StudyFolder.locked`).
        engine: Who runs the runs.
        shard: Which of them are to be run here.
        runs: Those to look at; None: all.
        retry: Whether what failed before is tried again.
        on_run: Called with the progress at first and after each run.

    Raises:
        KeyboardInterrupt: When the user ends it; what was done is written down.
    """
    versions, progress = versions_of(design), Progress(0)
    todo = []
    with folder.journals() as known:
        for place, planned in enumerate(design.runs_by_seed() if runs is None else runs):
            if not shard.has(place):
                continue
            progress.planned += 1
            entry = known.entry(planned.run)
            progress.calls += int(entry.facts.get("calls", 0)) if entry else 0
            if is_complete(entry, design, versions):
                progress.done += 1
            elif entry is not None and not entry.done and not retry:
                progress.failed += 1
            else:
                todo.append((planned, entry))
    on_run(progress)
    if todo:
        _run_all(_distinct(todo, progress), design, folder, engine, shard, progress, on_run)
    return progress


type _Todo = tuple[PlannedRun, Entry | None]


def _distinct(todo: list[_Todo], progress: Progress) -> list[_Todo]:
    """Return the runs to do, each once: conditions that are the same share their runs."""
    found: dict[str, _Todo] = {}
    for planned, entry in todo:
        found.setdefault(planned.run, (planned, entry))
    progress.planned -= len(todo) - len(found)
    return list(found.values())


def _run_all(
    todo: list[_Todo],
    design: StudyDesign,
    folder: StudyFolder,
    engine: Engine,
    shard: Shard,
    progress: Progress,
    on_run: Callable[[Progress], object],
) -> None:
    versions, journal = versions_of(design), Journal(folder.journal(shard))
    try:
        workers = engine.workers or default_workers(design.base)
        with engine.open(workers) as pool:
            for planned, job, outcome in _outcomes(todo, design, folder, pool, workers, engine.attempts, progress):
                facts = outcome.facts | {"collected": list(job.collect)}
                journal.put(
                    type(outcome)(**vars(outcome) | {"facts": facts}),
                    versions,
                    planned.condition.identity,
                    f"{told_of(planned.condition, design)}, seed {planned.seed}",
                    kept=job.keep == "tables" and (folder.runs / job.run).is_dir(),
                )
                progress.calls += int(outcome.facts.get("calls", 0))
                if outcome.ending == "done":
                    progress.done += 1
                else:
                    progress.failed += 1
                on_run(progress)
    finally:
        journal.close()


def default_workers(config: Config) -> int:
    """Return how many runs go on at the same time: together their threads are as many as there are cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // config.threads)


def _outcomes(
    todo: list[_Todo],
    design: StudyDesign,
    folder: StudyFolder,
    pool: Executor,
    workers: int,
    attempts: int,
    progress: Progress,
) -> Iterator[tuple[PlannedRun, Job, Any]]:
    """Yield what becomes of runs as they end; a few more than there are workers are under way."""
    waiting: dict[Future[Any], tuple[PlannedRun, Job, int]] = {}
    rest = iter(todo)
    most = design.params.limits.calls
    try:
        while True:
            full = most is not None and progress.calls >= most
            room = workers + (_WAITING if most is None else 0) - len(waiting)
            for planned, entry in islice(rest, 0 if full else max(0, room)):
                job = _job(planned, entry, design, folder)
                waiting[pool.submit(run_supervised, job)] = planned, job, 1
            if not waiting:
                progress.held_back = sum(1 for _ in rest)
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                planned, job, tried = waiting.pop(future)
                outcome = outcome_of(future, job)
                if outcome.ending != "done" and tried < attempts:
                    waiting[pool.submit(run_supervised, job)] = planned, job, tried + 1
                else:
                    yield planned, job, outcome
    finally:
        for future in waiting:
            future.cancel()


def _job(planned: PlannedRun, entry: Entry | None, design: StudyDesign, folder: StudyFolder) -> Job:
    params = design.params
    config = _with_ledger(_with_absolute_paths(design.config_of(planned)), design, folder)
    keep: Literal["tables", "measures"] = params.keep
    if entry is not None and entry.done and entry.kept:
        keep = "measures"  # its folder stands: only measures or rows are taken again
    return Job(
        run=planned.run,
        config=config.model_dump(mode="json"),
        measures=tuple(params.measures),
        keep=keep,
        collect=tuple(params.collect),
        folder=str(folder.runs.absolute()),
        path=tuple(dict.fromkeys(str(Path(place or ".").absolute()) for place in (*sys.path, "."))),
        limits=Limits(params.limits.seconds, params.limits.memory_gb),
    )


def _with_absolute_paths(config: Config) -> Config:
    """Return a configuration that names the same files in whatever folder the run is made."""
    for group, key in (*INPUT_FILES, ("reasoner", "distilled"), ("reasoner", "ledger_path")):
        path = getattr(getattr(config, group), key)
        if path is not None:
            own = getattr(config, group).model_copy(update={key: str(Path(path).absolute())})
            config = config.model_copy(update={group: own})
    return config


def _with_ledger(config: Config, design: StudyDesign, folder: StudyFolder) -> Config:
    """Return a configuration whose answers of an LLM are shared by all runs of the study, if that is wanted."""
    asked = config.reasoner
    if not design.params.cache or asked.kind in ("rule", "distilled") or asked.ledger_path is not None:
        return config
    update = {"ledger": "cache", "ledger_path": str(folder.ledger.absolute())}
    return config.model_copy(update={"reasoner": asked.model_copy(update=update)})
