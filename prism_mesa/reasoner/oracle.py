"""Oracles: they write the prompt of a question, ask an LLM, and read its answer.

`Oracle.write` and `Oracle.read` are pure functions, so a recorded answer can be read again without an LLM.
"""

from collections.abc import Mapping, Sequence
from inspect import isawaitable
from typing import Any, Literal, Protocol, runtime_checkable

from prism_mesa.errors import ConfigError
from prism_mesa.llm.clients.base import (
    ChatClient,
    Completion,
    FunctionClient,
    PromptFunction,
    client_digest,
    client_label,
)
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.multiple_choice import TOP_LOGPROBS, make_recordable, read_options, require_complete
from prism_mesa.llm.params import decision_decoding
from prism_mesa.llm.text import clean_text, find_bare_option, parse_json
from prism_mesa.params import short_repr
from prism_mesa.reasoner.params import ReasonerParams
from prism_mesa.reasoner.prompt import SOCIAL, Role, answer_schema, decision_form, question_prompt
from prism_mesa.reasoner.question import Question
from prism_mesa.statechart import State

type AnswerForm = Literal["choice", "probabilities", "decision"]

_REASON_CAP = 300


@runtime_checkable
class Oracle(Protocol):
    """An LLM that a reasoner asks.

    Attributes:
        name: The LLM's name; `label` is the oracle's name in summaries.
        digest: The LLM's build; empty if unknown.
        decoding: Every option that can change an answer (temperature, seed, ...), as JSON values.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def digest(self) -> str: ...  # noqa: D102
    @property
    def label(self) -> str: ...  # noqa: D102
    @property
    def decoding(self) -> Mapping[str, Any]: ...  # noqa: D102

    def write(self, question: Question) -> str:
        """Return the prompt: everything in the question that can change the LLM's answer."""

    async def ask(self, prompt: str, question: Question, attempt: int = 0) -> Completion:
        """Return the LLM's answer. Its `text` is recorded. Raises OracleError if there is no answer."""

    def read(self, question: Question, raw: str) -> tuple[float, ...]:
        """Return the probability of each option, adding up to 1. Raises UselessAnswerError if there is no answer."""


class ChatOracle:
    """Asks a chat client for one option (`choice`), or for the probabilities of all options.

    For `probabilities` the LLM answers with the letter of an option, and `multiple_choice` reads the log-probabilities
    of all letters. A client without log-probabilities (a function) may return a letter or ``{"composing": 0.7, ...}``.
    With both forms the LLM may also answer with only the name of an option, such as ``composing``. With `reason` the
    LLM adds a sentence that explains the choice (see `read_reason`). For `decision` see `llm.decision`.
    """

    def __init__(
        self,
        client: ChatClient,
        form: AnswerForm = "choice",
        orders: int = 1,
        *,
        reason: bool = False,
        role: Role = SOCIAL,
    ) -> None:
        self.client, self.form, self.reason, self.role, self.name = client, form, reason, role, client.name
        self.calls = orders if form == "decision" else 1

    @property
    def digest(self) -> str:
        """The LLM's build."""
        return client_digest(self.client)

    @property
    def label(self) -> str:
        """The client's name in summaries."""
        return client_label(self.client)

    @property
    def decoding(self) -> dict[str, Any]:
        """The client's decoding options, and the form of the answer."""
        if self.form == "decision":
            return decision_decoding(self.client.decoding, self.calls)
        return {**self.client.decoding, "answer": self.form}

    def write(self, question: Question) -> str:
        """Return the question's prompt."""
        lettered = None if self.form == "decision" else self.form == "probabilities"
        if lettered and len(question.options) > TOP_LOGPROBS:
            advice = "set answer=choice, or split the choice"
            raise ConfigError(f"{len(question.options)} options, probabilities has at most {TOP_LOGPROBS}: {advice}")
        return question_prompt(question, lettered=lettered, reason=self.reason, role=self.role)

    async def ask(self, prompt: str, question: Question, attempt: int = 0) -> Completion:
        """Return the client's answer."""
        if self.form == "decision":
            return await decision_form(question.options, self.calls, self.role).ask(self.client, prompt)
        if self.form == "choice":
            schema = answer_schema(question.options, reason=self.reason)
            return require_complete(await self._chat(prompt, schema, attempt))
        completion = await self._chat(prompt, None, attempt, TOP_LOGPROBS)
        texts = [(option.value, self.role.option_text(option)) for option in question.options]
        return make_recordable(completion, [f"{name}: {text}" if text else name for name, text in texts])

    async def _chat(self, *arguments: Any) -> Completion:
        """Return the client's answer. Raises ConfigError if `chat` is not async, or returns something else."""
        answer: Any = self.client.chat(*arguments)
        completion = await answer if isawaitable(answer) else answer
        if completion is answer or not isinstance(completion, Completion):
            advice = "write async def chat(prompt, schema, attempt) that returns Completion(text)"
            raise ConfigError(f"{self.label}: chat returns {short_repr(completion)}; {advice}")
        return completion

    def read(self, question: Question, raw: str) -> tuple[float, ...]:
        """Return the probability of each option."""
        if self.form == "decision":
            return decision_form(question.options, self.calls, self.role).read(raw)
        names = [option.value for option in question.options]
        if self.form == "probabilities":
            return read_options(raw, names, "invalid-state")
        index = find_bare_option(raw, names)
        if index < 0:
            index = question.options.index(parse_reasoner_response(raw, question.options))
        return tuple(float(i == index) for i in range(len(names)))


def as_oracle(
    client: Oracle | ChatClient | PromptFunction, params: ReasonerParams, name: str = "", role: Role = SOCIAL
) -> Oracle:
    """Wrap a chat client, or a function with a `name`, in a `ChatOracle`. Oracles are returned unchanged."""
    if isinstance(client, Oracle):
        return client
    if callable(client) and not isinstance(client, ChatClient):
        client = FunctionClient(client, name)
    if not isinstance(client, ChatClient):
        allowed = "a client with name, decoding and chat(), or a function of the prompt"
        raise TypeError(f"{client!r} is not an LLM client: give {allowed}")
    return ChatOracle(client, params.answer or "choice", params.decision_orders, reason=params.reason, role=role)


def parse_reasoner_response(response_text: str, options: Sequence[State]) -> State:
    """Return the option that ``{"next_state": "<value>"}`` names, in upper or lower case.

    Raises:
        UselessAnswerError: (a ValueError) `unparsable` if the text is not a JSON object with a string under
            ``next_state``, `invalid-state` if the string is not an option, or `thought` if the text is only a thought.
    """
    data = parse_json(response_text)
    name = data.get("next_state") if isinstance(data, dict) else None
    if not isinstance(name, str):
        fault = f'the answer {response_text[:80]!r} is not an object {{"next_state": "<state>"}}'
        raise UselessAnswerError("unparsable", fault)
    name = name.strip()
    matches = [option for option in options if option.value.casefold() == name.casefold()]
    if matches:
        return next((option for option in matches if option.value == name), matches[0])
    allowed = ", ".join(option.value for option in options)
    raise UselessAnswerError("invalid-state", f"invalid state {name[:80]!r} (allowed: {allowed})")


def read_reason(response_text: str) -> str:
    """Return the cleaned reason in an answer (see `clean_text`); empty if there is none."""
    try:
        data = parse_json(response_text)
    except UselessAnswerError:
        return ""
    reason = data.get("reason") if isinstance(data, dict) else None
    return clean_text(reason, _REASON_CAP) if isinstance(reason, str) else ""
