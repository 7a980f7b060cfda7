"""A conversation: its messages in words, and what becomes of them when they are too many."""

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

SAID_CAP: Final = 1200
"""Characters of one content in a prompt."""
TEXT_CAP: Final = 8000
"""Characters of the text at hand in a prompt: what a turn is about. What is longer is refused by whoever takes it."""
RESULT_CAP: Final = 10_000
"""Characters of a tool's result in a prompt: more than any registry lets through (`deliberation.result_chars`)."""
CALL_CAP: Final = 300
"""Characters of a call: the tool's name and its parameters."""
WORDS_CAP: Final = 6000
"""Characters of what came before, where it is given in words."""
_KEPT: Final = 2
"""Messages that are never summarised: the last ones."""


def count_tokens(text: str) -> int:
    """Return about how many tokens a text has: a quarter of its bytes. The same for every LLM, and in a replay.

    >>> count_tokens("What is it?")
    3
    """
    return -(-len(text.encode("utf-8", "replace")) // 4)


def quoted(text: object, cap: int = SAID_CAP) -> str:
    """Return a text as data: one line, cut, between signs that it cannot contain, however often they are quoted."""
    return f"<<< {unframed(text, cap)} >>>"


def whole(text: str) -> str:
    r"""Return a text with question marks for halves of surrogate pairs, which neither JSON nor the ledger can hold.

    >>> whole("Hi \ud800!")
    'Hi ?!'
    """
    return text.encode("utf-8", "replace").decode()


def in_words(context: Context) -> str:
    """Return what came before in words, a line for each content, as prompts tell it; words are quoted, from the end."""
    if isinstance(context, str):
        return quoted(context[-WORDS_CAP:], WORDS_CAP) if context.strip() else ""
    return "\n".join(_line(message.role, content) for message in context for content in message.contents)


def _line(role: str, content: Content) -> str:
    who = {"user": "They said", "assistant": "You said", "system": "Before that"}[role]
    match content:
        case TextContent():
            return f"{who}: {quoted(content.text)}"
        case ThoughtContent():
            return f"You thought: {quoted(content.text)}"
        case ReasoningThoughtContent():
            return f"You thought: {quoted(thought_in_words(content.reasoning))}"
        case ToolCallContent():
            return call_line(content)


def thought_in_words(thought: ReasoningResult) -> str:
    """Return the parts of a thought as sentences."""
    parts = (thought.understanding, thought.needs, thought.connection, thought.plan)
    return " ".join(part.strip().rstrip(".") + "." for part in parts if part.strip())


def call_text(name: str, parameters: Mapping[str, Any]) -> str:
    """Return a call of a tool as a program writes it.

    >>> call_text("like", {"post": 3})
    'like(post=3)'
    """
    return f"{name}({', '.join(f'{key}={value!r}' for key, value in parameters.items())})"


def call_line(content: ToolCallContent) -> str:
    """Return a call of a tool and its result in one line; what the result quotes stays apart from what is around it."""
    result = plain(content.result.text, RESULT_CAP)
    return f"You called {quoted(call_text(content.tool_name, content.parameters), CALL_CAP)}: <<< {result} >>>"


class Conversation:
    """What was said so far, with a summary in place of what is too long ago.

    Args:
        messages: What was said before.
        max_tokens: Size beyond which all but the last two messages should be summarised.
    """

    def __init__(self, messages: Iterable[Message] = (), max_tokens: int = 1500) -> None:
        self.messages: list[Message] = list(messages)
        self.max_tokens = max_tokens

    def add(self, role: Role, *contents: Content) -> None:
        """Add contents: to the last message, if it is the agent's own as they are, else as a new one."""
        if self.messages and self.messages[-1].role == role and role == "assistant":
            last = self.messages[-1]
            self.messages[-1] = last.model_copy(update={"contents": (*last.contents, *contents)})
        else:
            self.messages.append(Message(role=role, contents=contents))

    @property
    def tokens(self) -> int:
        """About how many tokens it has in a prompt."""
        return count_tokens(in_words(self.messages))

    @property
    def old(self) -> list[Message]:
        """The messages to be summarised; empty while there is room."""
        return self.messages[:-_KEPT] if self.tokens > self.max_tokens else []

    def summarise(self, summary: str) -> None:
        """Put a summary in the place of what is `old`."""
        n = len(self.old)
        if n:
            self.messages[:n] = [Message.of("system", plain(summary, SAID_CAP))]

    def forget(self) -> None:
        """Let go of what is `old`, of which there is no summary."""
        del self.messages[: len(self.old)]
