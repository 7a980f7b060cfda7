"""`prism new`: what it writes is a project that works as it stands."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import nbformat
import pandas as pd
import pytest
from nbclient import NotebookClient

FILES = {"README.md", "config.yaml", "my_chart.py", "study.yaml", "first.ipynb"}


@pytest.fixture(autouse=True)
def _started_by_no_uv(monkeypatch):
    monkeypatch.delenv("UV_RUN_RECURSION_DEPTH", raising=False)
    yield
    sys.modules.pop("my_chart", None)


def names(folder):
    return {path.name for path in Path(folder).iterdir()}


def test_it_writes_a_project_and_says_how_to_go_on(prism, tmp_path):
    code, out, err = prism("new", "deep/mine")
    assert (code, err) == (0, "")
    assert names("deep/mine") == FILES
    assert names(tmp_path) == {"deep"}
    lines = out.splitlines()
    assert lines[0] == "made: deep/mine"
    assert {line.split()[0] for line in lines[1:6]} == FILES
    last = ["  cd deep/mine", "  prism run config.yaml", "  prism study run study.yaml --seeds 2"]
    assert lines[6:] == ["next:", *last]
    assert "| `uv run --with jupyterlab jupyter lab first.ipynb` |" in Path("deep/mine/README.md").read_text("utf-8")


def test_a_model_of_your_own_runs_and_passes_its_test(prism, monkeypatch):
    code, out, _ = prism("new", "mine", "--model", "--json")
    assert code == 0
    assert names("mine") == set(json.loads(out)["files"]) == {"README.md", "shop.py", "test_shop.py"}
    for args in (["shop.py"], ["-m", "pytest", "-q", "-p", "no:cacheprovider", "test_shop.py"]):
        done = subprocess.run([sys.executable, *args], cwd="mine", capture_output=True, text=True, check=True)
        assert "leaving" in done.stdout or "1 passed" in done.stdout


@pytest.mark.parametrize("name", ["with a blank", "it's #1 %41 & $HOME", "-x", "é:ü", "ends in ."])
def test_any_name_that_can_be_shown_will_do(prism, name):
    code, out, _ = prism("new", "--json", "--", name)
    told = json.loads(out)
    assert code == 0
    assert names(name) == FILES == set(told["files"])
    assert told["dir"] == name
    entered = subprocess.run(["sh", "-c", f"{told['next'][0]} && ls"], capture_output=True, text=True, check=True)
    assert set(entered.stdout.split()) == FILES


def test_who_uses_uv_is_told_commands_that_uv_finds(prism, monkeypatch, tmp_path):
    project = tmp_path / "a clone"
    (project / "in it").mkdir(parents=True)
    (project / "pyproject.toml").touch()
    monkeypatch.setenv("UV_RUN_RECURSION_DEPTH", "1")
    monkeypatch.setattr(sys, "prefix", str(project / ".venv"))
    _, inside, _ = prism("new", project / "in it", "--json")
    _, outside, _ = prism("new", "beside", "--json")
    assert json.loads(inside)["next"][1] == "uv run prism run config.yaml"
    assert shlex.split(json.loads(outside)["next"][1])[:5] == ["uv", "run", "--project", str(project), "prism"]


def test_a_folder_that_is_not_empty_is_left_as_it_is(prism):
    Path("mine").mkdir()
    Path("mine/notes.txt").write_text("mine")
    code, out, err = prism("new", "mine")
    assert (code, out) == (2, "")
    assert err == "prism: DIR: mine is not empty (notes.txt): name an empty or a new folder\n"
    assert names("mine") == {"notes.txt"}


@pytest.mark.parametrize("what", [("format", "--check"), ("check",)])
def test_ruff_finds_nothing_to_mend(prism, what):
    prism("new", "mine")
    words = [sys.executable, "-m", "ruff", *what, "--isolated", "--line-length=120", "mine"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def executed(notebook, folder):
    client = NotebookClient(notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}})
    client.execute()
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


@pytest.mark.slow
# the Jupyter client and zmq warn about their own future; nothing of ours runs in this process
@pytest.mark.filterwarnings("ignore")
def test_all_that_is_written_works(prism, jobs, monkeypatch, tmp_path):
    assert prism("new", "my project")[0] == 0
    folder = tmp_path / "my project"
    monkeypatch.chdir(folder)

    code, out, _ = prism("chart", "config.yaml", "--json")
    assert (code, json.loads(out)["chart"]) == (0, "crowd")
    assert not [found for found in json.loads(out)["findings"] if found["level"] != "note"]

    code, out, _ = prism("run", "config.yaml", "rounds=12", "--json")
    assert (code, json.loads(out)["status"], json.loads(out)["notes"]) == (0, "done", [])
    taken = pd.read_parquet(Path(json.loads(out)["run_dir"]) / "transitions.parquet")
    assert ((taken["trigger"] == "ignores") & (taken["to_state"] == "composing")).any()

    config = (folder / "config.yaml").read_text("utf-8")
    (folder / "config.yaml").write_text(config.replace("rounds: 24 ", "rounds: 3 ").replace("n: 300\n", "n: 60\n"))
    code, out, _ = prism("study", "run", "study.yaml", "--seeds", "2", "--json")
    assert (code, json.loads(out)["runs"]["done"], len(jobs)) == (0, 4, 4)
    assert {(job.config["rounds"], job.config["agents"]["n"]) for job in jobs} == {(3, 60)}
    assert (folder / "results" / "follow_the_crowd" / "report.html").is_file()

    (folder / "config.yaml").write_text(config)
    notebook = nbformat.read(folder / "first.ipynb", as_version=4)
    outputs = executed(notebook, folder)
    assert sum("image/png" in output.get("data", {}) for output in outputs) == 2
    assert not any(output.get("name") == "stderr" for output in outputs)
    assert names(folder) - {"__pycache__", ".ruff_cache"} == FILES | {"results"}
