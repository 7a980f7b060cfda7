"""A chart as SVG, whose boxes can be lit in the browser: that of a state is the element ``state-<value>``."""

from io import StringIO

import matplotlib

from prism_mesa.statechart import Statechart, draw_chart


def chart_svg(chart: Statechart) -> str:
    """Return a chart as an element `svg`. Names in it are escaped by matplotlib."""
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "prism"}):
        out = StringIO()
        draw_chart(chart).savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
