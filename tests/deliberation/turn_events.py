"""Who plays the LLM in a turn, a garden with tools, and events written shortly."""

import json
from datetime import date
from hashlib import sha256

from prism_mesa.deliberation import (
    AgentErrorEvent,
    AgentTextEvent,
    Conversation,
    Deliberation,
    Limits,
    Message,
    ReasoningResult,
    ReasoningThoughtContent,
    TextContent,
    ToolCallContent,
    ToolFinishedEvent,
    ToolRegistry,
    ToolResult,
    ToolStartedEvent,
    TurnContext,
    run_turns,
    start_turn,
)
from prism_mesa.llm import FunctionClient, LLMClient, LLMParams, RunPosition


def scripted(*answers):
    """Return an LLM that says (or raises) one thing after another; `.prompts` and `.left` tell how far it is."""

    def llm(prompt):
        llm.prompts.append(prompt)
        answer = llm.left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    llm.prompts, llm.left = [], list(answers)
    return llm


def nobody(prompt):
    raise AssertionError("nobody is to be asked")


def toy(function):
    """Return a function as an LLM; all of them have one name, so that their keys are equal."""
    return FunctionClient(function, "toy")


def quick(function, **limits):
    """Return a client that does not wait long before it asks again."""
    return LLMClient(toy(function), LLMParams(kind="python", backoff_s=0.001, **limits))


def call(tool, **parameters):
    return {"tool_name": tool, "parameters": parameters, "reasoning": "It helps."}


def thought(understanding, *calls, verdict="continue"):
    """Return a thought as the LLM gives it."""
    said = {"understanding": understanding, "needs": "", "connection": "", "plan": "Answer.", "verdict": verdict}
    return json.dumps(said | {"proposed_tools": list(calls)})


def thinks(*said, **more):
    """Return the event of a thought: its JSON, two spaces a level, as the stream has it."""
    return AgentTextEvent(text=json.dumps(json.loads(thought(*said, **more)), indent=2), type="thought")


def says(text):
    return AgentTextEvent(text=text, type="text")


def started(tool_id, tool, **parameters):
    return ToolStartedEvent(tool_name=tool, tool_id=tool_id, parameters=parameters)


def finished(tool_id, tool, text, reason="", /, **parameters):
    result = ToolResult(ok=not reason, text=text, reason=reason)
    return ToolFinishedEvent(tool_name=tool, tool_id=tool_id, parameters=parameters, result=result)


def error(reason, text):
    return AgentErrorEvent(reason=reason, text=text)


def no_answer(reason, component="thought"):
    return error(reason, f"the LLM gave the {component} no usable answer ({reason})")


class Garden:
    """A few tools, and what was done with them."""

    def __init__(self):
        self.done = []
        self.tools = ToolRegistry([self.look, self.water, self.fetch], timeout_s=None)

    def look(self, bed: int) -> str:
        """Look at a bed."""
        self.done.append(("look", bed))
        return f"tomatoes in bed {bed}"

    def water(self, litres: float, beds: list[int], day: date) -> str:
        """Water some beds."""
        self.done.append(("water", litres, beds, day))
        return "done"

    def fetch(self, what: str) -> str:
        """Fetch something from the shed."""
        self.done.append(("fetch", what))
        raise ValueError("the shed is locked")


def kept(text, *events, about=("user",)):
    """Return the two messages that a turn of these events leaves behind; `about` is whose words its thoughts are of."""
    contents, whose = [], [*about, *["assistant"] * len(events)]
    for event in events:
        match event:
            case AgentTextEvent(type="thought"):
                result = ReasoningResult.model_validate_json(event.text)
                contents.append(ReasoningThoughtContent(reasoning=result, about=whose.pop(0)))
            case AgentTextEvent():
                contents.append(TextContent(text=event.text))
            case ToolFinishedEvent(tool_id=tool_id, tool_name=name, parameters=parameters, result=result):
                contents.append(ToolCallContent(tool_id=tool_id, tool_name=name, parameters=parameters, result=result))
    message = [Message(role="assistant", contents=tuple(contents))] if contents else []
    return [Message.of("user", text), *message]


def talk(llm, garden=None, **options):
    """Return an agent that talks with what plays the LLM, and has a garden's tools."""
    if garden is not None:
        options["tools"] = garden.tools
    return Deliberation(llm, **options)


ABOUT_THEM = (
    "What are they trying to communicate?",
    "What emotions, intentions and needs are present?",
    "How does this connect to what was said before?",
    "What should you do in response?",
)


ABOUT_ME = (
    "Did you fully address what they needed?",
    "Should you add more context or information?",
    "Are there important details that you should remember?",
    "Is this response complete, or should you continue?",
)


def long_ago():
    roles = ["user", "assistant"] * 3
    return Conversation([Message.of(role, f"{i} " + "bean " * 20) for i, role in enumerate(roles)], max_tokens=100)


def number(prompt):
    return int.from_bytes(sha256(prompt.encode()).digest()[:4])


def by_prompt(prompt):
    """An LLM whose answers depend on the prompt alone, and are of no use now and then."""
    n = number(prompt)
    if n % 11 == 0:
        return "" if n % 2 else "Sure!"
    if prompt.endswith("as JSON:"):
        calls = [call(("look", "fetch", "lok")[(n + i) % 3], **{("bed", "what")[i]: n % 7}) for i in range(n % 3)]
        return thought(f"T{n}.", *calls, verdict=("continue", "complete")[n % 5 == 0])
    return f"R{n}."


def turns_of(n, **options):
    contexts = [
        TurnContext(tools=Garden().tools, position=RunPosition(1, i), limits=Limits(iterations=1 + i % 4), **options)
        for i in range(n)
    ]
    conversations = [Conversation([Message.of("user", f"I am {i}.")]) for i in range(n)]
    return [
        start_turn(f"Number {i}?", talked, context)
        for i, (talked, context) in enumerate(zip(conversations, contexts, strict=True))
    ], conversations


def run_together(client, turns):
    events = [[] for _ in turns]
    responses = run_turns(client, turns, lambda place, event: events[place].append(event))
    return events, responses
