"""HTML cards of objects for notebooks, with all text escaped, and readable on light and dark pages."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Final

from markupsafe import Markup, escape

from prism_mesa.errors import printable, redact_credentials, shortened

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
_LONGEST: Final = 280
"""Characters of a text in a card."""


def shown_or_plain[T](make: Callable[[T], str]) -> Callable[[T], str | None]:
    """Decorate a ``_repr_html_``: where it raises, return None, so that the notebook shows the `repr`."""

    @wraps(make)
    def represent(self: T) -> str | None:
        try:
            return str(make(self))
        except Exception:  # the object is half made, or damaged
            return None

    return represent


def escaped(value: object, most: int = _LONGEST) -> Markup:
    """Return a value as HTML: markup as it is, anything else escaped, shortened and on one line."""
    return value if isinstance(value, Markup) else escape(shortened(printable(redact_credentials(str(value))), most))


def card_of(kind: str, title: object, *parts: object, about: object = "") -> Markup:
    """Return a card: the kind of object, its name, a quiet remark, and its parts below each other."""
    head = Markup('<p><span class="quiet">{}</span> <b>{}</b> <span class="quiet">{}</span></p>').format(
        escaped(kind), escaped(title), escaped(about)
    )
    body = Markup("").join(escaped(part) for part in parts if part)
    return Markup('<div class="prism-card"><style>{}</style>{}{}</div>').format(Markup(_STYLE), head, body)  # noqa: S704 - it is ours


def quote_of(text: str) -> Markup:
    """Return a quotation."""
    return Markup("<blockquote>{}</blockquote>").format(escaped(text))


def note_of(text: object) -> Markup:
    """Return a quiet line."""
    return Markup('<p class="quiet">{}</p>').format(escaped(text))


def facts_of(facts: Mapping[str, object] | Sequence[tuple[str, object]]) -> Markup:
    """Return facts, a line each; those without a value (None, empty) are left out."""
    row = Markup('<tr><th scope="row">{}</th><td>{}</td></tr>')
    pairs = facts.items() if isinstance(facts, Mapping) else facts
    rows = [row.format(escaped(what), escaped(value)) for what, value in pairs if value not in (None, "")]
    return Markup("<table><tbody>{}</tbody></table>").format(Markup("").join(rows)) if rows else Markup("")


def table_of(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table with a header."""
    cell = Markup("<td>{}</td>")
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(escaped(name)) for name in columns)
    lines = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(cell.format(escaped(value)) for value in row)) for row in rows
    )
    table = '<div class="scroll"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>'
    return Markup(table).format(head, lines)  # noqa: S704 - it is ours


def chip_of(color: str, text: object) -> Markup:
    """Return a text after a dot in a colour."""
    return Markup('<span class="chip"><i style="background: {}"></i>{}</span>').format(color, escaped(text))


def joined_of(parts: Iterable[object]) -> Markup:
    """Return parts with spaces between them."""
    return Markup(" ").join(escaped(part) for part in parts)


def bar_of(shares: Sequence[tuple[str, str, float]]) -> Markup:
    """Return a bar of (name, colour, share); pointing at a share shows its name."""
    part = Markup('<i style="width: {:.2f}%; background: {}" title="{}"></i>')
    label = ", ".join(f"{name} {share:.1%}" for name, _, share in shares)
    parts = Markup("").join(
        part.format(100 * share, color, f"{name} {share:.1%}") for name, color, share in shares if share > 0
    )
    return Markup('<div class="bar" role="img" aria-label="{}">{}</div>').format(label, parts)


def fold_of(title: str, *parts: object) -> Markup:
    """Return parts that unfold when the title is clicked."""
    body = Markup("").join(escaped(part) for part in parts)
    return Markup("<details><summary>{}</summary>{}</details>").format(escaped(title), body)
