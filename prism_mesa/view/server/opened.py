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
"""Runs that are shown side by side."""


@dataclass(frozen=True)
class Opened:
    """The content of the page: a running model, of a configuration if `paths` has one, or folders of finished runs.

    Each load of the page reads it again, so a repaired file needs only a reload.
    """

    kind: Literal["model", "runs"] = "model"
    paths: tuple[Path, ...] = ()
    overrides: tuple[str, ...] = ()
    defaults: dict[str, dict[str, object]] = field(default_factory=dict)


_shown = Opened()


def open_page(opened: Opened) -> None:
    """Set the content of the page from its next load on."""
    global _shown
    _shown = opened


@component
def page() -> None:
    """Show what was opened, or one line that says why it cannot be shown."""
    view = use_memo(lambda: opened_view(_shown), [])
    if isinstance(view, str):
        page_frame("Nothing to show", [], fault=view)
    else:
        view()


def opening_fault(opened: Opened) -> str:
    """Return why something cannot be opened, with the words of its page; empty if it can."""
    try:
        if opened.kind == "model" and (config := _config(opened)) is not None:
            SocialModel(config).close()  # faults of the world that the configuration describes
            return ""
    except (PrismError, OSError, MemoryError) as error:
        return format_error(error)
    view = opened_view(opened)
    return view if isinstance(view, str) else ""


def opened_view(opened: Opened) -> Callable[[], Element[Any]] | str:
    """Return the component to show, or the reason why there is none; the page of a model reports its own errors."""
    try:
        if opened.kind == "runs":
            return runs_view(opened.paths)
        config = _config(opened)
        return lambda: make_page(config)
    except (PrismError, OSError, MemoryError) as error:
        return format_error(error)


def _config(opened: Opened) -> SocialParams | None:
    """Return the parameters of the opened model; None for the page's defaults."""
    if not opened.paths and not opened.overrides:
        return None
    return load_config(opened.paths[0] if opened.paths else None, opened.overrides, defaults=opened.defaults)
