"""Going on with a stopped run: from its last checkpoint, or from its beginning with the answers that it has.

Its tables are byte for byte those of a run that was never stopped, and nothing is asked twice.
"""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.errors import ConfigError, DataError, NotedWarning, PrismWarning, printable, shortened
from prism_mesa.reasoner import AnyReasoner
from prism_mesa.runs.checkpoints.file import RefusedError, last_round
from prism_mesa.runs.checkpoints.keeping import forget
from prism_mesa.runs.config import Config
from prism_mesa.runs.economy import NationsRun
from prism_mesa.runs.lifecycle import RunResult, resume_to_completion
from prism_mesa.runs.manifest import OBJECTS, RecordedRun, read_run
from prism_mesa.runs.process.lock import RunLock, lock_run
from prism_mesa.runs.process.machine import package_versions, provenance, wall_clock
from prism_mesa.runs.recorded import config_to_go_on, economy_to_go_on, recorded_readings
from prism_mesa.runs.records.reopened import ReopenedFolder, check_no_links
from prism_mesa.runs.restoring import (
    Make,
    RestorePoint,
    checked_facts,
    closed_if_refused,
    ledger_name,
    load_restore_point,
)
from prism_mesa.runs.rounds import RunTimer, as_before
from prism_mesa.runs.run_files import MANIFEST, folder_of, read_manifest
from prism_mesa.runs.social import PlatformRun, start_run
from prism_mesa.runs.trust import require_own
from prism_mesa.social.model import SocialModel
from prism_mesa.social.world.build import KeptWorld
from prism_mesa.statechart import Statechart


@dataclass(frozen=True)
class ResumeOptions:
    """What `api.runs.resume` is given, except the folder."""

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
        """The objects of `OBJECTS` by name."""
        return {name: getattr(self, name) for name in OBJECTS}


def warn_without_effect(run: RecordedRun, options: Sequence[str]) -> None:
    """Warn of options that are given to resume a run that is over."""
    if options:
        note = f"{run.folder}: has come to its end, and is left as it is: {', '.join(options)}: no effect"
        warnings.warn(shortened(note), PrismWarning, stacklevel=3)


def resume(run_dir: str | os.PathLike[str], options: ResumeOptions | None = None) -> RunResult:
    """Go on with a run in its folder, without pictures; see `api.runs.resume`. One that is over is left as it is."""
    run = read_run(folder_of(run_dir))
    options = options or ResumeOptions()
    if run.is_left(from_start=options.from_start):
        return _as_it_is(run)
    require_own(run.folder, run.whose, "resuming", trust=options.trust)
    with lock_run(run.folder) as lock:
        now = read_run(run.folder)  # another process may have ended it meanwhile
        if now.is_left(from_start=options.from_start):
            return _as_it_is(now)
        check_no_links(run.folder)
        return (_resume_nations if run.manifest.of_nations else _resume_platform)(run, options, lock)


def _as_it_is(run: RecordedRun) -> RunResult:
    return RunResult(run.folder, run.manifest.status, read_manifest(run.folder).get("summary", {}))


def _resume_platform(run: RecordedRun, options: ResumeOptions, lock: RunLock) -> RunResult:
    check_objects(run, options.objects, {"llm": options.llm})
    config = config_to_go_on(run, overrides=options.overrides)

    def make(world: KeptWorld | None) -> PlatformRun:
        with as_before():
            work = start_run(config, **options.objects, on_round=options.on_round, world=world)
        if options.reasoner is None:
            work.model.reasoner.note = _recorded_note(run)
        return work

    work, point = load_restore_point(run, make, from_start=options.from_start, trust=options.trust)
    return _go_on(run, work, point, lock)


def resume_in(folder: Path, config: Config, make: Callable[[KeptWorld | None], PlatformRun]) -> RunResult | None:
    """Continue a stopped run in a folder after a checkpoint, and return the result.

    None if no run of this configuration can go on there. Raises DataError if another process writes to it.
    """
    if last_round(folder) is None or not (folder / MANIFEST).is_file():
        return None
    with lock_run(folder) as lock:
        try:
            run = read_run(folder)
            if run.is_over or run.whose != "own" or run.manifest.config != config.model_dump(mode="json"):
                return None
            check_no_links(folder)
            work, point = _load_or_start_again(run, make)
        except DataError as error:
            note = f"{error}: the run starts again in another folder, and asks again"
            warnings.warn(shortened(note), PrismWarning, stacklevel=2)
            return None
        return _go_on(run, work, point, lock)


def _load_or_start_again(run: RecordedRun, make: Make) -> tuple[PlatformRun, RestorePoint]:
    """Call `load_restore_point`; if a checkpoint is refused, start the run again."""
    try:
        return load_restore_point(run, make)
    except RefusedError as error:
        note = f"{error.why}: the run starts again, with the answers that are there"
        warnings.warn(shortened(note), PrismWarning, stacklevel=3)
        return load_restore_point(run, make, from_start=True)


def _go_on(run: RecordedRun, work: PlatformRun, point: RestorePoint, lock: RunLock) -> RunResult:
    with closed_if_refused(work):
        manifest = _reopen(run, point, lock)
    return work.go_on(point.folder, manifest, point.name, point.rounds)


def _resume_nations(run: RecordedRun, options: ResumeOptions, lock: RunLock) -> RunResult:
    had_llm = run.manifest.llm is not None and run.manifest.llm.kind == "python"
    check_objects(run, {"llm": options.llm}, options.objects, had=[had_llm])
    config = economy_to_go_on(run, overrides=options.overrides)
    with as_before():
        model = EconomyModel(config, llm=options.llm)
    model.readings = recorded_readings(run.folder)
    if options.llm is None:
        model.note = _recorded_note(run)
    work = NationsRun(model, config, RunTimer(), options.on_round)
    with closed_if_refused(work):
        folder = ReopenedFolder(run.folder, ECONOMY_TABLES, None)
        point = RestorePoint(checked_facts(run, work), folder, ledger_name(run.folder), None)
        manifest = _reopen(run, point, lock)
    return resume_to_completion(work, folder, manifest, point.name, 0)


def check_objects(
    run: RecordedRun,
    objects: Mapping[str, object],
    others: Mapping[str, object] | None = None,
    *,
    had: Sequence[bool] | None = None,
    does: tuple[str, str] = ("go on with", "resume({}, "),
) -> None:
    """Check that a run gets again the objects that it was given in Python, and none of the `others`.

    `had`: whether it was given each of `objects`; by default as its manifest says. `does`: what is done with the run,
    and the call that does it. Raises ConfigError.
    """
    before = dict(zip(objects, had or run.manifest.made_in_python or [False] * len(objects), strict=False))
    missing = [name for name in objects if before.get(name) and objects[name] is None]
    if missing:
        call = does[1].format(repr(str(run.folder))) + ", ".join(f"{name}=..." for name in objects if before.get(name))
        raise ConfigError(
            f"{run.folder}: was given {' and '.join(missing)} in Python, which its folder does not hold: {does[0]} it "
            f"from there, with {call})"
        )
    for name, value in {**objects, **(others or {})}.items():
        if value is not None and not before.get(name):
            raise ConfigError(f"{run.folder}: {name}: the run was given none; it goes on with what it was given")


def _recorded_note(run: RecordedRun) -> str:
    """Return why another reasoner decides than the user wanted, from the manifest."""
    return printable(shortened(run.manifest.note))


def _reopen(run: RecordedRun, point: RestorePoint, lock: RunLock) -> dict[str, Any]:
    """Change a folder back to a restore point, and return its manifest; only this function changes the folder."""
    manifest, facts = read_manifest(run.folder), point.facts
    notes = manifest.get("notes", [])
    added = [note for note in facts["notes"] if note not in notes]  # of a branch
    if idle := [note for note in added if note.startswith("interventions: ")]:
        warnings.warn("; ".join(idle), NotedWarning, stacklevel=5)
    config = manifest["config"]
    if point.point is None:  # this version makes all of it
        first: dict[str, Any] = {key: manifest[key] for key in ("started", "working_directory") if key in manifest}
        manifest = {**manifest, **provenance(), **facts, **first}
    else:
        _warn_versions(run.folder, point.point)
        manifest["notes"] = [*notes, *added]
        if isinstance(facts["llm"], Mapping) and "llms" in facts["llm"]:  # a branch may add LLMs
            manifest |= {key: facts[key] for key in ("llm", "writer", "decided_by")}
    ended = ("error", "of_own_code", "ended", "summary")
    manifest = {key: value for key, value in manifest.items() if key not in ended}
    resumed = [*manifest.get("resumed", ()), {"at": wall_clock(), "round": point.rounds}]
    manifest |= {"status": "running", "config": config, "resumed": resumed}
    forget(run.folder, after=-1 if point.point is None else point.rounds)
    point.folder.remove_later()
    point.folder.lock = lock
    lock.note_round(point.rounds)
    return manifest


def _warn_versions(folder: Path, point: Mapping[str, Any]) -> None:
    """Warn if packages have other versions than at a checkpoint."""
    before, now = point["packages"], package_versions()
    if other := [name for name in now if before.get(name) != now[name]]:
        versions = ", ".join(f"{name} {now[name]} instead of {before.get(name)!s:.40}" for name in other)
        text = f"{folder}: goes on with {versions}: its tables may not be those of a run that was never stopped"
        warnings.warn(shortened(text), PrismWarning, stacklevel=6)
