"""Answers in a form: a prompt and a pydantic model go in, an instance of that model comes out, or a named failure.

The form may be plain text as well. It goes through the clients, dispatcher, limits and ledger that all requests share.
There is no fallback: without an answer the caller changes nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import BaseModel

from prism_mesa.errors import LLMFailureException, OracleError
from prism_mesa.llm.clients.base import (
    ChatClient,
    Completion,
    FunctionClient,
    PromptFunction,
    client_digest,
    client_label,
)
from prism_mesa.llm.dispatch.budget import Budget
from prism_mesa.llm.dispatch.dispatcher import NO_BUDGET
from prism_mesa.llm.dispatch.gateway import LLMGateway
from prism_mesa.llm.dispatch.pending import Identity, PendingQuestion
from prism_mesa.llm.errors import MOST_USELESS
from prism_mesa.llm.formats.request import LLMRequest, RunPosition
from prism_mesa.llm.ledger.answers import AnswerStore
from prism_mesa.llm.params import LLMParams, Source

logger = logging.getLogger("prism_mesa.llm")

ATTEMPTS: Final = 2
"""How often a prompt is asked where the parameters do not say: once, and once more."""
ATTEMPTS_EMBEDDED: Final = 8
"""The same for the embedded LLM, of which one answer in five or so is of no use."""
_GRACE_S: Final = 1.0
"""How much longer than `LLMParams.timeout_s` an attempt of a client may last that keeps to it: it says itself what
happened, so that `HostPool` knows which server does not answer. Its first attempt also makes its connection."""
type _Pending = PendingQuestion[LLMRequest[Any], Any]


class LLMClient(LLMGateway[LLMRequest[Any], Any, LLMParams]):
    """Asks an LLM for answers in a form, and records them.

    Equal prompts for the same form are asked once and get the same answer. After a failure that may pass (a timeout, a
    server error, a useless answer) the client asks again, by default once, with the next sampling seed; after a refusal
    (4xx) it does not. Several prompts may be out at the same time, from any event loop. If an answer fails, `answer`
    and `answer_all` return its `LLMFailureException`; `fetch` raises it.

    Args:
        client: A client, or a function ``(prompt) -> str``, plain or async. Several clients by `RunPosition.llm`.
        params: Attempts, limits, time-outs (see `LLMParams`).
        store: See `LLMGateway`.
        kind: See `LLMGateway`.
        note: See `LLMGateway`.
        budget: See `LLMGateway`.
        gives_up: Whether it raises LLMFailureException if the first `MOST_USELESS` answers of an LLM are all useless.
    """

    def __init__(
        self,
        client: ChatClient | PromptFunction | Mapping[str, ChatClient],
        params: LLMParams | None = None,
        *,
        store: AnswerStore | None = None,
        kind: str = "python",
        note: str = "",
        budget: Budget | None = None,
        gives_up: bool = False,
    ) -> None:
        own = params or LLMParams(kind=kind, timeout_s=60.0)
        super().__init__(own, store, kind=kind, note=note, budget=budget)
        known = client if isinstance(client, ChatClient | Mapping) else FunctionClient(client)
        self.clients: Mapping[str, ChatClient] = known if isinstance(known, Mapping) else {"": known}
        self.client = next(iter(self.clients.values()))
        self.gives_up = gives_up

    def identity(self, llm: str = "") -> Identity:
        """Return name, digest and decoding of the client of an LLM."""
        client = self.clients.get(llm, self.client)
        return client.name, client_digest(client), client.decoding

    @property
    def label(self) -> str:
        """Its name in a summary."""
        name = ", ".join(map(client_label, self.clients.values()))
        return f"{name}, replayed" if self.store.mode == "replay" else name

    @property
    def slots(self) -> int:
        """Prompts that are out at the same time."""
        return 1 if self.kind == "embedded" else self.params.max_concurrency

    @property
    def attempts(self) -> int:
        """How often a prompt is asked whose failure may pass."""
        return self.params.attempts or (ATTEMPTS_EMBEDDED if self.kind == "embedded" else ATTEMPTS)

    async def call_with_retry[D: BaseModel](
        self,
        prompt: str,
        response_model: type[D],
        *,
        accept: Callable[[D], bool] | None = None,
        accepts: str = "",
        component: str = "agent",
        place: RunPosition | None = None,
    ) -> D:
        """Return the LLM's answer to a prompt, as an instance of `response_model`; see `LLMRequest` for the arguments.

        Raises:
            LLMFailureException: If no attempt brought an answer.
            OracleError: `not-recorded`, if the ledger that is replayed does not hold the prompt.
        """
        return await self.fetch(
            LLMRequest(prompt, response_model, accept, accepts, component=component, place=place or RunPosition())
        )

    async def fetch[D](self, request: LLMRequest[D]) -> D:
        """Return one answer; errors as in `call_with_retry`."""
        [found] = await self.answer_all([request])
        if isinstance(found, LLMFailureException):
            raise found
        answer: D = found
        return answer

    def _prepare(self, question: LLMRequest[Any]) -> _Pending:
        place = question.place
        priority = (question.priority, place.tick, place.agent)
        calls = getattr(question.form, "orders", 1)
        return PendingQuestion(question, question.prompt, question.options, place, priority, calls=calls)

    async def _ask(self, pending: _Pending) -> Completion:
        """Return what the client says; a try that takes too long is given up."""
        timeout_s = self.params.timeout_s
        client = self._client(pending)
        grace_s = 0.0 if isinstance(client, FunctionClient) else _GRACE_S
        try:
            async with asyncio.timeout(timeout_s + grace_s):
                completion = await pending.question.ask(client, pending.attempts)
        except TimeoutError as error:
            raise OracleError("timeout", f"no answer within {timeout_s:g} s") from error
        return pending.question.heard(completion)

    def _read(self, question: LLMRequest[Any], raw: str) -> Any:
        return question.read(raw)

    def _answer(self, pending: _Pending, said: Any, source: Source) -> Any:
        return said

    def _stand_in(self, pending: _Pending) -> tuple[LLMFailureException, Source]:
        """Return the failure. Of a shared ledger the first answer stands, and nobody is asked again."""
        component, reason, error, tries = pending.question.component, pending.reason, pending.error, pending.attempts
        if pending.raw is not None:
            told, tries = f"what the ledger holds for the {component} is of no use: {error}", 0
        elif self.store.mode == "replay":
            told = ""
        else:
            told = f"the LLM gave the {component} no usable answer"
            told += f" ({reason}, attempts: {tries}): {error or 'a limit is used up'}"
        failure = LLMFailureException(reason, tries, component, told)
        failure.__cause__ = error
        if reason != NO_BUDGET:  # which is no failure, and may be a run's every agent
            agent = pending.place.agent
            logger.error("LLM_FAILURE component=%s agent=%d (%s: %s)", component, agent, reason, error or failure)
        return failure, "failed"

    def _answer_is_useless(self, pending: _Pending) -> None:
        if self.gives_up and self._is_hopeless(pending):
            label = client_label(self._client(pending))
            last = str(pending.error).removeprefix(f"{label}: ")
            message = f"{label}: none of its first {MOST_USELESS} answers is of any use; the last one: {last}"
            raise LLMFailureException("useless", MOST_USELESS, pending.question.component, message)

    def _client(self, pending: _Pending) -> ChatClient:
        return self.clients.get(pending.place.llm, self.client)

    def _missing(self, pending: _Pending) -> str:
        other = "" if pending.past is None else "; another prompt stands there: has the configuration changed?"
        return f"round {pending.place.round}, agent {pending.place.agent}{other}"
