"""Answers in a form: a prompt and a pydantic model go in, an instance of that model comes out, or a named failure.

It stands on what the oracle stands on: the same clients, desk, limits and ledger. Nothing stands in for an answer here:
who asks must be able to go without, which is to change nothing.
"""

import asyncio
import json
import logging
import re
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import TracebackType
from typing import Any, Final, Self
from weakref import finalize

from pydantic import BaseModel, ValidationError

from prism_mesa.errors import LLMFailureException, OracleError
from prism_mesa.reasoner.books import Books
from prism_mesa.reasoner.budget import Budget
from prism_mesa.reasoner.client import ChatClient, Completion, FunctionClient, PromptFunction
from prism_mesa.reasoner.desk import Call, Desk
from prism_mesa.reasoner.ledger import AskedRow, Ledger, StoredAnswer, answer_key
from prism_mesa.reasoner.loops import LoopThread
from prism_mesa.reasoner.params import LLMParams
from prism_mesa.reasoner.parse import UselessAnswerError
from prism_mesa.reasoner.question import Source

logger = logging.getLogger("prism_mesa.reasoner")

ATTEMPTS: Final = 2
"""How often a prompt is asked where the parameters do not say: once, and once more."""
ATTEMPTS_EMBEDDED: Final = 8
"""The same for the embedded LLM, of which one answer in five or so is of no use."""
_GRACE_S: Final = 0.1
"""How much longer than `LLMParams.timeout_s` an attempt may last: a client that keeps to it says itself what happened,
so that `Hosts` knows which server does not answer."""


@dataclass(frozen=True)
class Place:
    """Where in a run a prompt belongs: by round, by agent (its row), and by which of the agent's questions it is."""

    round: int = 0
    agent: int = -1
    tick: int = 0


@dataclass(frozen=True)
class _Form[D: BaseModel]:
    """What an answer must look like.

    Attributes:
        accept: Whether an answer of the right form is of any use.
        name: What `accept` goes by; another name is another question.
    """

    model: type[D]
    accept: Callable[[D], bool] | None = None
    name: str = ""

    @cached_property
    def schema(self) -> dict[str, Any]:
        return self.model.model_json_schema()

    @cached_property
    def options(self) -> tuple[str, str]:
        """What counts for the ledger's key."""
        return f"{self.model.__name__} {self.name}".strip(), json.dumps(self.schema, sort_keys=True)

    def read(self, raw: str) -> D:
        """Return the answer that a text holds.

        Raises:
            UselessAnswerError: `unparsable` if it is no JSON, `wrong-shape` if it has not the form, `irrelevant` if it
                is of no use.
        """
        try:
            said = self.model.model_validate_json(_unfenced(raw))
        except ValidationError as error:
            fault = error.errors()[0]
            reason = "unparsable" if fault["type"] == "json_invalid" else "wrong-shape"
            path = ".".join(map(str, fault["loc"]))
            raise UselessAnswerError(reason, f"the answer {raw[:80]!r}: {path or 'JSON'}: {fault['msg']}") from None
        if self.accept is not None and not self.accept(said):
            raise UselessAnswerError("irrelevant", f"the answer {raw[:80]!r} has nothing to do with the question")
        return said


def _unfenced(raw: str) -> str:
    """Return what stands in a Markdown fence, if all of a text does: some LLMs cannot do without."""
    found = re.fullmatch(r"\s*```(?:json)?\s*(.*?)\s*```\s*", raw, re.DOTALL)
    return found[1] if found else raw


class _Asked:
    """A chat client as the desk asks it: a try that takes too long is given up."""

    def __init__(self, client: ChatClient, timeout_s: float) -> None:
        self.client = client
        self._timeout_s = timeout_s

    @property
    def decoding(self) -> Mapping[str, Any]:
        return self.client.decoding

    async def ask(self, prompt: str, form: _Form[Any], attempt: int = 0) -> Completion:
        try:
            async with asyncio.timeout(self._timeout_s + _GRACE_S):
                return await self.client.chat(prompt, form.schema, seed_offset=attempt)
        except TimeoutError as error:
            raise OracleError("timeout", f"no answer within {self._timeout_s:g} s") from error

    def read(self, form: _Form[Any], raw: str) -> BaseModel:
        said: BaseModel = form.read(raw)
        return said


class LLMClient:
    """Asks an LLM for answers in a form, and records them.

    Equal prompts for the same form are asked once; whoever asks again gets the same answer. What may pass (a timeout,
    a server error, an answer of no use) is asked again, by default once, with the next sampling seed; a refusal (4xx)
    is not. Several prompts may be out at the same time, from any event loop.

    Args:
        client: What is asked; a function ``(prompt) -> str``, plain or async, will do.
        params: Attempts, limits, time-outs (see `LLMParams`).
        books: What is known before and where answers are shared; by default nothing and nowhere.
        kind: What of `LLMParams.kind` it is; `python` if it was made by hand.
        note: Why it is asked although something else was wished for; else empty.

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
        books: Books | None = None,
        kind: str = "python",
        note: str = "",
    ) -> None:
        self.client: ChatClient = client if isinstance(client, ChatClient) else FunctionClient(client)
        self.params = params or LLMParams(kind=kind, timeout_s=60.0)
        self.books = books or Books()
        self.kind = kind
        self.note = note
        self.counts: Counter[Source] = Counter()
        self.reasons: Counter[str] = Counter()
        self.usage: Counter[str] = Counter()
        self._budget = Budget(self.params)
        self._waiting: dict[str, asyncio.Future[Call[_Form[Any]]]] = {}
        self._background: LoopThread | None = None
        self._making = threading.Lock()
        self._desk: Desk[_Form[Any]] | None = None

    @property
    def label(self) -> str:
        """What a summary calls it."""
        name = str(getattr(self.client, "label", self.client.name))
        return f"{name}, replayed" if self.books.mode == "replay" else name

    @property
    def attempts(self) -> int:
        """How often a prompt is asked whose failure may pass."""
        return self.params.attempts or (ATTEMPTS_EMBEDDED if self.kind == "embedded" else ATTEMPTS)

    def record(self, ledger: Ledger, run: str) -> None:
        """Write to `ledger` from now on, as the run of this name (see `Books.run`)."""
        self.books.begin(ledger, run)

    async def call_with_retry[D: BaseModel](
        self,
        prompt: str,
        response_model: type[D],
        *,
        accept: Callable[[D], bool] | None = None,
        accepts: str = "",
        component: str = "agent",
        place: Place | None = None,
    ) -> D:
        """Return the LLM's answer to a prompt, as an instance of `response_model`.

        Args:
            prompt: The whole prompt.
            response_model: The form of the answer; its JSON schema goes with the prompt.
            accept: Whether an answer of that form is of any use; one that is not counts as none.
            accepts: A name for what `accept` goes by, where it can differ for the same prompt.
            component: Who asks, for errors.
            place: Where in the run the prompt belongs.

        Raises:
            LLMFailureException: If no attempt brought an answer.
            OracleError: `not-recorded`, if the ledger that is replayed does not hold the prompt.
        """
        form = _Form(response_model, accept, accepts)
        work = self._answered(prompt, form, component, place or Place())
        return await asyncio.wrap_future(self._loop().start(work))

    def _loop(self) -> LoopThread:
        with self._making:
            if self._background is None or not self._background.is_here:
                self._background = LoopThread()
                self._desk = None
                self._waiting.clear()
                finalize(self, self._background.stop)
            return self._background

    def _desk_of_this_loop(self) -> "Desk[_Form[Any]]":
        if self._desk is None:
            self._desk = Desk(
                _Asked(self.client, self.params.timeout_s),
                self._call_is_done,
                slots=1 if self.kind == "embedded" else self.params.max_concurrency,
                attempts=self.attempts,
                backoff_s=self.params.backoff_s,
                budget=self._budget,
                usage=self.usage,
            )
        return self._desk

    async def _answered[D: BaseModel](self, prompt: str, form: _Form[D], component: str, place: Place) -> D:
        self._budget.at_round(place.round)
        digest = str(getattr(self.client, "digest", ""))
        key = answer_key(prompt, form.options, self.client.name, digest, self.client.decoding)
        try:
            if self.books.mode == "replay":
                return self._replayed(key, form, component, place)
            return await self._found_or_asked(key, prompt, form, component, place)
        except UselessAnswerError as error:  # of a shared ledger: its first answer stands, and nobody is asked again
            self._note_failure(place, key, component, error.reason, 0, error)
            told = f"what the ledger holds for the {component} is of no use: {error}"
            raise LLMFailureException(error.reason, 0, component, told) from error

    def _replayed[D: BaseModel](self, key: str, form: _Form[D], component: str, place: Place) -> D:
        past = self.books.past(place.round, place.tick, place.agent)
        if past is not None and past.source == "failed" and (past.key == key or not self.books.has_answers):
            error = LLMFailureException(past.reason, past.attempts, component)
            self._note_failure(place, key, component, past.reason, past.attempts, error)
            raise error
        raw = self.books.raw_of(key)
        if raw is None:
            other = "" if past is None else "; another prompt stands there: has the configuration changed?"
            where = "" if self.books.shared is None else f" {self.books.shared.path}"
            raise OracleError(
                "not-recorded", f"the ledger{where} holds no answer for round {place.round}, agent {place.agent}{other}"
            )
        said = form.read(raw)
        self._note(place, key, "cache")
        return said

    async def _found_or_asked[D: BaseModel](
        self, key: str, prompt: str, form: _Form[D], component: str, place: Place
    ) -> D:
        raw = self.books.raw_of(key)
        first = raw is None and key not in self._waiting
        if raw is None:
            call = await self._asked(key, prompt, form, place)
            if call.completion is None:
                self._give_up(call, component, place, call.attempts if first else 0)
            raw = self.books.raw_of(key) or ""
        said = form.read(raw)
        self._note(place, key, "llm" if first else "cache", "", call.attempts if first else 0)
        return said

    async def _asked(self, key: str, prompt: str, form: _Form[Any], place: Place) -> Call[_Form[Any]]:
        """Return the call of a key when it is done; equal prompts share one."""
        if key not in self._waiting:
            self._waiting[key] = asyncio.get_running_loop().create_future()
            desk = self._desk_of_this_loop()
            desk.put(Call(key, prompt, form, (0.0, place.tick, place.agent)))
        waiting = self._waiting[key]
        desk = self._desk_of_this_loop()
        while not waiting.done():
            desk.flush()
            await desk.news()
        return waiting.result()

    def _call_is_done(self, call: Call[_Form[Any]]) -> None:
        if call.completion is not None:
            self.books.keep(self._stored(call, call.completion))
        self._waiting.pop(call.key).set_result(call)

    def _give_up(self, call: Call[_Form[Any]], component: str, place: Place, attempts: int) -> None:
        """Write down that no answer came, and raise it."""
        why = call.error or "a limit is used up"
        self._note_failure(place, call.key, component, call.reason, attempts, why)
        told = f"the LLM gave the {component} no usable answer ({call.reason}, attempts: {call.attempts}): {why}"
        raise LLMFailureException(call.reason, call.attempts, component, told) from call.error

    def _note_failure(
        self, place: Place, key: str, component: str, reason: str, attempts: int, why: Exception | str
    ) -> None:
        self.reasons[reason] += 1
        self._note(place, key, "failed", reason, attempts)
        logger.error("LLM_FAILURE component=%s agent=%d (%s: %s)", component, place.agent, reason, why)

    def _note(self, place: Place, key: str, source: Source, reason: str = "", attempts: int = 0) -> None:
        self.counts[source] += 1
        self.books.note([AskedRow(place.round, place.tick, place.agent, key, source, reason, attempts, self.books.run)])

    def _stored(self, call: Call[_Form[Any]], said: Completion) -> StoredAnswer:
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

    def begin(self) -> None:
        """Begin anew for another model: what is still out is dropped, limits are full."""
        self._stop()
        self._budget = Budget(self.params)

    def _stop(self) -> None:
        if self._background is not None:
            self._background.stop()
        self._background = None
        self._desk = None
        self._waiting.clear()

    def close(self) -> None:
        """End the background thread and its connections, and close the shared ledger; doing it twice does no harm."""
        self._stop()
        self.books.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
