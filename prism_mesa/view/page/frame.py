"""What all pages of `prism app` have around them: how they look, their head, and a line for what went wrong."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from reacton.core import Element
from reacton.ipyvuetify import Html
from solara.components.style import Style
from solara.components.title import Title
from solara.core import component
from solara.lab import theme, use_dark_effective

from prism_mesa.view.page.widgets import draw_head

STYLE: Final = Path(__file__).parent / "page.css"


@component
def page_frame(title: str, children: Sequence[Element], *, controls: bool = False) -> None:  # type: ignore[type-arg]
    """Show a page; with `controls` the second of its children is a column beside the others where there is room."""
    Title(f"PRISM: {title}")
    Style(STYLE)
    Html(tag="div", class_=f"prism-page{' with-controls' if controls else ''}", children=list(children))


@component
def page_head(
    title: str,
    *,
    rounds: int = 0,
    done: int = 0,
    facts: Sequence[tuple[str, str]] = (),
    fault: str = "",
    notes: Sequence[str] = (),
) -> None:
    """Show what is on show, how far it is, what it was made with, and what went wrong.

    Args:
        title: On one line.
        rounds: How many there are; 0: nothing is said of them.
        done: How many of them are on show.
        facts: (label, value).
        fault: What went wrong; empty: nothing did.
        notes: What else is to be known, a line each.
    """
    dark = use_dark_effective()

    def turn(_: object) -> None:
        theme.dark = not dark

    draw_head(
        title=title,
        rounds=rounds,
        done=done,
        facts=[list(fact) for fact in facts],
        fault=fault,
        notes=list(notes),
        event_theme=turn,
    )


@component
def fault_page(said: str) -> None:
    """Show a page that has nothing to show but why."""
    page_frame("nothing to show", [page_head("Nothing to show", fault=said)])
