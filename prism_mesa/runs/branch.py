"""Counterfactuals: the same run up to a round, then other settings.

The folder of a branch begins as a copy of the run up to that round, and is then resumed like a stopped run. A branch
uses the run's answers and random numbers, so no question is asked twice.
"""

import os
import shutil
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from prism_mesa.errors import BadInputError, ConfigError, PrismError, PrismWarning, shorten
from prism_mesa.llm import Ledger
from prism_mesa.params import require_overrides, require_whole_number, short_repr, validate_params
from prism_mesa.reasoner.distilled import MODEL_FILE
from prism_mesa.runs.checkpoints.file import (
    FOLDER,
    WORLD,
    DamagedError,
    RefusedError,
    checkpoint_files,
    checkpoint_round,
    read_checkpoint,
    write_checkpoint,
)
from prism_mesa.runs.config import Config, parse_override
from prism_mesa.runs.identity import code_version
from prism_mesa.runs.lifecycle import RunResult, name_in_ledgers
from prism_mesa.runs.manifest import RecordedRun, read_run
from prism_mesa.runs.process.lock import require_free
from prism_mesa.runs.process.machine import wall_clock
from prism_mesa.runs.recorded import as_config, manifest_values, require_ledger
from prism_mesa.runs.records.folder import new_folder
from prism_mesa.runs.records.reopened import ReopenedFolder, check_no_links
from prism_mesa.runs.resume import ResumeOptions, check_objects, resume
from prism_mesa.runs.run_files import LEDGER, MANIFEST, read_manifest, run_folder, table_path
from prism_mesa.runs.social import platform_scope
from prism_mesa.runs.trust import require_own_run
from prism_mesa.social.params import InterventionParams
from prism_mesa.social.tables import SOCIAL_TABLES

type Overrides = Mapping[str, Any] | Sequence[str]


def branch(
    run_dir: str | os.PathLike[str],
    at: int,
    overrides: Overrides = (),
    *,
    out: str | Path | None = None,
    options: ResumeOptions | None = None,
) -> RunResult:
    """Run a counterfactual of a run; for arguments and errors see `api.runs.branch`.

    A branch starts from an earlier checkpoint of the run if there is one; otherwise it repeats the run up to `at`.

    Returns:
        The branch's result. Its configuration has the new settings in `interventions`; `branched_from` in its
        manifest names the run and the round.
    """
    run, options = read_run(run_folder(run_dir)), options or ResumeOptions()
    require_own_run(run.folder, run.origin, "branching", trust=options.trust)
    config = _branch_config(run, require_whole_number(at, "at", minimum=0), overrides)
    check_objects(run, options.objects, verb_and_call=("branch", "branch({}, ROUND, "))
    require_free(run.folder)
    check_no_links(run.folder)
    if run.manifest.llm is not None:
        require_ledger(run.folder)
    _warn_other_version(run)
    parent = run.folder.parent if run.folder.name not in ("", "..") else run.folder.resolve().parent
    folder = new_folder(parent if out is None else Path(out), config.name)
    with _remove_if_refused(folder, run.folder):
        _copy_records(run.folder, folder, at, _name_in_ledgers(run, folder, config), trust=options.trust)
        _write_manifest(run, folder, config, at)
        return resume(folder, options)


def _branch_config(run: RecordedRun, at: int, overrides: Overrides) -> Config:
    """Return the configuration of a branch; raises BadInputError if the run cannot be branched at that round."""
    if run.manifest.is_economy:
        raise ConfigError(f"{run.folder} is a run of nations; only runs of a platform can be branched")
    require_overrides(overrides)
    values = manifest_values(run.folder, run.manifest)
    config = as_config(Config, values, run.folder)
    if at >= config.rounds:
        raise ConfigError(f"{run.folder} has no round {at}: branch at a round from 0 to {config.rounds - 1}")
    if not overrides:
        return config
    texts = [overrides] if isinstance(overrides, str) else overrides
    pairs = texts.items() if isinstance(texts, Mapping) else map(parse_override, texts)
    settings = dict(pairs)
    entries = settings.pop("interventions", [])
    if not isinstance(entries, list | tuple) or not all(isinstance(entry, Mapping) for entry in entries):
        raise ConfigError(f"branch: interventions: must be a list of mappings, not {short_repr(entries)}")
    new = [validate_params(InterventionParams, {"at": at, **entry}, "branch: interventions") for entry in entries]
    if early := [act.at for act in new if act.at < at]:
        raise ConfigError(f"branch: interventions: at={early[0]} is before the branch (round {at})")
    new += [validate_params(InterventionParams, {"at": at, "set": settings}, "branch")] if settings else []
    intervention_values = [intervention.model_dump() for intervention in (*config.interventions, *new)]
    return validate_params(Config, {**values, "interventions": intervention_values}, "branch")


def _warn_other_version(run: RecordedRun) -> None:
    """Warn if another version made the run, because this version then repeats the rounds before the branch."""
    if run.manifest.code != code_version():
        note = (
            f"{run.folder}: another version of PRISM made it: the rounds before the branch are repeated with this "
            "version, and may differ from those of the run (compare with a branch without settings)"
        )
        warnings.warn(shorten(note), PrismWarning, stacklevel=3)


def _name_in_ledgers(run: RecordedRun, folder: Path, config: Config) -> str:
    """Return the branch's name in ledgers; with the run's name, the branch would replace the run in shared ledgers."""
    llm, distilled = run.manifest.llm, run.manifest.distilled
    keys = {} if llm is None else {"answer": llm.answer, "persona": llm.persona}
    return name_in_ledgers(platform_scope(config, keys, None if distilled is None else distilled.digest), folder.name)


def _copy_records(run: Path, folder: Path, at: int, name: str, *, trust: bool) -> None:
    if (run / LEDGER).is_file():
        with Ledger(run / LEDGER, read_only=True) as ledger:
            ledger.copy_to(folder / LEDGER)
        with Ledger(folder / LEDGER) as ledger:
            ledger.rename(next(iter(ledger.runs()), ""), name)
    if (run / MODEL_FILE).is_file():
        shutil.copyfile(run / MODEL_FILE, folder / MODEL_FILE)
    checkpoints = [file for file in checkpoint_files(run) if checkpoint_round(file) <= at]
    if not checkpoints:
        return
    (folder / FOLDER).mkdir()
    for file in checkpoints:
        _copy_checkpoint(file, folder / FOLDER / file.name, name, trust=trust)
    if (run / FOLDER / WORLD).is_file():
        shutil.copyfile(run / FOLDER / WORLD, folder / FOLDER / WORLD)
    for table in SOCIAL_TABLES:
        if table_path(run, table).is_dir():
            shutil.copytree(table_path(run, table), table_path(folder, table), copy_function=shutil.copyfile)


def _copy_checkpoint(file: Path, target: Path, name: str, *, trust: bool) -> None:
    """Copy a checkpoint under the branch's name in ledgers; `resume` skips a damaged checkpoint."""
    try:
        data = read_checkpoint(file, trust=trust)
        write_checkpoint(target, {**data, "ledger": {**data["ledger"], "run": name}})
    except DamagedError:
        shutil.copyfile(file, target)


def _write_manifest(run: RecordedRun, folder: Path, config: Config, at: int) -> None:
    end_keys = ("error", "ended", "summary", "resumed", "branched_from")
    manifest = {key: value for key, value in read_manifest(run.folder).items() if key not in end_keys}
    manifest |= {"status": "interrupted", "started": wall_clock(), "config": config.model_dump(mode="json")}
    manifest["branched_from"] = {"run": run.folder.resolve().name, "round": at, "code": run.manifest.code}
    ReopenedFolder(folder, SOCIAL_TABLES, None).write_manifest(manifest)


@contextmanager
def _remove_if_refused(folder: Path, run: Path) -> Iterator[None]:
    """Remove the folder of a branch that cannot begin, and name the run in the error."""
    try:
        yield
    except (BadInputError, OSError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, PrismError):
            resume_hint = " (first resume the run with 'prism resume', then branch it)"
            advice = resume_hint if isinstance(error, RefusedError) else ""
            raise type(error)(str(error).replace(str(folder), str(run)) + advice) from error
        raise BadInputError(f"{run} cannot be branched: {error}") from error
    except BaseException:
        if not (folder / MANIFEST).is_file():  # interrupted during the copy
            shutil.rmtree(folder, ignore_errors=True)
        raise
