"""The seam between a question and an LLM: write it down, ask, read the answer.

`Oracle.write` and `Oracle.read` are pure, so a recorded answer can be read again without any LLM; only `ask` goes out.
"""

from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

from prism_mesa.llm.clients.base import ChatClient, Completion, FunctionClient, PromptFunction, digest_of, label_of
from prism_mesa.llm.formats.multiple_choice import TOP_LOGPROBS, named_option, probabilities_of, recordable
from prism_mesa.llm.params import decision_decoding
from prism_mesa.llm.text import bare_option
from prism_mesa.reasoner.parse import parse_reasoner_response
from prism_mesa.reasoner.prompt import answer_schema, decision_form, question_prompt
from prism_mesa.reasoner.question import Question

type AnswerForm = Literal["choice", "probabilities", "decision"]


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
    """Ask a chat client for one option (`choice`) or for the probabilities of all options.

    For `probabilities` the options have letters and the LLM answers one letter; `multiple_choice` reads its
    log-probabilities. A client without them (a function) may return a letter or ``{"composing": 0.7, ...}``. In either
    form the bare name of an option, ``composing``, is that choice. With `reason` the LLM also explains its choice in a
    sentence (`parse.reason_in`); an answer without it still counts. For a `decision` see `formats.decision`; there a
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
        return digest_of(self.client)

    @property
    def label(self) -> str:
        """What a summary calls it."""
        return label_of(self.client)

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
            return await self.client.chat(prompt, answer_schema(question.options, reason=self.reason), attempt)
        said = await self.client.chat(prompt, None, attempt, TOP_LOGPROBS)
        return recordable(said, [option.value for option in question.options])

    def read(self, question: Question, raw: str) -> tuple[float, ...]:
        """Return the probability of each option."""
        if self.form == "decision":
            return decision_form(question.options, self.calls).read(raw)
        names = [option.value for option in question.options]
        if self.form == "probabilities":
            place = named_option(raw, names)
        elif (place := bare_option(raw, names)) < 0:
            place = question.options.index(parse_reasoner_response(raw, question.options))
        if place >= 0:
            return tuple(float(at == place) for at in range(len(names)))
        return probabilities_of(raw, names, "invalid-state")


def as_oracle(
    client: Oracle | ChatClient | PromptFunction,
    form: AnswerForm = "choice",
    name: str = "",
    orders: int = 1,
    *,
    reason: bool = False,
) -> Oracle:
    """Return an oracle as it is, and wrap a chat client, or a function with the name `name`, in a `ChatOracle`.

    Raises:
        TypeError: If `client` is none of these.
    """
    if isinstance(client, Oracle):
        return client
    if isinstance(client, ChatClient):
        return ChatOracle(client, form, orders, reason=reason)
    if callable(client):
        return ChatOracle(FunctionClient(client, name), form, orders, reason=reason)
    raise TypeError(
        f"{client!r} cannot be asked: give a client with name, decoding and chat(), or a function of the prompt"
    )
