"""Resume a stopped run from its last checkpoint, or from the start with its recorded answers.

Its tables equal those of an uninterrupted run byte for byte, and no question is asked twice.
"""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.errors import ConfigError, DataError, NotedWarning, PrismWarning, printable, shorten
from prism_mesa.reasoner import AnyReasoner
from prism_mesa.runs.checkpoints.file import RefusedError, last_round
from prism_mesa.runs.checkpoints.keeping import remove_checkpoints
from prism_mesa.runs.config import Config
from prism_mesa.runs.economy import NationsRun
from prism_mesa.runs.lifecycle import RunResult, resume_to_completion
from prism_mesa.runs.manifest import OBJECTS, RecordedRun, read_run
from prism_mesa.runs.process.lock import RunLock, lock_run
from prism_mesa.runs.process.machine import package_versions, provenance, wall_clock
from prism_mesa.runs.recorded import config_to_resume, economy_to_resume
from prism_mesa.runs.records.reopened import ReopenedFolder, check_no_links
from prism_mesa.runs.restoring import (
    RestorePoint,
    RunFactory,
    check_facts,
    close_if_refused,
    ledger_name,
    load_restore_point,
)
from prism_mesa.runs.rounds import RunTimer, without_repeated_warnings
from prism_mesa.runs.run_files import MANIFEST, read_manifest, run_folder
from prism_mesa.runs.social import PlatformRun, start_run
from prism_mesa.runs.trust import require_own_run
from prism_mesa.social.model import SocialModel
from prism_mesa.social.world.build import KeptWorld
from prism_mesa.statechart import Statechart


@dataclass(frozen=True)
class ResumeOptions:
    """The arguments of `api.runs.resume` except the folder."""

    chart: Statechart | None = None
    reasoner: AnyReasoner | None = None
    prepare: Callable[[SocialModel], object] | None = None
    llm: Any = None
    on_round: Callable[[int], None] | None = None
    trust: bool = False
    from_start: bool = False
    overrides: Sequence[str] = ()

    @property
    def objects(self) -> dict[str, Any]:
        """The Python objects by name (see `OBJECTS`)."""
        return {name: getattr(self, name) for name in OBJECTS}


def warn_without_effect(run: RecordedRun, options: Sequence[str]) -> None:
    """Warn that options have no effect on a run that has ended."""
    if options:
        note = f"{run.folder}: has ended and stays unchanged: {', '.join(options)}: no effect"
        warnings.warn(shorten(note), PrismWarning, stacklevel=3)


def resume(run_dir: str | os.PathLike[str], options: ResumeOptions | None = None) -> RunResult:
    """Resume a run without drawing pictures (see `api.runs.resume`); a run that has ended stays unchanged."""
    run = read_run(run_folder(run_dir))
    options = options or ResumeOptions()
    if run.is_finished(from_start=options.from_start):
        return _read_result(run)
    require_own_run(run.folder, run.origin, "resuming", trust=options.trust)
    with lock_run(run.folder) as lock:
        current = read_run(run.folder)  # another process may have ended the run meanwhile
        if current.is_finished(from_start=options.from_start):
            return _read_result(current)
        check_no_links(run.folder)
        return (_resume_nations if run.manifest.is_economy else _resume_platform)(run, options, lock)


def _read_result(run: RecordedRun) -> RunResult:
    return RunResult(run.folder, run.manifest.status, read_manifest(run.folder).get("summary", {}))


def _resume_platform(run: RecordedRun, options: ResumeOptions, lock: RunLock) -> RunResult:
    check_objects(run, options.objects, {"llm": options.llm})
    config = config_to_resume(run, overrides=options.overrides)

    def make(world: KeptWorld | None) -> PlatformRun:
        with without_repeated_warnings():
            task = start_run(config, **options.objects, on_round=options.on_round, world=world)
        if options.reasoner is None:
            task.model.reasoner.note = printable(shorten(run.manifest.note))
        return task

    task, point = load_restore_point(run, make, from_start=options.from_start, trust=options.trust)
    return _continue(run, task, point, lock)


def resume_in(folder: Path, config: Config, make: Callable[[KeptWorld | None], PlatformRun]) -> RunResult | None:
    """Resume a run in a folder from its checkpoint; return None if no run of this configuration can be resumed there.

    Raises DataError if another process writes to the folder.
    """
    if last_round(folder) is None or not (folder / MANIFEST).is_file():
        return None
    with lock_run(folder) as lock:
        try:
            run = read_run(folder)
            if run.is_over or run.origin != "own" or run.manifest.config != config.model_dump(mode="json"):
                return None
            check_no_links(folder)
            task, point = _load_or_start_again(run, make)
        except DataError as error:
            note = f"{error}: the run starts again in another folder, and asks its questions again"
            warnings.warn(shorten(note), PrismWarning, stacklevel=2)
            return None
        return _continue(run, task, point, lock)


def _load_or_start_again(run: RecordedRun, make: RunFactory) -> tuple[PlatformRun, RestorePoint]:
    """Call `load_restore_point`; if a checkpoint is refused, start the run again."""
    try:
        return load_restore_point(run, make)
    except RefusedError as error:
        note = f"{error.why}: the run starts again with its recorded answers"
        warnings.warn(shorten(note), PrismWarning, stacklevel=3)
        return load_restore_point(run, make, from_start=True)


def _continue(run: RecordedRun, task: PlatformRun, point: RestorePoint, lock: RunLock) -> RunResult:
    with close_if_refused(task):
        manifest = _reopen(run, point, lock)
    return task.resume(point.folder, manifest, point.name, point.rounds)


def _resume_nations(run: RecordedRun, options: ResumeOptions, lock: RunLock) -> RunResult:
    had_llm = run.manifest.llm is not None and run.manifest.llm.kind == "python"
    check_objects(run, {"llm": options.llm}, options.objects, had_objects=[had_llm])
    config = economy_to_resume(run, overrides=options.overrides)
    with without_repeated_warnings():
        model = EconomyModel(config, llm=options.llm)
    if options.llm is None:
        model.note = printable(shorten(run.manifest.note))
    task = NationsRun(model, config, RunTimer(), options.on_round)
    with close_if_refused(task):
        folder = ReopenedFolder(run.folder, ECONOMY_TABLES, None)
        point = RestorePoint(check_facts(run, task), folder, ledger_name(run.folder), None)
        manifest = _reopen(run, point, lock)
    return resume_to_completion(task, folder, manifest, point.name, 0)


def check_objects(
    run: RecordedRun,
    objects: Mapping[str, object],
    others: Mapping[str, object] | None = None,
    *,
    had_objects: Sequence[bool] | None = None,
    verb_and_call: tuple[str, str] = ("resume", "resume({}, "),
) -> None:
    """Raise ConfigError unless a run is given the same Python objects as before, and no `others`.

    `had_objects` says which of `objects` the run had, by default according to its manifest. `verb_and_call` is for the
    error.
    """
    before = dict(zip(objects, had_objects or run.manifest.made_in_python or [False] * len(objects), strict=False))
    missing = [name for name in objects if before.get(name) and objects[name] is None]
    if missing:
        arguments = ", ".join(f"{name}=..." for name in objects if before.get(name))
        call = verb_and_call[1].format(repr(str(run.folder))) + arguments
        raise ConfigError(
            f"{run.folder}: was given {' and '.join(missing)} in Python, which its folder does not contain: "
            f"{verb_and_call[0]} it from Python, with {call})"
        )
    for name, value in {**objects, **(others or {})}.items():
        if value is not None and not before.get(name):
            raise ConfigError(f"{run.folder}: {name}: the run had none, so it cannot get one now")


def _reopen(run: RecordedRun, point: RestorePoint, lock: RunLock) -> dict[str, Any]:
    """Reset a folder to a restore point, and return its manifest; no earlier step changes the folder."""
    manifest, facts = read_manifest(run.folder), point.facts
    notes = manifest.get("notes", [])
    new_notes = [note for note in facts["notes"] if note not in notes]  # notes of a branch
    if without_effect := [note for note in new_notes if note.startswith("interventions: ")]:
        warnings.warn("; ".join(without_effect), NotedWarning, stacklevel=5)
    config = manifest["config"]
    if point.checkpoint is None:  # this version computes all rounds
        originals: dict[str, Any] = {key: manifest[key] for key in ("started", "working_directory") if key in manifest}
        manifest = {**manifest, **provenance(), **facts, **originals}
    else:
        _warn_versions(run.folder, point.checkpoint)
        manifest["notes"] = [*notes, *new_notes]
        if isinstance(facts["llm"], Mapping) and "llms" in facts["llm"]:  # a branch may add LLMs
            manifest |= {key: facts[key] for key in ("llm", "writer", "decided_by")}
    end_keys = ("error", "of_own_code", "ended", "summary")
    manifest = {key: value for key, value in manifest.items() if key not in end_keys}
    resumed = [*manifest.get("resumed", ()), {"at": wall_clock(), "round": point.rounds}]
    manifest |= {"status": "running", "config": config, "resumed": resumed}
    remove_checkpoints(run.folder, after=-1 if point.checkpoint is None else point.rounds)
    point.folder.remove_later_tables()
    point.folder.lock = lock
    lock.note_round(point.rounds)
    return manifest


def _warn_versions(folder: Path, point: Mapping[str, Any]) -> None:
    before, current = point["packages"], package_versions()
    if changed := [name for name in current if before.get(name) != current[name]]:
        versions = ", ".join(f"{name} {current[name]} instead of {before.get(name)!s:.40}" for name in changed)
        text = f"{folder}: is resumed with {versions}: its tables may differ from those of an uninterrupted run"
        warnings.warn(shorten(text), PrismWarning, stacklevel=6)
