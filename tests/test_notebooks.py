"""The notebooks run from top to bottom as they stand, without an LLM, and are kept with what they show."""

import ast
import json
import re
from pathlib import Path

import nbformat
import pytest
from execute import executed
from forked import PYTHON

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
OF_A_MACHINE = re.compile(r"/(?:tmp|home|root|Users|var/folders|private)/|[A-Z]:\\\\|ipykernel_\d|\brun-\d{8}-")
"""Where temporary folders, homes and kernels lie, and folders of runs, which are named by the time."""

each_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_of(notebook):
    return [cell for cell in notebook.cells if cell.cell_type == "code" and cell.source.strip()]


def outputs_of(notebook):
    return [output for cell in code_of(notebook) for output in cell.outputs]


def words_of(output):
    """Return what an output says, but for its pictures."""
    data = [str(said) for kind, said in sorted(output.get("data", {}).items()) if not kind.startswith("image/")]
    return "\n".join([output.get("text", ""), *data, *output.get("traceback", ())])


def lasting(notebook):
    """Return what the outputs of a notebook say, but for those that tell of seconds."""
    return [said for said in map(words_of, outputs_of(notebook)) if "CPU s" not in said]


def asserts(source):
    """Return whether a cell asserts something that is not true of itself."""
    tests = [node.test for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Assert)]
    return any(not isinstance(test, ast.Constant) for test in tests)


def shows_a_picture(notebook):
    return any("image/png" in output.get("data", {}) for output in outputs_of(notebook))


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """Return the name of a kernel that has imported already; `prism new`'s notebook has one as it is for users."""
    words = [*PYTHON, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (tmp_path / "kernels" / "forked").mkdir(parents=True)
    spec = {"argv": words, "display_name": "forked", "language": "python"}
    (tmp_path / "kernels" / "forked" / "kernel.json").write_text(json.dumps(spec))
    monkeypatch.setenv("JUPYTER_PATH", str(tmp_path))
    return "forked"


@pytest.mark.slow
@each_notebook
# the Jupyter client and zmq warn about their own future; nothing of ours runs in this process
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs_and_says_what_it_is_kept_with(path, kernel):
    notebook = executed(path, kernel)
    assert shows_a_picture(notebook)
    assert not any(output.get("name") == "stderr" for output in outputs_of(notebook))
    assert lasting(notebook) == lasting(nbformat.read(path, as_version=4)), (
        f"uv run python notebooks/execute.py {path.stem}"
    )


@each_notebook
def test_a_notebook_ends_with_an_assertion(path):
    assert asserts(code_of(nbformat.read(path, as_version=4))[-1].source)


@each_notebook
def test_a_notebook_is_kept_as_it_was_executed(path):
    notebook = nbformat.read(path, as_version=4)
    cells, outputs = code_of(notebook), outputs_of(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert shows_a_picture(notebook)
    assert not [output for output in outputs if output.output_type == "error" or output.get("name") == "stderr"]


@each_notebook
def test_a_notebook_tells_nothing_of_the_machine_it_was_executed_on(path):
    notebook = nbformat.read(path, as_version=4)
    assert [found for output in outputs_of(notebook) for found in OF_A_MACHINE.findall(words_of(output))] == []
    assert [cell.metadata for cell in notebook.cells if cell.metadata] == []
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.language_info == {"name": "python"}


def test_the_index_lists_each_notebook():
    listed = re.findall(r"\]\(\.\./notebooks/([\w.]+)\)", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"))
    assert sorted(listed) == [path.name for path in NOTEBOOKS]


def test_the_outputs_of_few_cells_are_of_seconds():
    said = [words_of(output) for path in NOTEBOOKS for output in outputs_of(nbformat.read(path, as_version=4))]
    assert sum("CPU s" in one for one in said) <= 4 < len(said)


def test_an_assertion_of_a_constant_is_none():
    assert asserts("x = 1\nassert x == 1")
    assert not asserts("assert True")
    assert not asserts("x = 1")


def test_paths_of_a_machine_are_found():
    said = ("/tmp/x1/results", "/home/me/a", "Name: run-20260131-235959", "results/feeds", "run-time")
    assert [bool(OF_A_MACHINE.search(one)) for one in said] == [1, 1, 1, 0, 0]
