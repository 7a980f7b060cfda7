"""The input and output of an interview in a terminal; `analysis.interview` has the interview itself."""

import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from types import FrameType
from typing import Any, Self

from prism_mesa.analysis.interview.interview import Interview
from prism_mesa.analysis.interview.transcript import activity_text, evidence_lines, thought_text, tool_text
from prism_mesa.deliberation import AgentErrorEvent, AgentTextEvent, Event, ToolFinishedEvent
from prism_mesa.errors import AgentError, printable
from prism_mesa.terminal import DimmedText, show

PROMPT = "you> "
HELP = """/did       show what the agent did, from the run's records
/thoughts  show or hide thoughts and tool calls
/help      show this help
/quit      end the interview, like the end of input
Any other line is a question to the agent."""
_MAX_ACTIVITIES = 40
_WIDTH = 100
_MAX_ASIDE = 600


@dataclass
class Session:
    """Reads lines from the user and shows the answers through `show`, without terminal control characters.

    Thoughts and tool calls are shown if `thoughts`, and dimmed if `dim`. With `echo`, questions are shown too, for
    input that is not typed in a terminal.
    """

    interview: Interview
    show: Callable[[str], None]
    _: KW_ONLY
    thoughts: bool = False
    dim: bool = False
    echo: bool = False

    def handle_lines(self, lines: Iterable[str]) -> None:
        """Handle lines until they end, or until ``/quit``."""
        for line in filter(None, map(str.strip, lines)):
            if not line.startswith("/"):
                self._ask(line)
                continue
            self._write_question(line)
            match line:
                case "/quit":
                    return
                case "/help":
                    self._write(HELP)
                case "/thoughts":
                    self.thoughts = not self.thoughts
                    self._write(f"thoughts are {'shown' if self.thoughts else 'hidden'} from now on")
                case "/did":
                    self._write("\n".join(self._activities()))
                case _:
                    self._write(f"{line}: no such command; there are /did, /thoughts, /help and /quit")

    def _write_question(self, line: str) -> None:
        if self.echo:
            self._write(line, PROMPT)

    def _ask(self, question: str) -> None:
        """Ask a question and show the answer, which is the last of several responses."""
        try:
            events = self.interview.chat_stream(question)
        except AgentError as error:  # the question is too long
            self._write_question(question)
            self._write(str(error), "error: ")
            return
        self._write_question(question)  # after the transcript has recorded it
        answer, remaining = "", self.interview.context.limits.iterations
        for event in events:
            if isinstance(event, AgentTextEvent) and event.type == "text":
                answer, remaining = event.text, remaining - 1
                if remaining and self.thoughts:
                    self._write_aside(f"drafts: {answer}")
            else:
                self._write_event(event)
        if answer:
            self._write(answer.strip(), f"{self.interview.snapshot.name}> ")
        if self.thoughts:
            self._write_aside("\n".join(evidence_lines(self.interview.transcript[-1])))

    def _write_event(self, event: Event) -> None:
        match event:
            case AgentErrorEvent():
                self._write(f"({event.reason}) {event.text}", "error: ")
            case AgentTextEvent() if self.thoughts:
                self._write_aside(f"thinks: {thought_text(event.text) or '...'}")
            case ToolFinishedEvent() if self.thoughts:
                self._write_aside(f"calls {tool_text(event.model_dump())}")

    def _activities(self) -> Iterator[str]:
        snapshot = self.interview.snapshot
        if len(snapshot.activities) > _MAX_ACTIVITIES:
            yield f"... and {len(snapshot.activities) - _MAX_ACTIVITIES} activities before"
        yield from map(activity_text, snapshot.activities[-_MAX_ACTIVITIES:])
        if not snapshot.activities:
            yield "nothing" if snapshot.last_round >= 0 else "nothing: the run has not begun"
        if not snapshot.likes_recorded:
            yield "its likes are not recorded"

    def _write_aside(self, text: str) -> None:
        for line in text.splitlines():
            for part in textwrap.wrap(printable(line)[:_MAX_ASIDE], _WIDTH - 4):
                self.show(DimmedText(f"    {part}") if self.dim else f"    {part}")

    def _write(self, text: str, label: str = "") -> None:
        for line in text.splitlines() or [""]:
            self.show(f"{printable(label)}{printable(line)}".rstrip())
            label = " " * len(label)


class Interrupts:
    """Handles Ctrl-C during an interview, and records in `was_pressed` that the user pressed it.

    While the transcript is being saved (`is_saving`), no exception is raised, because finalizers would drop it.
    """

    def __init__(self) -> None:
        self.was_pressed = False
        self.is_saving = False
        self._earlier_handler: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._earlier_handler = signal.signal(signal.SIGINT, self._note_signal)
        return self

    def _note_signal(self, number: int, frame: FrameType | None) -> None:
        self.was_pressed = True
        if not self.is_saving:
            raise KeyboardInterrupt

    def __exit__(self, *_: object) -> None:
        if self._earlier_handler is not None:
            signal.signal(signal.SIGINT, self._earlier_handler)

    def until_pressed(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines until the user presses Ctrl-C, which raises KeyboardInterrupt."""
        for line in lines:
            yield line
            if self.was_pressed:
                raise KeyboardInterrupt


def typed_lines(prompt_to_stdout: bool) -> Iterator[str]:
    """Yield lines typed in a terminal until the end of input; the prompt goes to stdout or to stderr."""
    with suppress(ImportError):
        import readline  # noqa: F401 - it lets input() edit lines
    while True:
        if not prompt_to_stdout:
            show(PROMPT, file=sys.stderr, end="")
        try:
            yield input(PROMPT if prompt_to_stdout else "")
        except EOFError:
            show(file=sys.stdout if prompt_to_stdout else sys.stderr)
            return


def piped_lines() -> Iterator[str]:
    """Yield the lines of standard input; bytes that are not UTF-8 become question marks."""
    for line in sys.stdin.buffer:
        yield line.decode("utf-8", "replace")
