"""An LLM that is known only by what a ledger says of it: for replay, where nobody is asked."""

from typing import Any

from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.clients.recorded import READ_AS_OPTIONS, RecordedClient, asked_alike, llms_in, other_llms
from prism_mesa.llm.ledger import Ledger
from prism_mesa.llm.params import DECISION_MODEL, OLLAMA_MODEL, decision_decoding
from prism_mesa.reasoner.oracle import Oracle, as_oracle
from prism_mesa.reasoner.params import LETTER_TOKENS, ReasonerParams, RuleParams
from prism_mesa.reasoner.pmi import PmiOracle
from prism_mesa.reasoner.question import Question
from prism_mesa.reasoner.rule import RuleReasoner


class _RecordedPmi(PmiOracle):
    """Reads scores as `PmiOracle` does, and has no LLM to ask for one."""

    def __init__(self, client: RecordedClient, params: RuleParams) -> None:
        self._recorded = client
        self.rule = RuleReasoner(params)
        self.name, self.digest, self.label = client.name, client.digest, client.label
        self.decoding = client.decoding

    async def ask(self, prompt: str, question: Question, attempt: int = 0) -> Completion:
        """Raise OracleError: nobody is asked in replay."""
        return await self._recorded.chat(prompt)


def recorded_oracle(ledger: Ledger, params: ReasonerParams, llm: str = "") -> Oracle:
    """Return the oracle whose answers a ledger holds: the latest one with the options of `params`.

    If the ledger holds no answers (a run may have fallbacks only), return an oracle of the configured kind. `llm` names
    one of several LLMs.

    Raises:
        ConfigError: If the ledger holds answers of other LLMs, or with other options, only.
    """
    held = [known for known in llms_in(ledger) if READ_AS_OPTIONS & known[2].keys() and llm in ("", known[0])]
    found = [known for known in held if _is_meant(params, known[0], known[2])]
    if held and not found:
        raise other_llms(ledger, held)
    client = RecordedClient(*found[0]) if found else RecordedClient(str(params.model or ""))
    scores = params.kind == "embedded" and params.answer in (None, "probabilities")
    scores = "answer" not in client.decoding if found else scores
    return _RecordedPmi(client, params.rule) if scores else as_oracle(client, params)


def _is_meant(params: ReasonerParams, name: str, decoding: dict[str, Any]) -> bool:
    """Return whether an LLM in a ledger is the one that `params` would ask."""
    if "answer" not in decoding:  # it gives scores
        return params.kind in ("auto", "embedded") and params.answer in (None, "probabilities")
    expected = {**params.decoding, "answer": params.answer or "choice"}
    if params.decides:
        expected = {"decision_orders": 1} | decision_decoding(params.decoding, params.decision_orders)
        decoding = {"decision_orders": 1} | decoding
    if params.answer == "probabilities" and decoding.get("max_tokens") == LETTER_TOKENS:
        expected["max_tokens"] = min(params.max_answer_tokens, LETTER_TOKENS)  # all that older ledgers had
    if not asked_alike(decoding, expected):
        return False
    served = DECISION_MODEL if params.decides else OLLAMA_MODEL
    default = served if params.kind in ("auto", "ollama") else name
    return "build" in decoding or name == (params.model or default)
