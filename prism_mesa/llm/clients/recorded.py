"""An LLM that is known only from a ledger, for replay."""

import json
from collections.abc import Mapping
from typing import Any, Final

from prism_mesa.errors import ConfigError, DataError, OracleError
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.ledger import Ledger
from prism_mesa.llm.params import LLMParams

READ_AS_OPTIONS: Final = frozenset({"answer", "method"})
"""Decoding options of answers to open choices; other answers have neither."""


class RecordedClient:
    """Has the name, digest and decoding of the LLM that answered once; it answers nothing itself."""

    def __init__(self, name: str, digest: str = "", decoding: dict[str, Any] | None = None) -> None:
        self.name = name
        self.digest = digest
        self.decoding = decoding or {}
        self.label = name

    async def chat(
        self, prompt: str, schema: dict[str, Any] | None = None, seed_offset: int = 0, top_logprobs: int = 0
    ) -> Completion:
        """Raise OracleError: replay asks no LLM."""
        raise OracleError("not-recorded", f"{self.name} is replayed and cannot be asked")


def recorded_client(ledger: Ledger, params: LLMParams, llm: str = "") -> RecordedClient:
    """Return the latest LLM in a ledger with the options of `params`; without digest and decoding if it has no answers.

    `llm` names one of several LLMs. Raises ConfigError if all answers are of other LLMs or options.
    """
    held = [known for known in llms_in(ledger) if not READ_AS_OPTIONS & known[2].keys() and llm in ("", known[0])]
    if not held:
        return RecordedClient(str(params.model or ""))
    alike = [known for known in held if same_options(known[2], params.decoding, lenient=True)]
    if params.model is not None:
        alike = [known for known in alike if "build" in known[2] or known[0] == params.model]
    if not alike:
        raise other_llms_error(ledger, held)
    return RecordedClient(*alike[0])


def same_options(decoding: Mapping[str, Any], expected: Mapping[str, Any], *, lenient: bool = False) -> bool:
    """Return whether an LLM of a ledger was asked with the expected options.

    `decoding` has `think`, `num_ctx` and `cut_prompts` only if they differ from the default, and never with an embedded
    LLM. If `lenient`, options that it lacks count as expected.
    """
    defaults: dict[str, Any] = {"think": False, "num_ctx": None, "cut_prompts": "useless"}
    asked, wanted = defaults | dict(decoding), defaults | dict(expected)
    ignored = defaults.keys() if "build" in decoding else ()
    return all(
        asked.get(name, value if lenient else None) == value for name, value in wanted.items() if name not in ignored
    )


def llms_in(ledger: Ledger) -> list[tuple[str, str, dict[str, Any]]]:
    """Return name, digest and decoding of the LLMs in a ledger, the latest first; DataError if it is damaged."""
    llms = []
    for name, digest, decoding in ledger.llms():
        try:
            options = json.loads(decoding)
        except (ValueError, RecursionError):
            options = None
        if not isinstance(options, dict):
            raise DataError(f"ledger {ledger.path}: is damaged: {decoding[:60]!r} are no decoding options")
        llms.append((name, digest, options))
    return llms


def other_llms_error(ledger: Ledger, held: list[tuple[str, str, dict[str, Any]]]) -> ConfigError:
    """Return the error that a ledger holds answers of other LLMs than the one that is configured."""
    there = "; ".join(f"{name} {json.dumps(decoding)}" for name, _, decoding in held[:5])
    return ConfigError(
        f"reasoner.ledger: {ledger.path} holds no answers of the LLM and options that are configured (it has: {there})"
    )
