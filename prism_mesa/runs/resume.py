"""Going on with a run that was stopped: from its last checkpoint, or from its beginning with the answers it was given.

Its tables come out as those of a run that was never stopped, byte for byte, and nobody is asked twice.
"""

import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.errors import (
    ConfigError,
    DataError,
    NotedWarning,
    PrismWarning,
    printable,
    shortened,
)
from prism_mesa.reasoner import AnyReasoner
from prism_mesa.runs.checkpoints.file import RefusedError, last_round
from prism_mesa.runs.checkpoints.keeping import forget
from prism_mesa.runs.config import Config
from prism_mesa.runs.economy import NationsRun
from prism_mesa.runs.lifecycle import RunResult, go_on_to_completion
from prism_mesa.runs.manifest import OBJECTS, RecordedRun, read_run
from prism_mesa.runs.process.lock import RunLock, lock_run
from prism_mesa.runs.process.machine import package_versions, provenance, wall_clock
from prism_mesa.runs.recorded import config_to_go_on, economy_to_go_on, recorded_readings
from prism_mesa.runs.records.reopened import ReopenedFolder, check_no_links
from prism_mesa.runs.rounds import RunTimer, as_before
from prism_mesa.runs.run_files import MANIFEST, folder_of, read_manifest
from prism_mesa.runs.social import PlatformRun, start_run
from prism_mesa.runs.standing import Make, RestorePoint, closed_if_refused, load_restore_point, name_in, same_facts
from prism_mesa.runs.trust import require_own
from prism_mesa.social.model import SocialModel
from prism_mesa.social.world.kept import KeptWorld
from prism_mesa.statechart import Statechart


@dataclass(frozen=True)
class Given:
    """What a run is given that does not stand in its folder; arguments of `resume`."""

    chart: Statechart | None = None
    reasoner: AnyReasoner | None = None
    prepare: Callable[[SocialModel], object] | None = None
    llm: Any = None
    on_round: Callable[[int], None] | None = None
    trust: bool = False
    from_start: bool = False
    overrides: Sequence[str] = ()


def say_without_effect(run: RecordedRun, given: Sequence[str]) -> None:
    """Warn if something is given to go on with a run that is over."""
    if given:
        told = f"{run.folder}: has come to its end, and is left as it is: {', '.join(given)}: no effect"
        warnings.warn(shortened(told), PrismWarning, stacklevel=3)


def resume(
    run_dir: str | os.PathLike[str],
    *,
    chart: Statechart | None = None,
    reasoner: AnyReasoner | None = None,
    prepare: Callable[[SocialModel], object] | None = None,
    llm: Any = None,
    on_round: Callable[[int], None] | None = None,
    trust: bool = False,
    from_start: bool = False,
    overrides: Sequence[str] = (),
) -> RunResult:
    """Go on with a run that was stopped, or died, in its folder; one that has come to its end is left as it is.

    Args:
        run_dir: The run's folder.
        chart: What `run` was given, if it was given one; so `reasoner` and `prepare`, and `llm` of nations.
        reasoner: See `chart`.
        prepare: See `chart`.
        llm: See `chart`.
        on_round: As for `run`.
        trust: Whether a run that was not made here may be resumed: its checkpoints, and the modules, servers and files
            that it names, are used then. From then on it counts as made here.
        from_start: Whether the run is started again, although there is a checkpoint; its answers are used again.
        overrides: ``key=value`` of how an LLM is reached (`recorded.OF_THE_WAY`).

    Warns:
        PrismWarning: If a checkpoint or a part of a table is damaged, and the one before is taken.

    Raises:
        BadInputError: If it cannot be gone on with, or another process writes to it; nothing has been changed then.
        RunError: As for `run`; so KeyboardInterrupt.
    """
    run = read_run(folder_of(run_dir))
    given = Given(chart, reasoner, prepare, llm, on_round, trust, from_start, overrides)
    if run.is_left(from_start=from_start):
        return RunResult(run.folder, run.manifest.status, read_manifest(run.folder).get("summary", {}))
    require_own(run.folder, run.whose, "resuming", trust=trust)
    with lock_run(run.folder) as lock:
        now = read_run(run.folder)  # another process may have brought it to its end before it let go of the lock
        if now.is_left(from_start=from_start):
            return RunResult(now.folder, now.manifest.status, read_manifest(now.folder).get("summary", {}))
        check_no_links(run.folder)
        if run.manifest.of_nations:
            return _nations(run, given, lock)
        return _platform(run, given, lock)


def _platform(run: RecordedRun, given: Given, lock: RunLock) -> RunResult:
    check_given(run, {name: getattr(given, name) for name in OBJECTS}, {"llm": given.llm})
    config = config_to_go_on(run, overrides=given.overrides)
    own: dict[str, Any] = {"chart": given.chart, "reasoner": given.reasoner, "prepare": given.prepare}

    def make(world: KeptWorld | None) -> PlatformRun:
        with as_before():
            work = start_run(config, **own, on_round=given.on_round, world=world)
        if given.reasoner is None:
            work.model.reasoner.note = _note_of(run)
        return work

    work, stood = load_restore_point(run, make, from_start=given.from_start, trust=given.trust)
    return _go_on(run, work, stood, lock)


def go_on_in(folder: Path, config: Config, make: Callable[[KeptWorld | None], PlatformRun]) -> RunResult | None:
    """Return the result of a run that was stopped in a folder after a checkpoint, and goes on.

    Args:
        folder: The folder.
        config: The run's configuration.
        make: Makes the run.

    Returns:
        None if there is none to go on with: nothing has been done then.

    Warns:
        PrismWarning: If the run starts again although there is a checkpoint, and why.

    Raises:
        DataError: If another process writes to it.
        RunBrokenError: As `run`.
    """
    if last_round(folder) is None or not (folder / MANIFEST).is_file():
        return None
    with lock_run(folder) as lock:
        try:
            run = read_run(folder)  # as it is now that nobody else writes to it
            if run.is_over or run.whose != "own" or run.manifest.config != config.model_dump(mode="json"):
                return None
            check_no_links(folder)
            work, stood = _stood_or_starts_again(run, make)
        except DataError as error:
            told = f"{error}: the run starts again in another folder, and asks again"
            warnings.warn(shortened(told), PrismWarning, stacklevel=2)
            return None
        return _go_on(run, work, stood, lock)


def _stood_or_starts_again(run: RecordedRun, make: Make) -> tuple[PlatformRun, RestorePoint]:
    """Return what `load_restore_point` does; where a checkpoint is refused, as the run stood at its beginning.

    Raises:
        DataError: As `load_restore_point`.
    """
    try:
        return load_restore_point(run, make)
    except RefusedError as error:
        told = f"{error.why}: the run starts again, with the answers that are there"
        warnings.warn(shortened(told), PrismWarning, stacklevel=3)
        return load_restore_point(run, make, from_start=True)


def _go_on(run: RecordedRun, work: PlatformRun, stood: RestorePoint, lock: RunLock) -> RunResult:
    with closed_if_refused(work):
        manifest = _reopened(run, stood, lock)
    return work.go_on(stood.folder, manifest, stood.name, stood.rounds)


def _nations(run: RecordedRun, given: Given, lock: RunLock) -> RunResult:
    was = run.manifest.llm is not None and run.manifest.llm.kind == "python"
    check_given(run, {"llm": given.llm}, {name: getattr(given, name) for name in OBJECTS}, was=[was])
    config = economy_to_go_on(run, overrides=given.overrides)
    with as_before():
        model = EconomyModel(config, llm=given.llm)
    model.readings = recorded_readings(run.folder)
    if given.llm is None:
        model.note = _note_of(run)
    work = NationsRun(model, config, RunTimer(), given.on_round)
    with closed_if_refused(work):
        facts = same_facts(run, work)
        folder = ReopenedFolder(run.folder, ECONOMY_TABLES, None)
        stood = RestorePoint(facts, folder, name_in(run.folder), None)
        manifest = _reopened(run, stood, lock)
    return go_on_to_completion(work, folder, manifest, stood.name, 0)


def check_given(
    run: RecordedRun,
    given: Mapping[str, object],
    others: Mapping[str, object] | None = None,
    *,
    was: Sequence[bool] | None = None,
    does: tuple[str, str] = ("go on with", "resume({}, "),
) -> None:
    """Check that a run gets again what it was given in Python, and nothing else.

    Args:
        run: The run.
        given: What it may have been given, and gets now, by name; None: nothing.
        others: What it cannot have been given.
        was: Of `given`, whether the run was given it; by default as its manifest says.
        does: What is done with the run, and the call that does it, up to what is given.

    Raises:
        ConfigError: If not.
    """
    before = dict(zip(given, was or run.manifest.made_in_python or [False] * len(given), strict=False))
    missing = [name for name in given if before.get(name) and given[name] is None]
    if missing:
        call = does[1].format(repr(str(run.folder))) + ", ".join(f"{name}=..." for name in given if before.get(name))
        raise ConfigError(
            f"{run.folder}: was given {' and '.join(missing)} in Python, which its folder does not hold: {does[0]} it "
            f"from there, with {call})"
        )
    held = {**given, **(others or {})}
    if other := [name for name in held if held[name] is not None and not before.get(name)]:
        raise ConfigError(f"{run.folder}: {other[0]}: the run was given none; it goes on with what it was given")


def _note_of(run: RecordedRun) -> str:
    """Return why another one decides than was wished for, as the manifest says: now nothing else is wished for."""
    return printable(shortened(run.manifest.note))


def _reopened(run: RecordedRun, stood: RestorePoint, lock: RunLock) -> dict[str, Any]:
    """Change a folder back to how it stood, and return its manifest.

    Only here the folder is changed.
    """
    manifest, facts = read_manifest(run.folder), stood.facts
    config = manifest["config"]
    said = manifest.get("notes", [])
    added = [note for note in facts["notes"] if note not in said]  # of a branch there are some
    _say_idle(added)
    if stood.point is None:  # all is made by this version, and from what it says
        own: dict[str, Any] = {key: manifest[key] for key in ("started", "working_directory") if key in manifest}
        manifest = {**manifest, **provenance(), **facts, **own}
    else:
        _say_versions(run.folder, stood.point)
        manifest["notes"] = [*said, *added]
        if isinstance(facts["llm"], Mapping) and "llms" in facts["llm"]:  # a branch may add LLMs
            manifest |= {key: facts[key] for key in ("llm", "writer", "decided_by")}
    ended = [key for key in ("error", "of_own_code", "ended", "summary") if key in manifest]
    manifest = {key: value for key, value in manifest.items() if key not in ended}
    resumed = [*manifest.get("resumed", ()), {"at": wall_clock(), "round": stood.rounds}]
    manifest |= {"status": "running", "config": config, "resumed": resumed}
    forget(run.folder, after=-1 if stood.point is None else stood.rounds)
    stood.folder.remove_later()
    stood.folder.lock = lock
    lock.note_round(stood.rounds)
    return manifest


def _say_idle(notes: Sequence[str]) -> None:
    """Warn of settings of a branch that change nothing."""
    idle = [note for note in notes if note.startswith("interventions: ")]
    if idle:
        warnings.warn("; ".join(idle), NotedWarning, stacklevel=6)


def _say_versions(folder: Path, point: Mapping[str, Any]) -> None:
    """Warn if packages are of other versions than they were."""
    before, now = point["packages"], package_versions()
    if other := [name for name in now if before.get(name) != now[name]]:
        told = ", ".join(f"{name} {now[name]} instead of {before.get(name)!s:.40}" for name in other)
        text = f"{folder}: goes on with {told}: its tables may not be those of a run that was never stopped"
        warnings.warn(shortened(text), PrismWarning, stacklevel=6)
