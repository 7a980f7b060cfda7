"""An LLM that is known only by what a ledger says of it: for replay, where nobody is asked."""

import json
from typing import Any, Final

from prism_mesa.errors import ConfigError, DataError, OracleError
from prism_mesa.reasoner.client import Completion
from prism_mesa.reasoner.embedded import PmiOracle
from prism_mesa.reasoner.ledger import Ledger
from prism_mesa.reasoner.oracle import ChatOracle, Oracle
from prism_mesa.reasoner.params import OLLAMA_MODEL, LLMParams, ReasonerParams, RuleParams
from prism_mesa.reasoner.question import Question
from prism_mesa.reasoner.rule import RuleReasoner

_OF_ORACLES: Final = frozenset({"answer", "method"})
"""Options of an oracle (`ChatOracle`, `PmiOracle`): an LLM that answers in a form has neither."""


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


class _RecordedPmi(PmiOracle):
    """Reads scores as `PmiOracle` does, and has no LLM to ask for one."""

    def __init__(self, client: RecordedClient, params: RuleParams) -> None:
        self.rule = RuleReasoner(params)
        self.name, self.digest, self.label = client.name, client.digest, client.label
        self.decoding = client.decoding

    async def ask(self, prompt: str, question: Question, attempt: int = 0) -> Completion:
        """Raise OracleError: nobody is asked in replay."""
        raise OracleError("not-recorded", f"{self.name} is replayed and cannot be asked")


def recorded_oracle(ledger: Ledger, params: ReasonerParams) -> Oracle:
    """Return the oracle whose answers a ledger holds: the latest that is what `params` ask for.

    Where the ledger holds no answer to a question (all of a run were fallbacks) it is one of the configured kind.

    Raises:
        ConfigError: If the ledger holds answers of other LLMs, or with other options, only.
    """
    held = [llm for llm in _held(ledger) if _OF_ORACLES & llm[2].keys()]
    if not held:
        client = RecordedClient(params.model or "")
        scores = params.kind == "embedded" and params.answer != "choice"
        return _RecordedPmi(client, params.rule) if scores else ChatOracle(client, params.answer or "choice")
    found = [llm for llm in held if _is_meant(params, llm[0], llm[2])]
    if not found:
        raise _other_llms(ledger, held)
    name, digest, decoding = found[0]
    form = decoding.pop("answer", None)
    client = RecordedClient(name, digest, decoding)
    return _RecordedPmi(client, params.rule) if form is None else ChatOracle(client, form)


def recorded_client(ledger: Ledger, params: LLMParams) -> RecordedClient:
    """Return the LLM whose answers in a form a ledger holds, the latest that was asked as `params` ask.

    Where it holds none it is one that nobody knows.

    Raises:
        ConfigError: If the ledger holds answers of other LLMs, or with other options, only.
    """
    held = [llm for llm in _held(ledger) if not _OF_ORACLES & llm[2].keys()]
    if not held:
        return RecordedClient(params.model or "")
    found = [llm for llm in held if all(llm[2].get(name, value) == value for name, value in params.decoding.items())]
    if params.model is not None:
        found = [llm for llm in found if "build" in llm[2] or llm[0] == params.model]
    if not found:
        raise _other_llms(ledger, held)
    return RecordedClient(*found[0])


def _held(ledger: Ledger) -> list[tuple[str, str, dict[str, Any]]]:
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


def _other_llms(ledger: Ledger, held: list[tuple[str, str, dict[str, Any]]]) -> ConfigError:
    there = "; ".join(f"{name} {json.dumps(decoding)}" for name, _, decoding in held[:5])
    return ConfigError(
        f"reasoner.ledger: {ledger.path} holds no answers of the LLM and options that are configured (it has: {there})"
    )


def _is_meant(params: ReasonerParams, name: str, decoding: dict[str, Any]) -> bool:
    """Return whether an LLM in a ledger is the one that `params` would ask."""
    if "answer" not in decoding:  # it gives scores
        return params.kind in ("auto", "embedded") and params.answer != "choice"
    expected = {**params.decoding, "answer": params.answer or "choice"}
    if any(decoding.get(option) != value for option, value in expected.items()):
        return False
    default = OLLAMA_MODEL if params.kind in ("auto", "ollama") else name
    return "build" in decoding or name == (params.model or default)
