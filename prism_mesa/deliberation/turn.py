"""A turn as a generator: think, call tools, respond, think about the response, and so on.

The generator yields events and requests to the LLM; the module `deliberation` sends answers or throws failures.
"""

import json
import time
from collections.abc import Callable, Generator
from functools import lru_cache
from typing import Any

from pydantic import BaseModel

from prism_mesa.deliberation.conversation import Conversation, count_tokens
from prism_mesa.deliberation.messages import (
    AgentErrorEvent,
    AgentTextEvent,
    Content,
    Event,
    Message,
    ProposedToolCall,
    ReasoningResult,
    ReasoningThoughtContent,
    TextContent,
    ThoughtContent,
    ToolCallContent,
    ToolFinishedEvent,
    ToolStartedEvent,
)
from prism_mesa.deliberation.prompts import TurnContext, reasoning_prompt, response_prompt, summary_prompt
from prism_mesa.deliberation.text import replace_surrogates
from prism_mesa.deliberation.tools import ToolRegistry
from prism_mesa.errors import LLMFailureException
from prism_mesa.llm import LLMRequest

type Turn = Generator["LLMRequest[Any] | Event", Any, Any]
"""A turn as a generator, which returns the last response, or None."""


def start_turn(
    text: str, conversation: Conversation, context: TurnContext, clock: Callable[[], float] = time.monotonic
) -> Turn:
    """Return a turn about a text, which adds texts, thoughts and calls to the conversation as they happen.

    The first iteration always responds. In later iterations, a thought that proposes no tool, or has the verdict
    "complete", ends the turn. Calls that repeat an earlier call of the turn (same tool and parameters) are skipped; an
    iteration that proposes only such calls ends the turn. Reaching a limit also ends the turn.

    Raises:
        LLMFailureException: If there is no response, and the context sets `must_respond`.
    """
    yield from _make_room(conversation, context)
    return (yield from _TurnState(text, conversation, context, clock).run())


def _make_room(conversation: Conversation, context: TurnContext) -> Turn:
    """Summarise old messages, or drop them if the LLM gives no summary, so that prompts stay short."""
    if not (old_messages := conversation.old_messages):
        return
    try:
        summary = yield LLMRequest(
            summary_prompt(old_messages), str, component="summary", position=context.position, priority=context.priority
        )
        conversation.summarise(replace_surrogates(summary))
    except LLMFailureException as failure:
        conversation.drop_old_messages()
        yield AgentErrorEvent(reason=failure.reason, text=f"what was said before is lost: {_failure_text(failure)}")


def _failure_text(failure: LLMFailureException) -> str:
    """Describe a failure by its reason only, because replays have no other information."""
    return f"the LLM gave the {failure.component} no usable answer ({failure.reason})"


class _TurnState:
    def __init__(self, text: str, conversation: Conversation, context: TurnContext, clock: Callable[[], float]) -> None:
        self.text = str(replace_surrogates(text))
        self.conversation, self.context, self._clock = conversation, context, clock
        self._deadline = None if context.limits.seconds is None else clock() + context.limits.seconds
        self._tokens = 0
        self._call_keys: set[str] = set()
        self._calls: list[ToolCallContent] = []
        self._response = ""

    def run(self) -> Turn:
        # the conversation before a text does not contain the text itself
        earlier = list(self.conversation.messages)
        self.conversation.add("user", TextContent(text=self.text))
        earlier += self._recall()
        thought = yield from self._think(earlier, about_response=False)
        response = None
        for iteration in range(1, self.context.limits.iterations + 1):
            if iteration > 1:
                if self._is_spent():
                    yield AgentErrorEvent(reason="budget", text="the limit of this turn is used up")
                    break
                thought = yield from self._think(earlier, about_response=True)
                if thought is None or thought.verdict == "complete" or not thought.proposed_tools:
                    break
            is_new = yield from self._call_tools(iteration, [] if thought is None else thought.proposed_tools)
            if iteration > 1 and not is_new:
                break
            answer = yield from self._respond(earlier, thought)
            if answer is None:
                break
            response = answer
        return response

    def _recall(self) -> list[Message]:
        notes = self.context.recall(self.text) if self.context.recall is not None else []
        contents: tuple[Content, ...] = tuple(ThoughtContent(text=note) for note in notes)
        if contents:
            self.conversation.add("assistant", *contents)
        return [Message(role="assistant", contents=contents)] if contents else []

    def _think(self, earlier: list[Message], *, about_response: bool) -> Generator[Any, Any, ReasoningResult | None]:
        turn_messages = (Message.of("user", self.text), Message(role="assistant", contents=tuple(self._calls)))
        text, earlier = (self._response, [*earlier, *turn_messages]) if about_response else (self.text, earlier)
        prompt = reasoning_prompt(self.context, text, earlier, about_response=about_response)
        stricter_schema = reasoning_schema(self.context.tools)
        thought: ReasoningResult | None
        thought = yield from self._request(prompt, ReasoningResult, "thought", stricter_schema=stricter_schema)
        if thought is not None:
            self.conversation.add(
                "assistant", ReasoningThoughtContent(reasoning=thought, about="assistant" if about_response else "user")
            )
            yield AgentTextEvent(text=thought.model_dump_json(indent=2), type="thought")
        return thought

    def _respond(self, earlier: list[Message], thought: ReasoningResult | None) -> Generator[Any, Any, Any]:
        context = self.context
        prompt = response_prompt(context, self.text, earlier, thought, self._calls, self._response)
        accept = context.accept or (bool if context.response_type is str else None)
        answer = yield from self._request(
            prompt, context.response_type, "response", accept=accept, accept_rule=context.accept_rule
        )
        if answer is not None:
            self._response = text = answer.model_dump_json() if isinstance(answer, BaseModel) else str(answer)
            self.conversation.add("assistant", TextContent(text=text))
            yield AgentTextEvent(text=text, type="text")
        return answer

    def _request(self, prompt: str, type_: type[Any], component: str, **options: Any) -> Generator[Any, Any, Any]:
        """Return the LLM's answer; without a usable answer, yield an error event and return None."""
        context = self.context
        self._tokens += count_tokens(prompt)
        try:
            answer = yield LLMRequest(
                prompt, type_, component=component, position=context.position, priority=context.priority, **options
            )
        except LLMFailureException as failure:
            if context.must_respond and component == "response" and not self._response:
                raise
            yield AgentErrorEvent(reason=failure.reason, text=_failure_text(failure))
            return None
        answer = replace_surrogates(answer)
        self._tokens += count_tokens(answer.model_dump_json() if isinstance(answer, BaseModel) else answer)
        return answer

    def _call_tools(self, iteration: int, proposed: list[ProposedToolCall]) -> Generator[Any, Any, bool]:
        """Execute the proposed calls that are new; return False if all proposed calls repeat earlier calls."""
        has_new = not proposed
        for index, call in enumerate(proposed, start=1):
            name, parameters = call.tool_name, dict(call.parameters)
            if index > self.context.limits.tool_calls:
                yield AgentErrorEvent(reason="too-many-calls", text=f"{name}: one call too many in this iteration")
                continue
            if self._is_spent():
                yield AgentErrorEvent(reason="budget", text=f"{name}: the limit of this turn is used up")
                continue
            identity = self.context.tools.identity(name, parameters)
            if identity in self._call_keys:
                yield AgentErrorEvent(reason="repeated-call", text=f"{name}: was already called like that in this turn")
                continue
            self._call_keys.add(identity)
            has_new = True
            yield from self._call(f"reasoning_{iteration}_{index}", name, parameters)
        return has_new

    def _call(self, tool_id: str, name: str, parameters: dict[str, Any]) -> Generator[Any, Any, None]:
        yield ToolStartedEvent(tool_name=name, tool_id=tool_id, parameters=parameters)
        result = self.context.tools.execute(name, parameters)
        content = ToolCallContent(tool_id=tool_id, tool_name=name, parameters=parameters, result=result)
        self._calls.append(content)
        self.conversation.add("assistant", content)
        yield ToolFinishedEvent(tool_name=name, tool_id=tool_id, parameters=parameters, result=result)

    def _is_spent(self) -> bool:
        limits = self.context.limits
        is_late = self._deadline is not None and self._clock() >= self._deadline
        return is_late or (limits.tokens is not None and self._tokens >= limits.tokens)


def reasoning_schema(tools: ToolRegistry) -> dict[str, Any]:
    """Return the JSON schema of a thought that may only propose calls to these tools."""
    return _reasoning_schema(json.dumps(tools.call_schema))


@lru_cache(maxsize=256)
def _reasoning_schema(call: str) -> dict[str, Any]:
    schema = ReasoningResult.model_json_schema()
    schema.pop("$defs", None)
    calls = schema["properties"]["proposed_tools"]
    calls["items"] = json.loads(call) or {"type": "object"}
    if call == "null":
        calls["maxItems"] = 0
    return schema
