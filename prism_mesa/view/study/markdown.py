"""A report as Markdown: the same words and numbers as the page, figures as files beside it."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from prism_mesa.view.study import blocks as b

_STEERS: Final = re.compile(
    r"[\\`*~$]|\](?=[(\[:])|<(?=[a-z/!?])|&(?=#|\w+;)|(?<![^\W_])_|_(?![^\W_])", re.IGNORECASE | re.ASCII
)
"""What would be read as Markdown or as HTML: no bracket but a link's, and no underscore within a name."""
_BEGINS: Final = re.compile(r"^(\s*)([#+=>-]|\d+[.)])(?=\s|$|[#=>-])")
_TICKS: Final = re.compile("`+")


def markdown_of(report: b.Report, files: Mapping[str, str], numbers: Mapping[str, int]) -> str:
    """Return a report as Markdown (GitHub's, for its tables).

    Args:
        report: What it says.
        files: Paths of the figures, relative to the report, by name.
        numbers: Of the figures, by name.
    """
    head = [f"*{_text(report.kicker)}*", f"# {_text(report.question)}"]
    head.append(f"**{report.status}**: {_text(report.summary)}")
    said = sections_as_markdown(report.sections, files, numbers)
    return "\n\n".join([*head, said, "---", _line(report.footer)]) + "\n"


def sections_as_markdown(
    sections: Iterable[b.Section], files: Mapping[str, str] | None = None, numbers: Mapping[str, int] | None = None
) -> str:
    """Return sections as Markdown; figures as in `markdown_of`, none if they have none."""
    return "\n\n".join(text for section in sections for text in _section(section, 2, files or {}, numbers or {}))


def _section(section: b.Section, depth: int, files: Mapping[str, str], numbers: Mapping[str, int]) -> list[str]:
    found = [f"{'#' * depth} {_text(section.title)}", *_blocks(section.blocks, files, numbers)]
    for part in section.parts:
        found += _section(part, depth + 1, files, numbers)
    return found


def _blocks(blocks: Sequence[b.Block], files: Mapping[str, str], numbers: Mapping[str, int]) -> list[str]:
    return [text for block in blocks for text in _block(block, files, numbers)]


def _block(block: b.Block, files: Mapping[str, str], numbers: Mapping[str, int]) -> list[str]:
    match block:
        case b.Paragraph(words, note):
            return [f"> {_line(words)}" if note else _line(words)]
        case b.Bullets(items):
            return ["\n".join(f"- {_line(item)}" for item in items)]
        case b.Facts(rows):
            return ["\n".join(f"- **{_text(name)}**: {_line(value)}" for name, value in rows)]
        case b.Answer(ruling, text, sentence, detail):
            expected = f"**{b.RULINGS[ruling]} {ruling}** {_code(text)}"
            return [f"- {expected}  \n  {_text(sentence)}  \n  {_text(detail)}"]
        case b.Table():
            return _table(block)
        case b.Picture(name, caption):
            number, words = numbers[name], _line(caption)
            return [f"![Figure {number}]({files[name]})", f"**Figure {number}.** {words}"]
        case b.Listing(text):
            fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
            return [f"{fence}\n{text.rstrip()}\n{fence}"]
        case b.Fold(title, inner):
            return [f"**{_text(title)}**", *_blocks(inner, files, numbers)]


def _table(table: b.Table) -> list[str]:
    heads = [_cell(column.title) or " " for column in table.columns]
    marks = ["--:" if column.number else ":--" for column in table.columns]
    lines = [heads, marks, *(row for group in table.groups for row in _rows(group, len(heads)))]
    text = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    return [text, _line(table.caption)] if table.caption else [text]


def _rows(group: b.Group, n: int) -> list[list[str]]:
    rows = [[_cell(cell) for cell in row] for row in group.rows]
    return [[f"{_cell(group.title)}", *[" "] * (n - 1)], *rows] if group.title else rows


def _cell(words: b.Words) -> str:
    return _inline(words, in_table=True).strip()


def _line(words: b.Words) -> str:
    """Return words as a paragraph, that nothing in them begins a list or a heading."""
    return _BEGINS.sub(lambda found: f"{found[1]}{_shielded(found[2])}", _inline(words).strip())


def _shielded(mark: str) -> str:
    return f"{mark[:-1]}\\{mark[-1]}"


def _inline(words: b.Words, *, in_table: bool = False) -> str:
    return "".join(_part(part, in_table=in_table) for part in b.parts_of(words))


def _part(part: b.Part, *, in_table: bool) -> str:
    if in_table:  # there a bar is one only behind a backslash, in code too
        return _part(part, in_table=False).replace("|", "\\|")
    match part:
        case b.Code(text):
            return _code(text)
        case b.Strong(text):
            return f"**{_text(text)}**"
        case b.Quiet(text):
            return f" {_text(text).strip()}"
        case b.Link(text, url):
            return f"[{_text(text)}]({url})"
        case b.Badge(ruling):
            return f"**{b.RULINGS[ruling]} {ruling}**"
        case str():
            return _text(part)


def _text(text: str) -> str:
    """Return text of which nothing is read as Markdown."""
    return _STEERS.sub(lambda found: f"\\{found[0]}", b.plain(text))


def _code(text: str) -> str:
    """Return code between more backticks than it holds."""
    shown = b.plain(text) or " "
    ticks = "`" * (1 + max(map(len, _TICKS.findall(shown)), default=0))
    room = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{ticks}{room}{shown}{room}{ticks}"
