"""An event loop in a background thread, and clients that belong to one event loop."""

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from concurrent.futures import Future
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Final
from weakref import WeakKeyDictionary

_MAX_SLEEP_S: Final = 0.5
"""Maximum sleep of the main thread. An interrupt just before the sleep does not end it."""


class Connections[T]:
    """Creates a client for each event loop, and closes it when the loop ends.

    An asynchronous generator owns the client. Loops close their generators before they end, so no socket stays open.
    """

    def __init__(self, make_client: Callable[[], AbstractAsyncContextManager[T]]) -> None:
        self._make_client = make_client
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[T, object]] = WeakKeyDictionary()

    async def client(self) -> T:
        """Return the running loop's client, which is created on first use."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            generator = self._generate()
            self._clients[loop] = await anext(generator), generator
        return self._clients[loop][0]

    async def _generate(self) -> AsyncGenerator[T]:
        async with self._make_client() as client:
            yield client


class LoopThread:
    """A thread with an event loop, in which synchronous code can run coroutines, even inside Jupyter."""

    def __init__(self) -> None:
        self._pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._stopped = asyncio.Event()
        self._thread = threading.Thread(target=self._serve, name="prism-llm", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._stopped.wait())

    def start[T](self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run `work` in this loop. Other threads can wait for the future; other loops must wrap it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run[T](self, work: Coroutine[Any, Any, T]) -> T:
        """Run `work` and return its result. An interrupt cancels `work`."""
        future = self.start(work)
        try:
            while not future.done():
                with suppress(TimeoutError):
                    future.exception(_MAX_SLEEP_S)
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def is_in_process(self) -> bool:
        """Whether the thread runs in this process. Forked processes do not inherit threads."""
        return os.getpid() == self._pid

    def stop(self) -> None:
        """End the loop and the thread. Calling it twice or in a forked child is harmless."""
        if not self.is_in_process:
            return
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stopped.set)
        if threading.current_thread() is not self._thread:
            self._thread.join()


def run_now[T](work: Coroutine[Any, Any, T]) -> T:
    """Run `work` in a new loop and return its result, even while another loop is running, as in Jupyter."""
    thread = LoopThread()
    try:
        return thread.run(work)
    finally:
        thread.stop()
