"""The client for structured answers: pydantic models or plain text. A failed answer has a reason, but no fallback."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from pydantic import BaseModel

from prism_mesa.errors import LLMFailureException, OracleError
from prism_mesa.llm.answer_store import AnswerStore
from prism_mesa.llm.budget import Budget
from prism_mesa.llm.clients.base import (
    ChatClient,
    Completion,
    FunctionClient,
    PromptFunction,
    client_digest,
    client_label,
)
from prism_mesa.llm.dispatcher import NO_BUDGET, PendingQuestion
from prism_mesa.llm.errors import MAX_USELESS_ANSWERS
from prism_mesa.llm.gateway import LLMGateway
from prism_mesa.llm.params import LLMParams, Source
from prism_mesa.llm.request import LLMRequest, RunPosition

logger = logging.getLogger("prism_mesa.llm")

ATTEMPTS: Final = 2
"""Default number of attempts at a prompt."""
ATTEMPTS_EMBEDDED: Final = 8
"""Default number of attempts with the embedded LLM, which gives a useless answer about one time in five."""
_GRACE_S: Final = 1.0
"""Extra seconds for clients that enforce `LLMParams.timeout_s` themselves.

Their error tells `HostPool` which server does not answer. The first attempt also needs time to connect.
"""
type _Pending = PendingQuestion[LLMRequest[Any], Any]


@dataclass(frozen=True)
class _PromptHandler:
    clients: Mapping[str, ChatClient]
    timeout_s: float
    fails_if_useless: bool

    def client(self, llm: str) -> ChatClient:
        return self.clients.get(llm) or next(iter(self.clients.values()))

    def prepare(self, request: LLMRequest[Any]) -> _Pending:
        position, client = request.position, self.client(request.position.llm)
        return PendingQuestion(
            request,
            request.prompt,
            request.options,
            position,
            (request.priority, position.tick, position.agent),
            (client.name, client_digest(client), client.decoding),
            partial(self._ask, client, request),
            request.read,
            calls=getattr(request.form, "n_orders", 1),
            fails_if_useless=self.fails_if_useless,
        )

    async def _ask(self, client: ChatClient, request: LLMRequest[Any], attempt: int) -> Completion:
        """Return the client's answer. Raises OracleError (`timeout`) if it takes too long."""
        grace_s = 0.0 if isinstance(client, FunctionClient) else _GRACE_S
        try:
            async with asyncio.timeout(self.timeout_s + grace_s):
                return await request.ask(client, attempt)
        except TimeoutError as error:
            raise OracleError("timeout", f"no answer within {self.timeout_s:g} s") from error

    def conclude(self, pending: _Pending, source: Source) -> tuple[Any, Source]:
        """Return the answer, or the failure. The first answer in a shared ledger is used even if it is useless."""
        if not pending.reason:
            return pending.value, source
        component, reason, error, attempts = pending.question.component, pending.reason, pending.error, pending.attempts
        if pending.raw is not None:
            message, attempts = f"the answer in the ledger for the {component} is useless: {error}", 0
        elif pending.is_replay:
            message = ""
        else:
            message = f"the LLM gave the {component} no usable answer"
            message += f" ({reason}, attempts: {attempts}): {error or 'a limit is used up'}"
        failure = LLMFailureException(reason, attempts, component, message)
        failure.__cause__ = error
        if reason != NO_BUDGET:  # an exhausted budget may concern every agent of a run
            agent = pending.position.agent
            logger.error("LLM_FAILURE component=%s agent=%d (%s: %s)", component, agent, reason, error or failure)
        return failure, "failed"

    def summarise(self, pending: _Pending, value: Any) -> tuple[str, str]:
        return "", ""

    def describe(self, pending: _Pending) -> str:
        return f"round {pending.position.round}, agent {pending.position.agent}"

    def useless_error(self, pending: _Pending) -> LLMFailureException:
        label = client_label(self.client(pending.position.llm))
        last = str(pending.error).removeprefix(f"{label}: ")
        message = f"{label}: its first {MAX_USELESS_ANSWERS} answers are all useless; the last one: {last}"
        return LLMFailureException("useless", MAX_USELESS_ANSWERS, pending.question.component, message)


class LLMClient(LLMGateway[LLMRequest[Any], Any, LLMParams]):
    """Asks an LLM for structured answers, and records them.

    Equal prompts with the same format are asked once. After a temporary failure (a timeout, a server error, a useless
    answer) the client asks again with the next sampling seed, by default once. It does not repeat a refused request
    (4xx). If an answer fails, `answer` and `answer_all` return an `LLMFailureException`, and `fetch` raises it.

    Args:
        client: A client; a plain or async function ``(prompt) -> str``; or a client for each `RunPosition.llm`.
        params: Attempts, limits, time-outs (see `LLMParams`).
        store: See `LLMGateway`, also for `kind`, `note` and `budget`.
        fails_if_useless: Whether to raise LLMFailureException if the first `MAX_USELESS_ANSWERS` answers are useless.
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
        fails_if_useless: bool = False,
    ) -> None:
        params = params or LLMParams(kind=kind, timeout_s=60.0)
        wrapped = client if isinstance(client, ChatClient | Mapping) else FunctionClient(client)
        self.clients: Mapping[str, ChatClient] = wrapped if isinstance(wrapped, Mapping) else {"": wrapped}
        self.client = next(iter(self.clients.values()))
        super().__init__(
            _PromptHandler(self.clients, params.timeout_s, fails_if_useless),
            params,
            store,
            slots=1 if kind == "embedded" else params.max_concurrency,
            attempts=params.attempts or (ATTEMPTS_EMBEDDED if kind == "embedded" else ATTEMPTS),
            kind=kind,
            note=note,
            budget=budget,
        )

    @property
    def label(self) -> str:
        """The client's name in summaries."""
        name = ", ".join(map(client_label, self.clients.values()))
        return f"{name}, replayed" if self.store.mode == "replay" else name

    async def call_with_retry[D: BaseModel](
        self,
        prompt: str,
        response_model: type[D],
        *,
        accept: Callable[[D], bool] | None = None,
        accept_rule: str = "",
        component: str = "agent",
        position: RunPosition | None = None,
    ) -> D:
        """Return the LLM's answer to a prompt as an instance of `response_model`; see `LLMRequest` for the arguments.

        Raises LLMFailureException if all attempts failed, and OracleError if a replayed ledger lacks the prompt.
        """
        options: dict[str, Any] = {"component": component, "position": position or RunPosition()}
        return await self.fetch(LLMRequest(prompt, response_model, accept, accept_rule, **options))

    async def fetch[D](self, request: LLMRequest[D]) -> D:
        """Return the answer to one request. Raises the same errors as `call_with_retry`."""
        [answer] = await self.answer_all([request])
        if isinstance(answer, LLMFailureException):
            raise answer
        result: D = answer
        return result
