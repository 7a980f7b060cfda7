"""A report as Markdown (GitHub's dialect), with the same text as the HTML page, and with figures as files."""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from prism_mesa.view.study import blocks as doc

_MARKUP: Final = re.compile(
    r"[\\`*~$]|\](?=[(\[:])|<(?=[a-z/!?])|&(?=#|\w+;)|(?<![^\W_])_|_(?![^\W_])", re.IGNORECASE | re.ASCII
)
"""Characters that Markdown or HTML would interpret; brackets only in links, underscores only at word boundaries."""
_LINE_START: Final = re.compile(r"^(\s*)([#+=>-]|\d+[.)])(?=\s|$|[#=>-])")
_TICKS: Final = re.compile("`+")


def to_markdown(report: doc.Report, files: Mapping[str, str]) -> str:
    """Return a report as Markdown; `files` maps the names of figures to their relative paths, in order."""
    head = (f"*{_text(report.kicker)}*", f"# {_text(report.question)}")
    status = f"**{report.status}**: {_text(report.summary)}"
    body = sections_as_markdown(report.sections, files)
    return "\n\n".join([*head, status, body, "---", _line(report.footer)]) + "\n"


def sections_as_markdown(sections: Iterable[doc.Section], files: Mapping[str, str] | None = None) -> str:
    """Return sections as Markdown, without the figures that are not in `files` (see `to_markdown`)."""
    return "\n\n".join(text for section in sections for text in _section(section, 2, files or {}))


def _section(section: doc.Section, depth: int, files: Mapping[str, str]) -> Iterator[str]:
    yield f"{'#' * depth} {_text(section.title)}"
    for block in section.blocks:
        yield from _block(block, files)
    for part in section.parts:
        yield from _section(part, depth + 1, files)


def _block(block: doc.Block, files: Mapping[str, str]) -> Iterator[str]:
    match block:
        case doc.Paragraph(words, note):
            yield f"> {_line(words)}" if note else _line(words)
        case doc.Bullets(items):
            yield "\n".join(f"- {_line(item)}" for item in items)
        case doc.Facts(rows):
            yield "\n".join(f"- **{_text(name)}**: {_line(value)}" for name, value in rows)
        case doc.Answer(ruling, text, sentence, detail):
            expected = f"**{doc.RULINGS[ruling]} {ruling}** {_code(text)}"
            yield f"- {expected}  \n  {_text(sentence)}  \n  {_text(detail)}"
        case doc.Table():
            yield from _table(block)
        case doc.Picture(name, caption) if name in files:
            number = 1 + list(files).index(name)
            yield f"![Figure {number}]({files[name]})"
            yield f"**Figure {number}.** {_line(caption)}"
        case doc.Listing(text):
            fence = "`" * max(3, 1 + max(map(len, _TICKS.findall(text)), default=0))
            yield f"{fence}\n{text.rstrip()}\n{fence}"
        case doc.Fold(title, blocks):
            yield f"**{_text(title)}**"
            for inner in blocks:
                yield from _block(inner, files)


def _table(table: doc.Table) -> Iterator[str]:
    lines = [[_cell(column.title) or " " for column in table.columns]]
    lines.append(["--:" if column.number else ":--" for column in table.columns])
    for group in table.groups:
        lines += [[_cell(group.title), *[" "] * (len(table.columns) - 1)]] if group.title else []
        lines += [[_cell(cell) for cell in row] for row in group.rows]
    yield "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
    if table.caption:
        yield _line(table.caption)


def _cell(words: doc.Words) -> str:
    return _inline(words).replace("|", "\\|")  # tables need the backslash even in code


def _line(words: doc.Words) -> str:
    """Return text as a paragraph, with a character escaped that would start a list or a heading."""
    return _LINE_START.sub(lambda match: f"{match[1]}{match[2][:-1]}\\{match[2][-1]}", _inline(words))


def _inline(words: doc.Words) -> str:
    return "".join(map(_part, doc.split_parts(words))).strip()


def _part(part: doc.Part) -> str:
    match part:
        case doc.Code(text):
            return _code(text)
        case doc.Strong(text):
            return f"**{_text(text)}**"
        case doc.Quiet(text):
            return f" {_text(text).strip()}"
        case doc.Link(text, url):
            return f"[{_text(text)}]({url})"
        case str():
            return _text(part)


def _text(text: str) -> str:
    """Return text with Markdown's special characters escaped."""
    return _MARKUP.sub(r"\\\g<0>", doc.plain(text))


def _code(text: str) -> str:
    """Return code, fenced by more backticks than it contains."""
    code = doc.plain(text) or " "
    ticks = "`" * (1 + max(map(len, _TICKS.findall(code)), default=0))
    padding = " " if code.startswith("`") or code.endswith("`") else ""
    return f"{ticks}{padding}{code}{padding}{ticks}"
