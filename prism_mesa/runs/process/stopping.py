"""On Ctrl-C or SIGTERM, end a run after its current round, and write its last tables."""

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
"""Seconds within which signals count as one, because a terminal, a scheduler and `uv run` may all pass on the same."""
_WRITING_TEXT: Final = "prism: the last tables are being written (press again to end at once, without them)"
_ROUND_TEXT: Final = "prism: the run is stopped after this round, and can go on later (press again to end at once)"


class TerminatedError(KeyboardInterrupt):
    """SIGTERM from a scheduler, which ends a run as Ctrl-C does."""


class EndAtOnceError(KeyboardInterrupt):
    """A second signal, which ends the run without its last tables."""


class SignalHandler:
    """Handles signals: the first ends the run after its round, the second at once.

    Attributes:
        is_writing: Whether the last tables are being written, which the first signal does not interrupt.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self.is_writing = False
        self.is_in_round = False
        self._last_signal_s = float("-inf")

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal (see `signal.signal`); raises KeyboardInterrupt if it ends the run now."""
        now = time.monotonic()
        if now - self._last_signal_s < _REPEAT_S:
            return
        self._last_signal_s, is_first = now, self.received is None
        self.received = number if is_first else self.received
        if not is_first:
            raise EndAtOnceError
        if not (self.is_writing or self.is_in_round):
            self.end()
        with suppress(RuntimeError, OSError, ValueError):  # stderr is in use or closed
            show_line(_WRITING_TEXT if self.is_writing else _ROUND_TEXT, file=sys.stderr)

    def end(self) -> NoReturn:
        """End the run with a KeyboardInterrupt."""
        raise TerminatedError if self.received == signal.SIGTERM else KeyboardInterrupt


@contextmanager
def handle_signals() -> Iterator[None]:
    """Handle Ctrl-C and SIGTERM for runs in the block, if the block is in the main thread.

    Other handlers stay in place; an ignored Ctrl-C, as in the background of a shell, stays ignored.
    """
    handle, handlers = SignalHandler().handle, {}
    if threading.current_thread() is threading.main_thread():
        defaults: dict[signal.Signals, Any] = {
            signal.SIGINT: signal.default_int_handler,
            signal.SIGTERM: signal.SIG_DFL,
        }
        handlers = {number: action for number, action in defaults.items() if signal.getsignal(number) is action}
    try:
        for number in handlers:
            signal.signal(number, handle)
        yield
    finally:
        for number, action in handlers.items():
            signal.signal(number, action)


@contextmanager
def protect_last_tables() -> Iterator[SignalHandler]:
    """Defer the first signal until the block has ended; a second signal interrupts the block. Yields the handler."""
    signal_handler = _current_handler() or SignalHandler()
    was_active, signal_handler.is_writing = signal_handler.is_writing, True
    try:
        yield signal_handler
    finally:
        signal_handler.is_writing = was_active


@contextmanager
def finish_rounds() -> Iterator[Callable[[], bool]]:
    """Defer the first signal until a round is over; yields a function that returns whether there was a signal."""
    signal_handler = _current_handler() or SignalHandler()
    was_active, signal_handler.is_in_round = signal_handler.is_in_round, True
    try:
        yield lambda: signal_handler.received is not None
    finally:
        signal_handler.is_in_round = was_active


def raise_if_stopped() -> None:
    """Raise KeyboardInterrupt if there was a signal."""
    signal_handler = _current_handler()
    if signal_handler is not None and signal_handler.received is not None:
        signal_handler.end()


def first_signal() -> int | None:
    """Return the first signal that this thread received, if any."""
    signal_handler = _current_handler()
    return None if signal_handler is None else signal_handler.received


def _current_handler() -> SignalHandler | None:
    """Return the handler of this thread's signals, if it is a `SignalHandler`."""
    if threading.current_thread() is not threading.main_thread():
        return None
    for number in (signal.SIGINT, signal.SIGTERM):
        handler = getattr(signal.getsignal(number), "__self__", None)
        if isinstance(handler, SignalHandler):
            return handler
    return None
