"""The pages hold all that the code offers, as it is now."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from from_code.commands import every_command
from from_code.python import documented_names, imported_names
from hooks import nav_of, on_page_content
from site_files import page_of, uri_of, with_links_of_the_site
from write_tables import PART, PARTS, written

import prism_mesa
from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.params import list_leaves
from prism_mesa.runs.config import Config, EconomyConfig
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.studies.measures.catalogue import MEASURES

DOCS = Path(__file__).parents[1] / "docs"


@cache
def page_text(name):
    return (DOCS / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", ["commands", "configuration", "measures", "model", "python", "tables"])
def test_a_page_with_tables_from_the_code_is_in_step_with_it(name):
    text = page_text(name)
    assert PART.search(text)
    assert written(text) == text, "write it anew: uv run python docs/write_tables.py"


def test_every_part_from_the_code_is_on_one_page():
    names = [name for page in DOCS.glob("*.md") for _, name, _ in PART.findall(page.read_text(encoding="utf-8"))]
    assert sorted(names) == sorted(PARTS)


def test_every_command_with_all_its_options_is_in_the_reference():
    commands = dict(every_command())
    assert {"prism run", "prism study run"} <= set(commands)
    for name, command in commands.items():
        [section] = re.findall(rf"^## {name}$(.*?)(?=^## |\Z)", page_text("commands"), re.MULTILINE | re.DOTALL)
        options = [flag for param in command.params for flag in param.opts if flag.startswith("--")]
        assert [flag for flag in options if flag not in section] == []


def test_every_public_name_is_in_the_reference():
    headings = set(re.findall(r"^### (\w+)$", page_text("python"), re.MULTILINE))
    assert {name.rpartition(".")[2] for name in documented_names()} == headings
    assert set(prism_mesa.__all__) <= headings


def test_names_are_read_from_prompts_files_scripts_and_notebooks(tmp_path):
    cells = [{"cell_type": kind, "source": [f"from prism_mesa.{kind} import y"]} for kind in ("code", "markdown")]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "b.py").write_text("def f():\n    from prism_mesa.b import (\n        y as z,\n    )\n")
    prompt, file = ">>> if True:\n...     from prism_mesa import p, view\n", "import os\nfrom prism_mesa.f import y\n"
    (tmp_path / "c.md").write_text(
        f"from prism_mesa import not_code\n\n```python\n{prompt}\n```\n\n```python\n{file}```\n"
    )
    names = {"prism_mesa.code.y", "prism_mesa.b.y", "prism_mesa.p", "prism_mesa.f.y"}
    assert imported_names(tmp_path.iterdir()) == names


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ("configuration", [key for kind in (Config, EconomyConfig) for key, _ in list_leaves(kind)]),
        ("tables", [column.name for t in (SOCIAL_TABLES | ECONOMY_TABLES).values() for column in t.columns]),
        ("measures", list(MEASURES)),
    ],
)
def test_every_key_column_and_measure_is_in_the_reference(page, names):
    assert len(names) > 70
    assert [name for name in names if f"| `{name}` |" not in page_text(page)] == []


def test_the_nav_is_that_of_the_index():
    index = "# T\n| [No](no.md) | |\n## A\n| [One](one.md) | x |\n## B\n### C\n| [Two](../benchmarks/RESULTS.md) | |\n"
    nav = [{"A": [{"One": "one.md"}]}, {"B": [{"C": [{"Two": "repository/benchmarks/RESULTS.md"}]}]}]
    assert nav_of(index) == nav


def test_links_of_the_repository_are_turned_into_those_of_the_site():
    text = "[a](charts.md#x) [b](../configs/default.yaml) `[c](../README.md)` ![d](pictures/map.png) [e](https://example.org)"
    turned = with_links_of_the_site(text, "docs/design.md")
    assert turned == text.replace("../configs/default.yaml", "repository/configs/default.yaml.md")
    back = with_links_of_the_site("[a](../docs/validity.md) [b](RESULTS.md)", "benchmarks/VALIDITY.md")
    assert back == "[a](../../validity.md) [b](RESULTS.md)"
    assert uri_of("docs/pictures/map.png") == "pictures/map.png"


def test_bars_in_code_within_tables_are_shown_without_the_backslash_that_tables_need():
    html = r"<p><code>a \| b</code></p><td>c \| <code>d \| e</code></td>"
    assert on_page_content(html) == r"<p><code>a \| b</code></p><td>c \| <code>d | e</code></td>"


def test_notebooks_are_pages_with_their_output():
    path = next((DOCS.parent / "notebooks").glob("*.ipynb"))
    text, pictures = page_of(f"notebooks/{path.name}")
    assert "```python\n" in text
    assert all(data.startswith(b"\x89PNG") and f"({name})" in text for name, data in pictures.items())
    assert pictures
