"""A chart as SVG, whose boxes can be lit in the browser: that of a state is the element ``state-<value>``."""

from io import StringIO
from typing import Final

import matplotlib

from prism_mesa.statechart import Statechart, draw_chart, mermaid

_MOST_KEPT: Final = 8
_kept: dict[str, str] = {}  # by the chart in words: placing its arrows takes a second


def chart_svg(chart: Statechart) -> str:
    """Return a chart as an element `svg`. Names in it are escaped by matplotlib."""
    said = mermaid(chart)
    if said not in _kept:
        while len(_kept) >= _MOST_KEPT:
            del _kept[next(iter(_kept))]
        _kept[said] = _drawn(chart)
    return _kept[said]


def _drawn(chart: Statechart) -> str:
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "prism"}):
        out = StringIO()
        draw_chart(chart).savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
