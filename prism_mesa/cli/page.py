"""The command that opens the page in the browser."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from typer import Argument, Option

from prism_mesa.cli.arguments import CONFIG_DEFAULTS, DEFAULT_FILE, check_unique, is_file
from prism_mesa.cli.console import print_status
from prism_mesa.errors import BadInputError, PrismError, format_error, quote_path
from prism_mesa.terminal import show_line

if TYPE_CHECKING:
    from prism_mesa.view.server.opened import PageContent

_YAML: Final = (".yaml", ".yml")


def browser_page(
    arguments: Annotated[
        list[str] | None,
        Argument(
            metavar="CONFIG|RUN...|KEY=VALUE",
            help="a YAML file of a model to run, and keys to override; or one or two run folders to play back",
        ),
    ] = None,
    fetch: Annotated[
        bool, Option("--fetch", help="fetch and check the front end that browsers need, and exit")
    ] = False,
    host: Annotated[
        str, Option(help="address to listen on; by default only this machine reaches the page")
    ] = "127.0.0.1",
    port: Annotated[int, Option(min=1, max=65_535, help="port of the page")] = 8765,
    open_browser: Annotated[bool, Option("--open/--no-open", help="open the page in the browser")] = True,
) -> None:
    """Open the page in the browser, on a model or on finished runs.

    Press Ctrl-C to end it.
    """
    from prism_mesa.view.server.front_end import fetch_front_end, find_faults, front_end_folder

    if fetch:
        fetched_files = fetch_front_end(front_end_folder())
        counts = f"fetched {len(fetched_files)} files" if fetched_files else "nothing to fetch"
        show_line(f"the page's front end is complete ({counts}, all checked) in {front_end_folder()}")
        return
    from prism_mesa.view.server.opened import open_page, opening_fault
    from prism_mesa.view.server.serving import serve

    content = parse_arguments(arguments or [])
    fault = opening_fault(content)
    if fault:
        if not content.paths:  # without a file, it cannot be fixed while the page is open
            raise BadInputError(fault)
        print_status(f"prism: {fault} (also shown on the page: fix it, and reload)")
    open_page(content)
    if find_faults(front_end_folder()):
        print_status("fetching the page's front end, once ...")
        try:
            fetch_front_end(front_end_folder())
        except PrismError as error:
            print_status(f"prism: {format_error(error)}; the page shows this too")

    text = "the page is at {} (end with Ctrl-C)"
    serve(host, port, on_open=lambda url: show_line(text.format(url), file=sys.stderr), browse=open_browser)


def parse_arguments(arguments: list[str]) -> "PageContent":
    """Return the content of the page that arguments describe; raises BadInputError if it cannot be shown together."""
    from prism_mesa.view.server.opened import MAX_RUNS, PageContent

    names = [word for word in arguments if "=" not in word or is_file(word) or os.path.isdir(word)]
    overrides = tuple(check_unique([word for word in arguments if word not in names]))
    paths = tuple(map(Path, names))
    configs = [path for path in paths if os.path.isfile(path) or (path.suffix in _YAML and not os.path.isdir(path))]
    if not configs and paths:
        if overrides:
            raise BadInputError(f"{overrides[0]}: a finished run is shown as it was recorded: no key can be overridden")
        if len(paths) > MAX_RUNS:
            raise BadInputError(f"{len(paths)} runs: the page shows one, or {MAX_RUNS} side by side")
        return PageContent("runs", paths)
    if len(paths) > 1:
        others = " ".join(map(quote_path, paths[1:]))
        raise BadInputError(f"{others}: with the config {quote_path(configs[0])}, the page shows nothing else")
    default = (DEFAULT_FILE,) if overrides and not paths and DEFAULT_FILE.is_file() else ()
    return PageContent("model", paths or default, overrides, CONFIG_DEFAULTS)
