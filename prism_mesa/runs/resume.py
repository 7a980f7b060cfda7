"""Going on with a run that was stopped: from its last checkpoint, or from its beginning with the answers it was given.

Its tables come out as those of a run that was never stopped, byte for byte, and nobody is asked twice.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from prism_mesa.economy.model import EconomyModel
from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.errors import ConfigError, DataError, NotRestorableError, PrismWarning, shortened
from prism_mesa.llm import Ledger
from prism_mesa.reasoner import AnyReasoner
from prism_mesa.runs.checkpoints.keeping import forget
from prism_mesa.runs.checkpoints.kept_world import world_of
from prism_mesa.runs.checkpoints.last_point import last_point
from prism_mesa.runs.checkpoints.names import last_round
from prism_mesa.runs.economy import NationsRun
from prism_mesa.runs.lifecycle import RunResult, go_on_to_completion
from prism_mesa.runs.manifest import RecordedRun, read_run
from prism_mesa.runs.process.lock import RunLock, lock_run
from prism_mesa.runs.process.machine import package_versions, provenance, wall_clock
from prism_mesa.runs.recorded import config_to_go_on, economy_to_go_on
from prism_mesa.runs.records.reopened import ReopenedFolder, check_no_links
from prism_mesa.runs.rounds import RunTimer, as_before
from prism_mesa.runs.run_files import LEDGER, MANIFEST, check_within, folder_of, read_manifest
from prism_mesa.runs.social import PlatformRun, start_run
from prism_mesa.runs.trust import unsigned
from prism_mesa.social.model import SocialModel
from prism_mesa.social.tables import tables_with
from prism_mesa.statechart import Statechart
from prism_mesa.tables import TableSchema

_OBJECTS: Final = ("chart", "prepare", "reasoner")
"""What a run of a platform can be given in Python, in the order of `made_in_python`."""
_SAME: Final = ("kind", "name", "digest", "decoding", "answer", "persona", "prompt_style")
"""What has to be as it was of who is asked."""


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


def is_over(run: RecordedRun) -> bool:
    """Return whether a run has come to its end, so that there is nothing to go on with.

    One that failed has if all its rounds are there and it has no checkpoint, as a run keeps that could not write its
    last tables.
    """
    manifest, status = run.manifest, run.state.status
    all_done = manifest.summary.rounds is not None and manifest.summary.rounds == manifest.planned
    return status == "done" or (status == "failed" and all_done and last_round(run.folder) is None)


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
        trust: Whether a module, a server, and files outside of the folder, that only the folder names may be used.
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
    if _is_left(run, given):
        return RunResult(run.folder, run.manifest.status, read_manifest(run.folder).get("summary", {}))
    with nullcontext() if trust or run.whose == "own" else unsigned(), lock_run(run.folder) as lock:
        now = read_run(run.folder)  # another process may have brought it to its end before it let go of the lock
        if _is_left(now, given):
            return RunResult(now.folder, now.manifest.status, read_manifest(now.folder).get("summary", {}))
        check_no_links(run.folder)
        if run.manifest.of_nations:
            return _nations(run, given, lock)
        return _platform(run, given, lock)


def _is_left(run: RecordedRun, given: Given) -> bool:
    return is_over(run) and not (given.from_start and run.manifest.status == "failed")


def _platform(run: RecordedRun, given: Given, lock: RunLock) -> RunResult:
    _check_given(run, {name: getattr(given, name) is not None for name in _OBJECTS}, ("llm", given.llm))
    point = None if given.from_start else last_point(run.folder)
    config = config_to_go_on(run, overrides=given.overrides, trust=given.trust)
    own: dict[str, Any] = {"chart": given.chart, "reasoner": given.reasoner, "prepare": given.prepare}
    world = None if point is None else world_of(run.folder, config, point)
    with as_before():
        work = start_run(config, **own, on_round=given.on_round, world=world)
    return _go_on(run, work, point, lock)


def go_on_in(folder: Path, work: PlatformRun) -> RunResult | None:
    """Return the result of a run that was stopped in a folder after a checkpoint, and goes on.

    Args:
        folder: The folder.
        work: The same run, just made.

    Returns:
        None if there is none to go on with: nothing has been done then.

    Raises:
        DataError: If another process writes to it, or the checkpoint is none of this run.
        RunBrokenError: As `run`.
    """
    if last_round(folder) is None or not (folder / MANIFEST).is_file():
        return None
    run = read_run(folder)
    if is_over(run) or run.whose != "own" or run.manifest.config != work.config.model_dump(mode="json"):
        return None
    with lock_run(folder) as lock:
        check_no_links(folder)
        point = last_point(folder)
        return None if point is None else _go_on(run, work, point, lock)


def _go_on(run: RecordedRun, work: PlatformRun, point: Mapping[str, Any] | None, lock: RunLock) -> RunResult:
    try:
        facts = work.facts()
        _check_same(run, facts)
        if point is not None:
            with _naming(run.folder, point):
                work.model.restore(point["model"])
                work.watch.restore(point["clocks"])
        tables = tables_with(work.model.platform.attributes.known)
        folder, manifest, name, round_ = _reopened(run, lock, facts, point, tables)
    except BaseException:
        work.model.close()
        raise
    return work.go_on(folder, manifest, name, round_)


def _nations(run: RecordedRun, given: Given, lock: RunLock) -> RunResult:
    was = run.manifest.llm is not None and run.manifest.llm.kind == "python"
    _check_given(run, {"llm": given.llm is not None}, *((name, getattr(given, name)) for name in _OBJECTS), was=[was])
    config = economy_to_go_on(run, overrides=given.overrides, trust=given.trust)
    with as_before():
        work = NationsRun(EconomyModel(config, llm=given.llm), config, RunTimer(), given.on_round)
    try:
        facts = work.facts()
        _check_same(run, facts)
        folder, manifest, name, round_ = _reopened(run, lock, facts, None, ECONOMY_TABLES)
    except BaseException:
        work.model.close()
        raise
    return go_on_to_completion(work, folder, manifest, name, round_)


def _check_given(
    run: RecordedRun, given: Mapping[str, bool], *others: tuple[str, object], was: list[bool] | None = None
) -> None:
    """Check that a run gets again what it was given in Python, and nothing else.

    Raises:
        ConfigError: If not.
    """
    before = dict(zip(given, was or run.manifest.made_in_python or [False] * len(given), strict=False))
    missing = [name for name in given if before.get(name) and not given[name]]
    if missing:
        call = ", ".join(f"{name}=..." for name in given if before.get(name))
        raise ConfigError(
            f"{run.folder}: was given {' and '.join(missing)} in Python, which its folder does not hold: go on with it "
            f"from there, with resume({str(run.folder)!r}, {call})"
        )
    other = [name for name in given if given[name] and not before.get(name)]
    other += [name for name, value in others if value is not None]
    if other:
        raise ConfigError(f"{run.folder}: {other[0]}: the run was given none; it goes on with what it was given")


def _check_same(run: RecordedRun, facts: Mapping[str, Any]) -> None:
    """Check that the same is asked as before, and that input files hold what they held.

    Raises:
        DataError: If not.
    """
    before = read_manifest(run.folder)
    told = {key: (_who(before.get(key)), _who(facts.get(key))) for key in ("llm", "distilled", "writer")}
    for key, (then, now) in told.items():
        if then != now:
            by = f"by {before.get('decided_by', 'nobody')!s:.80}, and would now be by {facts.get('decided_by')!s:.80}"
            raise DataError(f"{run.folder}: was decided {by} ({key} is not what it was): it would take another course")
    if before.get("inputs", facts.get("inputs")) != facts.get("inputs"):
        other = "a file that it reads, or the module of its chart, is not what it was"
        raise DataError(f"{run.folder}: {other}: put it back, or run it anew")


def _who(said: Any) -> Any:
    return {key: said[key] for key in (*_SAME, "temperature") if key in said} if isinstance(said, Mapping) else said


@contextmanager
def _naming(folder: Path, point: Mapping[str, Any]) -> Iterator[None]:
    """Make errors of taking a checkpoint name it, and say what else can be done."""
    try:
        yield
    except (DataError, NotRestorableError) as error:
        raise DataError(
            f"{folder}: the checkpoint of round {point['rounds']}: {error} (start the run again with --from-start, in "
            "Python from_start=True)"
        ) from error


def _reopened(
    run: RecordedRun,
    lock: RunLock,
    facts: Mapping[str, Any],
    point: Mapping[str, Any] | None,
    tables: Mapping[str, TableSchema],
) -> tuple[ReopenedFolder, dict[str, Any], str, int]:
    """Return the folder as it is written further, its manifest, what ledgers call it, and the round it goes on from.

    Only here the folder is changed.
    """
    round_ = 0 if point is None else int(point["rounds"])
    manifest = read_manifest(run.folder)
    if point is None:  # all is made by this version, and from what it says
        name = _name_in(run.folder)
        own: dict[str, Any] = {key: manifest[key] for key in ("started", "working_directory") if key in manifest}
        manifest = {**manifest, **provenance(), **facts, **own}
    else:
        name = str(point["ledger"]["run"])
        _say_versions(run.folder, point)
        notes = manifest["notes"] if isinstance(manifest.get("notes"), list) else []
        manifest["notes"] = [
            *notes,
            *(note for note in facts["notes"] if note not in notes),
        ]  # of a branch there are more
    ended = [key for key in ("error", "ended", "summary") if key in manifest]
    manifest = {key: value for key, value in manifest.items() if key not in ended}
    manifest |= {"status": "running", "config": read_manifest(run.folder)["config"]}
    before = manifest.get("resumed")
    manifest["resumed"] = [*(before if isinstance(before, list) else ()), {"at": wall_clock(), "round": round_}]
    with _naming(run.folder, point or {"rounds": 0}):
        folder = ReopenedFolder(run.folder, tables, None if point is None else point["records"])
    forget(run.folder, after=-1 if point is None else round_)
    folder.remove_later()
    folder.lock = lock
    lock.note_round(round_)
    return folder, manifest, name, round_


def _name_in(folder: Path) -> str:
    """Return what the run's ledger calls it; empty if it has nothing of it."""
    file = folder / LEDGER
    if not file.is_file():
        return ""
    check_within(folder, file)
    with Ledger(file) as ledger:  # to write: it may have been killed before it had tables
        return next(iter(ledger.runs()), "")


def _say_versions(folder: Path, point: Mapping[str, Any]) -> None:
    """Warn if packages are of other versions than they were."""
    before, now = point.get("packages"), package_versions()
    if isinstance(before, Mapping) and (other := [name for name in now if before.get(name) != now[name]]):
        told = ", ".join(f"{name} {now[name]} instead of {before.get(name)!s:.40}" for name in other)
        text = f"{folder}: goes on with {told}: its tables may not be those of a run that was never stopped"
        warnings.warn(shortened(text), PrismWarning, stacklevel=6)
