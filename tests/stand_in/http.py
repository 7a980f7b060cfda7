"""A small HTTP/1.1 server in a thread, as cheap per request as Python allows.

The standard library's `http.server` spends several times more on parsing headers.
"""

import asyncio
import socket
import threading
from collections.abc import Callable
from typing import cast

type Handler = Callable[[Connection, str, str, bytes], None]


class HttpThread:
    """Serves from `__init__` to `stop`.

    Args:
        listener: A bound socket; it is closed at the end.
        handle: Called in this thread with the connection, the method, the path and the content of every
            request; it calls `Connection.send`, then or later.
    """

    def __init__(self, listener: socket.socket, handle: Handler) -> None:
        self.handle = handle
        self.connections: set[Connection] = set()
        self._stopped = asyncio.Event()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(listener,), name="stand-in", daemon=True)
        self._thread.start()
        self._ready.wait()

    def _serve(self, listener: socket.socket) -> None:
        with asyncio.Runner() as runner:
            self.loop = runner.get_loop()
            runner.run(self._until_stopped(listener))

    async def _until_stopped(self, listener: socket.socket) -> None:
        listening = await self.loop.create_server(lambda: Connection(self), sock=listener, backlog=1024)
        self._ready.set()
        await self._stopped.wait()
        listening.close()
        while self.connections:
            for connection in self.connections:
                connection.transport.abort()
            await asyncio.sleep(0)

    def call(self, function: Callable[[], None]) -> None:
        """Have `function` called in this thread."""
        self.loop.call_soon_threadsafe(function)

    def stop(self) -> None:
        """Drop every connection and end the thread."""
        self.call(self._stopped.set)
        self._thread.join()


class Connection(asyncio.Protocol):
    """A client's connection, which takes up one request after the other.

    Attributes:
        on_gone: Called if the client hangs up before it was answered.
    """

    transport: asyncio.Transport

    def __init__(self, thread: HttpThread) -> None:
        self.on_gone: Callable[[], None] | None = None
        self._thread = thread
        self._received = bytearray()
        self._answering = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep what asyncio gives."""
        self.transport = cast(asyncio.Transport, transport)  # a TCP server's is one
        self._thread.connections.add(self)

    def connection_lost(self, error: Exception | None) -> None:
        """Tell who is at work for this client."""
        self._thread.connections.discard(self)
        if self.on_gone is not None:
            self.on_gone()

    def data_received(self, data: bytes) -> None:
        """Take up what has come completely, unless an answer is due first."""
        self._received += data
        while not self._answering and not self.transport.is_closing():
            request = self._next()
            if request is None:
                return
            self._answering = True
            self._thread.handle(self, *request)

    def send(self, data: bytes, *, close: bool = False) -> None:
        """Send a response (or its end), and turn to the next request or hang up."""
        self.on_gone = None
        self.transport.write(data)
        if close:
            self.transport.close()
            return
        self._answering = False
        if self._received:
            self._thread.loop.call_soon(self.data_received, b"")

    def _next(self) -> tuple[str, str, bytes] | None:
        """Return the next request, if all of it is here."""
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return None
        lines = self._received[:end].decode("latin-1").split("\r\n")
        length = _content_length(lines)
        start = end + 4
        if len(self._received) < start + length:
            return None
        content = bytes(self._received[start : start + length])
        del self._received[: start + length]
        method, _, rest = lines[0].partition(" ")
        return method, rest.partition(" ")[0].partition("?")[0], content


def _content_length(lines: list[str]) -> int:
    given = (line[15:].strip() for line in lines if line[:15].lower() == "content-length:")
    return next((int(length) for length in given if length.isdecimal()), 0)
