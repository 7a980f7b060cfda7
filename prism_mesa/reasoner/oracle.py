"""The seam between a question and an LLM: write it down, ask, read the answer.

`Oracle.write` and `Oracle.read` are pure, so a recorded answer can be read again without any LLM; only `ask` goes out.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

from prism_mesa.llm.clients.base import (
    ChatClient,
    Completion,
    FunctionClient,
    PromptFunction,
    client_digest,
    client_label,
)
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.multiple_choice import TOP_LOGPROBS, read_options, recordable, whole
from prism_mesa.llm.params import decision_decoding
from prism_mesa.llm.text import bare_option, parse_json, plain
from prism_mesa.reasoner.params import ReasonerParams
from prism_mesa.reasoner.prompt import STATE_DESCRIPTIONS, answer_schema, decision_form, question_prompt
from prism_mesa.reasoner.question import Question
from prism_mesa.statechart import AgentState

type AnswerForm = Literal["choice", "probabilities", "decision"]

_REASON_CAP = 300


@runtime_checkable
class Oracle(Protocol):
    """An LLM that a reasoner asks.

    Attributes:
        name: The LLM's name, and `label` its name in a summary.
        digest: Which build of the LLM answers; empty if unknown.
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
        """Return the prompt: everything in the question that can change the LLM's answer. Pure."""
        ...

    async def ask(self, prompt: str, question: Question, attempt: int = 0) -> Completion:
        """Return the LLM's answer; its `text` is recorded, and `read` reads it.

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
    """Ask a chat client for one option (`choice`) or for the probabilities of all options.

    For `probabilities` the options have letters and the LLM answers one letter; `multiple_choice` reads its
    log-probabilities. A client without them (a function) may return a letter or ``{"composing": 0.7, ...}``. In either
    form the bare name of an option, ``composing``, is that choice. With `reason` the LLM also explains its choice in a
    sentence (`reason_in`); an answer without it still counts. For a `decision` see `llm.decision`; there a
    function returns the probabilities of the options.
    """

    def __init__(
        self, client: ChatClient, form: AnswerForm = "choice", orders: int = 1, *, reason: bool = False
    ) -> None:
        self.client = client
        self.form = form
        self.reason = reason
        self.calls = orders if form == "decision" else 1
        self.name = client.name

    @property
    def digest(self) -> str:
        """Which build of the LLM answers."""
        return client_digest(self.client)

    @property
    def label(self) -> str:
        """What a summary calls it."""
        return client_label(self.client)

    @property
    def decoding(self) -> dict[str, Any]:
        """The client's options, and the form of the answer."""
        if self.form == "decision":
            return decision_decoding(self.client.decoding, self.calls)
        return {**self.client.decoding, "answer": self.form}

    def write(self, question: Question) -> str:
        """Return the question in words."""
        lettered = None if self.form == "decision" else self.form == "probabilities"
        return question_prompt(question, lettered=lettered, reason=self.reason)

    async def ask(self, prompt: str, question: Question, attempt: int = 0) -> Completion:
        """Return the client's answer; with `probabilities` as JSON of the text and the letters' log-probabilities."""
        if self.form == "decision":
            return await decision_form(question.options, self.calls).ask(self.client, prompt)
        if self.form == "choice":
            return whole(await self.client.chat(prompt, answer_schema(question.options, reason=self.reason), attempt))
        completion = await self.client.chat(prompt, None, attempt, TOP_LOGPROBS)
        return recordable(completion, [f"{option.value}: {STATE_DESCRIPTIONS[option]}" for option in question.options])

    def read(self, question: Question, raw: str) -> tuple[float, ...]:
        """Return the probability of each option."""
        if self.form == "decision":
            return decision_form(question.options, self.calls).read(raw)
        names = [option.value for option in question.options]
        if self.form == "probabilities":
            return read_options(raw, names, "invalid-state")
        index = bare_option(raw, names)
        if index < 0:
            index = question.options.index(parse_reasoner_response(raw, question.options))
        return tuple(float(at == index) for at in range(len(names)))


def as_oracle(client: Oracle | ChatClient | PromptFunction, params: ReasonerParams, name: str = "") -> Oracle:
    """Return an oracle as it is, and wrap a chat client, or a function with the name `name`, in a `ChatOracle`.

    Raises:
        TypeError: If `client` is none of these.
    """
    if isinstance(client, Oracle):
        return client
    asked = FunctionClient(client, name) if callable(client) and not isinstance(client, ChatClient) else client
    if not isinstance(asked, ChatClient):
        wanted = "a client with name, decoding and chat(), or a function of the prompt"
        raise TypeError(f"{client!r} cannot be asked: give {wanted}")
    return ChatOracle(asked, params.answer or "choice", params.decision_orders, reason=params.reason)


def parse_reasoner_response(response_text: str, options: Sequence[AgentState]) -> AgentState:
    """Return the option that ``{"next_state": "<value>"}`` names; case and what `unwrapped` takes off do not matter.

    Raises:
        UselessAnswerError: (a ValueError) with reason `unparsable` if the text is not a JSON object with
            a string under ``next_state``, `invalid-state` if that string is not among the options, or `thought` if
            the text is only a thought.
    """
    data = parse_json(response_text)
    completion = data.get("next_state") if isinstance(data, dict) else None
    if not isinstance(completion, str):
        fault = f'the answer {response_text[:80]!r} is not an object {{"next_state": "<state>"}}'
        raise UselessAnswerError("unparsable", fault)
    for option in options:
        if option.value == completion.strip().lower():
            return option
    allowed = ", ".join(option.value for option in options)
    raise UselessAnswerError("invalid-state", f"invalid state {completion[:80]!r} (allowed: {allowed})")


def reason_in(response_text: str) -> str:
    """Return the reason that an answer gives for its choice, as `plain` text; empty if it gives none."""
    try:
        data = parse_json(response_text)
    except UselessAnswerError:
        return ""
    reason = data.get("reason") if isinstance(data, dict) else None
    return plain(reason, _REASON_CAP) if isinstance(reason, str) else ""
