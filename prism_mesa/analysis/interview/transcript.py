"""What was said in an interview, as a value, as JSON, and to read.

To read, whatever anybody said, wrote or is called stands in a quotation, line by line, with nothing in it that Markdown
or HTML could take for more than text; what stands outside of quotations is the program's.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from prism_mesa.deliberation import (
    AgentErrorEvent,
    AgentTextEvent,
    Event,
    ReasoningResult,
    ToolFinishedEvent,
)
from prism_mesa.deliberation.conversation import call_text, thought_in_words
from prism_mesa.errors import printable
from prism_mesa.social.content.activity import Activity, activity_line

CONSTRAINED: Final = "answers are constrained to what the agent did"
"""What is said of an LLM that can say nothing else; the check against the records cannot fail then."""
_MARKS: Final = re.compile(r"[\\`*_\[\]<>#|~&$]|:(?=//)|(?<=www)\.|(?<!\S)[-+=](?=\W|$)|(?<!\S)\d+(?=[.)])")
"""What Markdown or HTML could take for more than text: marks anywhere, addresses, and marks of lists and rules."""


@dataclass
class Exchange:
    """A question, and what came of it.

    Attributes:
        events: In order, each with its `type`: `thought` (`text` is JSON, see `deliberation.ReasoningResult`) `about`
            what the `user` said or what the `assistant` had answered so far, `call` of a tool with its parameters and
            result, `text`, of which all but the last are drafts, and `error` for what did not work.
        text: The answer; empty if there was none.
        refers_to: Activities that the answer refers to; `not_in_records` what it mentions and its records do not hold
            (see `evidence`).
    """

    question: str
    events: list[dict[str, Any]] = field(default_factory=list)
    text: str = ""
    refers_to: list[Activity] = field(default_factory=list)
    not_in_records: list[str] = field(default_factory=list)

    def note(self, event: Event) -> None:
        """Note something that happened; of several responses the last is the answer."""
        match event:
            case AgentTextEvent(type="thought"):  # after a response it is about that one
                self._add("thought", about="assistant" if self.text else "user", text=event.text)
            case AgentTextEvent():
                self.text = event.text
                self._add("text", text=event.text)
            case ToolFinishedEvent():
                called = {"tool_name": event.tool_name, "parameters": event.parameters}
                self._add("call", **called, result=event.result.model_dump())
            case AgentErrorEvent():
                self._add("error", text=f"{event.reason}: {event.text}")

    def note_interruption(self) -> None:
        """Note that whoever asked did not wait for the end."""
        self._add("error", text="interrupted")

    def _add(self, kind: str, **values: Any) -> None:
        self.events.append({"type": kind, **values})

    @property
    def errors(self) -> list[str]:
        """What did not work."""
        return [event["text"] for event in self.events if event["type"] == "error"]

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
        "# Interview",
        *_events_text("With", [agent["name"]]),
        f"- run: {_escaped(facts['run'])}\n- agent: row {agent['row']}, as it was {when}\n"
        f"- played by: {_escaped(facts['llm']['label'])}\n- date: {date}",
    ]
    if facts["held_to_deeds"]:
        head[-1] += f"\n- {CONSTRAINED}: each is one of them, so the check against its records cannot fail"
    parts = [part for number, one in enumerate(transcript, start=1) for part in _exchange(number, one)]
    return "\n\n".join([*head, *parts]) + "\n"


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
    yield from _events_text(
        "Refers to", [did_text(activity) for activity in exchange.refers_to], "nothing that the agent did"
    )
    yield from _events_text("Not in its records", exchange.not_in_records, "nothing")


def _events_text(what: str, said: Sequence[str], nothing: str = "") -> Iterator[str]:
    """Yield what it is, and what was said, each thing a paragraph of a quotation; or that it was nothing."""
    yield f"**{what}:**" if said else f"**{what}:** {nothing}"
    if said:
        yield "\n>\n".join(map(_quoted, said))


def _quoted(text: str) -> str:
    """Return what somebody said as a quotation of Markdown, line by line."""
    return "\n".join(f"> {_escaped(line)}".rstrip() for line in text.strip().splitlines() or [""])


def _escaped(text: str) -> str:
    r"""Return a text as one line that is nothing but text, in Markdown and in HTML, without what cannot be printed.

    >>> print(_escaped("# 1. <b>Hi</b> [x](y) - a-b \x1b"))
    \# 1\. \<b\>Hi\</b\> \[x\](y) \- a-b
    """
    return _MARKS.sub(lambda mark: _escape(mark[0]), " ".join(printable(text).split()))


def _escape(mark: str) -> str:
    return f"{mark}\\" if mark.isdecimal() else f"\\{mark}"


def grounds(exchange: Exchange) -> list[str]:
    """Return what an answer refers to, and what it mentions that is in no record, a line each; none without an answer.

    What the agent or others wrote stands in quotes.
    """
    if not exchange.text:
        return []
    said = [f"- {did_text(activity)}" for activity in exchange.refers_to] or ["- nothing that the agent did"]
    return ["Refers to:", *said, f"Not in its records: {', '.join(exchange.not_in_records) or 'nothing'}"]


def did_text(activity: Activity) -> str:
    """Return an activity for people to read; quotation marks in what somebody wrote become single ones.

    >>> print(did_text(Activity(3, "reply", 17, "Ada Lopez", 'The "rain" again.', "It suits me.")))
    Round 3: replied to "Ada Lopez"'s post "The 'rain' again." with "It suits me."
    """
    told = activity_line(activity).replace('"', "'")
    return told.replace(": you ", ": ", 1).replace("<<< ", '"').replace(" >>>", '"')


def thought_text(thought: str) -> str:
    """Return a thought, given as JSON, as sentences."""
    return thought_in_words(ReasoningResult.model_validate_json(thought))


def tool_text(call: Mapping[str, Any]) -> str:
    """Return a call of a tool and its result in one line."""
    return f"{call_text(call['tool_name'], call['parameters'])}: {call['result']['text']}"
