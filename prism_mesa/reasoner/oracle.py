"""The seam between a question and an LLM: write it down, ask, read the answer.

An `Oracle` knows questions and options but no ledger, no budget and no agent. `write` and `read` are pure, so a
recorded answer can be read again without any LLM; only `ask` goes out.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from prism_mesa.reasoner.client import ChatClient, Completion, FunctionClient, PromptFunction
from prism_mesa.reasoner.parse import UselessAnswerError, parse_reasoner_response
from prism_mesa.reasoner.prompt import LETTERS, answer_schema, question_prompt
from prism_mesa.reasoner.question import Question
from prism_mesa.statechart import AgentState

type AnswerForm = Literal["choice", "probabilities"]

TOP_LOGPROBS = 20
LEAST_MASS = 0.5
_PROMPT_OVERHEAD = 256
"""Tokens that a server may add to a prompt (its template); a token is at least one byte of text."""


@runtime_checkable
class Oracle(Protocol):
    """What a reasoner asks."""

    @property
    def name(self) -> str:
        """The LLM's name."""
        ...

    @property
    def digest(self) -> str:
        """Which build of the LLM answers; empty where nobody says."""
        ...

    @property
    def label(self) -> str:
        """What a summary calls it."""
        ...

    @property
    def decoding(self) -> Mapping[str, Any]:
        """Every option that can change an answer (temperature, seed, ...), as JSON values."""
        ...

    def write(self, question: Question) -> str:
        """Return the prompt: whatever of the question can change what the LLM says. Pure."""
        ...

    async def ask(self, prompt: str, question: Question, attempt: int = 0) -> Completion:
        """Return what the LLM says; its `text` is what is recorded, and what `read` reads.

        Raises:
            OracleError: If there is no answer.
        """
        ...

    def read(self, question: Question, raw: str) -> tuple[float, ...]:
        """Return the probability of each option, adding up to 1 (a plain choice: 1 for one of them). Pure.

        Raises:
            UselessAnswerError: If the text is no answer to the question.
        """
        ...


class ChatOracle:
    """Asks a chat client in words, for one option (`choice`) or for the probabilities of all of them.

    For `probabilities` the options are lettered and the LLM is asked for one letter; the probabilities are
    those of the letters at the first place where they have at least `LEAST_MASS` together, scaled to add up to 1; where
    there is none (the LLM talks, and does not choose) the answer is useless. Letters
    that are not among the `TOP_LOGPROBS` likeliest tokens count as the least likely of these, or as what
    these leave of 1 if that is less; both are at least what they have. A client without log-probabilities
    (a function) may say ``{"composing": 0.7, ...}``.
    """

    def __init__(self, client: ChatClient, form: AnswerForm = "choice") -> None:
        self.client = client
        self.form = form
        self.name = client.name

    @property
    def digest(self) -> str:
        """Which build of the LLM answers."""
        return str(getattr(self.client, "digest", ""))

    @property
    def label(self) -> str:
        """What a summary calls it."""
        return str(getattr(self.client, "label", self.client.name))

    @property
    def decoding(self) -> dict[str, Any]:
        """The client's options, and the form of the answer."""
        return {**self.client.decoding, "answer": self.form}

    def write(self, question: Question) -> str:
        """Return the question in words."""
        return question_prompt(question, lettered=self.form == "probabilities")

    async def ask(self, prompt: str, question: Question, attempt: int = 0) -> Completion:
        """Return what the client says; with `probabilities` as JSON of the text and the letters' numbers."""
        if self.form == "choice":
            return await self.client.chat(prompt, answer_schema(question.options), attempt)
        said = await self.client.chat(prompt, None, attempt, TOP_LOGPROBS)
        if not said.top_logprobs:
            return said
        raw = json.dumps({"text": said.text, "top_logprobs": _deciding_place(said, len(question.options))})
        return Completion(raw, said.prompt_tokens, said.completion_tokens, said.latency_ms)

    def read(self, question: Question, raw: str) -> tuple[float, ...]:
        """Return the probability of each option."""
        if self.form == "choice":
            chosen = parse_reasoner_response(raw, question.options)
            return tuple(float(option is chosen) for option in question.options)
        return _read_probabilities(raw, question.options)


def _deciding_place(said: Completion, n_options: int) -> dict[str, float]:
    """Return the tokens of the first place at which a letter of an option is among the likeliest."""
    for place in said.top_logprobs:
        likely = sum(math.exp(min(logprob, 0.0)) for token, logprob in place if _place(token, n_options) >= 0)
        if likely >= LEAST_MASS:
            return dict(place)
    return {}


def _place(token: str, n_options: int) -> int:
    """Return the option that a token names, or -1; a small ``a`` is a word, not a letter."""
    bare = token.strip().strip("\"'().:*")
    return LETTERS[:n_options].find(bare) if len(bare) == 1 else -1


def _read_probabilities(raw: str, options: Sequence[AgentState]) -> tuple[float, ...]:
    try:
        said = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise UselessAnswerError("unparsable", f"the answer {raw[:80]!r} is not JSON") from error
    if not isinstance(said, dict):
        raise UselessAnswerError("unparsable", f"the answer {raw[:80]!r} holds no probabilities")
    top = said.get("top_logprobs")
    if isinstance(top, dict):
        weights = _weights_of_letters(top, len(options))
    else:
        weights = [_positive(said.get(option.value, 0.0)) for option in options]
    total = sum(weights)
    if not 0.0 < total < math.inf:
        allowed = ", ".join(option.value for option in options)
        raise UselessAnswerError("invalid-state", f"the answer {raw[:80]!r} names no option (allowed: {allowed})")
    return tuple(weight / total for weight in weights)


def _weights_of_letters(top: Mapping[str, Any], n_options: int) -> list[float]:
    known = {token: float(value) for token, value in top.items() if _is_number(value)}
    if not known:
        return [0.0] * n_options
    shares = [math.exp(min(logprob, 0.0)) for logprob in known.values()]
    floor = min(*shares, max(1.0 - sum(shares), 0.0))
    weights = [0.0] * n_options
    for token, logprob in known.items():
        place = _place(token, n_options)
        if place >= 0:
            weights[place] += math.exp(min(logprob, 0.0))
    return [weight or floor for weight in weights] if any(weights) else weights


def _is_number(value: Any) -> bool:
    """Whether `value` is a number that a float can hold, infinities included."""
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
    except OverflowError:
        return False


def _positive(value: Any) -> float:
    return max(float(value), 0.0) if _is_number(value) else 0.0


def most_tokens(prompt: str, decoding: Mapping[str, Any]) -> int:
    """Return a number of tokens that asking `prompt` cannot exceed: what a budget sets aside for it."""
    return len(prompt.encode("utf-8", "replace")) + _PROMPT_OVERHEAD + int(decoding.get("max_tokens", 0))


def as_oracle(client: Oracle | ChatClient | PromptFunction, form: AnswerForm = "choice") -> Oracle:
    """Return what a reasoner can ask: an oracle as it is, a chat client or a function of the prompt in one.

    Raises:
        TypeError: If it is none of these.
    """
    if isinstance(client, Oracle):
        return client
    if isinstance(client, ChatClient):
        return ChatOracle(client, form)
    if callable(client):
        return ChatOracle(FunctionClient(client), form)
    raise TypeError(
        f"{client!r} cannot be asked: give a client with name, decoding and chat(), or a function of the prompt"
    )
