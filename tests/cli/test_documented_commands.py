"""What the pages tell to type is understood: commands and options, keys and their values, whole files."""

import re
import shlex
from itertools import pairwise
from pathlib import Path

import pytest
import typer
import yaml

from prism_mesa.analysis.survey.questionnaire import make_questionnaire
from prism_mesa.cli.app import app
from prism_mesa.params import nest_keys, validate_params
from prism_mesa.runs.config import Config, EconomyConfig, make_config, with_overrides
from prism_mesa.studies.calibration.plan import CalibrationParams
from prism_mesa.studies.experiments.outcomes import OutcomesFile
from prism_mesa.studies.params import StudyParams

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted(page for page in (ROOT / "docs").rglob("*.md") if "results" not in page.parts)]
BLOCK = re.compile(r"^(?:```(?:bash|sh)\n(.*?)^```|((?:^    [^\n]*\n)+))", re.DOTALL | re.MULTILINE)
CALL = re.compile(r"^(?:.*&& |\w+=\S* )?(?:uv run (?:--no-dev |--extra \w+ )*)?prism (?!\S*:)(.+?)\\?$")
INLINE = re.compile(r"(?<!`)`(?:uv run (?:--extra \w+ )?)?prism ([^`\n]+)`(?!`)")
FILE = re.compile(r"`(\w+\.\w+)`:\n\n```(?:python|yaml|text)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
YAML = re.compile(r"^```yaml\n(.*?)^```$", re.DOTALL | re.MULTILINE)
OVERRIDE = re.compile(r"[a-z_]+(\.[a-z_\d]+)*=")
COMMAND = typer.main.get_command(app)


def lines_of(text):
    """Return what follows `prism` in the lines of blocks of the shell, comments left out."""
    blocks = [
        fenced or "\n".join(line[4:] for line in indented.splitlines()) for fenced, indented in BLOCK.findall(text)
    ]
    return [found[1] for block in blocks for line in block.splitlines() if (found := CALL.match(line.strip()))]


def command_of(words):
    """Return the command that words begin with, and how many of them name it."""
    command, n = COMMAND, 0
    while (inner := getattr(command, "commands", {})) and n < len(words):
        command, n = inner.get(words[n]), n + 1
        assert command is not None, f"no such command: prism {' '.join(words[:n])}"
    return command, n


BY_LINE = [(page.name, line) for page in PAGES for line in lines_of(page.read_text("utf-8"))]
INLINES = sorted({(page.name, line) for page in PAGES for line in INLINE.findall(page.read_text("utf-8"))})


@pytest.mark.parametrize("page", sorted({page for page, _ in BY_LINE}))
def test_every_line_for_the_shell_is_a_command_with_options_that_there_are(page):
    for line in (line for name, line in BY_LINE if name == page):
        words = shlex.split(line, comments=True)
        if words == ["--help"]:
            continue
        command, n = command_of(words)
        command.make_context(" ".join(words[:n]), words[n:])  # raises what the user would be told
        given = [
            word for before, word in pairwise(words) if OVERRIDE.match(word) and "$" not in word and before != "--vary"
        ]
        with_overrides(EconomyConfig if words[0] == "economy" else Config, {}, given)


def test_every_command_within_a_sentence_is_there_with_its_options():
    assert len(INLINES) > 40
    for _, line in INLINES:
        words = line.split()
        command, _ = command_of([word for word in words if not word.startswith("-")])
        known = {flag for param in getattr(command, "params", ()) for flag in param.opts}
        assert {word for word in words if word.startswith("--")} <= known | {"--help"}, line


def check_yaml(values):
    """Check a file of the pages, or a part of one, as the command that takes it does."""
    if "question" in values:
        return validate_params(StudyParams, values, "study")
    if "parameters" in values:
        return validate_params(CalibrationParams, values, "calibration")
    if "experiments" in values:
        return validate_params(OutcomesFile, values, "outcomes")
    if "questions" in values:
        return make_questionnaire(values)
    if set(values) <= {"arms", "measures", "expect", "limits"}:
        return validate_params(StudyParams, {"question": "?", **values}, "study")
    return make_config(nest_keys(values))


def test_every_block_of_yaml_is_taken_by_what_reads_such_files(monkeypatch):
    monkeypatch.chdir(ROOT)
    found = [(page.name, text) for page in PAGES for text in YAML.findall(page.read_text("utf-8"))]
    assert len(found) > 8
    for name, text in found:
        assert check_yaml(yaml.safe_load(text)), name


@pytest.mark.slow
def test_the_tutorial_can_be_typed_from_top_to_bottom(prism, jobs, tmp_path):
    text, n = re.subn(r"(\brounds(?:=|: ))16\b", r"\g<1>4", (ROOT / "docs" / "tutorial.md").read_text("utf-8"))
    assert n == 5  # four runs and the study
    written = dict(FILE.findall(text))
    assert {"my_charts.py", "my_feeds.py", "follows.csv", "own_posts.csv", "attention.yaml"} == set(written)
    for name, body in written.items():
        (tmp_path / name).write_text(body)
    typed = [line for line in lines_of(text) if line != "--help"]
    for line in typed:
        run_id = next((folder.name for folder in sorted(tmp_path.glob("results/first-*"))), "")
        code, _, err = prism(*shlex.split(line.replace("<run-id>", run_id), comments=True))
        assert code == 0, f"{line}: {err}"
    assert len(typed) >= 9
    assert (tmp_path / "results" / "attention" / "report.html").is_file()
    assert len(jobs) == 8  # each run of the study once, though three commands ask for it
