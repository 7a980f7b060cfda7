"""Ctrl-C and SIGTERM end a run in order: its round is completed, and its last tables are written."""

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
"""A signal so soon after another is the same one, passed on by a terminal, a scheduler and `uv run`."""
_WRITING: Final = "prism: the last tables are being written (once more ends it at once, without them)"
_IN_ROUND: Final = "prism: the run is stopped after this round, and can go on later (once more ends it at once)"


class TerminatedError(KeyboardInterrupt):
    """SIGTERM, as schedulers send it; it ends a run as Ctrl-C does."""


class EndAtOnceError(KeyboardInterrupt):
    """A second signal: the user does not wait for the last tables."""


class Stopping:
    """Handles the signals: the first ends the run when its round is over, the second at once.

    Attributes:
        came: The first signal; None before there is one.
        writing: Whether the last tables are being written; the first signal then changes nothing.
        in_round: Whether a round is in progress.
    """

    def __init__(self) -> None:
        self.came: int | None = None
        self.writing = False
        self.in_round = False
        self._last = float("-inf")

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal (see `signal.signal`); raises KeyboardInterrupt if it ends the run now."""
        now = time.monotonic()
        if now - self._last < _SAME_S:
            return
        self._last, first = now, self.came is None
        self.came = number if first else self.came
        if not first:
            raise EndAtOnceError
        if not (self.writing or self.in_round):
            self.end()
        with suppress(RuntimeError, OSError, ValueError):  # stderr is in use or closed
            show_line(_WRITING if self.writing else _IN_ROUND, to=sys.stderr)

    def end(self) -> NoReturn:
        """End the run with a KeyboardInterrupt."""
        raise TerminatedError if self.came == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end runs in the block in order.

    Only in the main thread, and only signals that nobody else handles: an ignored Ctrl-C, as in the background of a
    shell, stays ignored.
    """
    handle, before = Stopping().handle, {}
    if threading.current_thread() is threading.main_thread():
        usual: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
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
    """Defer the first signal until the block is written; a second one interrupts. Yields the handler."""
    stopping = _stopping() or Stopping()
    before, stopping.writing = stopping.writing, True
    try:
        yield stopping
    finally:
        stopping.writing = before


@contextmanager
def whole_rounds() -> Iterator[Callable[[], bool]]:
    """Defer the first signal until a round is over; yields a function that says whether one came."""
    stopping = _stopping() or Stopping()
    before, stopping.in_round = stopping.in_round, True
    try:
        yield lambda: stopping.came is not None
    finally:
        stopping.in_round = before


def stop_now() -> None:
    """Raise KeyboardInterrupt if a signal has come."""
    stopping = _stopping()
    if stopping is not None and stopping.came is not None:
        stopping.end()


def came_first() -> int | None:
    """Return the first signal that this thread's run got, if any."""
    stopping = _stopping()
    return None if stopping is None else stopping.came


def _stopping() -> Stopping | None:
    """Return the handler of this thread's signals, if it is a `Stopping`."""
    if threading.current_thread() is not threading.main_thread():
        return None
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = getattr(signal.getsignal(number), "__self__", None)
        if isinstance(handler, Stopping):
            return handler
    return None
