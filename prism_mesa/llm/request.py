"""A request to an LLM: a prompt, the format of the answer, and the position in a run."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from pydantic import BaseModel, ValidationError

from prism_mesa.llm.clients.base import ChatClient, Completion
from prism_mesa.llm.errors import UselessAnswerError
from prism_mesa.llm.text import unwrap


@dataclass(frozen=True)
class RunPosition:
    """A prompt's position in a run: the round, the agent's row, the tick, and the agent's LLM if there are several."""

    round: int = 0
    agent: int = -1
    tick: int = 0
    llm: str = ""


class AnswerFormat[D](ABC):
    """A format of answers. It asks an LLM for an answer, and reads the answer.

    Attributes:
        name: The format's name in the ledger.
        schema: The JSON schema that goes with the prompt, if any.
        top_logprobs: Number of likeliest tokens wanted for each position of the answer, 0..20.
    """

    name = ""
    schema: dict[str, Any] | None = None
    top_logprobs = 0

    @property
    def key(self) -> str:
        """The format's part of the ledger's key, besides its name."""
        return json.dumps(self.schema, sort_keys=True)

    async def ask(self, client: ChatClient, prompt: str, schema: Any = None, attempt: int = 0) -> Completion:
        """Return a client's answer as the ledger records it. Each further attempt uses the next sampling seed."""
        return await client.chat(prompt, schema, seed_offset=attempt, top_logprobs=self.top_logprobs)

    @abstractmethod
    def read(self, raw: str) -> D:
        """Return the answer in a recorded text. Raises UselessAnswerError if there is none."""


class _TypeFormat[D](AnswerFormat[D]):
    """Plain text, or a pydantic model as JSON."""

    def __init__(self, form: type[D]) -> None:
        self.form, self.name = form, form.__name__
        self.schema = form.model_json_schema() if issubclass(form, BaseModel) else None

    def read(self, raw: str) -> D:
        if not issubclass(self.form, BaseModel):
            return self.form(raw.strip())  # type: ignore[call-arg]
        try:
            return self.form.model_validate_json(unwrap(raw))
        except ValidationError as error:
            fault = error.errors()[0]
            reason = "unparsable" if fault["type"] == "json_invalid" else "wrong-shape"
            path = ".".join(map(str, fault["loc"]))
            raise UselessAnswerError(reason, f"the answer {raw[:80]!r}: {path or 'JSON'}: {fault['msg']}") from None


_type_format = cache(_TypeFormat)


@dataclass(frozen=True)
class LLMRequest[D]:
    """A prompt, and the format of its answer.

    Attributes:
        form: A pydantic model (its JSON schema goes with the prompt), `str` for plain text, or an `AnswerFormat`.
        accept: Returns whether an answer is usable.
        accept_rule: A name for the rule in `accept`, if the same prompt can have different rules.
        stricter_schema: A stricter JSON schema than the default of the form.
        component: The caller's name in errors.
        position: The prompt's position in the run.
        priority: Under a limit, the lowest numbers are asked first.
    """

    prompt: str
    form: type[D] | AnswerFormat[D]
    accept: Callable[[D], bool] | None = None
    accept_rule: str = ""
    stricter_schema: Mapping[str, Any] | None = None
    component: str = "agent"
    position: RunPosition = RunPosition()
    priority: float = 0.0

    @property
    def _format(self) -> AnswerFormat[D]:
        return _type_format(self.form) if isinstance(self.form, type) else self.form  # type: ignore[arg-type]

    @property
    def schema(self) -> dict[str, Any] | None:
        """The JSON schema that goes with the prompt; None for plain text."""
        return self._format.schema if self.stricter_schema is None else dict(self.stricter_schema)

    @cached_property
    def options(self) -> tuple[str, str]:
        """The name and the key of the answer format, for the ledger's key."""
        key = json.dumps(self.stricter_schema, sort_keys=True) if self.stricter_schema is not None else self._format.key
        return f"{self._format.name} {self.accept_rule}".strip(), key

    async def ask(self, client: ChatClient, attempt: int) -> Completion:
        """Return a client's answer as the ledger records it."""
        return await self._format.ask(client, self.prompt, self.schema, attempt)

    def read(self, raw: str) -> D:
        """Return the answer in a recorded text. Raises UselessAnswerError if there is none, or `accept` refuses it."""
        answer = self._format.read(raw)
        if self.accept is not None and not self.accept(answer):
            raise UselessAnswerError("irrelevant", f"the answer {raw[:80]!r} is useless here")
        return answer
