"""How the figures of a report look: one style, colours that all can tell apart, and how they are written."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO, StringIO
from textwrap import fill
from typing import Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from prism_mesa.errors import shortened

WIDTH: Final = 7.5
"""Of a figure, in inches."""

INK: Final = "#010101"
"""Nearly black: black itself is what SVG has where nothing is said, so it could not be made light."""

GREY: Final = "#8a8a8a"
PAPER: Final = "#ffffff"
PALETTE: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#6f6f6f")
"""Colours that are told apart with any colour vision (Okabe and Ito; Wong 2011, doi:10.1038/nmeth.1618), and a grey."""
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")

_DPI: Final = 150
_MANY: Final = 1500
_HEAD: Final = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA: Final = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_GROUP_NAME: Final = re.compile(r'(<g) id="(?:figure|axes|patch|line2d|text|legend|matplotlib|xtick|ytick)[\w.]*"')
_FONT: Final = re.compile(r"(font: (?:\w+ )*[\d.]+px|font-family:) '[^;\"]*")
_SIZE: Final = re.compile(r'(<svg [^>]*?)width="[\d.]+pt" ([^>]*?)height="[\d.]+pt"|(<svg [^>]*?)height="[\d.]+pt" ')


def color_of(place: int) -> str:
    """Return the colour of the n-th of some things."""
    return PALETTE[place % len(PALETTE)]


def marker_of(place: int) -> str:
    """Return the sign of the n-th of some things, which with its colour tells 49 apart."""
    return MARKERS[(place + place // len(PALETTE)) % len(MARKERS)]


def labels_of(names: Sequence[str], width: int, lines: int = 1) -> list[str]:
    """Return names that fit into some lines of `width` letters; those that would look alike begin with their place.

    >>> labels_of(["ranked", "an arm with a long name, 1", "an arm with a long name, 2"], 16)
    ['ranked', '2. an a [...]  1', '3. an a [...]  2']
    """
    short = [shortened(name, width * lines - 2 * (lines - 1)) for name in names]
    if any(len(name) > width * lines - 2 * (lines - 1) for name in names):
        room = width * lines - 2 * (lines - 1) - len(f"{len(names)}. ")
        short = [
            name if len(name) <= room else f"{place}. {shortened(name, room)}" for place, name in enumerate(names, 1)
        ]
    return [fill(name, width) for name in short]


def tidy(axes: Axes, title: str = "", grid: str = "both") -> None:
    """Give axes the style: a title at the left, no box, a faint grid."""
    if title:
        axes.set_title(title, loc="left", fontsize=10, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, axis=grid, color=GREY, alpha=0.25)  # type: ignore[arg-type]
    axes.set_axisbelow(True)


def panels(n: int, *, width: float = WIDTH, height: float = 2.9, columns: int = 2) -> tuple[Figure, list[Axes]]:
    """Return a figure with `n` panels side by side and below each other, `height` inches each."""
    columns = min(columns, n)
    rows = -(-n // columns)
    figure = Figure(figsize=(width, height * rows + 0.35), layout="constrained")
    grid = [axes for line in figure.subplots(rows, columns, squeeze=False) for axes in line]
    for empty in grid[n:]:
        empty.set_visible(False)
    return figure, grid[:n]


def is_many(n: int) -> bool:
    """Return whether there are so many marks that they are drawn as dots of a picture, which keeps the page small."""
    return n > _MANY


def png_of(figure: Figure) -> bytes:
    """Return a figure as a PNG on white; the same figure gives the same bytes."""
    with _text_as_it_is():
        file = BytesIO()
        figure.savefig(file, format="png", dpi=_DPI, facecolor="white", metadata={"Software": None})
    return file.getvalue()


def pdf_of(figure: Figure) -> bytes:
    """Return a figure as a PDF, whose text is text; the same figure gives the same bytes."""
    with _text_as_it_is(), rc_context({"pdf.fonttype": 42}):
        file = BytesIO()
        nobody = dict.fromkeys(("CreationDate", "Creator", "Producer"))
        figure.savefig(file, format="pdf", facecolor="white", metadata=nobody)
    return file.getvalue()


def svg_of(figure: Figure) -> str:
    """Return a figure as an SVG element for a page, whose text is text in the page's letters and colours.

    Black is the page's ink, white its paper, and the palette its ``--c1`` to ``--c7``, so a dark page has light lines.
    """
    with _text_as_it_is():
        file = StringIO()
        figure.savefig(file, format="svg", dpi=_DPI, transparent=True, metadata={"Date": None, "Creator": None})
    text = _METADATA.sub("", _HEAD.sub("", file.getvalue()))
    text = _SIZE.sub(lambda found: found[1] + found[2] if found[1] else found[3], text)
    text = _FONT.sub(r"\1 var(--sans)", _GROUP_NAME.sub(r"\1", text))
    for color, meant in _MEANT.items():
        text = re.sub(rf"(?<=: ){color}(?=[;\"])", meant, text, flags=re.IGNORECASE)
    return text


_MEANT: Final = {INK: "var(--ink)", "#000000": "var(--ink)", PAPER: "var(--paper)", "#222222": "var(--ink)"} | {
    color: f"var(--c{place})" for place, color in enumerate(PALETTE, 1)
}


@contextmanager
def _text_as_it_is() -> Iterator[None]:
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "prism"}):
        yield
