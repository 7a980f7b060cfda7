"""Whose requests the page's server answers: those that name this machine, from pages of this machine.

A page of a foreign site can make a browser send requests to the loopback address: under a name of its own that it lets
point there (DNS rebinding; then the Host header is that name), or by opening a web socket (then the Origin header is
that site). Neither can give an address of digits as the host of a name that it owns.
"""

import ipaddress
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import urlsplit

type _Message = MutableMapping[str, Any]
type _Receive = Callable[[], Awaitable[_Message]]
type _Send = Callable[[_Message], Awaitable[None]]
type Application = Callable[[_Message, _Receive, _Send], Awaitable[None]]

_LOOPBACK: Final = frozenset({"localhost", "localhost.localdomain"})


class OwnHostsOnly:
    """ASGI middleware that refuses requests with a foreign Host or Origin header, with status 400 or 403.

    Args:
        app: What answers the others.
        host: The address or name that the server was told to listen on.
    """

    def __init__(self, app: Application, host: str) -> None:
        self._app = app
        self._names = _LOOPBACK | {host.lower()}
        if not is_loopback(host):
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self.is_own(host):
            await _refuse(scope, receive, send, 400, "this server answers only under the address it printed.")
        elif origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            await _refuse(scope, receive, send, 403, "this server answers its own page only, not one of another site.")
        else:
            await self._app(scope, receive, send)

    def is_own(self, host: str) -> bool:
        """Return whether a Host header names this machine: a name it has, or an address."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return bool(name) and (name in self._names or _is_address(name))


def is_loopback(host: str) -> bool:
    """Return whether only programs of this machine reach a server that listens there.

    >>> [is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    return host.lower() in _LOOPBACK or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


async def _refuse(scope: _Message, receive: _Receive, send: _Send, status: int, why: str) -> None:
    """Answer with a status and one line; a web socket is closed before it opens, which servers tell as 403."""
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008, "reason": why})
        return
    kind = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": kind})
    await send({"type": "http.response.body", "body": f"prism app: {why}\n".encode()})
