"""HTML cards for notebooks. All text is escaped, and readable on light and dark pages."""

from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from typing import Final

from markupsafe import Markup, escape

from prism_mesa.errors import printable, redact_credentials, shorten

_STYLE: Final = """
.prism-card { max-width: 46rem; border-left: .2rem solid var(--prism-accent, #0072b2); padding: .1rem 0 .1rem .8rem; }
.prism-card p, .prism-card blockquote { margin: .2rem 0 .35rem; }
.prism-card blockquote { padding: 0; border: 0; font-size: 1.05em; }
.prism-card .quiet { opacity: .75; font-weight: normal; }
.prism-card .scroll { overflow-x: auto; }
.prism-card table { border-collapse: collapse; margin: .2rem 0; font-variant-numeric: tabular-nums; }
.prism-card table tr, .prism-card table th, .prism-card table td { background: none; border: 0; color: inherit; }
.prism-card th, .prism-card td { padding: .1rem .9rem .1rem 0; text-align: left; vertical-align: top; }
.prism-card tbody th { font-weight: normal; opacity: .75; white-space: nowrap; }
.prism-card table thead th { border-bottom: 1px solid currentColor; white-space: nowrap; }
.prism-card .chip { white-space: nowrap; }
.prism-card .chip i, .prism-card .bar i { display: inline-block; height: .7em; border: 1px solid rgba(128,128,128,.6); }
.prism-card .chip i { width: .7em; margin-right: .35em; border-radius: 50%; }
.prism-card .bar { display: flex; margin: .35rem 0 .1rem; }
.prism-card .bar i { height: .9em; border-width: 1px 0; }
.prism-card summary { cursor: pointer; }
"""
_MAX_TEXT_LENGTH: Final = 280
"""Maximum length of a text in a card, in characters."""


def html_or_repr[T](render: Callable[[T], str]) -> Callable[[T], str | None]:
    """Decorate a ``_repr_html_`` so that it returns None after an error; notebooks then show the `repr`."""

    @wraps(render)
    def represent(self: T) -> str | None:
        try:
            return str(render(self))
        except Exception:  # the object is incomplete, or damaged
            return None

    return represent


def _escaped(value: object) -> Markup:
    """Return markup unchanged, and other values as escaped and shortened text on one line."""
    if isinstance(value, Markup):
        return value
    return escape(shorten(printable(redact_credentials(str(value))), _MAX_TEXT_LENGTH))


def _join(parts: Iterable[object], template: str = "{}") -> Markup:
    return Markup("").join(Markup(template).format(_escaped(part)) for part in parts)  # noqa: S704 - our own template


def card_html(kind: str, title: object, *parts: object, remark: object = "") -> Markup:
    """Return a card: a heading with the kind and the title of an object and a remark, and the non-empty parts."""
    head = Markup('<p><span class="quiet">{}</span> <b>{}</b> <span class="quiet">{}</span></p>').format(
        *map(_escaped, (kind, title, remark))
    )
    body = _join(filter(None, parts))
    return Markup('<div class="prism-card"><style>{}</style>{}{}</div>').format(Markup(_STYLE), head, body)  # noqa: S704 - our own template


def quote_html(text: str) -> Markup:
    """Return text as a quotation."""
    return Markup("<blockquote>{}</blockquote>").format(_escaped(text))


def note_html(text: object) -> Markup:
    """Return a line of text in a paler colour."""
    return Markup('<p class="quiet">{}</p>').format(_escaped(text))


def facts_html(facts: Iterable[tuple[str, object]]) -> Markup:
    """Return a table with a row for each (name, value) unless the value is None or empty."""
    row = Markup('<tr><th scope="row">{}</th><td>{}</td></tr>')
    rows = [row.format(_escaped(name), _escaped(value)) for name, value in facts if value not in (None, "")]
    return Markup("<table><tbody>{}</tbody></table>").format(Markup("").join(rows)) if rows else Markup("")


def table_html(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table with a header."""
    head = _join(columns, '<th scope="col">{}</th>')
    body = _join((_join(row, "<td>{}</td>") for row in rows), "<tr>{}</tr>")
    table = Markup('<div class="scroll"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>')
    return table.format(head, body)


def chip_html(color: str, text: object) -> Markup:
    """Return a coloured dot followed by text."""
    return Markup('<span class="chip"><i style="background: {}"></i>{}</span>').format(color, _escaped(text))


def bar_html(shares: Sequence[tuple[str, str, float]]) -> Markup:
    """Return a stacked bar of (name, colour, share). The name of a share appears under the mouse pointer."""
    part = Markup('<i style="width: {:.2f}%; background: {}" title="{}"></i>')
    label = ", ".join(f"{name} {share:.1%}" for name, _, share in shares)
    parts = [part.format(100 * share, color, f"{name} {share:.1%}") for name, color, share in shares if share > 0]
    return Markup('<div class="bar" role="img" aria-label="{}">{}</div>').format(label, Markup("").join(parts))


def fold_html(title: str, content: object) -> Markup:
    """Return content that appears when the user clicks on the title."""
    return Markup("<details><summary>{}</summary>{}</details>").format(_escaped(title), _escaped(content))
