"""The pages say all that the code offers, at a length that can be read."""

import ast
import json
import re
from doctest import DocTestParser
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
from from_code.commands import every_command
from from_code.pages import MADE, MARKER, with_made_parts
from from_code.repository import page_of, uri_of, with_links_of_the_site
from hooks import nav_of, on_page_content
from statements import statements_of

import prism_mesa
from prism_mesa.economy.tables import ECONOMY_TABLES
from prism_mesa.params import leaves
from prism_mesa.runs.config import Config, EconomyConfig
from prism_mesa.social.tables import SOCIAL_TABLES
from prism_mesa.studies.measures.catalogue import MEASURES

DOCS = Path(__file__).parents[1] / "docs"
LONGEST = 200
NAMED = re.compile(r"^::: ([\w.]+)$", re.MULTILINE)
FILE = re.compile(r"^```(?:python|py)\n(?!>>> )(.*?)^```$", re.DOTALL | re.MULTILINE)
FOR_USERS = [
    *(DOCS.parent / "README.md", *DOCS.glob("*.md"), *(DOCS / "examples").glob("*.py")),
    *(*(DOCS.parent / "notebooks").glob("*.ipynb"), *(DOCS.parent / "prism_mesa/cli/new_project").glob("*.*")),
]
"""Pages, examples and notebooks, and what `prism new` writes."""


@cache
def pages():
    """Return the pages by name, with what is made from the code in them."""
    return {page.name: with_made_parts(page.read_text(encoding="utf-8")) for page in sorted(DOCS.glob("*.md"))}


def text_of(prefix):
    return "\n".join(text for name, text in pages().items() if name.startswith(prefix))


def test_no_page_is_longer_than_200_lines():
    assert {name: n for name, text in pages().items() if (n := text.count("\n")) > LONGEST} == {}


def test_the_readme_is_no_longer_than_150_lines():
    assert (DOCS.parent / "README.md").read_text(encoding="utf-8").count("\n") <= 150


def test_every_command_with_all_its_options_is_in_the_reference():
    text = text_of("commands")
    commands = dict(every_command())
    assert {"prism run", "prism study run"} <= set(commands)
    for name, command in commands.items():
        [section] = re.findall(rf"^## {name}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
        options = [flag for param in command.params for flag in param.opts if flag.startswith("--")]
        assert [flag for flag in options if flag not in section] == []


def code_in(path):
    """Return the pieces of Python in a page, a script or a notebook."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return [*FILE.findall(text), *(example.source for example in DocTestParser().get_examples(text))]
    if path.suffix == ".ipynb":
        return ["".join(cell["source"]) for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    return [text] if path.suffix == ".py" else []


def imported_in(paths):
    """Return the names that code for users imports from `prism_mesa`, but for modules."""
    froms = {
        f"{one.module}.{name.name}"
        for path in paths
        for code in code_in(path)
        for one in statements_of(ast.parse(code))
        if isinstance(one, ast.ImportFrom) and re.match(r"prism_mesa\b", one.module or "")
        for name in one.names
    }
    places = {name: DOCS.parent.joinpath(*name.split(".")) for name in froms}
    return {name for name, place in places.items() if not (place.is_dir() or place.with_suffix(".py").is_file())}


def test_every_public_name_and_every_name_that_users_are_told_to_import_is_in_the_reference():
    packages = ("statechart", "reasoner", "llm", "deliberation", "view.plots")
    offered = [f"prism_mesa.{name}" for name in prism_mesa.__all__]
    for package in (f"prism_mesa.{name}" for name in packages):
        offered += [f"{package}.{n}" for n in import_module(package).__all__ if n not in prism_mesa.__all__]
    assert sorted(NAMED.findall(text_of("python"))) == sorted({*offered, *imported_in(FOR_USERS)})


def test_names_are_told_by_prompts_files_scripts_and_notebooks(tmp_path):
    cells = [{"cell_type": kind, "source": [f"from prism_mesa.{kind} import y"]} for kind in ("code", "markdown")]
    (tmp_path / "a.ipynb").write_text(json.dumps({"cells": cells}))
    (tmp_path / "b.py").write_text("def f():\n    from prism_mesa.b import (\n        y as z,\n    )\n")
    prompt, file = ">>> if True:\n...     from prism_mesa import p, view\n", "import os\nfrom prism_mesa.f import y\n"
    (tmp_path / "c.md").write_text(
        f"from prism_mesa import not_code\n\n```python\n{prompt}\n```\n\n```python\n{file}```\n"
    )
    found = {"prism_mesa.code.y", "prism_mesa.b.y", "prism_mesa.p", "prism_mesa.f.y"}
    assert imported_in(tmp_path.iterdir()) == found


@pytest.mark.parametrize(
    ("prefix", "names"),
    [
        ("configuration", [key for kind in (Config, EconomyConfig) for key, _ in leaves(kind)]),
        ("tables", [column.name for t in (SOCIAL_TABLES | ECONOMY_TABLES).values() for column in t.columns]),
        ("measures", list(MEASURES)),
    ],
)
def test_every_key_column_and_measure_is_in_the_reference(prefix, names):
    text = text_of(prefix)
    assert len(names) > 70
    assert [name for name in names if f"| `{name}` |" not in text] == []


def test_all_that_is_made_from_the_code_stands_on_one_page():
    markers = [name for page in DOCS.glob("*.md") for name in MARKER.findall(page.read_text(encoding="utf-8"))]
    assert sorted(markers) == sorted(MADE)


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
