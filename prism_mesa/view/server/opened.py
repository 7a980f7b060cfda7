"""What `prism app` was asked to show, and the component that shows it: a model, one run, or two side by side."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable
from contextlib import closing
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
from prism_mesa.view.page.widgets import fault_page
from prism_mesa.view.playback.page import runs_view

MOST_RUNS: Final = 2
"""Runs that are shown side by side."""


@dataclass(frozen=True)
class Opened:
    """What the page was asked to show; each load of the page reads it anew, so a mended file needs a reload only.

    Attributes:
        kind: A model that is stepped, or finished runs.
        paths: The config, if any; or folders of runs.
        overrides: ``key=value`` for the config.
        defaults: Groups of keys that hold where the config says nothing.
    """

    kind: Literal["model", "runs"] = "model"
    paths: tuple[Path, ...] = ()
    overrides: tuple[str, ...] = ()
    defaults: dict[str, dict[str, object]] = field(default_factory=dict)


_shown = Opened()


def open_page(opened: Opened) -> None:
    """Let the page show something else from its next load on."""
    global _shown
    _shown = opened


@component
def page() -> None:
    """What was opened, or in one line why it cannot be shown."""
    shown = use_memo(lambda: view_of(_shown), [])
    if isinstance(shown, str):
        fault_page(shown)
    else:
        shown()


def fault_of(opened: Opened) -> str:
    """Return what is wrong with what is to be opened, as its page will say it; empty: nothing."""
    try:
        config = _config_of(opened) if opened.kind == "model" else None
        if config is not None:
            with closing(SocialModel(config)):  # what is wrong only with the world it asks for
                return ""
    except (PrismError, OSError, MemoryError) as error:
        return format_error(error)
    shown = view_of(opened)
    return shown if isinstance(shown, str) else ""


def view_of(opened: Opened) -> Callable[[], Element[Any]] | str:
    """Return the component of what was opened, or what is wrong with it; of a model its page says that itself."""
    try:
        if opened.kind == "runs":
            return runs_view(opened.paths)
        config = _config_of(opened)
        return lambda: make_page(config)
    except (PrismError, OSError, MemoryError) as error:
        return format_error(error)


def _config_of(opened: Opened) -> SocialParams | None:
    """Return the parameters of the model that was opened; None: the page's own."""
    if not opened.paths and not opened.overrides:
        return None
    return load_config(opened.paths[0] if opened.paths else None, opened.overrides, defaults=opened.defaults)
