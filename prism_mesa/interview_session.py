"""An interview in a terminal: what is typed, what is shown. What an interview is stands in `experiments.interview`."""

import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

from prism_mesa.deliberation import AgentErrorEvent, AgentTextEvent, Event, ToolFinishedEvent
from prism_mesa.experiments.interview import Interview
from prism_mesa.experiments.transcript import call_told, did_told, grounds, thought_told

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
    """Takes lines and shows what comes of them.

    Args:
        interview: Who answers.
        show: Shows a line, which holds nothing that could steer a terminal.
        thoughts: Whether thoughts and calls of tools are shown from the start.
        dim: Whether they are dimmed, by ANSI codes.
        echo: Whether questions are shown as well: where they are not typed in a terminal.
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
        """Do what a line says, and return whether to go on."""
        if self._echo:
            self._tell(line, PROMPT)
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
            case _ if line.startswith("/"):
                self._tell(f"{line}: no such command; there are /did, /thoughts, /help and /quit")
            case _:
                self._ask(line)
        return True

    def _ask(self, question: str) -> None:
        for event in self.interview.chat_stream(question):
            self._event(event)
        if self.thoughts:
            self._aside("\n".join(grounds(self.interview.transcript[-1])))

    def _event(self, event: Event) -> None:
        match event:
            case AgentTextEvent(type="text"):
                self._tell(event.text.strip(), f"{self.interview.restored.name}> ")
            case AgentErrorEvent():
                self._tell(f"({event.reason}) {event.text}", "error: ")
            case AgentTextEvent() if self.thoughts:
                self._aside(f"thinks: {thought_told(event.text) or '...'}")
            case ToolFinishedEvent() if self.thoughts:
                self._aside(f"calls {call_told(event.model_dump())}")

    def _did(self) -> Iterator[str]:
        own = self.interview.restored
        if len(own.deeds) > _MOST:
            yield f"... and {len(own.deeds) - _MOST} deeds before"
        yield from map(did_told, own.deeds[-_MOST:])
        if not own.deeds:
            yield "nothing" if own.at >= 0 else "nothing: it is before the run"
        if not own.likes_recorded:
            yield "what it liked is not recorded"

    def _aside(self, text: str) -> None:
        for line in text.splitlines():
            for part in textwrap.wrap(safe(line)[:_SAID_CAP], _WIDTH - 4):
                self._show(f"\x1b[2m    {part}\x1b[0m" if self._dim else f"    {part}")

    def _tell(self, text: str, before: str = "") -> None:
        """Show a text, whose own lines stay lines, after a label."""
        for line in text.splitlines() or [""]:
            self._show(f"{safe(before)}{safe(line)}".rstrip())
            before = " " * len(before)


def safe(text: str) -> str:
    """Return `text` with a space for each character that could steer a terminal or cannot be printed."""
    return "".join(char if char.isprintable() else " " for char in text)


def typed_lines(prompt_to_stdout: bool) -> Iterator[str]:
    """Yield what is typed in a terminal, after a prompt, until the end of input.

    Args:
        prompt_to_stdout: Else the prompt goes to stderr.
    """
    with suppress(ImportError):
        import readline  # noqa: F401 - it lets input() edit lines
    while True:
        if not prompt_to_stdout:
            print(PROMPT, end="", file=sys.stderr, flush=True)
        try:
            yield input(PROMPT if prompt_to_stdout else "")
        except EOFError:
            print(file=sys.stdout if prompt_to_stdout else sys.stderr)
            return


def piped_lines() -> Iterator[str]:
    """Yield the lines of standard input; bytes that are no UTF-8 become question marks."""
    for line in sys.stdin.buffer:
        yield line.decode("utf-8", "replace")
