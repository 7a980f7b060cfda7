"""The transcript of an interview as JSON and Markdown.

In Markdown, texts by people and LLMs are quoted, and their markup is escaped.
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
"""The note for a constrained LLM, whose answers always agree with the records."""
_MARKUP: Final = re.compile(r"[\\`*_\[\]<>#|~&$]|:(?=//)|(?<=www)\.|(?<!\S)[-+=](?=\W|$)|(?<!\S)\d+(?=[.)])")
"""Markup of Markdown and HTML: anywhere, in addresses, and at the start of lists and rules."""


@dataclass
class Exchange:
    """A question and its answer.

    Attributes:
        events: The events in order. Each has a `type`: `thought`, `call`, `text` or `error`. A thought is `about` the
            question (`user`) or the answer so far (`assistant`), and its `text` is JSON (see
            `deliberation.ReasoningResult`). A call has the parameters and the result of a tool. All texts except the
            last are drafts.
        text: The answer; empty if there is none.
        refers_to: Activities that the answer refers to (see `evidence.find_references`).
        not_in_records: Rounds and users that the answer mentions but the records do not.
    """

    question: str
    events: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    refers_to: list[Activity] = field(default_factory=list)
    not_in_records: list[str] = field(default_factory=list)

    def add_event(self, event: Event) -> None:
        """Add an event; the last text is the answer."""
        match event:
            case AgentTextEvent(type="thought"):  # after a text, the thought is about this text
                self.add("thought", about="assistant" if self.text else "user", text=event.text)
            case AgentTextEvent():
                self.text = event.text
                self.add("text", text=event.text)
            case ToolFinishedEvent():
                call = {"tool_name": event.tool_name, "parameters": event.parameters}
                self.add("call", **call, result=event.result.model_dump())
            case AgentErrorEvent():
                self.add("error", text=f"{event.reason}: {event.text}")

    def add(self, kind: str, **values: Any) -> None:
        """Add an event with a type and values."""
        self.events.append({"type": kind, **values})

    @property
    def errors(self) -> list[str]:
        """The texts of errors."""
        return [event["text"] for event in self.events if event["type"] == "error"]

    def as_json(self) -> dict[str, Any]:
        """Return the exchange as JSON values."""
        return asdict(self)


def json_text(values: Any) -> str:
    """Return values as JSON, with a line break at the end."""
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
        f"- run: {_escape_markup(facts['run'])}\n- agent: row {agent['row']}, as it was {when}\n"
        f"- played by: {_escape_markup(facts['llm']['label'])}\n- date: {date}",
    ]
    if facts["held_to_deeds"]:
        heading[-1] += f"\n- {CONSTRAINED}: each is one of them, so the check against its records cannot fail"
    parts = [part for number, exchange in enumerate(transcript, start=1) for part in _exchange_parts(number, exchange)]
    return "\n\n".join([*heading, *parts]) + "\n"


def _exchange_parts(number: int, exchange: Exchange) -> Iterator[str]:
    yield f"## Question {number}"
    yield _quote(exchange.question)
    last_text = max((index for index, event in enumerate(exchange.events) if event["type"] == "text"), default=-1)
    for index, event in enumerate(exchange.events):
        match event["type"]:
            case "thought":
                about = "" if event["about"] == "user" else " about the answer so far"
                yield from _events_text(f"Thought{about}", [thought_text(event["text"]) or "..."])
            case "call":
                yield from _events_text("Looked up", [tool_text(event)])
            case "error":
                yield from _events_text("Error", [event["text"]])
            case _:
                yield from _events_text("Answer" if index == last_text else "Draft", [event["text"]])
    if not exchange.text:
        yield "**No answer.**"
        return
    yield from _events_text("Refers to", list(map(activity_text, exchange.refers_to)), "nothing that the agent did")
    yield from _events_text("Not in its records", exchange.not_in_records, "nothing")


def _events_text(title: str, texts: Sequence[str], placeholder: str = "") -> Iterator[str]:
    """Yield a title and quoted texts, or the `placeholder` if there are no texts."""
    yield f"**{title}:**" if texts else f"**{title}:** {placeholder}"
    if texts:
        yield "\n>\n".join(map(_quote, texts))


def _quote(text: str) -> str:
    return "\n".join(f"> {_escape_markup(line)}".rstrip() for line in text.strip().splitlines() or [""])


def _escape_markup(text: str) -> str:
    r"""Return a string as one printable line, with its Markdown and HTML escaped.

    >>> print(_escape_markup("# 1. <b>Hi</b> [x](y) - a-b \x1b"))
    \# 1\. \<b\>Hi\</b\> \[x\](y) \- a-b
    """
    line = " ".join(printable(text).split())
    return _MARKUP.sub(lambda mark: f"{mark[0]}\\" if mark[0].isdecimal() else f"\\{mark[0]}", line)


def evidence_lines(exchange: Exchange) -> list[str]:
    """Return the activities that an answer refers to, and its claims that the records lack, as lines."""
    if not exchange.text:
        return []
    lines = [f"- {activity_text(activity)}" for activity in exchange.refers_to] or ["- nothing that the agent did"]
    return ["Refers to:", *lines, f"Not in its records: {', '.join(exchange.not_in_records) or 'nothing'}"]


def activity_text(activity: Activity) -> str:
    """Describe an activity for readers; double quotation marks in its texts become single.

    >>> print(activity_text(Activity(3, "reply", 17, "Ada Lopez", 'The "rain" again.', "It suits me.")))
    Round 3: replied to "Ada Lopez"'s post "The 'rain' again." with "It suits me."
    """
    text = activity_line(activity).replace('"', "'")
    return text.replace(": you ", ": ", 1).replace("<<< ", '"').replace(" >>>", '"')


def thought_text(thought: str) -> str:
    """Return the sentences of a thought in JSON."""
    return reasoning_text(ReasoningResult.model_validate_json(thought))


def tool_text(call: Mapping[str, Any]) -> str:
    """Return a tool call and its result in one line."""
    return f"{call_text(call['tool_name'], call['parameters'])}: {call['result']['text']}"
