"""Configurations from the folder of a run: to repeat the run, to ask its agents, or to start a new run.

A folder may come from elsewhere. Unless the user made or trusts the run, these configurations name no module, server or
file outside of the folder (see `trust`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import ConfigError, DataError, did_you_mean
from prism_mesa.llm import LLMParams
from prism_mesa.llm.clients.embedded import SMOLLM2
from prism_mesa.llm.kinds import KINDS
from prism_mesa.params import Params, merge_values, nest_keys, validate_params
from prism_mesa.reasoner.distilled import MODEL_FILE, find_copy
from prism_mesa.runs.config import INPUT_FILES, Config, EconomyConfig, parse_override
from prism_mesa.runs.manifest import OBJECTS, Manifest, RecordedRun, read_run
from prism_mesa.runs.run_files import LEDGER, check_within
from prism_mesa.runs.trust import Resource, is_inside, require_trust
from prism_mesa.social.user_objects import find_user_objects

PACKAGE_PREFIX = "prism_mesa."
CONNECTION_KEYS: Final = ("reasoner.host", "reasoner.timeout_s", "reasoner.max_concurrency")
"""Keys that may change when a run is resumed, because no answer depends on them."""
_NO_LLM: dict[str, Any] = {"host": None, "ledger": "live", "ledger_path": None}
"""The reasoner's keys for a run without an LLM or a shared ledger."""


def recorded_rounds(run_dir: Path) -> int:
    """Return the planned rounds or quarters of a run; raises DataError if the manifest does not say."""
    rounds = read_run(run_dir).manifest.planned_rounds
    if rounds is None:
        raise DataError(f"{run_dir}: manifest.json does not say how many rounds are planned: another version wrote it")
    return rounds


def is_economy(run_dir: Path) -> bool:
    """Return whether this is a run of nations; raises DataError without a run."""
    return read_run(run_dir).manifest.is_economy


def recorded_economy(run_dir: Path) -> EconomyConfig:
    """Return the configuration that repeats the completed quarters of a run of nations from its ledger alone.

    Raises DataError if no quarter was completed.
    """
    run = read_run(run_dir)
    n_quarters, llm = run.manifest.summary.rounds, run.manifest.llm
    if not n_quarters:
        why = f"no quarter is known to be complete (status {run.state})"
        raise DataError(f"{run_dir}: {why}, so there is nothing to repeat{run.advice}")
    values = manifest_values(run_dir, run.manifest)
    as_config(EconomyConfig, values, run_dir)
    reasoner: dict[str, Any] = {**_NO_LLM, "kind": "rule"}
    if llm is not None:
        reasoner = {**_NO_LLM, "ledger": "replay", "ledger_path": str(require_ledger(run_dir))}
        values = merge_values(values, {"economy": {"prompt_style": llm.prompt_style}} if llm.prompt_style else {})
    return as_config(EconomyConfig, merge_values(values, {"rounds": n_quarters, "reasoner": reasoner}), run_dir)


def recorded_config(run_dir: Path, *, trust: bool = False) -> Config:
    """Return the configuration that repeats a platform's run from its ledger, without an LLM.

    Raises DataError if the run used objects from Python, has no ledger, or is not trusted.
    """
    run = read_run(run_dir)
    if run.manifest.is_economy:
        raise DataError(f"{run_dir} is a run of nations, not of a platform")
    _require_llm_facts(run)
    if any(run.manifest.made_in_python):
        names = [name for name, was_passed in zip(OBJECTS, run.manifest.made_in_python, strict=False) if was_passed]
        call = f"run(config, {', '.join(f'{name}=...' for name in names)})"
        raise DataError(f"{run_dir}: was given {' and '.join(names)} in Python: run it again there, with {call}")
    recorded, values = _platform_values(run, llm_writes=run.manifest.llm is not None)
    require_trust(run_dir, run.origin, _modules_and_files(run, recorded), trust=trust)
    return as_config(Config, merge_values(values, {"reasoner": _replayed_reasoner(run)}), run_dir)


def config_for_new_run(run_dir: Path, *, trust: bool = False) -> Config:
    """Return the configuration for a new run of the same platform, in which the LLM gives new answers.

    Raises DataError as `recorded_config` does, and if the LLM was an object from Python.
    """
    run, recorded = read_run(run_dir), recorded_config(run_dir, trust=trust)
    llm, original = run.manifest.llm, as_config(Config, manifest_values(run_dir, run.manifest), run_dir).reasoner
    if llm is None or llm.kind not in KINDS:
        kind = llm.kind if llm else None
        raise DataError(f"{run_dir}: its LLM was given in Python ({kind}), so PRISM cannot ask it again")
    reasoner = {**_NO_LLM, "kind": llm.kind, "host": original.host, "max_fallback_share": original.max_fallback_share}
    if llm.kind == "embedded":  # the recorded name cannot be loaded
        reasoner["model"] = original.model
    config = as_config(Config, merge_values(recorded.model_dump(), {"reasoner": reasoner}), run_dir)
    require_trust(run_dir, run.origin, llm_resources(config.reasoner), trust=trust)
    return config


def config_to_resume(run: RecordedRun, *, overrides: Sequence[str] = ()) -> Config:
    """Return the configuration that continues a stopped run of a platform; raises BadInputError if it cannot continue.

    It names the LLM that the run asked, even if `auto` chose that LLM. `overrides` may set `CONNECTION_KEYS`, because
    the folder contains no passwords.
    """
    _require_llm_facts(run)
    llm_writes = run.manifest.llm is not None or any(run.manifest.made_in_python)
    recorded, values = _platform_values(run, llm_writes=llm_writes)
    reasoner = _resumed_reasoner(run, recorded.reasoner)
    config = as_config(Config, merge_values(values, {"reasoner": reasoner}), run.folder)
    return _with_connection(config, overrides)


def economy_to_resume(run: RecordedRun, *, overrides: Sequence[str] = ()) -> EconomyConfig:
    """Return the configuration that continues a stopped run of nations; see `config_to_resume`."""
    values = manifest_values(run.folder, run.manifest)
    reasoner = _resumed_reasoner(run, as_config(EconomyConfig, values, run.folder).reasoner)
    config = as_config(EconomyConfig, merge_values(values, {"reasoner": reasoner}), run.folder)
    return _with_connection(config, overrides)


def _require_llm_facts(run: RecordedRun) -> None:
    if not run.manifest.has_llm_facts:
        raise DataError(f"{run.folder}: manifest.json does not say which LLM was asked: another version wrote it")


def _platform_values(run: RecordedRun, *, llm_writes: bool) -> tuple[Config, dict[str, Any]]:
    """Return a platform's configuration, and its values with complete paths of input files.

    `llm_writes`: whether an LLM can write the content.
    """
    values = manifest_values(run.folder, run.manifest)
    recorded = as_config(Config, values, run.folder)
    for group, key in INPUT_FILES:
        path = values.get(group, {}).get(key)
        if path is not None:
            values = merge_values(values, {group: {key: str(run.start_dir / path)}})
    if recorded.content == "llm" and not llm_writes:
        values = merge_values(values, {"content": "template"})
    return recorded, values


def _with_connection[C: Params](config: C, overrides: Sequence[str]) -> C:
    changes = dict(map(parse_override, overrides))
    for key in changes:
        if key not in CONNECTION_KEYS:
            hint = f"{', '.join(CONNECTION_KEYS)}.{did_you_mean(key, CONNECTION_KEYS)}"
            raise ConfigError(f"override: {key}: a resumed run can change only {hint}")
    values = merge_values(config.model_dump(), nest_keys(changes))
    return validate_params(type(config), values, "override") if changes else config


def _resumed_reasoner(run: RecordedRun, original: LLMParams) -> dict[str, Any]:
    llm, distilled = run.manifest.llm, run.manifest.distilled
    changes: dict[str, Any] = {}
    if original.ledger_path is not None:
        changes["ledger_path"] = str(run.start_dir / original.ledger_path)
    if distilled is not None:
        changes["distilled"] = _distilled_copy(run.folder, distilled.digest)
    if original.kind == "auto" and llm is None:
        changes["kind"] = "rule" if distilled is None else "distilled"
        changes |= {"llm_share": 1.0} if hasattr(original, "llm_share") else {}
    elif llm is not None and llm.kind in KINDS:
        changes |= {"kind": llm.kind} | ({} if llm.kind == "embedded" or llm.llms else {"model": llm.name})
    return changes


def _replayed_reasoner(run: RecordedRun) -> dict[str, Any]:
    llm, distilled = run.manifest.llm, run.manifest.distilled
    changes: dict[str, Any] = {**_NO_LLM, "distilled": None}
    if llm is None:
        changes |= {"kind": "rule", "llm_share": 1.0}
    else:
        changes |= {"kind": llm.kind, "answer": llm.answer, "persona": llm.persona, "max_fallback_share": 1.0}
        changes |= {"ledger": "replay", "ledger_path": str(require_ledger(run.folder))}
        changes |= {} if llm.llms else {"model": llm.name}
    if distilled is not None:
        changes["distilled"] = _distilled_copy(run.folder, distilled.digest)
        changes |= {} if llm is not None else {"kind": "distilled"}
    return changes


def _distilled_copy(folder: Path, digest: str) -> str:
    if (folder / MODEL_FILE).exists():
        check_within(folder, folder / MODEL_FILE)
    return str(find_copy(folder, digest))


def manifest_values(run_dir: Path, manifest: Manifest) -> dict[str, Any]:
    """Return a manifest's configuration; raises DataError without one."""
    if manifest.config is None:
        raise DataError(f"{run_dir}: manifest.json holds no configuration: another version wrote it")
    return manifest.config


def as_config[C: Params](kind: type[C], values: Mapping[str, Any], run_dir: Path) -> C:
    """Return the values of a manifest as a configuration; raises DataError if this version does not know them."""
    try:
        return validate_params(kind, nest_keys(values), str(run_dir))
    except ConfigError as error:
        raise DataError(f"{error} (another version wrote it)") from None


def require_ledger(run_dir: Path) -> Path:
    """Return the ledger of a run; raises DataError if it is missing, or a link out of the folder."""
    file = run_dir / LEDGER
    if not file.is_file():
        raise DataError(f"{run_dir}: {LEDGER} is missing: the run cannot be repeated without the answers in it")
    check_within(run_dir, file)
    return file


def _modules_and_files(run: RecordedRun, config: Config) -> list[Resource]:
    resources = [
        Resource(key, module, "a module, which would be imported and run")
        for key, module in find_user_objects(config).items()
        if not (key == "statechart.chart" and module.startswith(PACKAGE_PREFIX))  # a chart is not called
    ]
    for group, key in INPUT_FILES:
        path = getattr(getattr(config, group), key)
        if path is not None and not is_inside(run.folder, run.start_dir / path):
            resources.append(Resource(f"{group}.{key}", str(run.start_dir / path), "a file outside of its folder"))
    return resources


def llm_resources(params: LLMParams) -> list[Resource]:
    """Return the servers and model files that are used when an LLM is asked."""
    if params.ledger == "replay" or params.kind in ("rule", "distilled"):
        return []
    resources = []
    if params.hosts and params.kind != "embedded":
        hosts = ",".join(params.hosts)
        resources.append(Resource("reasoner.host", hosts, "a server, which would be sent prompts and keys"))
    is_file = params.kind == "embedded" or (params.kind == "auto" and str(params.model).endswith(".gguf"))
    if is_file and params.model not in (None, SMOLLM2):  # see `llm.factory`
        resources.append(Resource("reasoner.model", str(params.model), "a model file, which would be loaded"))
    return resources
