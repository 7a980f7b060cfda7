"""A conversation as text for prompts, with a summary of its old messages."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from prism_mesa.deliberation.messages import (
    Content,
    Context,
    Message,
    ReasoningResult,
    ReasoningThoughtContent,
    Role,
    TextContent,
    ThoughtContent,
    ToolCallContent,
)
from prism_mesa.llm.text import plain, unframed

CONTENT_CAP: Final = 1200
"""Maximum characters of a message's content in a prompt."""
TEXT_CAP: Final = 8000
"""Maximum characters of the text that a turn is about; PRISM refuses longer texts."""
RESULT_CAP: Final = 10_000
"""Maximum characters of a tool's result in a prompt; registries truncate earlier (`deliberation.result_chars`)."""
CALL_CAP: Final = 300
"""Maximum characters of a call: the tool's name and its parameters."""
CONTEXT_CAP: Final = 6000
"""Maximum characters of a context that is a string."""
_N_RECENT: Final = 2
"""Number of latest messages that are never summarised."""


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text as a quarter of its bytes, the same for every LLM and in replays.

    >>> count_tokens("What is it?")
    3
    """
    return -(-len(text.encode("utf-8", "replace")) // 4)


def quoted(text: object, cap: int = CONTENT_CAP) -> str:
    """Truncate a text to `cap` characters on one line, between marks that it cannot contain."""
    return f"<<< {unframed(text, cap)} >>>"


def context_text(context: Context) -> str:
    """Return a context for prompts: messages with a line for each content, or the quoted end of a string."""
    if isinstance(context, str):
        return quoted(context[-CONTEXT_CAP:], CONTEXT_CAP) if context.strip() else ""
    return "\n".join(_line(message.role, content) for message in context for content in message.contents)


def _line(role: str, content: Content) -> str:
    speaker = {"user": "They said", "assistant": "You said", "system": "Before that"}[role]
    match content:
        case TextContent():
            return f"{speaker}: {quoted(content.text)}"
        case ThoughtContent():
            return f"You thought: {quoted(content.text)}"
        case ReasoningThoughtContent():
            return f"You thought: {quoted(reasoning_text(content.reasoning))}"
        case ToolCallContent():
            return call_line(content)


def reasoning_text(thought: ReasoningResult) -> str:
    """Return the parts of a thought as sentences."""
    parts = (thought.understanding, thought.needs, thought.connection, thought.plan)
    return " ".join(part.strip().rstrip(".") + "." for part in parts if part.strip())


def call_text(name: str, parameters: Mapping[str, Any]) -> str:
    """Return a tool call in Python's notation.

    >>> call_text("like", {"post": 3})
    'like(post=3)'
    """
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in parameters.items())})"


def call_line(content: ToolCallContent) -> str:
    """Return a tool call and its result in one line."""
    result = plain(content.result.text, RESULT_CAP)
    return f"You called {quoted(call_text(content.tool_name, content.parameters), CALL_CAP)}: <<< {result} >>>"


class Conversation:
    """The messages so far, with a summary of old ones.

    Args:
        messages: Earlier messages.
        max_tokens: Number of tokens above which all but the last two messages are old.
    """

    def __init__(self, messages: Iterable[Message] = (), max_tokens: int = 1500) -> None:
        self.messages: list[Message] = list(messages)
        self.max_tokens = max_tokens

    def add(self, role: Role, *contents: Content) -> None:
        """Add a message; contents by the agent join its last message."""
        if self.messages and self.messages[-1].role == role and role == "assistant":
            last = self.messages[-1]
            self.messages[-1] = last.model_copy(update={"contents": (*last.contents, *contents)})
        else:
            self.messages.append(Message(role=role, contents=contents))

    @property
    def tokens(self) -> int:
        """Estimated tokens in a prompt."""
        return count_tokens(context_text(self.messages))

    @property
    def old_messages(self) -> list[Message]:
        """The messages to summarise; empty below the maximum."""
        return self.messages[:-_N_RECENT] if self.tokens > self.max_tokens else []

    def summarise(self, summary: str) -> None:
        """Replace the `messages` messages with a summary."""
        if messages := self.old_messages:
            self.messages[: len(messages)] = [Message.of("system", plain(summary, CONTENT_CAP))]

    def forget(self) -> None:
        """Drop the `old_messages` messages without a summary."""
        del self.messages[: len(self.old_messages)]
