"""The ODD protocol of a configuration as a text of its own, for an archive."""

from collections.abc import Collection
from dataclasses import replace

from prism_mesa.errors import PrismError
from prism_mesa.runs.config import Config
from prism_mesa.social.behavior import chosen_chart
from prism_mesa.statechart import Statechart
from prism_mesa.view.study.blocks import Paragraph, Picture, Section
from prism_mesa.view.study.markdown import sections_as_markdown
from prism_mesa.view.study.odd.sections import PURPOSE, odd_sections

_OURS = "prism_mesa."


def odd_text(config: Config, varied: Collection[str] = (), question: str = "", *, load_chart: bool = False) -> str:
    """Return the ODD protocol of a configuration as Markdown, without pictures.

    Args:
        config: The configuration.
        varied: Dotted keys that a study changes.
        question: What the study asks; empty for a single run.
        load_chart: Whether the module of a chart of somebody's own may be imported.
    """
    asks = f" This study asks: {question}" if question else ""
    purpose = Section("odd-purpose", "1. Purpose and patterns", (Paragraph(f"{PURPOSE}.{asks}"),))
    sections = (purpose, *odd_sections(config, _chart(config, load_chart=load_chart), varied))
    said = "The model as it is configured, by the ODD protocol (Grimm et al. 2020, doi:10.18564/jasss.4259)."
    plain = (replace(one, blocks=tuple(b for b in one.blocks if not isinstance(b, Picture))) for one in sections)
    return f"# The model (ODD protocol)\n\n{said}\n\n{sections_as_markdown(plain)}\n"


def _chart(config: Config, *, load_chart: bool) -> Statechart | str:
    """Return the chart, or why there is none to be had."""
    where = config.statechart.chart
    if where is not None and not where.startswith(_OURS) and not load_chart:
        return f"The chart is {where}, a module of the user's own, which is not loaded here."
    try:
        return chosen_chart(config.statechart, asks_action=config.reasoner.asks_action)
    except PrismError as error:
        return str(error)
