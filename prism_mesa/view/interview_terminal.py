"""An interview in a terminal: input and output. The interview itself is in `analysis.interview`."""

import signal
import sys
import textwrap
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, Self

from prism_mesa.analysis.interview.interview import Interview
from prism_mesa.analysis.interview.transcript import did_text, grounds, thought_text, tool_text
from prism_mesa.deliberation import AgentErrorEvent, AgentTextEvent, Event, ToolFinishedEvent
from prism_mesa.errors import AgentError, printable
from prism_mesa.terminal import Dimmed, show

PROMPT = "you> "
HELP = """/did       what the agent did, from the run's records
/thoughts  show thoughts and calls of tools, or hide them again
/help      this
/quit      end (as does the end of input)
Everything else is a question to the agent."""
_MOST = 40
_WIDTH = 100
_SAID_CAP = 600


class Session:
    """Reads lines from the user and shows the answers.

    Args:
        interview: The interview that answers.
        show: Shows a line that is free of terminal control characters.
        thoughts: Whether to show thoughts and tool calls from the start.
        dim: Whether they are dimmed (`terminal.Dimmed`).
        echo: Whether to show questions too, for input that is not typed in a terminal.
    """

    def __init__(
        self,
        interview: Interview,
        show: Callable[[str], None],
        *,
        thoughts: bool = False,
        dim: bool = False,
        echo: bool = False,
    ) -> None:
        self.interview = interview
        self.thoughts = thoughts
        self._show = show
        self._dim = dim
        self._echo = echo

    def take(self, lines: Iterable[str]) -> None:
        """Take lines until there are no more, or one says ``/quit``."""
        for line in map(str.strip, lines):
            if line and not self._took(line):
                break

    def _took(self, line: str) -> bool:
        """Carry out a line, and return whether to go on."""
        if not line.startswith("/"):
            self._ask(line)
            return True
        self._echoed(line)
        match line:
            case "/quit":
                return False
            case "/help":
                self._tell(HELP)
            case "/thoughts":
                self.thoughts = not self.thoughts
                self._tell(f"thoughts are {'shown' if self.thoughts else 'hidden'} from now on")
            case "/did":
                self._tell("\n".join(self._did()))
            case _:
                self._tell(f"{line}: no such command; there are /did, /thoughts, /help and /quit")
        return True

    def _echoed(self, line: str) -> None:
        if self._echo:
            self._tell(line, PROMPT)

    def _ask(self, question: str) -> None:
        """Ask a question and show the answer, which is the last of several responses."""
        try:
            events = self.interview.chat_stream(question)
        except AgentError as error:  # it is too long
            self._echoed(question)
            self._tell(str(error), "error: ")
            return
        self._echoed(question)  # now that the transcript has it
        answer, left = "", self.interview.context.limits.iterations
        for event in events:
            if isinstance(event, AgentTextEvent) and event.type == "text":
                answer, left = event.text, left - 1
                if left and self.thoughts:
                    self._aside(f"drafts: {answer}")
                elif not left:
                    self._answer(answer)
            else:
                self._event(event)
        if answer and left:
            self._answer(answer)
        if self.thoughts:
            self._aside("\n".join(grounds(self.interview.transcript[-1])))

    def _event(self, event: Event) -> None:
        match event:
            case AgentErrorEvent():
                self._tell(f"({event.reason}) {event.text}", "error: ")
            case AgentTextEvent() if self.thoughts:
                self._aside(f"thinks: {thought_text(event.text) or '...'}")
            case ToolFinishedEvent() if self.thoughts:
                self._aside(f"calls {tool_text(event.model_dump())}")

    def _answer(self, text: str) -> None:
        self._tell(text.strip(), f"{self.interview.snapshot.name}> ")

    def _did(self) -> Iterator[str]:
        snapshot = self.interview.snapshot
        if len(snapshot.activities) > _MOST:
            yield f"... and {len(snapshot.activities) - _MOST} activities before"
        yield from map(did_text, snapshot.activities[-_MOST:])
        if not snapshot.activities:
            yield "nothing" if snapshot.at >= 0 else "nothing: it is before the run"
        if not snapshot.likes_recorded:
            yield "what it liked is not recorded"

    def _aside(self, text: str) -> None:
        for line in text.splitlines():
            for part in textwrap.wrap(printable(line)[:_SAID_CAP], _WIDTH - 4):
                self._show(Dimmed(f"    {part}") if self._dim else f"    {part}")

    def _tell(self, text: str, before: str = "") -> None:
        """Show a text after a label; line breaks are kept."""
        for line in text.splitlines() or [""]:
            self._show(f"{printable(before)}{printable(line)}".rstrip())
            before = " " * len(before)


class Interrupts:
    """Handles Ctrl-C during an interview, and remembers it where Python drops the exception, as in a finalizer.

    Attributes:
        came: Whether Ctrl-C was pressed.
        held: Whether to only remember it, while the transcript is being saved.
    """

    def __init__(self) -> None:
        self.came = False
        self.held = False
        self._before: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._noted)
        return self

    def _noted(self, number: int, frame: FrameType | None) -> None:
        self.came = True
        if not self.held:
            raise KeyboardInterrupt

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def between(self, lines: Iterable[str]) -> Iterator[str]:
        """Yield lines until the user interrupts.

        Raises:
            KeyboardInterrupt: If the user pressed Ctrl-C.
        """
        for line in lines:
            yield line
            if self.came:
                raise KeyboardInterrupt


def typed_lines(prompt_to_stdout: bool) -> Iterator[str]:
    """Prompt for lines in a terminal, and yield them until the end of input.

    Args:
        prompt_to_stdout: Else the prompt goes to stderr.
    """
    with suppress(ImportError):
        import readline  # noqa: F401 - it lets input() edit lines
    while True:
        if not prompt_to_stdout:
            show(PROMPT, to=sys.stderr, end="")
        try:
            yield input(PROMPT if prompt_to_stdout else "")
        except EOFError:
            show(to=sys.stdout if prompt_to_stdout else sys.stderr)
            return


def piped_lines() -> Iterator[str]:
    """Yield the lines of standard input; bytes that are not UTF-8 become question marks."""
    for line in sys.stdin.buffer:
        yield line.decode("utf-8", "replace")
