"""The style of figures: widths, font sizes, colour-blind safe colours, legends and captions."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any, Final

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.ticker import FuncFormatter, MaxNLocator
from matplotlib.transforms import ScaledTranslation

from prism_mesa.errors import ConfigError, shorten
from prism_mesa.figure import NotebookFigure
from prism_mesa.params import short_repr
from prism_mesa.view.plots.sources import Drawable, run_names

NARROW: Final = 8.5
"""Width of a column of a journal's page, in centimetres."""
WIDE: Final = 17.0
"""Width of the page, in centimetres."""
CM: Final = 1 / 2.54
"""A centimetre, in inches."""
WIDTH: Final = WIDE * CM
"""Width of a figure as wide as the page, in inches."""

TEXT: Final = 8.0
"""Font size of titles and axis labels, in points, the same for all widths because figures are printed unscaled."""
SMALL: Final = 7.0
"""Font size of ticks, legends, captions, and text inside a figure, in points."""

INK: Final = "#010101"
"""Nearly black, because SVG omits pure black, which a dark page then cannot replace."""
GREY: Final = "#8a8a8a"
PAPER: Final = "#ffffff"
PALETTE: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#6f6f6f")
"""Colours for any colour vision (Okabe and Ito; Wong 2011, doi:10.1038/nmeth.1618), and a grey.

States have their own colours: `statechart.states.STATE_COLORS`.
"""
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")
BAND: Final = 0.2
"""Opacity of a band."""

type Dashes = str | tuple[int, tuple[int, ...]]

_DASHES: Final[tuple[Dashes, ...]] = (
    *("-", (0, (5, 1)), (0, (2, 1)), (0, (5, 1, 1, 1))),
    *((0, (1, 1)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1))),
)
_MANY_MARKS: Final = 1500
_MIN_WIDTH, _MAX_WIDTH = 5.0, 100.0  # cm
_LETTER_WIDTH: Final = 0.52  # average width of a letter as a share of the font size
_LEGEND_OFFSET: Final = 30.0  # points between an axis and a legend below its ticks and label
_LEGEND_LINE: Final = 0.37  # cm


def series_color(index: int) -> str:
    """Return the colour of the n-th series."""
    return PALETTE[index % len(PALETTE)]


def series_marker(index: int) -> str:
    """Return the marker of the n-th series; colours and markers together distinguish 49 series."""
    return MARKERS[(index + index // len(PALETTE)) % len(MARKERS)]


def series_dashes(index: int) -> Dashes:
    """Return the dash pattern of the n-th series, for readers who cannot tell the colours apart."""
    return _DASHES[index % len(_DASHES)]


def short_labels(names: Sequence[str], width: int, lines: int = 1) -> list[str]:
    """Wrap names into at most `lines` lines of `width` letters; names that are cut get a number.

    >>> short_labels(["ranked", "an arm with a long name, 1", "an arm with a long name, 2"], 16)
    ['ranked', '2. an a [...]  1', '3. an a [...]  2']
    """
    limit = width * lines - 2 * (lines - 1)
    if any(len(name) > limit for name in names):
        limit -= len(f"{len(names)}. ")
    pairs = enumerate(names, 1)
    return [fill(name if len(name) <= limit else f"{n}. {shorten(name, limit)}", width) for n, name in pairs]


@dataclass(frozen=True)
class Panel:
    """The axes of a figure function, in a new figure or passed by the user, and their width in centimetres."""

    figure: Figure
    axes: Axes
    is_new: bool
    width: float

    @property
    def is_narrow(self) -> bool:
        """Whether the panel is about as wide as a column of a page."""
        return is_narrow(self.width)

    def legend_below(self, ncols: int, **options: Any) -> Legend:
        """Draw a legend below the axes and their label; to make room, pass its number of lines to `open_panel`."""
        has_ticks = len(self.axes.get_yticks()) > 0
        left = -0.35 if self.is_narrow and has_ticks else 0.0  # start below the tick labels of the y axis
        shift = ScaledTranslation(left, -_LEGEND_OFFSET / 72, self.figure.dpi_scale_trans)
        options |= {"loc": "upper left", "bbox_to_anchor": (0, 0), "bbox_transform": self.axes.transAxes + shift}
        options |= {"borderaxespad": 0, "columnspacing": 1.2, "handletextpad": 0.5, "handlelength": 1.6}
        return axes_legend(self.axes, ncols=ncols, **options)

    def caption(self, text: str, source: Drawable | None = None) -> None:
        """Write a caption below a new figure; in the user's axes, only store it for `figure_caption`."""
        if self.is_new:
            write_caption(self.figure, text, self.width, source)
        self.axes.set_label(text if source is None else text + run_names(source))


def open_panel(
    ax: Axes | None, width: float, title: str = "", *, height: float | None = None, legend_lines: int = 0
) -> Panel:
    """Return tidy axes to draw into: the user's, or those of a new figure.

    The default height (in centimetres) depends on the width; `legend_lines` add to it. An invalid `ax` or width raises
    a ConfigError.
    """
    if ax is None:
        height = max(7.0, 3.4 + 0.34 * min(width, WIDE)) if height is None else height
        figure = new_figure(width, height + _LEGEND_LINE * legend_lines)
        panel = Panel(figure, figure.add_subplot(), True, width)
    elif isinstance(ax, Axes):
        root = ax.get_figure(root=True)
        assert root is not None  # noqa: S101 - axes always have one
        panel = Panel(root, ax, False, ax.get_position().width * root.get_figwidth() / CM)
    else:
        raise ConfigError(f"ax: give a matplotlib Axes, not {short_repr(ax)}")
    tidy(panel.axes, title)
    return panel


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in centimetres; an invalid width raises a ConfigError."""
    if not isinstance(width, int | float) or not _MIN_WIDTH <= width <= _MAX_WIDTH:
        raise ConfigError(
            f"width: give centimetres from {_MIN_WIDTH:g} to {_MAX_WIDTH:g} (8.5, 17), not {short_repr(width)}"
        )
    return NotebookFigure(figsize=(width * CM, height * CM), layout="constrained")


def write_caption(figure: Figure, text: str, width: float, source: Drawable | None = None) -> None:
    """Write a caption below a figure, with the names of its runs if `source` is given."""
    text += "" if source is None else run_names(source)
    figure.set_label(text)
    unbroken = text.replace(" %", "\u00a0%").replace("n = ", "n\u00a0=\u00a0")
    wrapped = fill(unbroken, letters(width - 0.4), break_on_hyphens=False)
    figure.supxlabel(wrapped, x=0.01, ha="left", fontsize=SMALL, color="#444444", parse_math=False)


def figure_caption(figure: Figure | Axes) -> str:
    """Return the caption of a figure, or of the axes that you passed to a figure function."""
    return str(figure.get_label() or "")


def letters(width: float, size: float = SMALL) -> int:
    """Return how many letters of a font size in points fit into a width in centimetres."""
    return max(20, int(width * CM * 72 / (size * _LETTER_WIDTH)))


def is_narrow(width: float) -> bool:
    """Return whether a width in centimetres is about that of a column."""
    return width < (NARROW + WIDE) / 2


def tidy(axes: Axes, title: str = "", grid: str = "both") -> None:
    """Style axes: a left-aligned title, small letters, no box, a faint grid."""
    if title:
        axes.set_title(title, loc="left", fontsize=TEXT, parse_math=False)
    for name in (axes.xaxis.label, axes.yaxis.label):
        name.set_fontsize(TEXT)
    axes.tick_params(which="both", labelsize=SMALL)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(visible=True, axis=grid, color=GREY, alpha=0.25, lw=0.5)  # type: ignore[arg-type]
    axes.set_axisbelow(True)


def axes_legend(axes: Axes, **options: Any) -> Legend:
    """Draw a legend inside axes."""
    return _without_math(axes.legend(frameon=False, fontsize=SMALL, **options))


def figure_legend(
    figure: Figure, entries: Axes | Sequence[Artist], *, loc: Any = "outside lower left", **options: Any
) -> Legend:
    """Draw a legend outside the axes of a figure, for axes or for artists with labels."""
    artists = entries.get_legend_handles_labels()[0] if isinstance(entries, Axes) else entries
    labels = [str(artist.get_label()) for artist in artists]
    return _without_math(figure.legend(artists, labels, loc=loc, frameon=False, fontsize=SMALL, **options))


def _without_math(legend: Legend) -> Legend:
    """Show the texts of a legend literally, without formulas between dollar signs."""
    for text in [*legend.get_texts(), legend.get_title()]:
        text.set_parse_math(False)
    return legend


def check_choice(figure: str, key: str, value: object, allowed: Iterable[str]) -> None:
    """Raise a ConfigError unless a figure's option has one of the allowed values."""
    if value not in (choices := list(allowed)):
        raise ConfigError(f"{figure}: {key}={short_repr(value)}: must be one of {', '.join(choices)}")


def panels(n: int, *, width: float = WIDTH, height: float = 2.9, columns: int = 2) -> tuple[Figure, list[Axes]]:
    """Return a figure with a grid of `n` panels, `height` inches each."""
    columns = min(columns, n)
    rows = -(-n // columns)
    figure = NotebookFigure(figsize=(width, height * rows + 0.35), layout="constrained")
    grid = [axes for row in figure.subplots(rows, columns, squeeze=False) for axes in row]
    for unused in grid[n:]:
        unused.set_visible(False)
    return figure, grid[:n]


def whole_numbers(n: int = 9) -> MaxNLocator:
    """Return a tick locator for whole numbers, with at most ``n + 1`` ticks."""
    return MaxNLocator(nbins=n, integer=True, min_n_ticks=1)


def percent_ticks(*shares: Axis) -> None:
    """Label the ticks of axes of shares in percent."""
    for axis in shares:
        axis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.3g} %"))


def has_many_marks(n: int) -> bool:
    """Return whether a figure with `n` marks rasterises them to keep its file small."""
    return n > _MANY_MARKS
