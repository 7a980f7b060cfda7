"""What was said in an interview, as a value, as JSON, and to read. Nothing here asks anybody."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from prism_mesa.deliberation import (
    AgentErrorEvent,
    AgentTextEvent,
    Event,
    ReasoningResult,
    ToolFinishedEvent,
)
from prism_mesa.deliberation.conversation import thought_in_words
from prism_mesa.experiments.restored import Deed, in_words


@dataclass
class Exchange:
    """A question, and what came of it.

    Attributes:
        thoughts: As JSON, see `deliberation.ReasoningResult`.
        tool_calls: Name, parameters and result.
        text: The answer; empty if there was none.
        errors: What did not work.
        refers_to: Deeds that the answer refers to; `not_in_records` what it mentions that is in none of its records
            (see `grounding`).
    """

    question: str
    thoughts: list[str] = field(default_factory=list)
    tool_calls: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    errors: list[str] = field(default_factory=list)
    refers_to: list[Deed] = field(default_factory=list)
    not_in_records: list[str] = field(default_factory=list)

    def note(self, event: Event) -> None:
        """Note something that happened; of several responses the last is the answer."""
        match event:
            case AgentTextEvent(type="thought"):
                self.thoughts.append(event.text)
            case AgentTextEvent():
                self.text = event.text
            case ToolFinishedEvent():
                call = {"tool_name": event.tool_name, "parameters": event.parameters}
                self.tool_calls.append(call | {"result": event.result.model_dump()})
            case AgentErrorEvent():
                self.errors.append(f"{event.reason}: {event.text}")

    def as_json(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return asdict(self)


def in_json(values: Any) -> str:
    """Return values as JSON, ended by a line break."""
    return json.dumps(values, indent=2, default=str) + "\n"


def as_json(facts: Mapping[str, Any], transcript: Sequence[Exchange]) -> str:
    """Return an interview as JSON: its facts, and `answers`."""
    return in_json({**facts, "answers": [exchange.as_json() for exchange in transcript]})


def as_markdown(facts: Mapping[str, Any], date: str, transcript: Sequence[Exchange]) -> str:
    """Return an interview to read."""
    agent = facts["agent"]
    when = "before the run" if facts["at"] < 0 else f"after round {facts['at']}"
    head = [
        f"# Interview with {agent['name']}",
        f"- run: {facts['run']}\n- agent: {agent['name']} (row {agent['row']}), as it was {when}\n"
        f"- played by: {facts['llm']['label']}\n- date: {date}",
    ]
    return "\n\n".join([*head, *(_exchange(agent["name"], exchange) for exchange in transcript)]) + "\n"


def _exchange(name: str, exchange: Exchange) -> str:
    parts = [f"## {_line(exchange.question)}"]
    parts += [f"> *thought:* {_line(thought_told(thought))}" for thought in exchange.thoughts]
    parts += [f"> *tool:* {_line(call_told(call))}" for call in exchange.tool_calls]
    parts += [f"> *error:* {_line(error)}" for error in exchange.errors]
    parts += [
        f"**{name}:** {exchange.text.strip()}" if exchange.text else "*(no answer)*",
        "\n".join(grounds(exchange)),
    ]
    return "\n\n".join(filter(None, parts))


def _grounds_in_markdown(exchange: Exchange) -> list[str]:
    lines = grounds(exchange)
    return ["\n".join(lines[:-1]), *lines[-1:]]


def grounds(exchange: Exchange) -> list[str]:
    """Return what an answer refers to, and what it mentions that is in no record, a line each; none without an answer.

    What the agent or others wrote stands in quotes.
    """
    if not exchange.text:
        return []
    said = [f"- {did_told(deed)}" for deed in exchange.refers_to] or ["- nothing that the agent did"]
    return ["Refers to:", *said, f"Not in its records: {', '.join(exchange.not_in_records) or 'nothing'}"]


def did_told(deed: Deed) -> str:
    """Return a deed for people to read.

    >>> print(did_told(Deed(3, "reply", 17, "Ada Lopez", "Rain again.", "It suits me.")))
    Round 3: replied to "Ada Lopez"'s post "Rain again." with "It suits me."
    """
    return in_words(deed).replace(": you ", ": ", 1).replace("<<< ", '"').replace(" >>>", '"')


def thought_told(thought: str) -> str:
    """Return a thought, given as JSON, as sentences."""
    return thought_in_words(ReasoningResult.model_validate_json(thought))


def call_told(call: Mapping[str, Any]) -> str:
    """Return a call of a tool and its result in one line."""
    given = ", ".join(f"{name}={value!r}" for name, value in call["parameters"].items())
    return f"{call['tool_name']}({given}): {call['result']['text']}"


def _line(text: str) -> str:
    return " ".join(text.split())
