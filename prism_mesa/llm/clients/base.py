"""The interface of an LLM's client: it takes a prompt and returns a `Completion`; each failure is an `OracleError`."""

import inspect
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from functools import wraps
from json import dumps
from typing import Any, Protocol, runtime_checkable

from prism_mesa.errors import OracleError
from prism_mesa.llm.text import parse_json

type PromptFunction = Callable[[str], str | Awaitable[str]]
type Schema = dict[str, Any] | None
type TokenLogprobs = tuple[tuple[tuple[str, float], ...], ...]


@dataclass(frozen=True)
class Completion:
    """An LLM's answer and its cost; unknown counts are 0.

    Attributes:
        top_logprobs: For each token of the answer, if requested, the likeliest tokens at its position with their
            log-probabilities, best first.
        calls: The number of requests for the answer.
        truncated: Whether the LLM reached its limit of tokens, so that the answer may be incomplete.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    latency_ms: float = 0.0
    top_logprobs: TokenLogprobs = ()
    calls: int = 1
    truncated: bool = False


@runtime_checkable
class ChatClient(Protocol):
    """A client of an LLM.

    A client may also have `digest` (the LLM's build, part of the ledger's key), `label` (the client's name in
    summaries), and `decide(state, question)`, which asks a decision model (see `llm.decision`).

    Attributes:
        name: The LLM's name.
        decoding: Every option that can change an answer (temperature, seed, ...), as JSON values.
    """

    name: str
    decoding: dict[str, Any]

    async def chat(self, prompt: str, schema: Schema = None, seed_offset: int = 0, top_logprobs: int = 0) -> Completion:
        """Return the LLM's answer.

        Args:
            prompt: The full prompt.
            schema: The JSON schema of the answer. A client may ignore it.
            seed_offset: Added to the sampling seed, so that attempts can differ.
            top_logprobs: Number of likeliest tokens wanted for each position of the answer, 0..20.

        Raises:
            OracleError: If there is no answer; its `reason` is one word.
        """


def client_digest(client: ChatClient) -> str:
    """Return the build of a client's LLM; empty if unknown."""
    return str(getattr(client, "digest", ""))


def client_label(client: ChatClient) -> str:
    """Return a client's name in summaries."""
    return str(getattr(client, "label", client.name))


def timed[**P](ask: Callable[P, Awaitable[Completion]]) -> Callable[P, Coroutine[Any, Any, Completion]]:
    """Decorate a coroutine function that returns a completion, and set the completion's `latency_ms`."""

    @wraps(ask)
    async def timed_ask(*args: P.args, **kwargs: P.kwargs) -> Completion:
        started = time.perf_counter()
        completion = await ask(*args, **kwargs)
        return replace(completion, latency_ms=(time.perf_counter() - started) * 1000)

    return timed_ask


class FunctionClient:
    """A client that calls a plain or async function of the prompt. The function gets neither seed nor schema."""

    def __init__(self, function: PromptFunction, name: str = "") -> None:
        self.function = function
        self.name = name or getattr(function, "__qualname__", type(function).__name__)
        self.digest = ""
        self.decoding: dict[str, Any] = {}
        self.label = f"function {self.name}"

    async def chat(self, prompt: str, schema: Schema = None, seed_offset: int = 0, top_logprobs: int = 0) -> Completion:
        """Return the function's answer. Raises OracleError (`empty`) if it is not a string; other errors propagate."""
        answer = self.function(prompt)
        text = await answer if inspect.isawaitable(answer) else answer
        if not isinstance(text, str) or not text.strip():
            raise OracleError("empty", f"{self.label} returned {text!r} instead of a string")
        return Completion(text)

    async def decide(self, state: str, question: Mapping[str, Any]) -> Completion:
        """Return the decision of a function that returns the options' probabilities as a JSON object."""
        answer = {"probabilities": parse_json((await self.chat(state)).text)}
        return Completion(dumps({"model": self.name, "answer": answer}))
