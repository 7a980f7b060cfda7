"""Write figures as PNG, PDF and SVG; the same figure always gives the same bytes."""

import re
from collections.abc import Callable, Mapping
from io import BytesIO, StringIO
from pathlib import Path
from typing import Final

from matplotlib import rc_context
from matplotlib.figure import Figure

from prism_mesa.errors import ConfigError, DataError
from prism_mesa.params import short_repr
from prism_mesa.view.plots.style import INK, PALETTE, PAPER

DPI: Final = 200
"""Dots per inch of pictures."""

_HEAD: Final = re.compile(r"^.*?(?=<svg)", re.DOTALL)
_METADATA: Final = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
_GROUP_NAME: Final = re.compile(r'(<g) id="(?:figure|axes|patch|line2d|text|legend|matplotlib|xtick|ytick)[\w.]*"')
_FONT: Final = re.compile(r"(font: (?:\w+ )*[\d.]+px|font-family:) '[^;\"]*")
_SIZE: Final = re.compile(r'(<svg [^>]*?)width="[\d.]+pt" ([^>]*?)height="[\d.]+pt"|(<svg [^>]*?)height="[\d.]+pt" ')


def save(figure: Figure, file: str | Path) -> Path:
    """Write a figure as PNG, PDF or SVG, chosen by the file's suffix, and return its path.

    An existing file is replaced; a symbolic link is not followed.

    Raises:
        ConfigError: If the suffix is not one of these.
    """
    path = Path(file)
    formats: dict[str, Callable[[Figure], bytes]] = {".png": to_png, ".pdf": to_pdf, ".svg": lambda f: _svg(f).encode()}
    if path.suffix.lower() not in formats:
        raise ConfigError(f"{short_repr(str(file))}: the name of a figure ends in {', '.join(formats)}")
    content = formats[path.suffix.lower()](figure)
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    return path


def save_figures(folder: Path, figures: Mapping[str, Callable[[], Figure]], *, skip_missing: bool) -> list[Path]:
    """Write PNG files named by the keys, and return the paths; missing data raise a DataError unless `skip_missing`."""
    paths = []
    for name, draw in figures.items():
        try:
            figure = draw()
        except DataError:
            if not skip_missing:
                raise
            continue
        paths.append(save(figure, folder / f"{name}.png"))
    return paths


def to_png(figure: Figure) -> bytes:
    """Return a figure as a PNG on white; the same figure gives the same bytes."""
    file = BytesIO()
    figure.savefig(file, format="png", dpi=DPI, facecolor="white", metadata={"Software": None})
    return file.getvalue()


def to_pdf(figure: Figure) -> bytes:
    """Return a figure as a PDF with selectable text; the same figure gives the same bytes."""
    file = BytesIO()
    with rc_context({"pdf.fonttype": 42}):
        metadata = dict.fromkeys(("CreationDate", "Creator", "Producer"))
        figure.savefig(file, format="pdf", dpi=DPI, facecolor="white", metadata=metadata)
    return file.getvalue()


def to_svg(figure: Figure) -> str:
    """Return a figure as an SVG element with selectable text in the page's font and colours.

    Black, white and the colours of the palette become CSS variables of the page (``--c1`` to ``--c7`` for the palette),
    so lines are light on a dark page.
    """
    text = _METADATA.sub("", _HEAD.sub("", _svg(figure, transparent=True)))
    text = _SIZE.sub(lambda match: match[1] + match[2] if match[1] else match[3], text)
    text = _FONT.sub(r"\1 var(--sans)", _GROUP_NAME.sub(r"\1", text))
    for color, variable in _CSS_VARIABLES.items():
        text = re.sub(rf"(?<=: ){color}(?=[;\"])", variable, text, flags=re.IGNORECASE)
    return text


_CSS_VARIABLES: Final = {INK: "var(--ink)", "#000000": "var(--ink)", PAPER: "var(--paper)", "#222222": "var(--ink)"} | {
    color: f"var(--c{index})" for index, color in enumerate(PALETTE, 1)
}


def _svg(figure: Figure, *, transparent: bool = False) -> str:
    file = StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "prism"}):
        figure.savefig(file, format="svg", dpi=DPI, transparent=transparent, metadata={"Date": None, "Creator": None})
    return file.getvalue()
