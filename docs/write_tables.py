"""Write what the pages hold from the code: tables of keys, commands, columns and measures, and the Python reference.

uv run python docs/write_tables.py

A page says where by a pair of lines, `<!-- from the code: NAME -->` and `<!-- end -->`, with a name of `PARTS`.
"""

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from from_code import commands, configuration, measures, odd, python, tables

from prism_mesa.analysis.distill.share_sweep import DRIFT
from prism_mesa.analysis.survey.results import SURVEY_TABLES
from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.runs.config import Config, EconomyConfig
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.studies.measures.catalogue import SUBJECTS
from prism_mesa.studies.measures.exposure import measures_by_attribute

DOCS: Final = Path(__file__).parent
PART: Final = re.compile(r"^(<!-- from the code: ([\w ]+) -->\n).*?^(<!-- end -->)$", re.DOTALL | re.MULTILINE)
_EVERY_RUN: Final = ("rounds", "ticks", "transitions", "impressions", "posts", "engagements", "cascades", "agents")

PARTS: Final[Mapping[str, Callable[[], str]]] = {
    "commands": commands.sections,
    "configuration of platforms": lambda: configuration.sections(Config),
    "configuration of nations": lambda: configuration.sections(EconomyConfig),
    "measures": lambda: measures.sections(SUBJECTS),
    "measures by attribute": lambda: measures.table(measures_by_attribute("NAME").values()),
    "model": odd.sections,
    "python": python.sections,
    "tables of every run": lambda: tables.sections({name: SOCIAL_TABLES[name] for name in _EVERY_RUN}),
    "tables of some runs": lambda: tables.sections({k: v for k, v in SOCIAL_TABLES.items() if k not in _EVERY_RUN}),
    "tables of nations": lambda: tables.sections(ECONOMY_TABLES),
    "tables of surveys": lambda: tables.sections(SURVEY_TABLES),
    "table of drift": lambda: tables.sections({DRIFT.name: DRIFT}),
}
"""What stands between each pair of lines."""


def written(text: str) -> str:
    """Return a page with its parts written anew.

    Raises:
        KeyError: If a page names a part that does not exist.
    """
    return PART.sub(lambda part: f"{part[1]}\n{_part(part[2])}\n\n{part[3]}", text)


@cache
def _part(name: str) -> str:
    return PARTS[name]().strip()


if __name__ == "__main__":
    for page in sorted(DOCS.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        if (new := written(text)) != text:
            page.write_text(new, encoding="utf-8")
            print(f"written: docs/{page.name}")
