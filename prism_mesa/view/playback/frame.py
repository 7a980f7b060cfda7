"""What stands around a page of finished runs: its title in the bar, and room at its edges."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Sequence

from reacton import ipyvuetify as rv
from reacton.core import Element
from solara.components.applayout import AppBar, AppBarTitle
from solara.components.style import Style
from solara.components.title import Title
from solara.core import component
from solara.lab import ThemeToggle

_CSS = """
.prism-frame { width: 100%; padding: 8px 16px 24px; }
.prism-facts { display: flex; flex-wrap: wrap; gap: 2px 16px; margin: 0 0 4px; font-size: 14px; }
.prism-facts b { font-weight: 600; }
"""


@component
def frame(title: str, facts: Sequence[tuple[str, str]], children: Sequence[Element]) -> None:  # type: ignore[type-arg]
    """Show a page under a title, and what it is about: (label, value)."""
    Title(f"PRISM: {title}")
    Style(_CSS)
    with AppBar():
        AppBarTitle(f"PRISM: {title}")
        ThemeToggle()
    told = [rv.Html(tag="span", children=[rv.Html(tag="b", children=[label]), f" {value}"]) for label, value in facts]
    about = [rv.Html(tag="p", class_="prism-facts", children=told)] if told else []
    rv.Html(tag="main", class_="prism-frame", children=[*about, *children])
