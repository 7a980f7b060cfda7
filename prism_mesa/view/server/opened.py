"""The page of `prism app`: a model, one run, or two runs side by side."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from reacton.core import Element, use_memo
from solara.core import component

from prism_mesa.errors import PrismError, format_error
from prism_mesa.runs.config import load_config
from prism_mesa.social.model import SocialModel
from prism_mesa.social.params import SocialParams
from prism_mesa.view.page.live_page import make_page
from prism_mesa.view.page.widgets import page_frame
from prism_mesa.view.playback.page import runs_view

MAX_RUNS: Final = 2
"""Maximum number of runs shown side by side."""


@dataclass(frozen=True)
class PageContent:
    """The content of the page: a running model (with a configuration file in `paths`, if any), or finished runs.

    Each load of the page reads the files again, so after repairing a file you only need to reload.
    """

    kind: Literal["model", "runs"] = "model"
    paths: tuple[Path, ...] = ()
    overrides: tuple[str, ...] = ()
    defaults: dict[str, dict[str, object]] = field(default_factory=dict)


_content = PageContent()


def open_page(content: PageContent) -> None:
    """Set the content that the page shows from its next load on."""
    global _content
    _content = content


@component
def page() -> None:
    """Show the content of the page, or one line that says why it cannot be shown."""
    view = use_memo(lambda: content_view(_content), [])
    if isinstance(view, str):
        page_frame("Nothing to show", [], fault=view)
    else:
        view()


def opening_fault(content: PageContent) -> str:
    """Return the reason why the content cannot be shown, as the page gives it; empty if it can."""
    try:
        if content.kind == "model" and (config := _config(content)) is not None:
            SocialModel(config).close()  # raises the errors of the configured world
            return ""
    except (PrismError, OSError, MemoryError) as error:
        return format_error(error)
    view = content_view(content)
    return view if isinstance(view, str) else ""


def content_view(content: PageContent) -> Callable[[], Element[Any]] | str:
    """Return the component to show, or the reason why there is none. The page of a model reports its own errors."""
    try:
        if content.kind == "runs":
            return runs_view(content.paths)
        config = _config(content)
        return lambda: make_page(config)
    except (PrismError, OSError, MemoryError) as error:
        return format_error(error)


def _config(content: PageContent) -> SocialParams | None:
    """Return the parameters of the opened model; None for the page's defaults."""
    if not content.paths and not content.overrides:
        return None
    return load_config(content.paths[0] if content.paths else None, content.overrides, defaults=content.defaults)
