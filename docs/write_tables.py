"""The page of tables, made from the schemas by which they are written and read.

uv run python docs/write_tables.py
"""

from collections.abc import Mapping
from pathlib import Path

from prism_mesa.analysis.distill.share_sweep import DRIFT
from prism_mesa.analysis.survey.results import SURVEY_TABLES
from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.tables import Column, TableSchema

PAGE = Path(__file__).parent / "tables.md"
INTRO = """# Tables

All columns of all tables, in their order. This page is made (`uv run python docs/write_tables.py`) from the schemas
that stand beside what writes each table, such as `prism_mesa/social/tables.py`. A table that is not as its schema says
is not written.

`int` has 32 bits, or 64 where a number does not fit; `category` is a text kept as a code, which pandas reads as a
category. Numbers without a unit are counts, or row numbers of a table.
"""
PARTS: Mapping[str, Mapping[str, TableSchema]] = {
    "A run of the platform": SOCIAL_TABLES,
    "A run of nations": ECONOMY_TABLES,
    "A survey": SURVEY_TABLES,
    "`prism distill --drift`": {DRIFT.name: DRIFT},
}


def page() -> str:
    """Return the page."""
    parts = [f"## {title}\n\n{'\n'.join(map(section, tables.values()))}" for title, tables in PARTS.items()]
    return "\n".join([INTRO, *parts])


def section(table: TableSchema) -> str:
    """Return what the page says of a table."""
    head = f"### {table.name}\n\nA row is {table.row}.\n\n| column | type | unit | meaning |\n|---|---|---|---|\n"
    return head + "".join(f"| `{c.name}` | {c.type} | {c.unit} | {meaning(c)} |\n" for c in table.columns)


def meaning(column: Column) -> str:
    """Return what the page says a column means, with the texts that there are and whether there may be nothing."""
    choices = f" ({', '.join(f'`{name}`' for name in column.one_of)})" if column.one_of else ""
    return f"{column.meaning}{choices}{'; may be blank' if column.blank else ''}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
