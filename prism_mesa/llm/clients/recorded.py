"""Clients for replay, which represent LLMs in a ledger."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from prism_mesa.errors import ConfigError, DataError, OracleError
from prism_mesa.llm.clients.base import Completion, Schema
from prism_mesa.llm.ledger import Ledger
from prism_mesa.llm.params import LLMParams

_CHOICE_OPTIONS: Final = frozenset({"answer", "method"})
"""Decoding options that are recorded only for answers to open choices."""


class RecordedClient:
    """A client with the name, digest and decoding of a recorded LLM. It cannot be asked."""

    def __init__(self, name: str, digest: str = "", decoding: dict[str, Any] | None = None) -> None:
        self.name = name
        self.digest = digest
        self.decoding = decoding or {}
        self.label = name

    async def chat(self, prompt: str, schema: Schema = None, seed_offset: int = 0, top_logprobs: int = 0) -> Completion:
        """Raise OracleError, because a replay asks no LLM."""
        raise OracleError("not-recorded", f"{self.name} is replayed and cannot be asked")


def recorded_client(ledger: Ledger, params: LLMParams, llm: str = "") -> RecordedClient:
    """Return the latest LLM in a ledger with the decoding options of `params`; raises as `find_recorded` does."""

    def is_configured(name: str, decoding: Mapping[str, Any]) -> bool:
        is_named = params.model is None or "build" in decoding or name == params.model
        return is_named and same_options(decoding, params.decoding, lenient=True)

    recorded = find_recorded(ledger, llm, is_configured, answered_choices=False)
    return recorded or RecordedClient(str(params.model or ""))


def find_recorded(
    ledger: Ledger, llm: str, is_configured: Callable[[str, dict[str, Any]], bool], *, answered_choices: bool
) -> RecordedClient | None:
    """Return the latest configured LLM in a ledger; None if the ledger has no answers.

    `llm` is the name of one of several LLMs. With `answered_choices`, it is an LLM that answered open choices,
    otherwise one that wrote texts.

    Raises ConfigError if all answers are from other LLMs or have other options, and DataError if the ledger is damaged.
    """
    entries = [entry for entry in _llms_in(ledger) if llm in ("", entry[0])]
    entries = [entry for entry in entries if bool(_CHOICE_OPTIONS & entry[2].keys()) == answered_choices]
    match = next((entry for entry in entries if is_configured(entry[0], entry[2])), None)
    if entries and match is None:
        available = "; ".join(f"{name} {json.dumps(decoding)}" for name, _, decoding in entries[:5])
        fault = f"{ledger.path} has no answers of the configured LLM with these options (it has: {available})"
        raise ConfigError(f"reasoner.ledger: {fault}")
    return None if match is None else RecordedClient(*match)


def same_options(decoding: Mapping[str, Any], expected: Mapping[str, Any], *, lenient: bool = False) -> bool:
    """Return whether a recorded LLM was asked with the expected options.

    A ledger records `think`, `num_ctx` and `cut_prompts` only if they differ from their defaults, and never for an
    embedded LLM. With `lenient`, other options that are not recorded count as equal.
    """
    defaults: dict[str, Any] = {"think": False, "num_ctx": None, "cut_prompts": "useless"}
    options, required = defaults | dict(decoding), defaults | dict(expected)
    ignored = defaults.keys() if "build" in decoding else ()
    compared = {name: value for name, value in required.items() if name not in ignored}
    return all(options.get(name, value if lenient else None) == value for name, value in compared.items())


def _llms_in(ledger: Ledger) -> list[tuple[str, str, dict[str, Any]]]:
    llms = []
    for name, digest, decoding in ledger.llms():
        options = None
        with suppress(ValueError, RecursionError):
            options = json.loads(decoding)
        if not isinstance(options, dict):
            raise DataError(f"ledger {ledger.path} is damaged: {decoding[:60]!r} is not an object of decoding options")
        llms.append((name, digest, options))
    return llms
