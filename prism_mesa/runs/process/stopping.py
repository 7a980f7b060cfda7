"""Ctrl-C and SIGTERM while a run goes on: the run is ended in order, and what was recorded is written whole."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final

from prism_mesa.terminal import show_line

_SAME_S: Final = 0.3
"""Signals that come so soon after another are the same one: a terminal, a scheduler and `uv run` all pass it on."""
_WRITING: Final = "prism: the last tables are being written (once more ends it at once, without them)"


class TerminatedError(KeyboardInterrupt):
    """SIGTERM, by which a scheduler ends what takes too long: it ends a run as Ctrl-C does."""


class EndAtOnceError(KeyboardInterrupt):
    """Ctrl-C or SIGTERM from somebody who does not wait for the last tables."""


class Stopping:
    """What the signals do: the first ends the run, the next says that it is ending, one more ends it at once.

    Attributes:
        came: Whether one has come.
        writing: Whether the last tables are being written: then the first does not end the run any more.
    """

    def __init__(self) -> None:
        self.came = False
        self.writing = False
        self._said = False
        self._last = float("-inf")

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Take a signal (see `signal.signal`).

        Raises:
            KeyboardInterrupt: If it ends the run.
        """
        now = time.monotonic()
        if now - self._last < _SAME_S:
            return
        self._last, before, self.came = now, self.came, True
        if not (before or self.writing):
            raise TerminatedError if number == signal.SIGTERM else KeyboardInterrupt
        if self._said:
            raise EndAtOnceError
        self._said = True
        with suppress(RuntimeError, OSError, ValueError):  # something was just being printed, or stderr is closed
            show_line(_WRITING, to=sys.stderr)


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """End runs in the block in order when Ctrl-C or SIGTERM comes; afterwards both do what they did before.

    Only in the main thread, and only where nobody else has given the signals a meaning: Ctrl-C that is ignored, as in
    the background of a shell, stays ignored.
    """
    handle, before = Stopping().handle, {}
    if threading.current_thread() is threading.main_thread():
        usual: dict[signal.Signals, Any] = {
            signal.SIGINT: signal.default_int_handler,
            signal.SIGTERM: signal.SIG_DFL,
        }
        before = {number: does for number, does in usual.items() if signal.getsignal(number) is does}
    try:
        for number in before:
            signal.signal(number, handle)
        yield
    finally:
        for number, does in before.items():
            signal.signal(number, does)


@contextmanager
def last_tables() -> Iterator[Stopping]:
    """Let no signal end what is written in the block but one that comes again; yields what says whether one came."""
    stopping = _stopping() or Stopping()
    before, stopping.writing = stopping.writing, True
    try:
        yield stopping
    finally:
        stopping.writing = before


def go_on() -> None:
    """Raise what a signal raised that came before, and was lost: Python drops what is raised in a finalizer.

    Raises:
        KeyboardInterrupt: If there was one.
    """
    stopping = _stopping()
    if stopping is not None and stopping.came:
        raise KeyboardInterrupt


def _stopping() -> Stopping | None:
    """Return what handles the signals of this thread's run, if it is one of these."""
    if threading.current_thread() is not threading.main_thread():
        return None
    for number in (signal.SIGINT, signal.SIGTERM):
        whose = getattr(signal.getsignal(number), "__self__", None)
        if isinstance(whose, Stopping):
            return whose
    return None
