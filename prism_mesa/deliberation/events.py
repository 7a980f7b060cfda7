"""What a turn tells as it goes on: frozen values, in the order in which things happen."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from prism_mesa.deliberation.tools import ToolResult


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True)


class AgentTextEvent(_Event):
    """Something that the agent says, or, as JSON or in words, thinks."""

    text: str
    type: Literal["thought", "text"] = "text"


class ToolStartedEvent(_Event):
    """A tool is about to be called; `tool_id` is ``reasoning_{iteration}_{index}``, both from 1."""

    tool_name: str
    tool_id: str
    parameters: dict[str, Any]


class ToolFinishedEvent(_Event):
    """A tool has ended, well or not."""

    tool_name: str
    tool_id: str
    parameters: dict[str, Any]
    result: ToolResult


class AgentErrorEvent(_Event):
    """Something that did not work; the turn goes on if it can.

    Attributes:
        reason: One word: `budget`, `repeated-call`, `too-many-calls`, or why the LLM gave no answer.
    """

    reason: str
    text: str


type Event = AgentTextEvent | ToolStartedEvent | ToolFinishedEvent | AgentErrorEvent
