"""The LLM that plays the agents of a finished run."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from prism_mesa.deliberation.params import DeliberationParams
from prism_mesa.errors import ConfigError
from prism_mesa.llm import LLMClient, make_llm_client
from prism_mesa.llm.kinds import LLM_KINDS
from prism_mesa.params import merge_values
from prism_mesa.runs.config import Config, with_overrides
from prism_mesa.runs.manifest import RecordedRun
from prism_mesa.runs.recorded import as_config, llm_resources, manifest_values
from prism_mesa.runs.run_files import enclosing_run
from prism_mesa.runs.trust import require_trust

_LIMITS: Final = ("max_calls", "max_tokens", "max_seconds")
_NOT_APPLICABLE: Final[dict[str, Any]] = {
    "llm_share": 1.0,
    "distilled": None,
    "ledger": "live",
    "ledger_path": None,
    **{f"{limit}{per}": None for limit in _LIMITS for per in ("", "_per_round")},
}
"""Neutral values for the keys of `reasoner` that do not apply to interviews and surveys."""

type LLMUse = Literal["interview", "survey"]

_NO_EFFECT: Final[dict[LLMUse, frozenset[str]]] = {
    "interview": frozenset(("notes", "notes_told")),
    "survey": frozenset(DeliberationParams.model_fields) - {"temperature", "max_answer_tokens"},
}
"""Parameters of `deliberation` without effect."""
_USE_NAMES: Final[dict[LLMUse, str]] = {"interview": "an interview", "survey": "a survey"}

_REPLACED_KEYS: Final = {f"reasoner.{name}": f"deliberation.{name}" for name in ("temperature", "max_answer_tokens")}


def as_overrides(overrides: Sequence[str] | Mapping[str, Any]) -> list[str]:
    """Return overrides as strings ``key=value``, from such strings or a mapping from dotted keys to values.

    >>> as_overrides({"reasoner.kind": "embedded", "deliberation.iterations": 2})
    ['reasoner.kind="embedded"', 'deliberation.iterations=2']
    """
    if isinstance(overrides, Mapping):
        return [f"{key}={json.dumps(value)}" for key, value in overrides.items()]
    return [overrides] if isinstance(overrides, str) else list(overrides)


def make_llm_config(config: Config, overrides: Sequence[str] = (), *, use: LLMUse = "interview") -> Config:
    """Return a run's configuration for interviews or surveys, with overrides on top.

    The limits and the ledger of the run do not apply, and a rule or a distilled model becomes `auto`.

    Raises ConfigError if an override is not allowed or has no effect, or if a ledger in a run's folder would change.
    """
    for text in overrides:
        key = text.partition("=")[0].strip()
        if key in _REPLACED_KEYS:
            raise ConfigError(f"override: {key} has no effect here; set {_REPLACED_KEYS[key]}")
        if "=" in text and key.partition(".")[0] not in ("reasoner", "deliberation"):
            raise ConfigError(f"override: {key}: the run has ended; only reasoner.* and deliberation.* can change")
        group, _, name = key.partition(".")
        if group == "deliberation" and name in _NO_EFFECT[use]:
            allowed = ", ".join(key for key in DeliberationParams.model_fields if key not in _NO_EFFECT[use])
            fault = f"has no effect in {_USE_NAMES[use]} (keys of deliberation with an effect: {allowed})"
            raise ConfigError(f"override: {key} {fault}")
    kind = config.reasoner.kind
    reasoner = {"kind": "auto" if kind in ("rule", "distilled") else kind, **_NOT_APPLICABLE}
    values = merge_values(config.model_dump(mode="json"), {"reasoner": reasoner})
    result = with_overrides(Config, values, overrides)
    ledger = result.reasoner.ledger_path
    if ledger is not None and result.reasoner.ledger != "replay" and (run := enclosing_run(ledger)):
        remedy = "set reasoner.ledger=replay, or copy the ledger"
        raise ConfigError(f"reasoner.ledger_path: {ledger} lies in the folder of a run, {run}: {remedy}")
    return result


def make_llm(
    config: Config, overrides: Sequence[str] = (), *, llm: str = "", continues: bool = False, decision: bool = False
) -> LLMClient:
    """Return the LLM that plays agents of a run, configured by `make_llm_config`; `llm` names one of several.

    With `continues`, SmolLM2 continues prompts that have examples (see `llm.EmbeddedChatClient`). With `decision`, the
    run's decision model is used if it has one (`reasoner.answer`).

    Raises ConfigError if there is no LLM, and DataError if a ledger cannot be opened.
    """
    llm_config = make_llm_config(config, overrides)
    if (kind := llm_config.reasoner.kind) in ("rule", "distilled"):
        raise ConfigError(f"reasoner.kind: {kind} cannot answer questions: name an LLM ({LLM_KINDS})")
    llms = llm_config.reasoner.by_llm()
    if not llms.keys() & {"", llm}:
        raise ConfigError(f"reasoner.model: only one LLM can answer, not {', '.join(llms)}: set reasoner.model=NAME")
    reasoner = llms.get(llm) or llms[""]
    decoding = {name: getattr(llm_config.deliberation, name) for name in ("temperature", "max_answer_tokens")}
    try:
        params = reasoner if decision and reasoner.needs_decisions else reasoner.as_llm(**decoding)
        client, note = make_llm_client(params, continues=continues)
    except ConfigError as error:
        raise ConfigError(str(error).replace(", or set reasoner.kind=rule", "")) from error
    if client is None:
        raise ConfigError(
            f"reasoner.kind=auto: there is no LLM to answer for agents ({note}); start one, install the extra "
            "'embedded', or name one with reasoner.kind, reasoner.host and reasoner.model"
        )
    return client


def read_llm_config(
    run: RecordedRun,
    overrides: Sequence[str] = (),
    *,
    use: LLMUse = "interview",
    uses_configured_llm: bool = True,
    trust: bool = False,
) -> Config:
    """Return the seed, `reasoner` and `deliberation` of a run, without untrusted servers and model files.

    `overrides` are applied later (see `make_llm_config`). `uses_configured_llm` is False for an LLM from Python. With
    `trust`, the server and the model file that a run from elsewhere names are used.

    Raises ConfigError if an override is not allowed, and DataError if this version does not know the configuration, or
    the folder is not trusted.
    """
    recorded = manifest_values(run.folder, run.manifest)
    recorded_reasoner = as_config(Config, recorded, run.folder).reasoner
    values: dict[str, Any] = {key: recorded[key] for key in ("seed", "reasoner", "deliberation") if key in recorded}
    changes: dict[str, Any] = {"ledger": "live", "ledger_path": None, "distilled": None, "llm_share": 1.0}
    if recorded_reasoner.model_by is not None:  # the run's table `agents` names each agent's LLM
        changes |= {"model": dict.fromkeys(recorded_reasoner.llms, 1.0), "model_by": None}
    if recorded_reasoner.kind == "distilled":
        changes["kind"] = "auto"
    values = merge_values(values, {"reasoner": changes})
    config = as_config(Config, values, run.folder)
    if trust or run.origin == "own":
        return config
    resources = llm_resources(make_llm_config(config, overrides, use=use).reasoner) if uses_configured_llm else []
    dropped = {"host": None, **{resource.key.partition(".")[2]: None for resource in resources}}
    safe = as_config(Config, merge_values(values, {"reasoner": dropped}), run.folder)
    reasoner = make_llm_config(safe, overrides, use=use).reasoner
    untrusted = [resource for resource in resources if getattr(reasoner, resource.key.partition(".")[2]) is None]
    alternatives = " and ".join(f"{resource.key}=..." for resource in untrusted)
    require_trust(run.folder, run.origin, untrusted, trust=trust, instead=f"give {alternatives} yourself")
    return safe
