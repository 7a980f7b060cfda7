"""The configuration of a run from its folder: to repeat it, to ask its agents, to run it anew.

A folder comes from anybody. What it names outside of itself (a module, a server, a file) is in the configurations that
are returned here only if the user made the run, or trusts it, or named the same (see `trust`).
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from prism_mesa.economy.policy import Policy
from prism_mesa.economy.reading import Reading
from prism_mesa.errors import ConfigError, DataError, did_you_mean
from prism_mesa.llm import LLMParams
from prism_mesa.llm.clients.embedded import SMOLLM2
from prism_mesa.llm.kinds import KINDS
from prism_mesa.params import Params, merged, nested, validated
from prism_mesa.reasoner.distilled import FILE, kept_copy
from prism_mesa.runs.config import INPUT_FILES, Config, EconomyConfig, parse_override
from prism_mesa.runs.manifest import Manifest, RecordedRun, read_run
from prism_mesa.runs.run_files import LEDGER, check_within, has_table, read_table
from prism_mesa.runs.trust import Named, is_inside, require_trust
from prism_mesa.social.own.objects import objects_named

OWN_PACKAGE = "prism_mesa."
_RUNS = "a module, which would be imported and run"
_READS = "a file outside of its folder"
_ASKS = "a server, which would be sent prompts and keys"
_LOADS = "a model file, which would be loaded"
_NOBODY: dict[str, Any] = {"host": None, "ledger": "live", "ledger_path": None}
"""What of a reasoner nobody needs who asks nobody, and reads no ledger but the run's own."""


OF_THE_WAY: Final = ("reasoner.host", "reasoner.timeout_s", "reasoner.max_concurrency")
"""How an LLM is reached: what may differ when a run goes on, as no answer depends on it."""


def recorded_rounds(run_dir: Path) -> int:
    """Return the rounds or quarters that a run was to have.

    Raises:
        DataError: If there is no run, but nothing or something else, or its manifest does not say.
    """
    rounds = read_run(run_dir).manifest.planned
    if rounds is None:
        raise DataError(f"{run_dir}: manifest.json does not say how many rounds it has: another version wrote it")
    return rounds


def is_economy(run_dir: Path) -> bool:
    """Return whether a run is one of nations.

    Raises:
        DataError: If there is no run, but nothing or something else.
    """
    return read_run(run_dir).manifest.of_nations


def recorded_economy(run_dir: Path) -> EconomyConfig:
    """Return the configuration with which the completed quarters of a run of nations are repeated from its ledger.

    It names nothing outside of the folder.

    Raises:
        DataError: If no quarter was completed.
    """
    run = read_run(run_dir)
    manifest = run.manifest
    done, llm = manifest.summary.rounds, manifest.llm
    if not done:
        was = "was" if done == 0 else "is known to have been"
        told = f"no quarter of it {was} completed (status {run.state})"
        raise DataError(f"{run_dir}: {told}: nothing to repeat{run.way_on}")
    values = manifest_values(run_dir, manifest)
    as_config(EconomyConfig, values, run_dir)
    own: dict[str, Any] = {**_NOBODY, "kind": "rule"}
    if llm is not None:
        own = {**_NOBODY, "ledger": "replay", "ledger_path": str(own_ledger(run_dir))}
        values = merged(values, {"economy": {"prompt_style": llm.prompt_style}} if llm.prompt_style else {})
    return as_config(EconomyConfig, merged(values, {"rounds": done, "reasoner": own}), run_dir)


def recorded_config(run_dir: Path, *, trust: bool = False) -> Config:
    """Return the configuration with which a run of a platform is repeated from its own ledger. Nobody is asked in it.

    Args:
        run_dir: The run's folder.
        trust: Whether a module and files that only the folder names may be used.

    Raises:
        DataError: If there is no run, it was given things in Python, it has no ledger, or it is not trusted.
    """
    run = read_run(run_dir)
    manifest = run.manifest
    if manifest.of_nations:
        raise DataError(f"{run_dir}: is a run of nations, not of a platform")
    if not manifest.says_who_was_asked:
        raise DataError(f"{run_dir}: manifest.json does not say who was asked: another version wrote it")
    if any(manifest.made_in_python):
        raise DataError(f"{run_dir}: {run.again_in_python}")
    whole = as_config(Config, manifest_values(run_dir, manifest), run_dir)
    values = _with_paths_of(manifest_values(run_dir, manifest), run.started_in)
    require_trust(run_dir, run.whose, _code_and_files(run, whole), trust=trust)
    if whole.content == "llm" and manifest.llm is None:  # auto found no LLM that could write
        values = merged(values, {"content": "template"})
    return as_config(Config, merged(values, {"reasoner": _as_recorded(run)}), run_dir)


def config_to_run_anew(run_dir: Path, *, trust: bool = False) -> Config:
    """Return the configuration of a run of a platform with its LLM to be asked anew.

    Raises:
        DataError: If `recorded_config` does, its LLM was given in Python, or it is not trusted.
    """
    run, recorded = read_run(run_dir), recorded_config(run_dir, trust=trust)
    llm, before = run.manifest.llm, as_config(Config, manifest_values(run_dir, run.manifest), run_dir).reasoner
    if llm is None or llm.kind not in KINDS:
        raise DataError(
            f"{run_dir}: its LLM was given in Python ({llm.kind if llm else None}): it cannot be asked again from here"
        )
    own: dict[str, Any] = {**_NOBODY, "kind": llm.kind, "host": before.host}
    own["max_fallback_share"] = before.max_fallback_share
    if llm.kind == "embedded":  # its recorded name is none that it is loaded by
        own["model"] = before.model
    config = as_config(Config, merged(recorded.model_dump(), {"reasoner": own}), run_dir)
    require_trust(run_dir, run.whose, asked_places(config.reasoner), trust=trust)
    return config


def config_to_go_on(run: RecordedRun, *, overrides: Sequence[str] = ()) -> Config:
    """Return the configuration with which a run of a platform that was stopped goes on.

    Whoever was asked is asked, also where the run itself had found somebody (`auto`).

    Args:
        run: The run.
        overrides: ``key=value`` for keys of `OF_THE_WAY`, of which the folder may not hold all (passwords).

    Raises:
        ConfigError: If an override is of another key.
        DataError: If its manifest does not say who was asked.
    """
    folder, manifest = run.folder, run.manifest
    if not manifest.says_who_was_asked:
        raise DataError(f"{folder}: manifest.json does not say who was asked: another version wrote it")
    whole = as_config(Config, manifest_values(folder, manifest), folder)
    values = _with_paths_of(manifest_values(folder, manifest), run.started_in)
    if whole.content == "llm" and manifest.llm is None and not any(manifest.made_in_python):
        values = merged(values, {"content": "template"})
    config = as_config(Config, merged(values, {"reasoner": _as_asked(run, whole.reasoner)}), folder)
    own = _of_the_way(overrides)
    return validated(Config, merged(config.model_dump(), nested(own)), "override") if own else config


def economy_to_go_on(run: RecordedRun, *, overrides: Sequence[str] = ()) -> EconomyConfig:
    """Return the configuration with which a run of nations that was stopped goes on; see `config_to_go_on`.

    Raises:
        DataError: If its manifest holds none.
    """
    whole = as_config(EconomyConfig, manifest_values(run.folder, run.manifest), run.folder)
    own = _as_asked(run, whole.reasoner)
    values = merged(manifest_values(run.folder, run.manifest), {"reasoner": own})
    config = as_config(EconomyConfig, values, run.folder)
    own = _of_the_way(overrides)
    return validated(EconomyConfig, merged(config.model_dump(), nested(own)), "override") if own else config


def _of_the_way(overrides: Sequence[str]) -> dict[str, Any]:
    """Return values by dotted key of how an LLM is reached.

    Raises:
        ConfigError: If one is of another key.
    """
    own = dict(map(parse_override, overrides))
    for key in own:
        if key not in OF_THE_WAY:
            allowed = ", ".join(OF_THE_WAY)
            raise ConfigError(
                f"override: {key}: a run goes on as it was begun, but for {allowed}.{did_you_mean(key, OF_THE_WAY)}"
            )
    return own


def _as_asked(run: RecordedRun, before: LLMParams) -> dict[str, Any]:
    """Return what of a reasoner is said of a run that goes on, beside what its configuration says."""
    folder, llm, distilled = run.folder, run.manifest.llm, run.manifest.distilled
    own: dict[str, Any] = {}
    if before.ledger_path is not None:
        own["ledger_path"] = str(run.started_in / before.ledger_path)
    if distilled is not None:
        if (folder / FILE).exists():
            check_within(folder, folder / FILE)
        own["distilled"] = str(kept_copy(folder, distilled.digest))
    if before.kind == "auto" and llm is None:
        own |= {"kind": "rule" if distilled is None else "distilled"}
        own |= {"llm_share": 1.0} if hasattr(before, "llm_share") else {}
    elif llm is not None and llm.kind in KINDS:
        own |= {"kind": llm.kind} | ({} if llm.kind == "embedded" or llm.llms else {"model": llm.name})
    return own


def manifest_values(run_dir: Path, manifest: Manifest) -> dict[str, Any]:
    """Return the configuration that a manifest holds; a run of nations from before typed measures has none.

    Raises:
        DataError: If it holds none.
    """
    if manifest.config is None:
        raise DataError(f"{run_dir}: manifest.json holds no configuration: another version wrote it")
    return merged({"economy": {"typed_measures": False}}, manifest.config) if manifest.of_nations else manifest.config


def recorded_readings(run_dir: Path) -> dict[tuple[int, str], Reading]:
    """Return how a run from before typed measures read its sentences, by quarter and nation; of later runs nothing.

    Sentences are read otherwise since, and a run is repeated as it was.

    Raises:
        DataError: If its decisions cannot be read.
    """
    config = read_run(run_dir).manifest.config or {}
    if "typed_measures" in config.get("economy", {}) or not has_table(run_dir, "decisions"):
        return {}
    decisions = read_table(run_dir, "decisions", ["round", "nation", "read_by", "measures", "reason"])
    try:
        return {
            (int(row.round), str(row.nation)): Reading(Policy.model_validate_json(row.measures), row.read_by)
            if row.measures
            else Reading(None, row.read_by, row.reason)
            for row in decisions.itertuples()
        }
    except ValueError as error:
        raise DataError(f"{run_dir}: decisions: measures: {error}") from None


def as_config[C: Params](kind: type[C], values: Mapping[str, Any], run_dir: Path) -> C:
    """Return values of a run's folder as a configuration.

    Raises:
        DataError: If this version does not know them.
    """
    try:
        return validated(kind, nested(values), str(run_dir))
    except ConfigError as error:
        raise DataError(f"{error} (another version wrote it)") from None


def own_ledger(run_dir: Path) -> Path:
    """Return the ledger in a run's folder.

    Raises:
        DataError: If it is missing, or a link to elsewhere.
    """
    file = run_dir / LEDGER
    if not file.is_file():
        raise DataError(f"{run_dir}: {LEDGER} is missing: without its answers this run cannot be repeated")
    check_within(run_dir, file)
    return file


def _as_recorded(run: RecordedRun) -> dict[str, Any]:
    """Return what of a reasoner differs when a run is repeated: whoever was asked is known by the ledger only."""
    folder, llm, distilled = run.folder, run.manifest.llm, run.manifest.distilled
    own: dict[str, Any] = {**_NOBODY, "distilled": None}
    if llm is None:
        own |= {"kind": "rule", "llm_share": 1.0}
    else:
        own |= {"kind": llm.kind, "answer": llm.answer, "persona": llm.persona}
        own |= {} if llm.llms else {"model": llm.name}
        own |= {"ledger": "replay", "ledger_path": str(own_ledger(folder)), "max_fallback_share": 1.0}
    if distilled is not None:
        if (folder / FILE).exists():
            check_within(folder, folder / FILE)
        own |= {"distilled": str(kept_copy(folder, distilled.digest))} | (
            {} if llm is not None else {"kind": "distilled"}
        )
    return own


def _with_paths_of(values: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return configuration values whose input files are those of the folder in which the run was started."""
    paths = {(group, key): values.get(group, {}).get(key) for group, key in INPUT_FILES}
    there = {(group, key): str(folder / path) for (group, key), path in paths.items() if path is not None}
    return merged(values, nested({f"{group}.{key}": path for (group, key), path in there.items()}))


def _code_and_files(run: RecordedRun, config: Config) -> list[Named]:
    """Return which modules, and which files outside of the folder, a run uses when it is repeated."""
    named = []
    for key, where in objects_named(config).items():
        is_ours = key == "statechart.chart" and where.startswith(OWN_PACKAGE)  # a chart is only read, not called
        if not is_ours:
            named.append(Named(key, where, _RUNS))
    for group, key in INPUT_FILES:
        path = getattr(getattr(config, group), key)
        if path is not None and not is_inside(run.folder, run.started_in / path):
            named.append(Named(f"{group}.{key}", str(run.started_in / path), _READS))
    return named


def asked_places(params: LLMParams) -> list[Named]:
    """Return which servers and which model file of one's own are used when somebody is asked."""
    if params.ledger == "replay" or params.kind in ("rule", "distilled"):
        return []
    named = []
    if params.hosts and params.kind != "embedded":
        named.append(Named("reasoner.host", ",".join(params.hosts), _ASKS))
    file = _file_of(params)
    return named if file is None else [*named, Named("reasoner.model", file, _LOADS)]


def _file_of(params: LLMParams) -> str | None:
    """Return the embedded LLM's file, if it is one of somebody's own (see `llm.factory`)."""
    is_file = params.kind == "embedded" or (params.kind == "auto" and str(params.model).endswith(".gguf"))
    return str(params.model) if is_file and params.model not in (None, SMOLLM2) else None
