"""Event loops: one of our own in a background thread, and things that belong to one loop each."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from typing import Any
from weakref import WeakKeyDictionary

type PerLoop[T] = WeakKeyDictionary[asyncio.AbstractEventLoop, T]


def of_this_loop[T](kept: PerLoop[T], make: Callable[[], T]) -> T:
    """Return what `kept` holds for the running loop, made on first use; closed loops are forgotten."""
    loop = asyncio.get_running_loop()
    if loop not in kept:
        for closed in [other for other in kept if other.is_closed()]:
            del kept[closed]
        kept[loop] = make()
    return kept[loop]


class LoopThread:
    """A thread that runs an event loop of its own, so that plain code can await, also inside Jupyter."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="prism-reasoner", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._stopped.wait())

    def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        """Return what `work` returns; an interrupt while waiting cancels it."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def stop(self) -> None:
        """End the loop and the thread; doing it twice does no harm."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopped.set)
        if threading.current_thread() is not self._thread:
            self._thread.join()
