"""A conversation, its text for prompts, and the summary of its old messages."""

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
from prism_mesa.llm.text import clean_text, remove_frames

CONTENT_CAP: Final = 1200
"""Maximum characters of a message's content in a prompt."""
TEXT_CAP: Final = 8000
"""Maximum characters of the text to which a turn responds; longer texts are refused."""
RESULT_CAP: Final = 10_000
"""Maximum characters of a tool's result in a prompt; registries truncate earlier (`deliberation.result_chars`)."""
CALL_CAP: Final = 300
"""Maximum characters of a call: the tool's name and its parameters."""
CONTEXT_CAP: Final = 6000
"""Maximum characters of a context that is a string."""
_N_RECENT: Final = 2
"""Number of latest messages that are never summarised."""


def count_tokens(text: str) -> int:
    """Estimate the tokens of a text as a quarter of its bytes, so that LLMs and replays agree.

    >>> count_tokens("What is it?")
    3
    """
    return -(-len(text.encode("utf-8", "replace")) // 4)


def quote_data(text: object, cap: int = CONTENT_CAP) -> str:
    """Return a text on one line, truncated to `cap` characters, between marks that the text cannot contain."""
    return f"<<< {remove_frames(text, cap)} >>>"


def context_text(context: Context) -> str:
    """Return a context for prompts: messages with one line per content, or the quoted end of a string."""
    if isinstance(context, str):
        return quote_data(context[-CONTEXT_CAP:], CONTEXT_CAP) if context.strip() else ""
    return "\n".join(_content_line(message.role, content) for message in context for content in message.contents)


def _content_line(role: str, content: Content) -> str:
    speaker = {"user": "They said", "assistant": "You said", "system": "Before that"}[role]
    match content:
        case TextContent():
            return f"{speaker}: {quote_data(content.text)}"
        case ThoughtContent():
            return f"You thought: {quote_data(content.text)}"
        case ReasoningThoughtContent():
            return f"You thought: {quote_data(reasoning_text(content.reasoning))}"
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
    result = clean_text(content.result.text, RESULT_CAP)
    return f"You called {quote_data(call_text(content.tool_name, content.parameters), CALL_CAP)}: <<< {result} >>>"


class Conversation:
    """The messages so far, with a summary of old ones.

    Args:
        messages: Earlier messages.
        max_tokens: In longer conversations, all messages but the last two are old.
    """

    def __init__(self, messages: Iterable[Message] = (), max_tokens: int = 1500) -> None:
        self.messages: list[Message] = list(messages)
        self.max_tokens = max_tokens

    def add(self, role: Role, *contents: Content) -> None:
        """Add a message; consecutive contents by the agent become one message."""
        if self.messages and self.messages[-1].role == role and role == "assistant":
            last_message = self.messages[-1]
            self.messages[-1] = last_message.model_copy(update={"contents": (*last_message.contents, *contents)})
        else:
            self.messages.append(Message(role=role, contents=contents))

    @property
    def tokens(self) -> int:
        """The estimated number of tokens in a prompt."""
        return count_tokens(context_text(self.messages))

    @property
    def old_messages(self) -> list[Message]:
        """The messages to summarise; empty up to `max_tokens`."""
        return self.messages[:-_N_RECENT] if self.tokens > self.max_tokens else []

    def summarise(self, summary: str) -> None:
        """Replace the `old_messages` with a summary."""
        if messages := self.old_messages:
            self.messages[: len(messages)] = [Message.of("system", clean_text(summary, CONTENT_CAP))]

    def drop_old_messages(self) -> None:
        """Drop the `old_messages` without a summary."""
        del self.messages[: len(self.old_messages)]
