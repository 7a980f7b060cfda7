"""Reading reports back: what a page or Markdown shows, whatever it is written in."""

from datetime import UTC, datetime
from functools import cache
from html.parser import HTMLParser

from markdown_it import MarkdownIt

from prism_mesa.view.study.blocks import all_pictures
from prism_mesa.view.study.markdown import to_markdown
from prism_mesa.view.study.report import study_report, to_html

WHEN = datetime(2026, 11, 23, 4, 5, tzinfo=UTC)
_VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """What is on a page: tables as rows of texts, the text outside of figures, and all tags with their attributes."""

    def __init__(self, html):
        super().__init__()
        self.tables, self.tags, self.texts, self.open = [], [], [], []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID and "svg" not in self.open:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        if "svg" not in self.open or tag == "svg":
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"svg", "style"} & set(self.open):
            self.texts.append(data)
            if {"td", "th"} & set(self.open):
                self.tables[-1][-1][-1] += data

    @property
    def text(self):
        return " ".join("".join(self.texts).split())

    def rows(self):
        """Return all rows of all tables, without empty cells at their end, whose white space does not count."""
        rows = [[" ".join(cell.split()) for cell in row] for table in self.tables for row in table]
        return [row[: max((n for n, cell in enumerate(row, 1) if cell), default=0)] for row in rows]


@cache
def read_page(html):
    """Return what is on a page, for tests that only look at it: each page is read once."""
    return Page(html)


@cache
def read_markdown(text):
    """Return what is shown of a Markdown text, likewise."""
    return Page(MarkdownIt("commonmark").enable("table").render(text))


def both_forms(result):
    """Return a study's report as a page and as Markdown, with nothing drawn."""
    report = study_report(result, WHEN)
    names = [picture.name for picture in all_pictures(report.sections)]
    page = to_html(report, dict.fromkeys(names, "<svg></svg>"))
    return page, to_markdown(report, {name: f"figures/{name}.png" for name in names})
