"""A language model that is known only by what a ledger says of it, for replay."""

import json
from collections.abc import Mapping
from typing import Any, Final

from prism_mesa.errors import ConfigError, DataError, OracleError
from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.ledger.database import Ledger
from prism_mesa.llm.params import LLMParams

READ_AS_OPTIONS: Final = frozenset({"answer", "method"})
"""Decoding options of who reads probabilities off an answer; an LLM that answers in a form has neither."""


class RecordedClient:
    """Has the name, the digest and the decoding of the LLM that once answered; it answers nothing itself."""

    def __init__(self, name: str, digest: str = "", decoding: dict[str, Any] | None = None) -> None:
        self.name = name
        self.digest = digest
        self.decoding = decoding or {}
        self.label = name

    async def chat(
        self, prompt: str, schema: dict[str, Any] | None = None, seed_offset: int = 0, top_logprobs: int = 0
    ) -> Completion:
        """Raise OracleError: nobody is asked in replay."""
        raise OracleError("not-recorded", f"{self.name} is replayed and cannot be asked")


def recorded_client(ledger: Ledger, params: LLMParams, llm: str = "") -> RecordedClient:
    """Return the LLM whose answers in a form a ledger holds, the latest that was asked as `params` ask.

    Where it holds none it is one that nobody knows. Of several LLMs `llm` is the name of the one.

    Raises:
        ConfigError: If the ledger holds answers of other LLMs, or with other options, only.
    """
    held = [own for own in llms_in(ledger) if not READ_AS_OPTIONS & own[2].keys() and llm in ("", own[0])]
    if not held:
        return RecordedClient(str(params.model or ""))
    found = [llm for llm in held if asked_alike(llm[2], params.decoding, lenient=True)]
    if params.model is not None:
        found = [llm for llm in found if "build" in llm[2] or llm[0] == params.model]
    if not found:
        raise other_llms(ledger, held)
    return RecordedClient(*found[0])


def asked_alike(decoding: Mapping[str, Any], expected: Mapping[str, Any], *, lenient: bool = False) -> bool:
    """Return whether an LLM of a ledger was asked with the options that are expected.

    How it thinks, and what comes of a cut prompt, is not in `decoding` where it is the default, nor with an embedded
    LLM. If `lenient`, options that are not in it are as expected.
    """
    unset: dict[str, Any] = {"think": False, "num_ctx": None, "cut_prompts": "useless"}
    held, wanted = unset | dict(decoding), unset | dict(expected)
    ignored = unset.keys() if "build" in decoding else ()
    return all(
        held.get(name, value if lenient else None) == value for name, value in wanted.items() if name not in ignored
    )


def llms_in(ledger: Ledger) -> list[tuple[str, str, dict[str, Any]]]:
    """Return name, digest and decoding of the LLMs that have answered, the latest first.

    Raises:
        DataError: If the ledger is damaged.
    """
    return [(name, digest, _options(ledger, decoding)) for name, digest, decoding in ledger.llms()]


def _options(ledger: Ledger, decoding: str) -> dict[str, Any]:
    """Return the decoding options that a ledger holds as JSON.

    Raises:
        DataError: If they are none.
    """
    try:
        options = json.loads(decoding)
    except (ValueError, RecursionError):
        options = None
    if not isinstance(options, dict):
        raise DataError(f"ledger {ledger.path}: is damaged: {decoding[:60]!r} are no decoding options")
    return options


def other_llms(ledger: Ledger, held: list[tuple[str, str, dict[str, Any]]]) -> ConfigError:
    """Return the error that a ledger holds answers of other LLMs than the one that is configured."""
    there = "; ".join(f"{name} {json.dumps(decoding)}" for name, _, decoding in held[:5])
    return ConfigError(
        f"reasoner.ledger: {ledger.path} holds no answers of the LLM and options that are configured (it has: {there})"
    )
