"""The default model by the ODD protocol, as in the reports of studies."""

from dataclasses import replace

from prism_mesa.runs.config import Config
from prism_mesa.social.behavior import configure_chart
from prism_mesa.view.study.blocks import Fold, Section
from prism_mesa.view.study.markdown import sections_as_markdown
from prism_mesa.view.study.odd.sections import odd_sections

PICTURE = {"statechart": "pictures/social-chart.png"}


def sections() -> str:
    """Return the elements of the protocol from the second on, without the table of parameters."""
    config = Config()
    chart = configure_chart(config.statechart, asks_action=config.reasoner.asks_action)
    *others, submodels = odd_sections(config, chart)
    return sections_as_markdown((*others, _short(submodels)), PICTURE)


def _short(submodels: Section) -> Section:
    return replace(submodels, blocks=tuple(block for block in submodels.blocks if not isinstance(block, Fold)))
