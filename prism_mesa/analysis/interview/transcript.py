"""The transcript of an interview as JSON and Markdown.

Markdown quotes all texts by people and LLMs, and escapes marks of Markdown and HTML in them.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from prism_mesa.deliberation import AgentErrorEvent, AgentTextEvent, Event, ReasoningResult, ToolFinishedEvent
from prism_mesa.deliberation.conversation import call_text, reasoning_text
from prism_mesa.errors import printable
from prism_mesa.social.content.activity import Activity, activity_line

CONSTRAINED: Final = "answers are constrained to what the agent did"
"""The note on a constrained LLM, whose answers always pass the check against the records."""
_MARKS: Final = re.compile(r"[\\`*_\[\]<>#|~&$]|:(?=//)|(?<=www)\.|(?<!\S)[-+=](?=\W|$)|(?<!\S)\d+(?=[.)])")
"""Marks of Markdown and HTML: anywhere, in addresses, and at the start of lists and rules."""


@dataclass
class Exchange:
    """A question and its answer.

    Attributes:
        events: In order, each with its `type`. A `thought` (`text` is JSON, see `deliberation.ReasoningResult`) is
            `about` the question (`user`) or the answer so far (`assistant`). A `call` is a tool call with parameters
            and result. All `text` events but the last are drafts. The last type is `error`.
        text: The answer; empty if there is none.
        refers_to: Activities that the answer refers to (see `evidence`).
        not_in_records: Rounds and users that the answer mentions, but the records do not.
    """

    question: str
    events: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    refers_to: list[Activity] = field(default_factory=list)
    not_in_records: list[str] = field(default_factory=list)

    def note(self, event: Event) -> None:
        """Add an event; the last of several responses is the answer."""
        match event:
            case AgentTextEvent(type="thought"):  # after a response, it concerns that response
                self.add("thought", about="assistant" if self.text else "user", text=event.text)
            case AgentTextEvent():
                self.text = event.text
                self.add("text", text=event.text)
            case ToolFinishedEvent():
                called = {"tool_name": event.tool_name, "parameters": event.parameters}
                self.add("call", **called, result=event.result.model_dump())
            case AgentErrorEvent():
                self.add("error", text=f"{event.reason}: {event.text}")

    def add(self, kind: str, **values: Any) -> None:
        """Add an event by its type and values."""
        self.events.append({"type": kind, **values})

    @property
    def errors(self) -> list[str]:
        """The texts of errors."""
        return [event["text"] for event in self.events if event["type"] == "error"]

    def as_json(self) -> dict[str, Any]:
        """Return the exchange as JSON values."""
        return asdict(self)


def json_text(values: Any) -> str:
    """Return values as JSON with a final line break."""
    return json.dumps(values, indent=2, default=str) + "\n"


def as_json(facts: Mapping[str, Any], transcript: Sequence[Exchange]) -> str:
    """Return an interview as JSON: its facts, and `answers`."""
    return json_text({**facts, "answers": [exchange.as_json() for exchange in transcript]})


def as_markdown(facts: Mapping[str, Any], date: str, transcript: Sequence[Exchange]) -> str:
    """Return an interview as Markdown."""
    agent = facts["agent"]
    when = "before the run" if facts["at"] < 0 else f"after round {facts['at']}"
    heading = [
        "# Interview",
        *_events_text("With", [agent["name"]]),
        f"- run: {_escaped(facts['run'])}\n- agent: row {agent['row']}, as it was {when}\n"
        f"- played by: {_escaped(facts['llm']['label'])}\n- date: {date}",
    ]
    if facts["held_to_deeds"]:
        heading[-1] += f"\n- {CONSTRAINED}: each is one of them, so the check against its records cannot fail"
    parts = [part for number, exchange in enumerate(transcript, start=1) for part in _exchange(number, exchange)]
    return "\n\n".join([*heading, *parts]) + "\n"


def _exchange(number: int, exchange: Exchange) -> Iterator[str]:
    yield f"## Question {number}"
    yield _quoted(exchange.question)
    last = max((place for place, event in enumerate(exchange.events) if event["type"] == "text"), default=-1)
    for place, event in enumerate(exchange.events):
        match event["type"]:
            case "thought":
                about = "" if event["about"] == "user" else " about the answer so far"
                yield from _events_text(f"Thought{about}", [thought_text(event["text"]) or "..."])
            case "call":
                yield from _events_text("Looked up", [tool_text(event)])
            case "error":
                yield from _events_text("Error", [event["text"]])
            case _:
                yield from _events_text("Answer" if place == last else "Draft", [event["text"]])
    if not exchange.text:
        yield "**No answer.**"
        return
    yield from _events_text("Refers to", list(map(did_text, exchange.refers_to)), "nothing that the agent did")
    yield from _events_text("Not in its records", exchange.not_in_records, "nothing")


def _events_text(title: str, texts: Sequence[str], placeholder: str = "") -> Iterator[str]:
    """Yield a title and quoted texts, or the `placeholder` if there are no texts."""
    yield f"**{title}:**" if texts else f"**{title}:** {placeholder}"
    if texts:
        yield "\n>\n".join(map(_quoted, texts))


def _quoted(text: str) -> str:
    return "\n".join(f"> {_escaped(line)}".rstrip() for line in text.strip().splitlines() or [""])


def _escaped(text: str) -> str:
    r"""Return a string as one printable line with the marks of Markdown and HTML escaped.

    >>> print(_escaped("# 1. <b>Hi</b> [x](y) - a-b \x1b"))
    \# 1\. \<b\>Hi\</b\> \[x\](y) \- a-b
    """
    line = " ".join(printable(text).split())
    return _MARKS.sub(lambda mark: f"{mark[0]}\\" if mark[0].isdecimal() else f"\\{mark[0]}", line)


def grounds(exchange: Exchange) -> list[str]:
    """Return lines on the activities that an answer refers to, and on its claims outside the records."""
    if not exchange.text:
        return []
    lines = [f"- {did_text(activity)}" for activity in exchange.refers_to] or ["- nothing that the agent did"]
    return ["Refers to:", *lines, f"Not in its records: {', '.join(exchange.not_in_records) or 'nothing'}"]


def did_text(activity: Activity) -> str:
    """Describe an activity for readers; double quotation marks in texts become single ones.

    >>> print(did_text(Activity(3, "reply", 17, "Ada Lopez", 'The "rain" again.', "It suits me.")))
    Round 3: replied to "Ada Lopez"'s post "The 'rain' again." with "It suits me."
    """
    text = activity_line(activity).replace('"', "'")
    return text.replace(": you ", ": ", 1).replace("<<< ", '"').replace(" >>>", '"')


def thought_text(thought: str) -> str:
    """Return the sentences of a thought, which is JSON."""
    return reasoning_text(ReasoningResult.model_validate_json(thought))


def tool_text(call: Mapping[str, Any]) -> str:
    """Return a call of a tool and its result in one line."""
    return f"{call_text(call['tool_name'], call['parameters'])}: {call['result']['text']}"
