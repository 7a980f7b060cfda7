"""End a run after its round on Ctrl-C or SIGTERM, and let it write its last tables."""

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, NoReturn

from prism_mesa.terminal import show_line

_REPEAT_S: Final = 0.3
"""A terminal, a scheduler and `uv run` may each pass on the same signal; repeats within these seconds count once."""
_WRITING: Final = "prism: the last tables are being written (press again to end at once, without them)"
_IN_ROUND: Final = "prism: the run is stopped after this round, and can go on later (press again to end at once)"


class TerminatedError(KeyboardInterrupt):
    """SIGTERM from a scheduler; it ends a run as Ctrl-C does."""


class EndAtOnceError(KeyboardInterrupt):
    """A second signal ends the run without its last tables."""


class Stopping:
    """Handles signals: the first ends the run after its round, the second at once.

    Attributes:
        received: The first signal, if any.
        is_writing: Whether the last tables are being written, which the first signal does not interrupt.
        is_in_round: Whether a round is in progress.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.is_writing = False
        self.is_in_round = False
        self._last = float("-inf")

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal (see `signal.signal`); raises KeyboardInterrupt if it ends the run now."""
        now = time.monotonic()
        if now - self._last < _REPEAT_S:
            return
        self._last, is_first = now, self.received is None
        self.received = number if is_first else self.received
        if not is_first:
            raise EndAtOnceError
        if not (self.is_writing or self.is_in_round):
            self.end()
        with suppress(RuntimeError, OSError, ValueError):  # stderr is in use or closed
            show_line(_WRITING if self.is_writing else _IN_ROUND, file=sys.stderr)

    def end(self) -> NoReturn:
        """End the run with a KeyboardInterrupt."""
        raise TerminatedError if self.received == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM for runs in the block, if it is in the main thread.

    Other handlers stay in place; an ignored Ctrl-C, as in the background of a shell, stays ignored.
    """
    handle, handlers = Stopping().handle, {}
    if threading.current_thread() is threading.main_thread():
        usual: dict[signal.Signals, Any] = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
        handlers = {number: action for number, action in usual.items() if signal.getsignal(number) is action}
    try:
        for number in handlers:
            signal.signal(number, handle)
        yield
    finally:
        for number, action in handlers.items():
            signal.signal(number, action)


@contextmanager
def last_tables() -> Iterator[Stopping]:
    """Defer the first signal until the block has ended; a second signal interrupts it. Yields the handler."""
    stopping = _stopping() or Stopping()
    before, stopping.is_writing = stopping.is_writing, True
    try:
        yield stopping
    finally:
        stopping.is_writing = before


@contextmanager
def whole_rounds() -> Iterator[Callable[[], bool]]:
    """Defer the first signal until a round is over; yields a function that returns whether there was a signal."""
    stopping = _stopping() or Stopping()
    before, stopping.is_in_round = stopping.is_in_round, True
    try:
        yield lambda: stopping.received is not None
    finally:
        stopping.is_in_round = before


def stop_now() -> None:
    """Raise KeyboardInterrupt if there was a signal."""
    stopping = _stopping()
    if stopping is not None and stopping.received is not None:
        stopping.end()


def first_signal() -> int | None:
    """Return the first signal that this thread received, if any."""
    stopping = _stopping()
    return None if stopping is None else stopping.received


def _stopping() -> Stopping | None:
    """Return the handler of this thread's signals, if it is a `Stopping`."""
    if threading.current_thread() is not threading.main_thread():
        return None
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = getattr(signal.getsignal(number), "__self__", None)
        if isinstance(handler, Stopping):
            return handler
    return None
