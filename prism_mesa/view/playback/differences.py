"""What came of two runs up to the same round, in one table."""

# mypy: disable-error-code=no-untyped-call
# (solara's components are only partly annotated)
from collections.abc import Sequence
from typing import Final

from reacton.core import Element
from reacton.ipyvuetify import Html
from solara.core import component

from prism_mesa.view.page.source import Source
from prism_mesa.view.page.trees import largest_cascades

_SUMS: Final = {
    "online": "came online",
    "posts": "posts",
    "impressions": "impressions",
    "likes": "likes",
    "replies": "replies",
    "reshares": "reshares",
    "open": "open choices",
    "fallback": "fallbacks",
}


def counts_of(source: Source) -> dict[str, float]:
    """Return what came of a run up to the round on show, in words -> how many."""
    columns, posts = source.round_columns(), source.posts()
    found = {told: float(columns[name].sum()) for name, told in _SUMS.items() if name in columns}
    largest = largest_cascades(posts, 1)
    found["largest cascade, posts"] = float(largest[0][1] if largest else len(posts) > 0)
    return found


@component
def differences(titles: Sequence[str], sources: Sequence[Source]) -> None:
    """Two runs up to the round on show: what came of each, and the second less the first."""
    first, second = (counts_of(source) for source in sources)
    heads = ["up to this round", *titles, "difference"]
    both = [told for told in first if told in second]
    rows = [[told, f"{first[told]:,.0f}", f"{second[told]:,.0f}", _signed(second[told] - first[told])] for told in both]
    head = Html(tag="thead", children=[_row(heads, ["th"] * 4, "col")])
    body = Html(tag="tbody", children=[_row(row, ["th", "td", "td", "td"], "row") for row in rows])
    table = Html(tag="table", class_="prism-differences", children=[head, body])
    Html(tag="section", class_="prism-card", attributes={"aria-label": "Differences"}, children=[table])


def _signed(difference: float) -> str:
    return f"{difference:+,.0f}" if difference else "0"


def _row(cells: Sequence[str], tags: Sequence[str], scope: str) -> Element:  # type: ignore[type-arg]
    return Html(
        tag="tr",
        children=[
            Html(tag=tag, attributes={"scope": scope} if tag == "th" else {}, children=[cell])
            for tag, cell in zip(tags, cells, strict=True)
        ],
    )
