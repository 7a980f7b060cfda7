"""Files of Python that the pages tell to write beside where one works do what their page says of them.

What is typed at a prompt, `>>>`, is run as a doctest.
"""

import re
import runpy
from pathlib import Path

import pytest
import yaml

from prism_mesa import run
from prism_mesa.api.studies import Study
from prism_mesa.params import nest_keys

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]  # the example project has tests of its own
FILE = re.compile(r"^```(?:python|py)\n(?!>>> )(.*?)^```$", re.DOTALL | re.MULTILINE)
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
MADE = re.compile(r"^(?:def )?(\w+)(?:\(\w+\):| = )", re.MULTILINE)
LEANING = {"attributes.leaning": {"of": "agent", "range": [-1, 1]}}
USED = {
    "bold": {"statechart.chart": "{}", "feed.glances": 1},
    "liked": {"feed.mode": "{}"},
    "fresh_and_liked": {"feed.mode": "{}", "feed.candidates.two_hops": 20},
    "across": {"feed.mode": "{}", **LEANING},
    "stubborn": {"opinions.rule": "{}", "opinions.of": "leaning", **LEANING},
    "is_fringe": {"attributes.fringe": {"of": "agent", "values": [True, False], "function": "{}"}, **LEANING},
}
"""Settings that use what such a file makes last; `{}` is its module and name."""
FILES = {MADE.findall(text)[-1]: text for page in PAGES for text in FILE.findall(page.read_text("utf-8"))}


def settings(values, where):
    """Return settings with `where` in the place of `{}`, in mappings too."""
    if isinstance(values, dict):
        return {key: settings(value, where) for key, value in values.items()}
    return where if values == "{}" else values


def test_every_block_of_python_without_a_prompt_is_a_file_that_is_tried_here():
    assert set(FILES) == {*USED, "sources_read"}  # a measure, which a study uses


@pytest.mark.parametrize("name", USED)
def test_a_run_with_the_file_of_a_page_does_otherwise_than_one_without(name, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    module = f"page_file_{name}"
    (tmp_path / f"{module}.py").write_text(FILES[name])
    world = {"agents.n": 60, "rounds": 10, **LEANING}
    made = run(nest_keys(world | settings(USED[name], f"{module}:{name}")), out=tmp_path, pictures=False)
    plain = run(nest_keys(world), out=tmp_path, pictures=False)
    table = "impressions" if "feed.mode" in USED[name] or name == "bold" else "agents"
    assert made.status == "done"
    assert not made.table(table).equals(plain.table(table))


@pytest.mark.slow
def test_every_study_of_the_page_of_questions_can_be_copied_and_run(jobs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_bots.py").write_text(FILES["sources_read"])
    runpy.run_path("my_bots.py", run_name="__main__")
    studies = YAML.findall((ROOT / "docs" / "questions.md").read_text("utf-8"))
    assert len(studies) >= 4
    for n, text in enumerate(studies):
        values = yaml.safe_load(text)
        values["set"] = nest_keys(values["set"])
        values["set"] |= {"rounds": 24, "agents": values["set"]["agents"] | {"n": 60}}
        study = Study(values, seeds=1, keep="measures", name=f"study-{n}", out=tmp_path)
        done = study.run(report=False)
        assert list(done.runs["status"]) == ["done"] * len(values["arms"])
        assert set(values["measures"]) <= set(done.runs.columns)
