"""Serve the page: Solara's application behind a check of hosts, with a front end stored on this machine.

A foreign site can make a browser send requests to the loopback address: through a domain that points there (DNS
rebinding; the Host header is that domain), or through a web socket (the Origin header is that site). A site cannot
use a numeric address in either way, so numeric hosts are allowed.
"""

import html
import ipaddress
import re
import socket
import threading
import warnings
import webbrowser
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from prism_mesa.errors import BadInputError
from prism_mesa.social.state.chunks import map_large_blocks
from prism_mesa.view.server.front_end import FETCH, find_faults, front_end_folder, needed_files

LOOPBACK: Final = "127.0.0.1"
_LOOPBACK_NAMES: Final = frozenset({"localhost", "localhost.localdomain"})


class OwnHostsOnly:
    """ASGI middleware that refuses requests with a foreign Host header (status 400) or Origin header (403).

    The application `app` answers all other requests; `host` is the address or name on which the server listens.
    """

    def __init__(self, app: ASGIApp, host: str) -> None:
        self._app = app
        self._names = _LOOPBACK_NAMES | {host.lower()}
        if not _is_loopback(host):
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on or refuse it; refused web sockets are closed at once, which servers report as 403."""
        refusal = self._refusal(scope) if scope["type"] in ("http", "websocket") else None
        if refusal is None:
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await WebSocketClose(1008, refusal[1])(scope, receive, send)
        else:
            await PlainTextResponse(f"prism app: {refusal[1]}\n", refusal[0])(scope, receive, send)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        """Return the status and the reason with which a request is refused; None if it is accepted."""
        headers = Headers(raw=[(name.lower(), value) for name, value in scope["headers"]])
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._names_this_machine(host):
            return 400, "this server answers only under the address it printed."
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return 403, "this server answers requests from its own page only, not from other sites."
        return None

    def _names_this_machine(self, host: str) -> bool:
        """Return whether a Host header names this machine, by name or by address."""
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        return bool(name) and (name in self._names or _parse_address(name) is not None)


def _parse_address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None


def _is_loopback(host: str) -> bool:
    """Return whether only programs on this machine can reach a server at an address.

    >>> [_is_loopback(host) for host in ("localhost", "127.0.0.1", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    address = _parse_address(host)
    return host.lower() in _LOOPBACK_NAMES if address is None else address.is_loopback


_STYLE: Final = (
    "font:16px/1.5 system-ui,sans-serif;max-width:44em;margin:3em auto;padding:0 1em;color:#222;background:#fff"
)
_NOTICE_DELAY_S: Final = 20
"""Seconds after which an empty page shows a notice; Solara's page appears after about two."""
_PACKAGES: Final = re.compile(r"/_solara/cdn/((?:@[\w.-]+/)?[\w.-]+@[^\"/]+/[^\"?#]+)")


def _plain_page(line: str) -> HTMLResponse:
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>PRISM</title>'
    body = f'<main><h1 style="{_STYLE}">PRISM</h1><p style="{_STYLE}">{html.escape(line)}</p></main></html>'
    return HTMLResponse(head + body, status_code=503)


def with_notices(page: str) -> str:
    """Add the language, permission to zoom, and notices for browsers that cannot show the page to Solara's page."""
    notice = (
        f'<noscript><p style="{_STYLE}">This page needs JavaScript: allow it for this address, then reload.</p>'
        "</noscript>"
        f'<p id="prism-notice" role="alert" style="{_STYLE}" hidden'
        f' data-load="The front end of this page did not load: run &#x27;{FETCH}&#x27;, then reload."'
        ' data-slow="This page did not open its connection to &#x27;prism app&#x27;: check that it still runs, then'
        f' reload."></p><script>{_NOTICE_SCRIPT}</script>'
    )
    page = page.replace("<html>", '<html lang="en">', 1)
    viewport = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    page = re.sub(r'<meta name="viewport"[^>]*>', viewport, page)
    return re.sub(r"(<body[^>]*>)", lambda body: body[1] + notice, page, count=1)


_NOTICE_SCRIPT: Final = f"""
(() => {{
  const notice = document.getElementById("prism-notice");
  const mounted = () => document.querySelector(".jupyter-widgets, .solara-content-main, .v-app-bar");
  const say = (why) => {{ notice.textContent = notice.dataset[why]; notice.hidden = false; }};
  window.addEventListener("load", () => {{ if (!window.solara || !window.Vue) say("load"); }});
  setTimeout(() => {{
    if (mounted() || !notice.hidden) return;
    say("slow");
    const watch = setInterval(() => {{ if (mounted()) {{ notice.hidden = true; clearInterval(watch); }} }}, 500);
  }}, {_NOTICE_DELAY_S * 1000});
}})();
"""


def unknown_files(page: str) -> list[str]:
    """Return the files that Solara's page needs but the front end does not pin, as with another version of Solara."""
    return sorted(set(_PACKAGES.findall(page)) - needed_files().keys())


_PAGE_COMPONENT: Final = "prism_mesa.view.server.opened:page"
_OMITTED_ROUTES: Final = frozenset({"/", "/{fullpath}", "/{fullpath:path}", "/_solara/cdn", "/resourcez"})
"""Routes of Solara that are replaced or not served, because they may fetch files from the internet unchecked."""


def serve(host: str, port: int, *, on_open: Callable[[str], None] = lambda url: None, browse: bool = False) -> None:
    """Serve the page set by `opened.open_page` until the process is interrupted; port 0 picks a free port.

    `on_open` is called with the page's address once a browser can open it.

    Raises:
        BadInputError: If the server cannot listen on the address.
    """
    import uvicorn

    map_large_blocks()  # a page copies its model's platform each round
    listener = _listen(host, port)
    name = "localhost" if host == LOOPBACK else f"[{host}]" if ":" in host else host
    url = f"http://{name}:{listener.getsockname()[1]}"
    config = uvicorn.Config(make_application(host), log_level="error", access_log=False, loop="asyncio", ws="auto")
    with listener, warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"solara\..*")  # these warnings concern public servers
        on_open(url)
        if browse:
            threading.Timer(0.5, webbrowser.open, [url]).start()
        uvicorn.Server(config).run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadInputError(f"{host}, port {port}: {error.strerror}: try another --port or --host") from None


def make_application(host: str = LOOPBACK) -> OwnHostsOnly:
    """Return the ASGI application that serves the page, and refuses requests to hosts other than `host`."""
    import solara.settings
    from solara.server import app, settings
    from solara.server import starlette as solara_server

    settings.telemetry.mixpanel_enable = False
    settings.main.mode = "production"
    settings.theme.title, settings.theme.show_banner = "PRISM", False
    solara.settings.assets.proxy = True
    if "__default__" not in app.apps:
        app.apps["__default__"] = app.AppScript(_PAGE_COMPONENT)  # type: ignore[no-untyped-call]
    files = solara_server.StaticFilesOptionalAuth(directory=front_end_folder(), check_dir=False)
    routes: list[BaseRoute] = [
        Route("/", _answer_page),
        Mount("/_solara/cdn", files),  # missing files are not fetched from the internet
        *(route for route in solara_server.routes if getattr(route, "path", "") not in _OMITTED_ROUTES),
    ]
    lifespan, middleware = solara_server.lifespan, solara_server.middleware
    return OwnHostsOnly(Starlette(routes=routes, lifespan=lifespan, middleware=middleware), host)


async def _answer_page(request: Request) -> HTMLResponse:
    """Return Solara's page, or one line that says why it cannot be shown."""
    from solara.server import starlette as solara_server

    if find_faults(front_end_folder()):
        hint = f"run '{FETCH}' once with internet access, then reload"
        return _plain_page(f"The front end of this page is not on this machine yet: {hint}.")
    response: HTMLResponse = await solara_server.root(request)
    page = bytes(response.body).decode()
    if unknown := unknown_files(page):
        hint = "install the version that PRISM was tested with"
        return _plain_page(f"This version of Solara needs another front end ({unknown[0]}): {hint}.")
    answer = HTMLResponse(with_notices(page))
    for cookie in response.headers.getlist("set-cookie"):
        answer.headers.append("set-cookie", cookie)
    return answer
