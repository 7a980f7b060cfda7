"""A counterfactual: a run that is as another one up to a round, and goes on from there under other settings.

Its folder begins as a copy of what the other has of the time before, and is gone on with as any run that was stopped:
so its answers and its random numbers are the same, and nobody is asked again what was answered.
"""

import os
import shutil
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prism_mesa.errors import BadInputError, ConfigError, PrismError, PrismWarning, shortened
from prism_mesa.llm import Ledger
from prism_mesa.params import require_overrides, require_whole_number, validated
from prism_mesa.reasoner import AnyReasoner
from prism_mesa.reasoner.distilled import FILE
from prism_mesa.runs.checkpoints.file import (
    FOLDER,
    WORLD,
    DamagedError,
    RefusedError,
    files,
    read_checkpoint,
    rounds_of,
    write_checkpoint,
)
from prism_mesa.runs.config import Config, parse_override
from prism_mesa.runs.identity import code_version
from prism_mesa.runs.lifecycle import RunResult, name_in_ledgers
from prism_mesa.runs.manifest import RecordedRun, read_run
from prism_mesa.runs.process.lock import require_free
from prism_mesa.runs.process.machine import wall_clock
from prism_mesa.runs.recorded import as_config, manifest_values, own_ledger
from prism_mesa.runs.records.aside import aside_files
from prism_mesa.runs.records.folder import new_folder
from prism_mesa.runs.records.reopened import ReopenedFolder, check_no_links
from prism_mesa.runs.resume import check_given, resume
from prism_mesa.runs.run_files import LEDGER, MANIFEST, file_of, folder_of, read_manifest
from prism_mesa.runs.social import platform_scope
from prism_mesa.runs.trust import require_own
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import InterventionParams
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.statechart import Statechart

type Overrides = Mapping[str, Any] | Sequence[str]


def branch(
    run_dir: str | os.PathLike[str],
    at: int,
    overrides: Overrides = (),
    *,
    out: str | Path | None = None,
    chart: Statechart | None = None,
    reasoner: AnyReasoner | None = None,
    prepare: Callable[[SocialModel], object] | None = None,
    on_round: Callable[[int], None] | None = None,
    trust: bool = False,
) -> RunResult:
    """Run a counterfactual of a run: the rounds before `at` are the same, the others go by other settings.

    It goes on from the run's checkpoint, if there is one of before, else it repeats the run up to there; nobody is
    asked again what the run's ledger answers.

    Args:
        run_dir: The run's folder, which is only read.
        at: The first round under the new settings, from 0.
        overrides: What changes: values by dotted key, or texts ``key=value`` (see `InterventionParams` for the keys
            that can). None: an untouched branch, whose tables are those of the run.
        out: Parent folder of the branch; None: that of the run.
        chart: As for `resume`; so `reasoner`, `prepare`, `on_round` and `trust`.
        reasoner: See `chart`.
        prepare: See `chart`.
        on_round: See `chart`.
        trust: See `chart`.

    Returns:
        The branch's result. Its configuration has the new settings among `interventions`; its manifest says of which
        run it is a branch, and from which round on (`branched_from`).

    Raises:
        BadInputError: If there is no such run or round, or a key cannot change; no folder is made.
        RunError: As for `run`; so KeyboardInterrupt.
    """
    run = read_run(folder_of(run_dir))
    require_own(run.folder, run.whose, "branching", trust=trust)
    config = _branched(run, require_whole_number(at, "at", least=0), overrides)
    given = {"chart": chart, "prepare": prepare, "reasoner": reasoner}
    check_given(run, given, does=("branch", "branch({}, ROUND, "))
    require_free(run.folder)
    check_no_links(run.folder)
    if run.manifest.llm is not None:
        own_ledger(run.folder)
    _say_other_version(run)
    folder = new_folder(_beside(run.folder) if out is None else Path(out), config.name)
    with _removed_if_refused(folder, run.folder):
        _copy_before(run.folder, folder, at, _name_of(run, folder, config), trust=trust)
        _write_manifest(run, folder, config, at)
        return resume(folder, chart=chart, reasoner=reasoner, prepare=prepare, on_round=on_round, trust=trust)


def _branched(run: RecordedRun, at: int, overrides: Overrides) -> Config:
    """Return the configuration of a branch.

    Raises:
        BadInputError: If there can be none.
    """
    if run.manifest.of_nations:
        raise ConfigError(f"{run.folder}: is a run of nations: a run of a platform can be branched")
    require_overrides(overrides)
    values = manifest_values(run.folder, run.manifest)
    before = as_config(Config, values, run.folder)
    if at >= before.rounds:
        raise ConfigError(f"{run.folder}: has no round {at} (0 to {before.rounds - 1}) to branch at")
    if not overrides:
        return before
    pairs = overrides.items() if isinstance(overrides, Mapping) else map(parse_override, _texts(overrides))
    own = validated(InterventionParams, {"at": at, "set": dict(pairs)}, "branch")
    earlier = [one for one in before.interventions if one.at <= at]
    held = [*earlier, own, *before.interventions[len(earlier) :]]
    return validated(Config, {**values, "interventions": [one.model_dump() for one in held]}, "branch")


def _beside(run: Path) -> Path:
    """Return the folder in which a run lies, also if it is called `.` or `..`."""
    return run.parent if run.name not in ("", "..") else run.resolve().parent


def _say_other_version(run: RecordedRun) -> None:
    """Warn if other code made a run: this one repeats it where it goes on from no checkpoint."""
    if run.manifest.code != code_version():
        told = (
            f"{run.folder}: another version of PRISM made it: the rounds before the branch are repeated with this "
            "version, and may not be those of the run (a branch without settings is one to compare with)"
        )
        warnings.warn(shortened(told), PrismWarning, stacklevel=3)


def _texts(overrides: Sequence[str]) -> Sequence[str]:
    return [overrides] if isinstance(overrides, str) else overrides


def _name_of(run: RecordedRun, folder: Path, config: Config) -> str:
    """Return what ledgers call the branch: under the run's name it would take the place of the run in shared ones."""
    llm, distilled = run.manifest.llm, run.manifest.distilled
    how = {} if llm is None else {"answer": llm.answer, "persona": llm.persona}
    return name_in_ledgers(platform_scope(config, how, None if distilled is None else distilled.digest), folder.name)


def _copy_before(run: Path, folder: Path, at: int, name: str, *, trust: bool) -> None:
    """Copy what a run has of the time before a round: ledger, checkpoints, and the parts of tables that these need.

    `name` is what ledgers call the branch.
    """
    if (run / LEDGER).is_file():
        with Ledger(run / LEDGER, read_only=True) as ledger:
            ledger.copy_to(folder / LEDGER)
        with Ledger(folder / LEDGER) as ledger:
            ledger.rename(next(iter(ledger.runs()), ""), name)
    if (run / FILE).is_file():
        shutil.copyfile(run / FILE, folder / FILE)
    points = [file for file in files(run) if rounds_of(file) <= at]
    if not points:
        return
    (folder / FOLDER).mkdir()
    for file in points:
        _copy_checkpoint(file, folder / FOLDER / file.name, name, trust=trust)
    for done, rows in aside_files(run):
        if done <= at:
            shutil.copyfile(rows, folder / FOLDER / rows.name)
    if (run / FOLDER / WORLD).is_file():
        shutil.copyfile(run / FOLDER / WORLD, folder / FOLDER / WORLD)
    for table in SOCIAL_TABLES:
        if file_of(run, table).is_dir():
            shutil.copytree(file_of(run, table), file_of(folder, table), copy_function=shutil.copyfile)


def _copy_checkpoint(file: Path, to: Path, name: str, *, trust: bool) -> None:
    """Copy a checkpoint, with another name of the run; a damaged one as it is: whoever goes on passes it over."""
    try:
        data = read_checkpoint(file, trust=trust)
        write_checkpoint(to, {**data, "ledger": {**data["ledger"], "run": name}})
    except DamagedError:
        shutil.copyfile(file, to)


def _write_manifest(run: RecordedRun, folder: Path, config: Config, at: int) -> None:
    """Write a manifest that says: this run was stopped, and goes on."""
    ended = ("error", "ended", "summary", "resumed", "branched_from")
    manifest = {key: value for key, value in read_manifest(run.folder).items() if key not in ended}
    manifest |= {"status": "interrupted", "started": wall_clock(), "config": config.model_dump(mode="json")}
    manifest["branched_from"] = {"run": run.folder.resolve().name, "round": at, "code": run.manifest.code}
    ReopenedFolder(folder, SOCIAL_TABLES, None).write_manifest(manifest)


@contextmanager
def _removed_if_refused(folder: Path, run: Path) -> Iterator[None]:
    """Remove the folder of a branch that did not begin; errors name the run, which is there."""
    try:
        yield
    except (BadInputError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, PrismError):
            is_refused = isinstance(error, RefusedError)
            then = ": that is 'prism resume', after which it can be branched" if is_refused else ""
            raise type(error)(str(error).replace(str(folder), str(run)) + then) from error
        raise BadInputError(f"{run}: cannot be branched: {error}") from error
    except BaseException:
        if not (folder / MANIFEST).is_file():  # interrupted as it was copied: nothing can go on there
            shutil.rmtree(folder, ignore_errors=True)
        raise
