"""Serving the page: Solara's application behind a check of hosts, with its front end from this machine alone."""

import contextlib
import socket
import threading
import warnings
import webbrowser
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from prism_mesa.errors import BadInputError
from prism_mesa.social.state.chunks import map_large_blocks
from prism_mesa.view.server.front_end import find_faults, front_end_folder
from prism_mesa.view.server.hosts import OwnHostsOnly
from prism_mesa.view.server.notices import NO_FRONT_END, plain_page, unknown_files, with_notices

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import HTMLResponse
    from starlette.routing import BaseRoute

LOOPBACK: Final = "127.0.0.1"
_COMPONENT: Final = "prism_mesa.view.server.opened:page"
_LEFT_OUT: Final = frozenset({"/", "/{fullpath}", "/{fullpath:path}", "/_solara/cdn", "/resourcez"})
"""Routes of Solara's that are not served, or otherwise: its front end may come from the internet, unchecked."""


def serve(host: str, port: int, *, on_open: Callable[[str], None] = lambda url: None, browse: bool = False) -> None:
    """Serve the page that `opened.open_page` was given until the process is interrupted.

    Args:
        host: The address to listen on.
        port: The port; 0 takes any that is free.
        on_open: Called with the page's address once a browser can open it.
        browse: Whether to open it in the browser.

    Raises:
        BadInputError: If the address cannot be listened on.
    """
    import uvicorn

    map_large_blocks()  # a page copies its model's platform in each round
    listener = listening(host, port)
    name = "localhost" if host == LOOPBACK else f"[{host}]" if ":" in host else host
    url = f"http://{name}:{listener.getsockname()[1]}"
    server = uvicorn.Server(
        uvicorn.Config(make_application(host), log_level="error", access_log=False, loop="asyncio", ws="auto")
    )
    with listener, _quiet_solara():
        on_open(url)
        if browse:
            threading.Timer(0.5, webbrowser.open, [url]).start()
        server.run(sockets=[listener])


def listening(host: str, port: int) -> socket.socket:
    """Return a socket that listens at an address.

    Raises:
        BadInputError: If there is no such address here, or another program has the port.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise BadInputError(f"{host}, port {port}: {error.strerror}: another --port or --host may do") from None


def make_application(host: str = LOOPBACK) -> OwnHostsOnly:
    """Return the ASGI application that serves the page.

    Args:
        host: The address that it is to listen on: requests that name another host are refused (see `hosts`).
    """
    _settle_solara()
    from solara.server import starlette as solara_starlette
    from starlette.applications import Starlette

    own = [*_own_routes(), *(route for route in solara_starlette.routes if _path(route) not in _LEFT_OUT)]
    application: Starlette = Starlette(
        routes=own, lifespan=solara_starlette.lifespan, middleware=solara_starlette.middleware
    )
    return OwnHostsOnly(application, host)


def _settle_solara() -> None:
    """Set Solara to this machine alone: no report to its makers, its front end from here, and our page to show."""
    import solara.settings
    from solara.server import app, settings

    settings.telemetry.mixpanel_enable = False
    settings.main.mode = "production"
    settings.theme.title, settings.theme.show_banner = "PRISM", False
    solara.settings.assets.proxy = True
    if "__default__" not in app.apps:
        app.apps["__default__"] = app.AppScript(_COMPONENT)  # type: ignore[no-untyped-call]


def _own_routes() -> "list[BaseRoute]":
    """Return the page, and its front end; files that are not there are not looked for on the internet."""
    from solara.server.starlette import StaticFilesOptionalAuth
    from starlette.routing import Mount, Route

    folder = front_end_folder()
    return [
        Route("/", _answer_page),
        Mount("/_solara/cdn", StaticFilesOptionalAuth(directory=folder, check_dir=False)),
    ]


async def _answer_page(request: "Request") -> "HTMLResponse":
    """Return Solara's page, or one line on why it cannot be shown."""
    from solara.server import starlette as solara_starlette
    from starlette.responses import HTMLResponse

    if find_faults(front_end_folder()):
        return HTMLResponse(plain_page(NO_FRONT_END), status_code=503)
    response: HTMLResponse = await solara_starlette.root(request)
    page = bytes(response.body).decode()
    if unknown := unknown_files(page):
        line = (
            f"This version of Solara needs another front end ({unknown[0]}): install the one that PRISM was made with."
        )
        return HTMLResponse(plain_page(line), status_code=503)
    answer = HTMLResponse(with_notices(page))
    for cookie in response.headers.getlist("set-cookie"):
        answer.headers.append("set-cookie", cookie)
    return answer


def _path(route: "BaseRoute") -> str:
    return getattr(route, "path", "")


@contextlib.contextmanager
def _quiet_solara() -> Iterator[None]:
    """Keep to itself what Solara warns of that is about other servers than one's own machine."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"solara\..*")
        yield
