"""A turn as a generator: think, call tools, respond, think about the response, and so on.

It yields events and requests to the LLM; `deliberation` sends it answers and throws failures into it.
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

type Steps = Generator["LLMRequest[Any] | Event", Any, Any]
"""A turn; it returns the last response, or None."""


def steps(
    text: str, conversation: Conversation, context: TurnContext, clock: Callable[[], float] = time.monotonic
) -> Steps:
    """Run a turn about a text, and add texts, thoughts and calls to the conversation as they happen.

    The first iteration always responds. Later, a thought that proposes no tool, or whose verdict is "complete", ends
    the turn. A call that repeats an earlier call of the turn (same tool and parameters) is skipped. An iteration that
    proposes only such calls ends the turn, and so does a limit.

    Raises:
        LLMFailureException: If there is no response, and the context has `must_respond`.
    """
    yield from _make_room(conversation, context)
    return (yield from _Turn(text, conversation, context, clock).run())


def _make_room(conversation: Conversation, context: TurnContext) -> Steps:
    """Summarise old messages; drop them if the LLM gives no summary, so that prompts stay short."""
    old_messages = conversation.old_messages
    if not old_messages:
        return
    prompt = summary_prompt(old_messages)
    try:
        summary = yield LLMRequest(prompt, str, component="summary", place=context.place, priority=context.priority)
        conversation.summarise(replace_surrogates(summary))
    except LLMFailureException as failure:
        conversation.forget()
        yield AgentErrorEvent(reason=failure.reason, text=f"what was said before is lost: {_failure_text(failure)}")


def _failure_text(failure: LLMFailureException) -> str:
    """Describe a failure by its reason only, since replays know nothing else."""
    return f"the LLM gave the {failure.component} no usable answer ({failure.reason})"


class _Turn:
    def __init__(self, text: str, conversation: Conversation, context: TurnContext, clock: Callable[[], float]) -> None:
        self.text = str(replace_surrogates(text))
        self.conversation = conversation
        self.context = context
        self._clock = clock
        self._deadline = None if context.limits.seconds is None else clock() + context.limits.seconds
        self._tokens = 0
        self._called: set[str] = set()
        self._calls: list[ToolCallContent] = []
        self._response = ""

    def run(self) -> Steps:
        # the context of a text does not contain the text itself
        before = list(self.conversation.messages)
        self.conversation.add("user", TextContent(text=self.text))
        before += self._recall()
        thought = yield from self._think(before, about_response=False)
        response = None
        for iteration in range(1, self.context.limits.iterations + 1):
            if iteration > 1:
                if self._is_spent():
                    yield AgentErrorEvent(reason="budget", text="the limit of this turn is used up")
                    break
                thought = yield from self._think(before, about_response=True)
                if thought is None or thought.verdict == "complete" or not thought.proposed_tools:
                    break
            proposed = [] if thought is None else thought.proposed_tools
            is_new = yield from self._call_tools(iteration, proposed)
            if iteration > 1 and not is_new:
                break
            answer = yield from self._respond(before, thought)
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

    def _think(self, before: list[Message], *, about_response: bool) -> Generator[Any, Any, ReasoningResult | None]:
        """Return a thought about the text or the response; None if the LLM gives none."""
        done = (Message.of("user", self.text), Message(role="assistant", contents=tuple(self._calls)))
        text, before = (self._response, [*before, *done]) if about_response else (self.text, before)
        prompt = reasoning_prompt(self.context, text, before, about_response=about_response)
        stricter_schema = reasoning_schema(self.context.tools)
        thought: ReasoningResult | None
        thought = yield from self._request(prompt, ReasoningResult, "thought", stricter_schema=stricter_schema)
        if thought is not None:
            self.conversation.add(
                "assistant", ReasoningThoughtContent(reasoning=thought, about="assistant" if about_response else "user")
            )
            yield AgentTextEvent(text=thought.model_dump_json(indent=2), type="thought")
        return thought

    def _respond(self, before: list[Message], thought: ReasoningResult | None) -> Generator[Any, Any, Any]:
        """Return a response; None if the LLM gives none."""
        context = self.context
        prompt = response_prompt(context, self.text, before, thought, self._calls, self._response)
        accept = context.accept or (bool if context.form is str else None)
        answer = yield from self._request(prompt, context.form, "response", accept=accept, accepts=context.accepts)
        if answer is not None:
            self._response = text = answer.model_dump_json() if isinstance(answer, BaseModel) else str(answer)
            self.conversation.add("assistant", TextContent(text=text))
            yield AgentTextEvent(text=text, type="text")
        return answer

    def _request(self, prompt: str, form: type[Any], component: str, **more: Any) -> Generator[Any, Any, Any]:
        """Return the LLM's answer; yield an error event and return None if it is not usable."""
        context = self.context
        self._tokens += count_tokens(prompt)
        try:
            answer = yield LLMRequest(
                prompt, form, component=component, place=context.place, priority=context.priority, **more
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
        """Make the proposed calls that are new; return False if all repeat earlier calls."""
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
            if identity in self._called:
                yield AgentErrorEvent(reason="repeated-call", text=f"{name}: was already called like that in this turn")
                continue
            self._called.add(identity)
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
    """Return the JSON schema of a thought that may only propose calls of these tools."""
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
