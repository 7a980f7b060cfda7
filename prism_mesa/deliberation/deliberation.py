"""Run turns: a conversation with an agent, turns of many agents at once, or a single thought about a text."""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal, cast

from prism_mesa.deliberation.conversation import TEXT_CAP, Conversation
from prism_mesa.deliberation.messages import Context, Event, ReasoningResult
from prism_mesa.deliberation.prompts import TurnContext, reasoning_prompt
from prism_mesa.deliberation.tools import ToolRegistry
from prism_mesa.deliberation.turn import Turn, reasoning_schema, start_turn
from prism_mesa.errors import AgentError, ConfigError, LLMFailureException
from prism_mesa.llm import ChatClient, FunctionClient, LLMClient, LLMRequest
from prism_mesa.llm.clients.base import PromptFunction
from prism_mesa.llm.errors import Closeable
from prism_mesa.llm.text import clean_text

type LLM = LLMClient | ChatClient | PromptFunction


def as_llm_client(llm: LLM, model: str | None = None) -> LLMClient:
    """Return `llm` as an `LLMClient`.

    Args:
        llm: A client, or a function ``(prompt) -> str``, plain or async, that acts as the LLM.
        model: For a function, its name in the ledger.

    Raises:
        ConfigError: If a client has another name than `model`.
    """
    if not isinstance(llm, LLMClient | ChatClient):
        return LLMClient(FunctionClient(llm, model or ""))
    client = llm if isinstance(llm, LLMClient) else LLMClient(llm)
    if model not in (None, client.client.name):
        raise ConfigError(f"model: must be {client.client.name!r}, the LLM's name, or None, not {model!r}")
    return client


def reason_about_text(
    text: str,
    message_role: Literal["user", "assistant"],
    conversation_context: Context,
    tool_registry: ToolRegistry | None,
    llm: LLM,
    model: str | None = None,
) -> ReasoningResult:
    """Return an agent's thought about a text.

    >>> def llm(prompt):
    ...     return '{"understanding": "They want tea.", "plan": "Order some."}'
    >>> reason_about_text("Is there any tea?", "user", "", None, llm).plan
    'Order some.'

    Args:
        text: The text.
        message_role: `user` for another person's text, `assistant` for the agent's own response. The role determines
            the questions that the agent asks itself.
        conversation_context: The conversation before the text: a string, or messages.
        tool_registry: The tools that the agent may propose to call; None for no tools.
        llm: The LLM; see `as_llm_client`, also for `model`.
        model: The LLM's name.

    Raises:
        LLMFailureException: If the LLM gave no usable thought.
        ConfigError: If `message_role` has another value, or `model` is not the LLM's name.
    """
    if message_role not in ("user", "assistant"):
        raise ConfigError(f"message_role: {message_role!r} is neither 'user' nor 'assistant'")
    tools = tool_registry if tool_registry is not None else ToolRegistry()
    is_response = message_role == "assistant"
    prompt = reasoning_prompt(TurnContext(tools=tools), text, conversation_context, about_response=is_response)
    request = LLMRequest(prompt, ReasoningResult, stricter_schema=reasoning_schema(tools), component="thought")
    client = as_llm_client(llm, model)
    try:
        [thought] = client.answer([request])
    finally:
        if client is not llm:
            client.close()
    if isinstance(thought, LLMFailureException):
        raise thought
    return cast(ReasoningResult, thought)


class Deliberation(Closeable):
    """An agent that thinks before it responds, and stores the conversation.

    >>> def llm(prompt):
    ...     return '{"understanding": "A greeting."}' if prompt.endswith("as JSON:") else "Good morning!"
    >>> with Deliberation(llm) as agent:
    ...     [event.type for event in agent.chat_stream("Hello")]
    ['thought', 'text', 'thought']

    Args:
        llm: The LLM; see `as_llm_client`, also for `model`.
        context: Tools, persona, task, limits (see `TurnContext`).
        model: The LLM's name.
        conversation: An earlier conversation to continue.
        options: Fields of the context by name: ``tools=tools, description="You are Ada."``; `tools` may be functions.

    Attributes:
        response: The last response of the last turn, of the context's `response_type`; None if there is none.
    """

    def __init__(
        self,
        llm: LLM,
        context: TurnContext | None = None,
        *,
        model: str | None = None,
        conversation: Conversation | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(options.get("tools", ToolRegistry()), ToolRegistry):
            options["tools"] = ToolRegistry(options["tools"])
        self.context = replace(context or TurnContext(), **options)
        self.conversation = conversation if conversation is not None else Conversation()
        self.llm = as_llm_client(llm, model)
        self.response: Any = None
        self._owns_llm = self.llm is not llm
        self._turn: Turn | None = None

    def chat_stream(self, user_input: str) -> Iterator[Event]:
        """Respond to a text, and yield events as they happen.

        The turn stops when you stop iterating; the conversation then contains everything up to that point.

        Raises:
            AgentError: If `user_input` is empty or has more than 8,000 characters, or another turn is in progress.
            OracleError: `not-recorded`, if a replayed ledger lacks a prompt.
        """
        check_text("chat_stream", user_input)
        return self._stream(user_input)

    async def respond(self, text: str) -> tuple[Any, list[Event]]:
        """Return the response to a text, or None, and the events; errors are those of `chat_stream`."""
        check_text("respond", text)
        turn, events = self._begin("respond", text), list[Event]()
        try:
            item = next(turn)
            while self._turn is turn:
                if isinstance(item, LLMRequest):
                    try:
                        answer = await self.llm.fetch(item)
                    except LLMFailureException as failure:
                        answer = failure
                    item = advance_turn(turn, answer)
                else:
                    events.append(item)
                    item = next(turn)
        except StopIteration as end:
            self.response = end.value
        finally:
            self._end(turn)
        return self.response, events

    def _stream(self, text: str) -> Generator[Event]:
        turn = self._begin("chat_stream", text)
        try:
            item = next(turn)
            while self._turn is turn:
                if isinstance(item, LLMRequest):
                    item = advance_turn(turn, self.llm.answer([item])[0])
                else:
                    yield item
                    item = next(turn)
        except StopIteration as end:
            self.response = end.value
        finally:
            self._end(turn)

    def _begin(self, caller: str, text: str) -> Turn:
        if self._turn is not None:
            raise AgentError(f"{caller}: another turn is in progress: read it to its end, or close it")
        self._turn = turn = start_turn(text, self.conversation, self.context)
        self.response = None
        return turn

    def _end(self, turn: Turn) -> None:
        turn.close()
        if self._turn is turn:
            self._turn = None

    def close(self) -> None:
        """End the turn in progress, and the background thread of an LLM client made here."""
        self._turn = None
        if self._owns_llm:
            self.llm.close()


def check_text(caller: str, text: object) -> None:
    """Raise AgentError if a user's text is empty or too long for a prompt."""
    if not isinstance(text, str) or not text.strip():
        raise AgentError(f"{caller}: {text!r} is empty or not a string")
    n = max(len(text), len(clean_text(text, 2 * len(text))))  # a prompt may insert spaces
    if n > TEXT_CAP:
        raise AgentError(f"{caller}: a text of {n:,} characters is too long (at most {TEXT_CAP:,})")


def advance_turn(turn: Turn, answer: Any) -> LLMRequest[Any] | Event:
    """Pass an answer or a failure to a turn, and return the next request or event."""
    return turn.throw(answer) if isinstance(answer, LLMFailureException) else turn.send(answer)


def run_turns(
    llm: LLMClient, turns: Sequence[Turn], on_event: Callable[[int, Event], object] = lambda turn, event: None
) -> list[Any]:
    """Run turns side by side, and return the last response of each turn (None without a response).

    All open requests are sent together, in the order of the turns, so the order of the answers does not affect how a
    limit is spent. `on_event` is called with a turn's index and each event of the turn.
    """
    responses: list[Any] = [None] * len(turns)
    requests: dict[int, LLMRequest[Any]] = {}

    def advance(i: int, answer: Any) -> None:
        try:
            item = advance_turn(turns[i], answer)
            while not isinstance(item, LLMRequest):
                on_event(i, item)
                item = next(turns[i])
            requests[i] = item
        except StopIteration as end:
            responses[i] = end.value

    try:
        for i in range(len(turns)):
            advance(i, None)
        while requests:
            batch, requests = requests, {}
            for i, answer in zip(batch, llm.answer(list(batch.values())), strict=True):
                advance(i, answer)
    finally:
        for turn in turns:
            turn.close()
    return responses
