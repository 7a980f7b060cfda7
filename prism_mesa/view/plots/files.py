"""How figures are written: as PNG, PDF and SVG, the same figure always as the same bytes."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO, StringIO
from pathlib import Path
from typing import Final

from matplotlib import rc_context
from matplotlib.figure import Figure

from prism_mesa.errors import ConfigError, DataError
from prism_mesa.params import shown
from prism_mesa.view.plots.style import INK, PALETTE, PAPER

DPI: Final = 200
"""Dots per inch of pictures."""

_HEAD: Final = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA: Final = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_GROUP_NAME: Final = re.compile(r'(<g) id="(?:figure|axes|patch|line2d|text|legend|matplotlib|xtick|ytick)[\w.]*"')
_FONT: Final = re.compile(r"(font: (?:\w+ )*[\d.]+px|font-family:) '[^;\"]*")
_SIZE: Final = re.compile(r'(<svg [^>]*?)width="[\d.]+pt" ([^>]*?)height="[\d.]+pt"|(<svg [^>]*?)height="[\d.]+pt" ')


def save(figure: Figure, file: str | Path) -> Path:
    """Write a figure as PNG, PDF or SVG, as the file's name ends, and return its path.

    It takes the place of what is there: a link, by whoever made the folder, is not written through.

    Raises:
        ConfigError: If the name ends otherwise.
    """
    path = Path(file)
    ways: dict[str, Callable[[Figure], bytes]] = {".png": png_of, ".pdf": pdf_of, ".svg": _plain_svg_of}
    if path.suffix.lower() not in ways:
        raise ConfigError(f"{shown(str(file))}: the name of a figure ends in {', '.join(ways)}")
    drawn = ways[path.suffix.lower()](figure)
    path.unlink(missing_ok=True)
    path.write_bytes(drawn)
    return path


def save_figures(folder: Path, figures: Mapping[str, Callable[[], Figure]], *, partly: bool) -> list[Path]:
    """Write figures as PNG files of these names, and return their paths.

    Args:
        folder: Where to.
        figures: Name -> what makes the figure.
        partly: Whether one that data are missing for is left out; else its error is raised.
    """
    drawn = []
    for name, make in figures.items():
        try:
            figure = make()
        except DataError:
            if not partly:
                raise
            continue
        drawn.append(save(figure, folder / f"{name}.png"))
    return drawn


def png_of(figure: Figure) -> bytes:
    """Return a figure as a PNG on white; the same figure gives the same bytes."""
    file = BytesIO()
    figure.savefig(file, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
    return file.getvalue()


def pdf_of(figure: Figure) -> bytes:
    """Return a figure as a PDF, whose text is text; the same figure gives the same bytes."""
    with _text_as_it_is(), rc_context({"pdf.fonttype": 42}):
        file = BytesIO()
        nobody = dict.fromkeys(("CreationDate", "Creator", "Producer"))
        figure.savefig(file, format="pdf", dpi=DPI, facecolor="white", metadata=nobody)
    return file.getvalue()


def svg_of(figure: Figure) -> str:
    """Return a figure as an SVG element for a page, whose text is text in the page's letters and colours.

    Black is the page's ink, white its paper, and the palette its ``--c1`` to ``--c7``, so a dark page has light lines.
    """
    text = _METADATA.sub("", _HEAD.sub("", _svg(figure, transparent=True)))
    text = _SIZE.sub(lambda found: found[1] + found[2] if found[1] else found[3], text)
    text = _FONT.sub(r"\1 var(--sans)", _GROUP_NAME.sub(r"\1", text))
    for color, meant in _MEANT.items():
        text = re.sub(rf"(?<=: ){color}(?=[;\"])", meant, text, flags=re.IGNORECASE)
    return text


_MEANT: Final = {INK: "var(--ink)", "#000000": "var(--ink)", PAPER: "var(--paper)", "#222222": "var(--ink)"} | {
    color: f"var(--c{place})" for place, color in enumerate(PALETTE, 1)
}


def _plain_svg_of(figure: Figure) -> bytes:
    return _svg(figure, transparent=False).encode()


def _svg(figure: Figure, *, transparent: bool) -> str:
    with _text_as_it_is():
        file = StringIO()
        figure.savefig(file, format="svg", dpi=DPI, transparent=transparent, metadata={"Date": None, "Creator": None})
    return file.getvalue()


@contextmanager
def _text_as_it_is() -> Iterator[None]:
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "prism"}):
        yield
