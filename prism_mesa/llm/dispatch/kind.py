"""What a kind of question says of itself to the gateway that puts it to an LLM."""

from typing import Any

from prism_mesa.llm.clients.base import Completion
from prism_mesa.llm.dispatch.pending import Identity, PendingQuestion
from prism_mesa.llm.params import LLMParams, Source


class QuestionKind[Q, A, P: LLMParams]:
    """Questions of one kind, their answers, and the LLM that they are put to.

    Attributes:
        params: Attempts, limits, time-outs.
    """

    params: P

    def identity(self, llm: str = "") -> Identity:
        """Return the name, digest and decoding that identify an LLM in a ledger (see `RunPosition.llm`)."""
        raise NotImplementedError

    @property
    def slots(self) -> int:
        """Questions that are out at the same time."""
        return self.params.max_concurrency

    @property
    def attempts(self) -> int:
        """How often a question is asked whose failure may pass."""
        return self.params.attempts or 1

    def _prepare(self, question: Q) -> PendingQuestion[Q, A]:
        """Return a question as it is put; one that needs no LLM is `done` and has its answer."""
        raise NotImplementedError

    async def _ask(self, pending: PendingQuestion[Q, A]) -> Completion:
        """Return what the LLM says, or raise OracleError."""
        raise NotImplementedError

    def _read(self, question: Q, raw: str) -> Any:
        """Return what a text says to a question, or raise UselessAnswerError."""
        raise NotImplementedError

    def _answer(self, pending: PendingQuestion[Q, A], said: Any, source: Source) -> A:
        """Return what whoever asked is given of what was read."""
        raise NotImplementedError

    def _stand_in(self, pending: PendingQuestion[Q, A]) -> tuple[A, Source]:
        """Return what is given in place of an answer that did not come, or is of no use (then there is a `raw`)."""
        raise NotImplementedError

    def _missing(self, pending: PendingQuestion[Q, A]) -> str:
        """Return in words to what the ledger that is replayed holds no answer."""
        raise NotImplementedError

    def _choice_and_probabilities(self, question: Q, raw: str) -> tuple[str, str]:
        """Return what the ledger holds beside a text of what it says."""
        return "", ""

    def _failed_before(self, pending: PendingQuestion[Q, A]) -> str:
        """Return why a question is not asked again, as it just failed; else an empty string."""
        return ""

    def _answer_is_useless(self, pending: PendingQuestion[Q, A]) -> None:
        """Take note of an answer that is none to its question."""

    def _answer_has_come(self, pending: PendingQuestion[Q, A]) -> None:
        """Take note of what came of a question that was asked."""
