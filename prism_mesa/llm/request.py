"""A request to an LLM: a prompt, the form of the answer, and its place in a run."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError

from prism_mesa.llm.clients.base import ChatClient, Completion
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.text import unwrapped


@dataclass(frozen=True)
class RunPosition:
    """The place of a prompt in a run: round, agent (its row), tick, and the agent's LLM if there are several."""

    round: int = 0
    agent: int = -1
    tick: int = 0
    llm: str = ""


@cache
def _json_schema(form: type[BaseModel]) -> dict[str, Any]:
    return form.model_json_schema()


class AnswerFormat[D](Protocol):
    """A form of answer that is neither a pydantic model nor plain text, such as `MultipleChoice`.

    Attributes:
        name: Its name in the ledger; `key` is the rest of it that is in the ledger's key.
        schema: The JSON schema that goes with the prompt, if any.
        top_logprobs: Number of likeliest tokens at each place whose log-probabilities are wanted, 0..20.

    A form that does not ask by `chat` also has ``ask(client, prompt)``, as `Decision` has.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def key(self) -> str: ...  # noqa: D102
    @property
    def schema(self) -> dict[str, Any] | None: ...  # noqa: D102
    @property
    def top_logprobs(self) -> int: ...  # noqa: D102

    def recordable(self, completion: Completion) -> Completion:
        """Return the part of an LLM's answer that the ledger keeps: its `text` is what `read` reads."""
        ...

    def read(self, raw: str) -> D:
        """Return the answer that a recorded text holds.

        Raises:
            UselessAnswerError: If it holds none.
        """
        ...


@dataclass(frozen=True)
class LLMRequest[D]:
    """An answer that is wanted of an LLM: what it is told, and what the answer must look like.

    Attributes:
        prompt: The whole prompt.
        form: A pydantic model, whose JSON schema goes with the prompt, `str` for plain text, or any `AnswerFormat`.
        accept: Whether an answer of that form is of any use; one that is not counts as none.
        accepts: A name for what `accept` goes by, where it can differ for the same prompt.
        narrower: A JSON schema that goes with the prompt in place of the form's, and allows less.
        component: Who asks, for errors.
        place: Where in the run the prompt belongs.
        priority: What a limit is spent on first: lower comes first.
    """

    prompt: str
    form: type[D] | AnswerFormat[D]
    accept: Callable[[D], bool] | None = None
    accepts: str = ""
    narrower: Mapping[str, Any] | None = None
    component: str = "agent"
    place: RunPosition = RunPosition()
    priority: float = 0.0

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that goes with the prompt; None for plain text."""
        if self.narrower is not None:
            return dict(self.narrower)
        if not isinstance(self.form, type):
            return self.form.schema
        return _json_schema(self.form) if issubclass(self.form, BaseModel) else None

    @property
    def top_logprobs(self) -> int:
        """For how many tokens of each place log-probabilities are asked for."""
        return 0 if isinstance(self.form, type) else self.form.top_logprobs

    @cached_property
    def options(self) -> tuple[str, str]:
        """What counts for the ledger's key."""
        schema_text = json.dumps(self.schema, sort_keys=True)
        name, key = (
            (self.form.__name__, schema_text) if isinstance(self.form, type) else (self.form.name, self.form.key)
        )
        return f"{name} {self.accepts}".strip(), key

    def ask(self, client: ChatClient, attempt: int) -> Awaitable[Completion]:
        """Return a client's answer to the prompt; each further attempt has the next sampling seed."""
        if not isinstance(self.form, type) and hasattr(self.form, "ask"):
            completion: Awaitable[Completion] = self.form.ask(client, self.prompt)
            return completion
        return client.chat(self.prompt, self.schema, seed_offset=attempt, top_logprobs=self.top_logprobs)

    def recordable(self, completion: Completion) -> Completion:
        """Return the part of an LLM's answer that the ledger keeps."""
        return completion if isinstance(self.form, type) else self.form.recordable(completion)

    def read(self, raw: str) -> D:
        """Return the answer that a text holds.

        Raises:
            UselessAnswerError: `unparsable` if it is no JSON, `wrong-shape` if it has not the form, `irrelevant` if it
                is of no use.
        """
        answer = self._in_form(raw)
        if self.accept is not None and not self.accept(answer):
            raise UselessAnswerError("irrelevant", f"the answer {raw[:80]!r} is of no use here")
        return answer

    def _in_form(self, raw: str) -> D:
        if not isinstance(self.form, type):
            return self.form.read(raw)
        if not issubclass(self.form, BaseModel):
            return self.form(raw.strip())  # type: ignore[call-arg]  # plain text
        try:
            return self.form.model_validate_json(unwrapped(raw))
        except ValidationError as error:
            fault = error.errors()[0]
            reason = "unparsable" if fault["type"] == "json_invalid" else "wrong-shape"
            path = ".".join(map(str, fault["loc"]))
            raise UselessAnswerError(reason, f"the answer {raw[:80]!r}: {path or 'JSON'}: {fault['msg']}") from None
