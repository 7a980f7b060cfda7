"""The loop for whoever talks with one agent, and for many agents at once; and a single thought about a text.

They ask the LLM for what a turn wants; `turn` holds the steps of one.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Literal

from prism_mesa.deliberation.conversation import TEXT_CAP, Conversation
from prism_mesa.deliberation.messages import Context, Event, ReasoningResult
from prism_mesa.deliberation.prompts import reasoning_prompt
from prism_mesa.deliberation.tools import ToolRegistry
from prism_mesa.deliberation.turn import Steps, TurnContext, reasoning_schema, steps
from prism_mesa.errors import AgentError, ConfigError, LLMFailureException, did_you_mean
from prism_mesa.llm import ChatClient, FunctionClient, LLMClient, LLMRequest
from prism_mesa.llm.clients.base import PromptFunction
from prism_mesa.llm.errors import Closing
from prism_mesa.llm.text import plain

type LLM = LLMClient | ChatClient | PromptFunction


def as_llm_client(llm: LLM, model: str | None = None) -> LLMClient:
    """Return what a turn can ask: a client for answers in a form as it is, anything else in one.

    Args:
        llm: A client, or a function ``(prompt) -> str``, plain or async, that plays the LLM.
        model: The LLM's name: what the ledger calls a function. Any other client has its name already.

    Raises:
        ConfigError: If it has another name than `model`.
    """
    if isinstance(llm, LLMClient | ChatClient):
        client = llm if isinstance(llm, LLMClient) else LLMClient(llm)
        if model not in (None, client.client.name):
            raise ConfigError(f"model: {model!r} is not the LLM that is asked; it is {client.client.name!r} (or None)")
        return client
    return LLMClient(FunctionClient(llm, model or ""))


def reason_about_text(
    text: str,
    message_role: Literal["user", "assistant"],
    conversation_context: Context,
    tool_registry: ToolRegistry | None,
    llm: LLM,
    model: str | None = None,
) -> ReasoningResult:
    """Return what an agent thinks of a text.

    >>> def llm(prompt):
    ...     return '{"understanding": "They want tea.", "plan": "RankInputs some."}'
    >>> reason_about_text("Is there any tea?", "user", "", None, llm).plan
    'RankInputs some.'

    Args:
        text: The text.
        message_role: Whose it is: another's (`user`), or the agent's own response (`assistant`); what the agent asks
            itself depends on it.
        conversation_context: What came before: words, or messages.
        tool_registry: What it may propose to call; None: nothing.
        llm: Who is asked; see `as_llm_client`, also for `model`.
        model: The LLM's name, where that is not known.

    Raises:
        LLMFailureException: If the LLM gave no thought of that form.
        ConfigError: If `message_role` is neither, or `model` is not the LLM that is asked.
    """
    if message_role not in ("user", "assistant"):
        raise ConfigError(f"message_role: {message_role!r} is neither 'user' nor 'assistant'")
    tools = tool_registry if tool_registry is not None else ToolRegistry()
    about_own = message_role == "assistant"
    prompt = reasoning_prompt(text, about_own=about_own, context=conversation_context, tools=tools)
    wanted = LLMRequest(prompt, ReasoningResult, narrower=reasoning_schema(tools), component="thought")
    client = as_llm_client(llm, model)
    try:
        [thought_or_failure] = client.answer([wanted])
    finally:
        if client is not llm:
            client.close()
    if isinstance(thought_or_failure, LLMFailureException):
        raise thought_or_failure
    thought: ReasoningResult = thought_or_failure
    return thought


class Deliberation(Closing):
    """An agent that thinks before it responds, and keeps the conversation.

    >>> def llm(prompt):
    ...     return '{"understanding": "A greeting."}' if prompt.endswith("as JSON:") else "Good morning!"
    >>> with Deliberation(llm) as agent:
    ...     [event.type for event in agent.chat_stream("Hello")]
    ['thought', 'text', 'thought']

    Args:
        llm: Who is asked; see `as_llm_client`.
        context: Tools, persona, task, limits (see `TurnContext`).
        model: The LLM's name, where that is not known.
        conversation: What was said before; by default nothing.
        options: Single fields of the context by name: ``tools=registry, who="You are Ada."``

    Attributes:
        response: The last response of the last turn, in the context's form; None if there was none.
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
        self.context = replace(context or TurnContext(), **_checked(options))
        self.conversation = conversation if conversation is not None else Conversation()
        self.llm = as_llm_client(llm, model)
        self.response: Any = None
        self._owns_llm = self.llm is not llm
        self._turn: Steps | None = None

    def chat_stream(self, user_input: str) -> Iterator[Event]:
        """Respond to what somebody says; yields events as things happen.

        Nothing happens before the first event is asked for, nor between two events but what leads from one to the
        next: whoever stops listening stops the turn. What was said, thought and done until then is in the
        conversation.

        Raises:
            AgentError: If there is nothing in `user_input`, it has more than 8,000 characters, or another turn is
                still going on.
            OracleError: `not-recorded`, if a ledger is replayed that does not hold a prompt.
        """
        check_text("chat_stream", user_input)
        return self._stream(user_input)

    def _stream(self, user_input: str) -> Generator[Event]:
        turn = self._begin("chat_stream", user_input)
        try:
            item = next(turn)
            while self._turn is turn:
                if isinstance(item, LLMRequest):
                    item = given(turn, self.llm.answer([item])[0])
                else:
                    yield item
                    item = next(turn)
        except StopIteration as end:
            self.response = end.value
        finally:
            self._end(turn)

    async def respond(self, text: str) -> tuple[Any, list[Event]]:
        """Return the response to a text, None if there is none, and the events of the turn; for callers that await.

        Raises:
            AgentError: As `chat_stream`.
            OracleError: As `chat_stream`.
        """
        check_text("respond", text)
        turn, events = self._begin("respond", text), list[Event]()
        try:
            item = next(turn)
            while self._turn is turn:
                if isinstance(item, LLMRequest):
                    try:
                        said = await self.llm.fetch(item)
                    except LLMFailureException as failure:
                        said = failure
                    item = given(turn, said)
                else:
                    events.append(item)
                    item = next(turn)
        except StopIteration as end:
            self.response = end.value
        finally:
            self._end(turn)
        return self.response, events

    def _begin(self, where: str, text: str) -> Steps:
        if self._turn is not None:
            raise AgentError(f"{where}: another turn is still going on: read it to its end, or close it")
        self._turn = turn = steps(text, self.conversation, self.context)
        self.response = None
        return turn

    def _end(self, turn: Steps) -> None:
        turn.close()
        if self._turn is turn:
            self._turn = None

    def close(self) -> None:
        """End a turn that is still going on, and the background thread of an LLM that was made here.

        Doing it twice does no harm.
        """
        self._turn = None
        if self._owns_llm:
            self.llm.close()


def check_text(where: str, text: object) -> None:
    """Check a text that somebody says.

    Raises:
        AgentError: If there is nothing in it, or more than a prompt shows whole.
    """
    if not isinstance(text, str) or not text.strip():
        raise AgentError(f"{where}: {text!r} is no text")
    n = max(len(text), len(plain(text, 2 * len(text))))  # a prompt may part characters by spaces
    if n > TEXT_CAP:
        raise AgentError(f"{where}: a text of {n:,} characters is too long (at most {TEXT_CAP:,})")


def _checked(options: dict[str, Any]) -> dict[str, Any]:
    """Return fields of a context by name; `tools` may be functions."""
    known = [field.name for field in fields(TurnContext)]
    for name in options:
        if name not in known:
            raise ConfigError(f"Deliberation: no option {name!r} ({', '.join(known)}).{did_you_mean(name, known)}")
    tools = options.get("tools")
    return options if tools is None or isinstance(tools, ToolRegistry) else options | {"tools": ToolRegistry(tools)}


def given(turn: Steps, answer: Any) -> LLMRequest[Any] | Event:
    """Give a turn what it wanted, or that it failed, and return what comes next."""
    return turn.throw(answer) if isinstance(answer, LLMFailureException) else turn.send(answer)


def run_turns(
    llm: LLMClient, turns: Sequence[Steps], on_event: Callable[[int, Event], object] = lambda turn, event: None
) -> list[Any]:
    """Run turns side by side, and return their last responses, None where there is none.

    What all of them want of the LLM at a time is asked at once, in their order; so who gets something of a limit does
    not depend on which answer comes first.

    Args:
        llm: Who is asked.
        turns: Turns that have not begun.
        on_event: Called with the place of a turn and each of its events.
    """
    responses: list[Any] = [None] * len(turns)
    wanted: dict[int, LLMRequest[Any]] = {}

    def go_on(place: int, answer: Any) -> None:
        """Let a turn go on, with None from its beginning, until it wants something, or ends."""
        try:
            item = given(turns[place], answer)
            while not isinstance(item, LLMRequest):
                on_event(place, item)
                item = next(turns[place])
            wanted[place] = item
        except StopIteration as end:
            responses[place] = end.value

    try:
        for place in range(len(turns)):
            go_on(place, None)
        while wanted:
            asking, wanted = wanted, {}
            answers = llm.answer(list(asking.values()))
            for place, answer in zip(asking, answers, strict=True):
                go_on(place, answer)
    finally:
        for turn in turns:
            turn.close()
    return responses
