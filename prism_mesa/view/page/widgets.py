"""The frame of the page, and its Vue components (the .vue files of this folder), which draw in the browser.

Components take plain JSON, and columns of numbers as base64 (`encoded`). They show strings as text, never as markup.
"""

# mypy: disable-error-code="no-untyped-call, no-untyped-def, empty-body"
# (solara's components are only partly annotated)
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from reacton.core import Element
from reacton.ipyvuetify import Html
from solara.components.component_vue import component_vue
from solara.components.style import Style
from solara.components.title import Title
from solara.core import component
from solara.lab import theme, use_dark_effective

from prism_mesa.arrays import Floats, Rows

type Json = Mapping[str, Any]
type OnEvent = Callable[[Any], None]

PALETTE: Final = ("#fde725", "#b5de2b", "#6ece58", "#35b779", "#1f9e89", "#26828e", "#31688e", "#3e4989", "#482878")
"""Colours for numbers, from low to high: viridis in nine steps."""
NEUTRAL: Final = "#8a8a8a"  # grey, for items without a colour


def encoded(column: npt.NDArray[Any], dtype: type[np.generic]) -> str:
    """Return the little-endian bytes of a column as base64."""
    return b64encode(np.ascontiguousarray(column, np.dtype(dtype).newbyteorder("<"))).decode("ascii")


def pack_nodes(key: str, x: Floats, y: Floats, size: Floats, ids: Rows, names: Sequence[str]) -> Json:
    """Return the nodes of a graph: positions in -1..1, radii, agents and names."""
    columns = {name: encoded(column, np.float32) for name, column in (("x", x), ("y", y), ("size", size))}
    return {"key": key, **columns, "ids": encoded(ids, np.int32), "names": list(names)}


def view_card(title: str, css_class: str) -> Any:
    """Return a card with a heading, to be used as a context manager around its content."""
    return Html(tag="section", class_=f"prism-card {css_class}", children=[Html(tag="h2", children=[title])])


@component_vue("head.vue")
def draw_head(
    title: str,
    rounds: int,
    done: int,
    facts: Sequence[Sequence[str]],
    fault: str,
    notes: Sequence[str],
    event_theme: OnEvent,
) -> None:
    """Show the head of a page; see `page_frame`."""


@component_vue("inputs.vue")
def show_inputs(name: str, items: Sequence[Json], inline: bool, event_change: OnEvent) -> None:
    """Show inputs in groups; a change sends the `key` and `value` of the input."""


@component_vue("series.vue")
def show_series(
    label: str, unit: str, rounds: Sequence[int], series: Sequence[Json], span: int, stacked: bool, min_top: float
) -> None:
    """Show lines, or shares as stacked areas, over rounds 0 .. `span`; the vertical axis reaches at least `min_top`."""


@component_vue("graph.vue")
def show_graph(
    label: str,
    nodes: Json,
    links: str,
    colors: str,
    faint: int,
    legend: Sequence[Json],
    note: str,
    selected: int,
    axis: Json | None,
    curved: bool,
    event_pick: OnEvent,
) -> None:
    """Show points joined by straight or `curved` lines; a click sends the point's `id` and its index, `node`.

    `colors` are codes into the legend, whose first `faint` colours are drawn faintly on a dark page.
    """


@component_vue("agent.vue")
def show_card(
    name: str,
    card: Json | None,
    chart: str,
    suggested: Sequence[Json],
    fault: str,
    aside: str,
    event_find: OnEvent,
    event_ask: OnEvent,
    event_follow: OnEvent,
) -> None:
    """Show one agent; events send a search text, the row of an agent to explain, and a click on the `aside` button."""


@component_vue("oracle.vue")
def show_answers(
    label: str, sources: Sequence[Json], spent: Sequence[Json], reasons: Sequence[str], notes: Sequence[str]
) -> None:
    """Show who answered, and what the answers cost."""


@component_vue("transport.vue")
def time_bar(at: int, lowest: int, rounds: int, unit: str, names: Sequence[str], event_choose: OnEvent) -> None:
    """Show the current round, and let the user choose another, from `lowest` (-1: before the first) to the last.

    While playing, the bar waits until the page has drawn a round before it requests the next. Names of rounds, if
    given, are shown next to their numbers.
    """


@component
def page_frame(
    title: str,
    children: Sequence[Element[Any]],
    *,
    heading: str = "",
    rounds: int = 0,
    done: int = 0,
    facts: Sequence[tuple[str, str]] = (),
    fault: str = "",
    notes: Sequence[str] = (),
    controls: bool = False,
) -> None:
    """Show a page: a head with progress (unless `rounds` is 0), facts, an error and notes, followed by the children.

    With `controls`, the first child is placed next to the others if there is room. The heading defaults to the title.
    """
    is_dark = use_dark_effective()

    def switch_theme(_: object) -> None:
        theme.dark = not is_dark

    head = draw_head(
        title=heading or title,
        rounds=rounds,
        done=done,
        facts=[list(fact) for fact in facts],
        fault=fault,
        notes=list(notes),
        event_theme=switch_theme,
    )
    Title(f"PRISM: {title}")
    Style(Path(__file__).parent / "page.css")
    Html(tag="div", class_=f"prism-page{' with-controls' if controls else ''}", children=[head, *children])
