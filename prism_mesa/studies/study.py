"""Run or plan a study, and return its status."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import Final, Literal

import numpy as np
import pandas as pd

from prism_mesa.errors import format_count
from prism_mesa.studies.collect import FACTS, collect, run_table
from prism_mesa.studies.design.study_design import Condition, StudyDesign, run_text
from prism_mesa.studies.driver import Engine, Progress, default_workers, is_complete, measure_versions, run_missing
from prism_mesa.studies.folder import WHOLE, Shard, StudyFolder, replacing, write_study_files
from prism_mesa.studies.journal import Entry
from prism_mesa.studies.result import StudyResult
from prism_mesa.studies.statistics.analysis import analyse
from prism_mesa.studies.statistics.comparisons import expected_width

PILOT_SEEDS: Final = 2
_PILOT_CONDITIONS: Final = 8


@dataclass(frozen=True)
class StudyStatus:
    """The progress of a study.

    Attributes:
        outdated: Number of completed runs that lack a measure, a table or the folder.
        failures: Name, condition with seed, and reason of each failed run.
        stale: Reason -> names of runs in the folder that no longer belong to this study.
        skipped: Number of runs in optional arms whose LLM was missing; `why_skipped` has the reasons by arm.
    """

    planned: int
    done: int
    failed: int
    missing: int
    outdated: int
    failures: tuple[tuple[str, str, str], ...]
    stale: Mapping[str, list[str]]
    skipped: int = 0
    why_skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> Literal["done", "failed", "incomplete"]:
        """`incomplete` if runs are missing or outdated, or all are skipped; else `failed` if any failed, or `done`."""
        is_unfinished = self.missing or self.outdated or self.skipped == self.planned
        return "incomplete" if is_unfinished else "failed" if self.failed else "done"

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on skipped arms, stale runs and outdated runs."""
        command = "prism study run repeats"
        notes = [
            f"arm {arm}: skipped, because its LLM is missing ({reason}); {command} it when the LLM is there"
            for arm, reason in self.why_skipped.items()
        ]
        notes += [f"stale: {format_count(len(runs), 'run')} ({cause}): not used" for cause, runs in self.stale.items()]
        if self.outdated:
            fault = "without a measure, a table or a folder that is asked for, or with measures by other code"
            notes.append(f"{format_count(self.outdated, 'finished run')} {fault}: {command} them")
        return tuple(notes)


@dataclass(frozen=True)
class StudyPlan:
    """An estimate of a study's cost, from a pilot.

    Attributes:
        runs: Number of runs; `done` is the number of finished runs, including the pilot.
        conditions: Number of conditions (arms x points).
        seeds: Number of seeds of each condition.
        pilot: Number of runs of the pilot.
        cpu_hours: CPU hours of all runs; None without a finished run.
        cpu_hours_left: CPU hours of the runs that are not finished.
        wall_hours: Remaining hours of real time with `workers` simultaneous runs.
        calls: LLM calls of all runs; None without a finished run.
        widths: The result of `comparisons.expected_width`.
    """

    runs: int
    done: int
    conditions: int
    seeds: int
    pilot: int
    workers: int
    cpu_hours: float | None
    cpu_hours_left: float | None
    wall_hours: float | None
    calls: float | None
    widths: pd.DataFrame
    notes: tuple[str, ...]


def study_status(design: StudyDesign, folder: StudyFolder) -> StudyStatus:
    """Return the status of a study, without running or writing anything."""
    versions, counts, failures, planned_names = measure_versions(design), Counter[str](), [], set()
    stale: dict[str, list[str]] = {}
    why_skipped: dict[str, str] = {}
    with folder.journals() as journals:
        for planned in design.runs():
            planned_names.add(planned.run)
            entry = journals.entry(planned.run)
            counts["missing" if entry is None else entry.status] += 1
            if entry is None:
                continue
            if entry.done:
                counts["outdated"] += not is_complete(entry, design, versions)
            elif entry.status == "skipped":
                why_skipped[planned.condition.arm] = entry.reason
            else:
                failures.append((entry.run, run_text(planned, design), f"{entry.ending}: {entry.reason}"))
        for entry in journals.entries():
            if entry.run not in planned_names:
                stale.setdefault(_stale_reason(entry, design), []).append(entry.run)
    done, failed, missing = counts["done"], counts["failed"], counts["missing"]
    progress = design.n_runs, done, failed, missing, counts["outdated"]
    return StudyStatus(*progress, tuple(failures), stale, counts["skipped"], why_skipped)


def _stale_reason(entry: Entry, design: StudyDesign) -> str:
    same_config = [c.identity for c in design.conditions if c.identity.config == entry.identity.config]
    if entry.identity in same_config:
        return "its seed is not in the study"
    if any(identity.data == entry.identity.data for identity in same_config):
        return "the code has changed"
    return "an input file has changed" if same_config else "its condition is not in the study"


def run_study(
    design: StudyDesign,
    folder: StudyFolder,
    engine: Engine,
    *,
    text: str = "",
    shard: Shard = WHOLE,
    retry: bool = True,
    on_run: Callable[[Progress], object] = lambda progress: None,
) -> StudyResult:
    """Run the missing runs of a study, and return its result; `text` is the content of the study file.

    After a KeyboardInterrupt, the same call continues with the missing runs.
    """
    with folder.locked(shard):
        write_study_files(design, folder, text)
        progress = run_missing(design, folder, engine, shard=shard, retry=retry, on_run=on_run)
        notes = []
        if progress.held_back:
            calls = f"{progress.calls:,} LLM calls of at most {design.params.limits.calls:,}"
            notes.append(f"limits.calls: {calls}: {format_count(progress.held_back, 'run')} did not start")
        return collect_result(design, folder, notes=tuple(notes))


def collect_result(design: StudyDesign, folder: StudyFolder, *, notes: tuple[str, ...] = ()) -> StudyResult:
    """Collect the runs in the folder, and return the result, without running anything."""
    notes = (*notes, *collect(design, folder))
    table, status = run_table(design, folder), study_status(design, folder)
    analysis = analyse(table, design.params.expect)
    with replacing(folder.table("sensitivity")) as new:
        analysis.sensitivity.to_parquet(new, index=False)
    return StudyResult(
        study_dir=folder.path,
        name=design.name,
        question=design.params.question,
        status=status.status,
        values=design.params.model_dump(mode="json", exclude_unset=True),
        base=design.base,
        table=table,
        facts=pd.read_parquet(folder.table(FACTS)),
        analysis=analysis,
        notes=(*design.notes, *status.notes, *notes),
        **({"file": design.where} if Path(design.where).suffix else {}),
    )


def plan_study(
    design: StudyDesign,
    folder: StudyFolder,
    engine: Engine,
    *,
    text: str = "",
    on_run: Callable[[Progress], object] = lambda progress: None,
) -> StudyPlan:
    """Run a pilot, the first two seeds of some conditions, as part of the study, and estimate the whole study."""
    conditions = _pilot_conditions(design)
    pilot = [design.planned_run(condition, seed) for seed in design.seeds[:PILOT_SEEDS] for condition in conditions]
    with folder.locked(WHOLE):
        write_study_files(design, folder, text)
        skipped = [planned for planned in design.runs() if planned.condition.number in design.skipped]
        run_missing(design, folder, engine, runs=[*pilot, *skipped], on_run=on_run)
        notes = collect(design, folder)
    facts = pd.read_parquet(folder.table(FACTS))
    facts = facts[facts["ending"] == "done"]
    status, workers = study_status(design, folder), engine.workers or default_workers(design.base)
    n_runs = design.n_runs - status.skipped
    cpu = float(facts["cpu_s"].mean()) / 3600 if len(facts) else None
    cpu_left = None if cpu is None else cpu * (status.missing + status.failed)
    return StudyPlan(
        runs=design.n_runs,
        done=status.done,
        conditions=len(design.conditions),
        seeds=len(design.seeds),
        pilot=len(pilot),
        workers=workers,
        cpu_hours=None if cpu is None else cpu * n_runs,
        cpu_hours_left=cpu_left,
        wall_hours=None if cpu_left is None else cpu_left / workers,
        calls=float(np.nanmean(facts["calls"].astype(float))) * n_runs if len(facts) else None,
        widths=expected_width(run_table(design, folder), len(design.seeds)),
        notes=(*design.notes, *status.notes, *notes, *(f"{run}: {reason}" for _, run, reason in status.failures)),
    )


def _pilot_conditions(design: StudyDesign) -> list[Condition]:
    """Return the first condition, and conditions that differ from it only in the arm or in one factor.

    If no condition does, as in a sampled design, the other conditions are spread evenly over the design.
    """
    first, *others = [c for c in design.conditions if c.number not in design.skipped] or design.conditions
    conditions_by_difference: dict[int, list[Condition]] = {}
    for other in others:
        pairs = zip((first.arm, *first.point), (other.arm, *other.point), strict=True)
        differences = [index for index, (a, b) in enumerate(pairs) if repr(a) != repr(b)]
        if len(differences) == 1:
            conditions_by_difference.setdefault(differences[0], []).append(other)
    if not conditions_by_difference and others:
        indices = np.linspace(0, len(others) - 1, min(_PILOT_CONDITIONS - 1, len(others))).round().astype(int)
        further_conditions = [others[index] for index in np.unique(indices)]
    else:
        rows = zip_longest(*conditions_by_difference.values())
        further_conditions = [condition for row in rows for condition in row if condition is not None]
    return [first, *further_conditions][:_PILOT_CONDITIONS]
