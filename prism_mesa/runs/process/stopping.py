"""Ctrl-C and SIGTERM while a run goes on: the run is ended in order, and what was recorded is written whole."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, NoReturn

from prism_mesa.terminal import show_line

_SAME_S: Final = 0.3
"""Signals that come so soon after another are the same one: a terminal, a scheduler and `uv run` all pass it on."""
_WRITING: Final = "prism: the last tables are being written (once more ends it at once, without them)"
_IN_ROUND: Final = "prism: the run is stopped after this round, and can go on later (once more ends it at once)"


class TerminatedError(KeyboardInterrupt):
    """SIGTERM, by which a scheduler ends what takes too long: it ends a run as Ctrl-C does."""


class EndAtOnceError(KeyboardInterrupt):
    """Ctrl-C or SIGTERM from somebody who does not wait for the last tables."""


class Stopping:
    """What the signals do: the first ends the run in order, as soon as its round is over, the second at once.

    Attributes:
        came: Which one came first; None if none did.
        writing: Whether the last tables are being written: then the first does not end the run any more.
        in_round: Whether rounds are run.
    """

    def __init__(self) -> None:
        self.came: int | None = None
        self.writing = False
        self.in_round = False
        self._last = float("-inf")

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Take a signal (see `signal.signal`).

        Raises:
            KeyboardInterrupt: If it ends what goes on now.
        """
        now = time.monotonic()
        if now - self._last < _SAME_S:
            return
        self._last, first = now, self.came is None
        self.came = number if first else self.came
        if not first:
            raise EndAtOnceError
        if not (self.writing or self.in_round):
            self.end()
        with suppress(RuntimeError, OSError, ValueError):  # something was just being printed, or stderr is closed
            show_line(_WRITING if self.writing else _IN_ROUND, to=sys.stderr)

    def end(self) -> NoReturn:
        """End the run.

        Raises:
            KeyboardInterrupt: Always.
        """
        raise TerminatedError if self.came == signal.SIGTERM else KeyboardInterrupt


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


@contextmanager
def whole_rounds() -> Iterator[Callable[[], bool]]:
    """Let a signal not end a round in the block, but what follows it; yields what says whether one has come."""
    stopping = _stopping() or Stopping()
    before, stopping.in_round = stopping.in_round, True
    try:
        yield lambda: stopping.came is not None
    finally:
        stopping.in_round = before


def stop_now() -> None:
    """End the run, if a signal has come.

    Raises:
        KeyboardInterrupt: If there was one.
    """
    stopping = _stopping()
    if stopping is not None and stopping.came is not None:
        stopping.end()


def came_first() -> int | None:
    """Return the signal that came first in this thread's run, if one did."""
    stopping = _stopping()
    return None if stopping is None else stopping.came


def _stopping() -> Stopping | None:
    """Return what handles the signals of this thread's run, if it is one of these."""
    if threading.current_thread() is not threading.main_thread():
        return None
    for number in (signal.SIGINT, signal.SIGTERM):
        whose = getattr(signal.getsignal(number), "__self__", None)
        if isinstance(whose, Stopping):
            return whose
    return None
