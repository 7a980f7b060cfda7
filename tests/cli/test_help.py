"""What `prism --help` shows, and what a shell completes."""

import re

import pytest

from prism_mesa.cli import app as cli

COMMANDS = (
    "run economy runs resume branch replay why survey distill interview compare chart app sweep validate calibrate "
    "experiments new archive doctor study ledger"
).split()


@pytest.fixture(autouse=True)
def _narrow(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")


def listed(out):
    """Return name -> text of the commands that a help lists, each on a line of its own."""
    lines = out[re.search(r"--help .*\n\n", out).end() :].splitlines()
    return dict(re.fullmatch(r"  (\w+) +(.+)", line).groups() for line in lines if line.startswith("  "))


def test_all_commands_are_listed_by_what_one_wants_and_none_is_cut_off(prism, monkeypatch):
    monkeypatch.setattr(cli.app.info, "epilog", "")
    code, out, err = prism("--help")
    assert (code, err, "..." in out.replace("[ARGS]...", "")) == (0, "", False)
    titles = [line for line in out.splitlines() if line.endswith(":") and not line.startswith((" ", "Options"))]
    assert titles == ["Simulate:", "Look at runs:", "Answer questions with many runs:", "Set up and share:"]
    told = listed(out)
    assert set(told) >= set(COMMANDS)
    assert [text for text in told.values() if not text.endswith(".")] == []
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("command", COMMANDS)
def test_brackets_of_a_usage_stand_once(prism, command):
    code, out, _ = prism(command, "--help")
    usage = " ".join(out.partition("\n\n")[0].split())
    assert code == 0
    assert re.findall(r"\[\[|\.\.\.[\]}]|\]\]", usage.replace("RUN...|", "")) == []


@pytest.mark.parametrize(
    ("words", "completed"),
    [("prism re", {"resume", "replay"}), ("prism study st", {"status"}), ("prism archive --ch", {"--check"})],
)
def test_a_shell_completes_commands_and_options(prism, monkeypatch, words, completed):
    monkeypatch.setenv("_PRISM_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    code, out, err = prism()
    assert (code, err) == (0, "")
    assert set(out.split()) == completed
