"""What the views of the page have in common: their card, and colours of their own."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Callable
from typing import Any, Final

from reacton.ipyvuetify import Html

type OnAgent = Callable[[int], None]

SCALE: Final = ("#fde725", "#b5de2b", "#6ece58", "#35b779", "#1f9e89", "#26828e", "#31688e", "#3e4989", "#482878")
"""Of numbers, from low to high: viridis in nine steps."""
OTHER: Final = "#8a8a8a"


def view_card(title: str, kind: str) -> Any:
    """Return a card with a heading, as a context in which its content is put."""
    return Html(tag="section", class_=f"prism-card {kind}", children=[Html(tag="h2", children=[title])])
