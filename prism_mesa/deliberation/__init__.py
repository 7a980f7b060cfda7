"""Thinking before writing: think, call tools, respond, reflect."""

from prism_mesa.deliberation.conversation import Conversation
from prism_mesa.deliberation.deliberation import Deliberation, as_llm_client, reason_about_text, run_turns
from prism_mesa.deliberation.events import AgentErrorEvent, AgentTextEvent, Event, ToolFinishedEvent, ToolStartedEvent
from prism_mesa.deliberation.memory import Note, Notebook
from prism_mesa.deliberation.messages import (
    Content,
    Message,
    ProposedToolCall,
    ReasoningResult,
    ReasoningThoughtContent,
    TextContent,
    ThoughtContent,
    ToolCallContent,
)
from prism_mesa.deliberation.params import DeliberationParams
from prism_mesa.deliberation.prompts import Example, Questions
from prism_mesa.deliberation.tools import Tool, ToolRegistry, ToolResult
from prism_mesa.deliberation.turn import Limits, TurnContext, steps

__all__ = [
    "AgentErrorEvent",
    "AgentTextEvent",
    "Content",
    "Conversation",
    "Deliberation",
    "DeliberationParams",
    "Event",
    "Example",
    "Limits",
    "Message",
    "Note",
    "Notebook",
    "ProposedToolCall",
    "Questions",
    "ReasoningResult",
    "ReasoningThoughtContent",
    "TextContent",
    "ThoughtContent",
    "Tool",
    "ToolCallContent",
    "ToolFinishedEvent",
    "ToolRegistry",
    "ToolResult",
    "ToolStartedEvent",
    "TurnContext",
    "as_llm_client",
    "reason_about_text",
    "run_turns",
    "steps",
]
