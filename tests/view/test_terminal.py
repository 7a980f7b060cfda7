"""What is shown in a terminal cannot steer it, whoever wrote it; tables in CSV cannot steer a spreadsheet."""

import io
import re
import shutil
import sqlite3
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stand_in import StandIn
from worlds import plain

from prism_mesa import run
from prism_mesa.runs.records.table_checks import write_csv
from prism_mesa.terminal import DimmedText, show, show_line

PACKAGE = Path(__file__).parents[2] / "prism_mesa"
STEERING = "\x1b[31mred\x1b[0m \x9b2J \x07 \u202eback\u202c \u2066left\u2069 \x08\x7f"
WORLD = plain(
    {"agents": {"n": 30, "activity": 0.9, "band": 0.4}, "network": {"mean_degree": 6}, "rounds": 2, "seed": 7}
)


def can_steer(text):
    return [char for char in text if not char.isprintable() and char != "\n"]


@given(st.text())
def test_nothing_that_is_shown_can_steer(text):
    to = io.StringIO()
    show(text, file=to)
    show_line(text, file=to)
    assert not can_steer(to.getvalue())
    assert to.getvalue().count("\n") == text.count("\n") + 2


def test_only_what_the_program_dims_is_dimmed():
    to = io.StringIO()
    show(DimmedText("thinks \x1b[8m"), file=to)
    show("\x1b[2mthinks\x1b[0m", file=to)
    assert to.getvalue() == "\x1b[2mthinks  [8m\x1b[0m\n [2mthinks [0m\n"


def test_only_the_terminal_module_and_lines_of_progress_print():
    printing = re.compile(r"^\s*(?:\w+\.)*(?:print|s?echo)\(", re.MULTILINE)
    files = [file for file in PACKAGE.rglob("*.py") if printing.search(file.read_text(encoding="utf-8"))]
    assert {file.parent.name for file in files if file.name != "terminal.py"} <= {
        "cli",
        "kernels",
        "chart_agents",
        "new_model",
    }
    assert len(files) <= 5


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    with StandIn(slots=8) as server:
        reasoner = {"kind": "ollama", "host": server.url}
        return run(WORLD | {"reasoner": reasoner}, out=tmp_path_factory.mktemp("asked")).run_dir


@pytest.mark.slow
def test_commands_show_what_a_ledger_holds_without_what_steers(asked, tmp_path, prism):
    copy = tmp_path / STEERING.replace("\x07", "")
    shutil.copytree(asked, copy)
    with sqlite3.connect(copy / "decisions.sqlite") as db:
        db.execute("UPDATE answers SET llm = ?", (f"{STEERING}\nforged  line",))
    db.close()
    for command in (("ledger", "stats", copy), ("ledger", "export", copy), ("replay", copy), ("why", copy, "3")):
        _, out, err = prism(*command)
        assert out + err
        assert not can_steer(out + err), command
        assert "\nforged" not in out


def test_a_path_and_a_name_cannot_steer(prism, tmp_path):
    for command in (("replay", f"no{STEERING}where"), ("run", f"x{STEERING}.yaml"), (STEERING,), ("run", STEERING)):
        code, out, err = prism(*command)
        assert (code, out) == (2, "")
        assert err.count("\n") == 1
        assert not can_steer(err), command


# -- spreadsheets ------------------------------------------------------------------------------------


def test_cells_that_a_spreadsheet_would_run_are_text(tmp_path):
    texts = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "plain", "a=b", "", None]
    numbers = [-1.5, 2.0, *[float("nan")] * 8]
    write_csv(pd.DataFrame({"text": texts, "number": numbers, "whole": range(-5, 5)}), tmp_path / "t.csv")
    read = pd.read_csv(tmp_path / "t.csv", dtype={"text": str}, keep_default_na=False, lineterminator="\n")
    assert read["text"].tolist()[:6] == ["'=1+1", "'+1", "'-1", "'@SUM(A1)", "'\t=1", "'\n=1"]
    assert read["text"].tolist()[6:] == ["plain", "a=b", "", ""]
    assert read["number"].tolist()[:2] == ["-1.5", "2.0"]
    assert read["whole"].tolist() == list(range(-5, 5))
