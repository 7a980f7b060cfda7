"""Answers in a form: a prompt and a pydantic model go in, an instance of that model comes out, or a named failure.

The form may be plain text as well. It goes through the clients, dispatcher, limits and ledger that all requests share.
There is no fallback: whoever asks goes without and leaves everything as it was.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel

from prism_mesa.errors import LLMFailureException, OracleError
from prism_mesa.llm.clients.base import ChatClient, Completion, FunctionClient, PromptFunction
from prism_mesa.llm.dispatch.budget import Budget
from prism_mesa.llm.dispatch.dispatcher import NO_BUDGET, Call
from prism_mesa.llm.dispatch.gateway import LLMGateway
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.formats.request import LLMRequest, RunPosition
from prism_mesa.llm.ledger.answers import AnswerStore
from prism_mesa.llm.ledger.database import AskedRow, StoredAnswer, answer_key
from prism_mesa.llm.params import LLMParams, Source

logger = logging.getLogger("prism_mesa.llm")

ATTEMPTS: Final = 2
"""How often a prompt is asked where the parameters do not say: once, and once more."""
ATTEMPTS_EMBEDDED: Final = 8
"""The same for the embedded LLM, of which one answer in five or so is of no use."""
_GRACE_S: Final = 1.0
"""How much longer than `LLMParams.timeout_s` an attempt of a client may last that keeps to it: it says itself what
happened, so that `HostPool` knows which server does not answer. Its first attempt also makes its connection."""


class _Asked:
    """A chat client as the dispatcher asks it: a try that takes too long is given up."""

    def __init__(self, client: ChatClient, timeout_s: float) -> None:
        self.client = client
        self._timeout_s = timeout_s

    @property
    def decoding(self) -> Mapping[str, Any]:
        return self.client.decoding

    async def ask(self, prompt: str, question: LLMRequest[Any], attempt: int = 0) -> Completion:
        try:
            grace_s = 0.0 if isinstance(self.client, FunctionClient) else _GRACE_S
            async with asyncio.timeout(self._timeout_s + grace_s):
                said = await question.ask(self.client, attempt)
        except TimeoutError as error:
            raise OracleError("timeout", f"no answer within {self._timeout_s:g} s") from error
        return question.heard(said)

    def read(self, question: LLMRequest[Any], raw: str) -> object:
        return question.read(raw)


type _Out = asyncio.Future[Call[LLMRequest[Any]]]


@dataclass(frozen=True)
class _PendingRequest:
    """What is wanted, its key, and, if the LLM is asked, the call; `first` if nobody asked for the same before."""

    request: LLMRequest[Any]
    key: str
    out: _Out | None = None
    first: bool = False


class LLMClient(LLMGateway[LLMRequest[Any], LLMParams]):
    """Asks an LLM for answers in a form, and records them.

    Equal prompts for the same form are asked once; whoever asks again gets the same answer. What may pass (a timeout,
    a server error, an answer of no use) is asked again, by default once, with the next sampling seed; a refusal (4xx)
    is not. Several prompts may be out at the same time, from any event loop.

    Args:
        client: What is asked; a function ``(prompt) -> str``, plain or async, will do.
        params: Attempts, limits, time-outs (see `LLMParams`).
        store: What is known before and where answers are shared; by default nothing and nowhere.
        kind: What of `LLMParams.kind` it is; `python` if it was made by hand.
        note: Why it is asked although something else was wished for; else empty.
        budget: Limits that it shares with a reasoner or another client; by default those of `params`.

    Attributes:
        counts: Answers so far by source; `failed` are those that did not come.
        reasons: Failures so far by reason.
        usage: What was spent so far: `calls`, `prompt_tokens`, `completion_tokens`.
    """

    def __init__(
        self,
        client: ChatClient | PromptFunction,
        params: LLMParams | None = None,
        *,
        store: AnswerStore | None = None,
        kind: str = "python",
        note: str = "",
        budget: Budget | None = None,
    ) -> None:
        own = params or LLMParams(kind=kind, timeout_s=60.0)
        super().__init__(own, store, kind=kind, note=note, budget=budget)
        self.client: ChatClient = client if isinstance(client, ChatClient) else FunctionClient(client)
        self._waiting: dict[str, _Out] = {}

    @property
    def asked(self) -> _Asked:
        """The client."""
        return _Asked(self.client, self.params.timeout_s)

    @property
    def label(self) -> str:
        """What a summary calls it."""
        name = str(getattr(self.client, "label", self.client.name))
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
        [found] = await asyncio.wrap_future(self._loop().start(self._answer_all([request])))
        if isinstance(found, LLMFailureException):
            raise found
        answer: D = found
        return answer

    def answer(self, request: Sequence[LLMRequest[Any]]) -> list[Any]:
        """Return answers in the order of what is wanted, for callers that cannot await.

        In place of one that did not come stands its `LLMFailureException`. All are put before any is waited for, so
        that limits are spent by priority, then tick, then agent, whichever answer comes first.

        Raises:
            OracleError: `not-recorded`, if the ledger that is replayed does not hold a prompt.
        """
        return self._loop().run(self._answer_all(request)) if request else []

    async def _answer_all(self, request: Sequence[LLMRequest[Any]]) -> list[Any]:
        pending_requests = [self._begin(one) for one in request]
        outs = [pending.out for pending in pending_requests if pending.out is not None]
        while outs:
            if outs[-1].done():
                outs.pop()
                continue
            dispatcher = self._dispatcher_of_this_loop()
            dispatcher.flush()
            await dispatcher.news()
        rows: list[AskedRow] = []
        try:
            return [self._end(pending, rows) for pending in pending_requests]
        finally:
            self.store.note(rows)

    def _begin(self, request: LLMRequest[Any]) -> _PendingRequest:
        """Return what is wanted with its call, if it is not known; equal prompts share one."""
        self.budget.at_round(request.place.round)
        digest = str(getattr(self.client, "digest", ""))
        key = answer_key(request.prompt, request.options, self.client.name, digest, self.client.decoding)
        if self.store.mode == "replay" or self.store.raw_of(key) is not None:
            return _PendingRequest(request, key)
        first = key not in self._waiting
        if first:
            self._waiting[key] = asyncio.get_running_loop().create_future()
            place = request.place
            call = Call(key, request.prompt, request, (request.priority, place.tick, place.agent))
            self._dispatcher_of_this_loop().put(call)
        return _PendingRequest(request, key, self._waiting[key], first)

    def _call_is_done(self, call: Call[LLMRequest[Any]]) -> None:
        if call.completion is not None:
            self.store.keep(self._stored(call, call.completion))
        self._waiting.pop(call.key).set_result(call)

    def _end(self, pending: _PendingRequest, rows: list[AskedRow]) -> Any:
        """Return the answer or the failure, count it, and add what is to be written down to `rows`."""
        request, call = pending.request, None if pending.out is None else pending.out.result()
        attempts = call.attempts if call is not None and pending.first else 0
        try:
            if call is not None and call.completion is None:
                why = call.error or "a limit is used up"
                told = f"the LLM gave the {request.component} no usable answer"
                told += f" ({call.reason}, attempts: {call.attempts}): {why}"
                raise _failure(request, call.reason, call.attempts, told, call.error)
            said = self._replayed(pending) if self.store.mode == "replay" else request.read(self._raw(pending.key))
        except UselessAnswerError as error:  # of a shared ledger: its first answer stands, and nobody is asked again
            told = f"what the ledger holds for the {request.component} is of no use: {error}"
            return self._fail(pending, _failure(request, error.reason, 0, told, error), 0, rows)
        except LLMFailureException as failure:
            attempts = failure.attempts if self.store.mode == "replay" else attempts
            return self._fail(pending, failure, attempts, rows)
        self._note(pending, "llm" if pending.first else "cache", "", attempts, rows)
        return said

    @property
    def _is_known(self) -> bool:
        """Whether the ledger that is replayed says who was asked: if all failed, it does not."""
        digest = str(getattr(self.client, "digest", ""))
        return self.store.knows(self.client.name, digest, self.client.decoding)

    def _raw(self, key: str) -> str:
        return self.store.raw_of(key) or ""

    def _replayed(self, pending: _PendingRequest) -> Any:
        request, place = pending.request, pending.request.place
        past = self.store.past(place.round, place.tick, place.agent)
        if past is not None and past.source == "failed" and (past.key == pending.key or not self._is_known):
            raise LLMFailureException(past.reason, past.attempts, request.component)
        raw = self.store.raw_of(pending.key)
        if raw is None:
            other = "" if past is None else "; another prompt stands there: has the configuration changed?"
            where = "" if self.store.shared is None else f" {self.store.shared.path}"
            raise OracleError(
                "not-recorded", f"the ledger{where} holds no answer for round {place.round}, agent {place.agent}{other}"
            )
        return request.read(raw)

    def _fail(
        self, pending: _PendingRequest, failure: LLMFailureException, attempts: int, rows: list[AskedRow]
    ) -> LLMFailureException:
        self.reasons[failure.reason] += 1
        self._note(pending, "failed", failure.reason, attempts, rows)
        component, agent = pending.request.component, pending.request.place.agent
        why = failure.__cause__ or failure
        if failure.reason != NO_BUDGET:  # which is no failure, and may be a run's every agent
            logger.error("LLM_FAILURE component=%s agent=%d (%s: %s)", component, agent, failure.reason, why)
        return failure

    def _note(self, pending: _PendingRequest, source: Source, reason: str, attempts: int, rows: list[AskedRow]) -> None:
        self.counts[source] += 1
        place = pending.request.place
        rows.append(
            AskedRow(place.round, place.tick, place.agent, pending.key, source, reason, attempts, self.store.run)
        )

    def _stored(self, call: Call[LLMRequest[Any]], said: Completion) -> StoredAnswer:
        return StoredAnswer(
            key=call.key,
            prompt=call.prompt,
            options=json.dumps(call.question.options),
            llm=self.client.name,
            digest=str(getattr(self.client, "digest", "")),
            decoding=json.dumps(dict(self.client.decoding), sort_keys=True),
            raw=said.text,
            prompt_tokens=said.prompt_tokens,
            completion_tokens=said.completion_tokens,
            latency_ms=said.latency_ms,
        )

    def _forget(self) -> None:
        super()._forget()
        self._waiting.clear()


def _failure(
    request: LLMRequest[Any], reason: str, attempts: int, told: str, cause: Exception | None
) -> LLMFailureException:
    failure = LLMFailureException(reason, attempts, request.component, told)
    failure.__cause__ = cause
    return failure
