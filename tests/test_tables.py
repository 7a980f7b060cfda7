"""The page of tables says what the schemas say."""

import runpy
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def test_the_page_of_tables_says_what_the_schemas_say():
    made = runpy.run_path(str(DOCS / "write_tables.py"))["page"]()
    assert (DOCS / "tables.md").read_text(encoding="utf-8") == made, "make it again: uv run python docs/write_tables.py"
