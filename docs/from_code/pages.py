"""Pages with what is made from the code in them."""

import re
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Final

from from_code import commands, configuration, measures, names, odd, tables
from prism_mesa.analysis.distill.share_sweep import DRIFT
from prism_mesa.analysis.survey.results import SURVEY_TABLES
from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.runs.config import Config, EconomyConfig
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.studies.measures.by_attribute import measures_by_attribute
from prism_mesa.studies.measures.catalogue import SUBJECTS

MARKER: Final = re.compile(r"^<!-- from the code: ([\w. ]+) -->$", re.MULTILINE)
_OF_EVERY_RUN: Final = ("rounds", "ticks", "transitions", "impressions", "posts", "engagements", "cascades", "agents")
_AGENTS_AND_NETWORK: Final = ("", "agents", "network", "posts")
_FEEDS: Final = ("feed", "utility")
_OF_RUNS: Final = ("runs", "listing", "page", "analysis")
"""Modules of the commands that make a run, list runs, and look into one, but for ``prism ledger``."""
_OF_STUDIES: Final = ("studies", "calibration", "validation")
_PACKAGES: Final = ("statechart", "reasoner", "llm", "deliberation", "view.plots")
_PER_RUN: Final = tuple(SUBJECTS)[:6]


def _is_of_runs(name: str, module: str) -> bool:
    return module in _OF_RUNS and not name.startswith("prism ledger")


MADE: Final[Mapping[str, Callable[[], str]]] = {
    "commands of runs": lambda: commands.sections(_is_of_runs),
    "commands of studies": lambda: commands.sections(lambda name, module: module in _OF_STUDIES),
    "other commands": lambda: commands.sections(
        lambda name, module: module not in _OF_STUDIES and not _is_of_runs(name, module)
    ),
    "configuration of agents and network": lambda: configuration.sections(Config, _AGENTS_AND_NETWORK.__contains__),
    "configuration of feeds": lambda: configuration.sections(Config, _FEEDS.__contains__),
    "configuration of all else": lambda: configuration.sections(
        Config, lambda group: group not in (*_AGENTS_AND_NETWORK, *_FEEDS)
    ),
    "configuration of nations": lambda: configuration.sections(EconomyConfig, lambda _: True),
    "measures of spread": lambda: measures.sections({name: SUBJECTS[name] for name in _PER_RUN}),
    "other measures": lambda: measures.sections({k: v for k, v in SUBJECTS.items() if k not in _PER_RUN}),
    "measures by attribute": lambda: measures.table(measures_by_attribute("NAME").values()),
    "model": odd.sections,
    "tables of every run": lambda: tables.sections({name: SOCIAL_TABLES[name] for name in _OF_EVERY_RUN}),
    "tables of some runs": lambda: tables.sections({k: v for k, v in SOCIAL_TABLES.items() if k not in _OF_EVERY_RUN}),
    "tables of nations": lambda: tables.sections(ECONOMY_TABLES),
    "tables of surveys": lambda: tables.sections(SURVEY_TABLES),
    **{f"names of {name}": partial(names.directives, f"prism_mesa.{name}") for name in _PACKAGES},
    "table of drift": lambda: tables.sections({DRIFT.name: DRIFT}),
}
"""What stands in the place of each marker."""


def with_made_parts(text: str) -> str:
    """Return a page with what its markers stand for.

    Raises:
        KeyError: If a marker names nothing that is made.
    """
    return MARKER.sub(lambda found: _made(found[1]), text)


@cache
def _made(name: str) -> str:
    return MADE[name]().strip()
