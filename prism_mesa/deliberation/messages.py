"""Messages of a conversation with their contents, and events of a turn."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from prism_mesa.deliberation.tools import ToolResult

type Role = Literal["system", "user", "assistant"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class ProposedToolCall(_Frozen):
    """A call of a tool that a thought proposes."""

    tool_name: str
    parameters: dict[str, Any] = {}
    reasoning: str = Field(default="", json_schema_extra={"maxLength": 120})

    @field_validator("parameters")
    @classmethod
    def _are_json(cls, parameters: dict[str, Any]) -> dict[str, Any]:
        json.dumps(parameters, allow_nan=False)  # pydantic reads NaN, but writes null
        return parameters


class ReasoningResult(_Frozen):  # its docstring is part of the schema, and so of the keys of recorded answers
    """What an agent thinks of a text: somebody else's, or its own response.

    The lengths stand in the JSON schema only, which keeps small LLMs short: a longer answer is no fault.

    Attributes:
        understanding: What the other wants to say; of one's own response, whether it answers what was needed.
        needs: The other's emotions, intentions and needs; of one's own response, what should be added.
        connection: How it connects to what was said before; of one's own response, what is worth remembering.
        plan: What to do next.
        verdict: Whether, of one's own response, it is complete.
        proposed_tools: What to call before responding, in this order.
    """

    understanding: str = Field(json_schema_extra={"maxLength": 160})
    needs: str = Field(default="", json_schema_extra={"maxLength": 120})
    connection: str = Field(default="", json_schema_extra={"maxLength": 120})
    plan: str = Field(default="", json_schema_extra={"maxLength": 120})
    verdict: Literal["continue", "complete"] = "continue"
    proposed_tools: list[ProposedToolCall] = Field(default=[], json_schema_extra={"maxItems": 3})


class TextContent(_Frozen):
    """A text that the user or the agent said."""

    type: Literal["text"] = "text"
    text: str


class ThoughtContent(_Frozen):
    """A thought that the agent keeps to itself, such as a note that it remembers."""

    type: Literal["thought"] = "thought"
    text: str


class ReasoningThoughtContent(_Frozen):
    """A thought about a text of the user or of the assistant."""

    type: Literal["reasoning"] = "reasoning"
    reasoning: ReasoningResult
    about: Literal["user", "assistant"] = "user"


class ToolCallContent(_Frozen):
    """A call of a tool and its result."""

    type: Literal["tool_call"] = "tool_call"
    tool_id: str
    tool_name: str
    parameters: dict[str, Any]
    result: ToolResult


type Content = Annotated[
    TextContent | ThoughtContent | ReasoningThoughtContent | ToolCallContent, Field(discriminator="type")
]


class Message(_Frozen):
    """The texts, thoughts and calls of the user or the agent, in order.

    >>> Message.of("user", "Why?").text
    'Why?'
    """

    role: Role
    contents: tuple[Content, ...] = ()

    @classmethod
    def of(cls, role: Role, text: str) -> "Message":
        """Return a message with one text."""
        return cls(role=role, contents=(TextContent(text=text),))

    @property
    def text(self) -> str:
        """All texts of the message, one per line."""
        return "\n".join(content.text for content in self.contents if isinstance(content, TextContent))


type Context = str | Sequence[Message]
"""The conversation before a text, as a string or as messages."""


class AgentTextEvent(_Frozen):
    """A text or a thought of the agent."""

    text: str
    type: Literal["thought", "text"] = "text"


class ToolStartedEvent(_Frozen):
    """A tool call begins; `tool_id` is ``reasoning_{iteration}_{index}``, both from 1."""

    tool_name: str
    tool_id: str
    parameters: dict[str, Any]


class ToolFinishedEvent(_Frozen):
    """A tool call has ended, successfully or not."""

    tool_name: str
    tool_id: str
    parameters: dict[str, Any]
    result: ToolResult


class AgentErrorEvent(_Frozen):
    """A failure; `reason` is `budget`, `repeated-call`, `too-many-calls`, or the reason of the LLM's failure."""

    reason: str
    text: str


type Event = AgentTextEvent | ToolStartedEvent | ToolFinishedEvent | AgentErrorEvent
