"""The parts of a report as data, which `report` writes as HTML and `markdown` as Markdown."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from prism_mesa.errors import printable, redact_credentials, shorten

if TYPE_CHECKING:
    from matplotlib.figure import Figure

type Ruling = Literal["holds", "fails", "open"]

RULINGS: Final[dict[Ruling, str]] = {"holds": "\u2713", "fails": "\u2717", "open": "?"}


@dataclass(frozen=True)
class Emphasis:
    """Text in another style."""

    text: str


class Code(Emphasis):
    """A name, key, value or command in a monospaced font."""


class Strong(Emphasis):
    """Bold text."""


class Quiet(Emphasis):
    """Text in a muted colour."""


@dataclass(frozen=True)
class Link:
    """A link to a file in the study's folder, or to a DOI."""

    text: str
    url: str


type Part = str | Code | Strong | Quiet | Link
type Words = Part | tuple[Part, ...]
"""Text with code, emphasis and links; a line break counts as a space."""
type Row = tuple[Words, ...]


@dataclass(frozen=True)
class Paragraph:
    """A paragraph; a `note` is highlighted."""

    words: Words
    note: bool = False


@dataclass(frozen=True)
class Bullets:
    """A bulleted list."""

    items: tuple[Words, ...]


@dataclass(frozen=True)
class Facts:
    """A list of short facts, each with a label."""

    rows: tuple[tuple[str, Words], ...]


@dataclass(frozen=True)
class Answer:
    """An expectation, its verdict, and a sentence that explains it."""

    ruling: Ruling
    text: str
    sentence: str
    detail: str


@dataclass(frozen=True)
class Column:
    """A column of a table; numbers are right-aligned, and long texts get more room."""

    title: Words
    number: bool = False
    long: bool = False


@dataclass(frozen=True)
class Group:
    """Rows of a table under a common heading, which may be empty."""

    title: Words
    rows: tuple[Row, ...]


@dataclass(frozen=True)
class Table:
    """A table and its caption."""

    columns: tuple[Column, ...]
    groups: tuple[Group, ...]
    caption: Words = ""


@dataclass(frozen=True)
class Picture:
    """A figure, drawn when the report is written; `name` is unique in the report."""

    name: str
    caption: Words
    draw: "Callable[[], Figure]"


@dataclass(frozen=True)
class Listing:
    """Preformatted text."""

    text: str


@dataclass(frozen=True)
class Fold:
    """Blocks that are hidden until the reader unfolds them."""

    title: str
    blocks: "tuple[Block, ...]"


type Block = Paragraph | Bullets | Facts | Answer | Table | Picture | Listing | Fold


@dataclass(frozen=True)
class Section:
    """A section of the report; `name` is its anchor, `parts` are subsections."""

    name: str
    title: str
    blocks: tuple[Block, ...]
    parts: "tuple[Section, ...]" = ()


@dataclass(frozen=True)
class Report:
    """A report: a small `kicker` above the heading `question`; `status` is `done`, `failed` or `incomplete`."""

    kicker: str
    question: str
    status: str
    summary: str
    sections: tuple[Section, ...]
    footer: Words


def simple_table(columns: Sequence[Column], rows: Sequence[Row], caption: Words = "") -> Table:
    """Return a table with a single group of rows."""
    return Table(tuple(columns), (Group("", tuple(rows)),), caption)


def number_columns(*titles: str) -> tuple[Column, ...]:
    """Return columns of numbers with these titles."""
    return tuple(Column(title, number=True) for title in titles)


def code_list(names: Iterable[str]) -> tuple[Part, ...]:
    """Return names as code, with commas between them."""
    return tuple(part for name in names for part in (", ", Code(name)))[1:]


def split_parts(words: Words) -> tuple[Part, ...]:
    """Return the parts of a text as a tuple."""
    return words if isinstance(words, tuple) else (words,)


def code_spans(text: str) -> tuple[Part, ...]:
    """Return the parts of a text, with text between backticks as code."""
    return tuple(Code(part) if index % 2 else part for index, part in enumerate(text.split("`")) if part)


def plain(text: object) -> str:
    """Return text on one line, without control characters and passwords."""
    return printable(redact_credentials(str(text)))


def brief(text: object, limit: int = 240) -> str:
    """Return text on one line, shortened to `limit` characters."""
    return shorten(" ".join(plain(text).split()), limit)


def all_pictures(sections: Sequence[Section]) -> list[Picture]:
    """Return the figures of sections and their parts, in the order of the page."""
    pictures: list[Picture] = []
    for section in sections:
        pictures += [block for block in section.blocks if isinstance(block, Picture)]
        pictures += all_pictures(section.parts)
    return pictures
