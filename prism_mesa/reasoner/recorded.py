"""An LLM that is known only by what a ledger says of it: for replay, where nobody is asked."""

import json
from typing import Any

from prism_mesa.errors import OracleError
from prism_mesa.reasoner.client import Completion
from prism_mesa.reasoner.embedded import PmiOracle
from prism_mesa.reasoner.ledger import Ledger
from prism_mesa.reasoner.oracle import ChatOracle, Oracle
from prism_mesa.reasoner.params import ReasonerParams, RuleParams
from prism_mesa.reasoner.question import Question
from prism_mesa.reasoner.rule import RuleReasoner


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
    """Return the oracle whose answers a ledger holds: the latest that has the configured name, if one is given.

    Where the ledger holds no answer (all questions of a run were fallbacks) it is one of the configured kind.
    """
    found = [llm for llm in ledger.llms() if params.model in (None, llm[0])] or ledger.llms()[:1]
    if not found:
        client = RecordedClient(params.model or "")
        scores = params.kind == "embedded" and params.answer != "choice"
        return _RecordedPmi(client, params.rule) if scores else ChatOracle(client, params.answer or "choice")
    name, digest, text = found[0]
    decoding: dict[str, Any] = json.loads(text)
    form = decoding.pop("answer", None)
    client = RecordedClient(name, digest, decoding)
    return _RecordedPmi(client, params.rule) if form is None else ChatOracle(client, form)
