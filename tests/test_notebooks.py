"""The notebooks run from top to bottom without an error and without an LLM, in smaller sizes than a reader's."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))

SMALLER = {
    "first_run": {"agents_n=500": "agents_n=100", "run_for(20)": "run_for(6)", "range(10)": "range(2)"},
    "nations": {
        "n=200": "n=40",
        "range(20)": "range(2)",
        "run_for(40)": "run_for(4)",
        "np.tile(model.macro.target, 40)": "np.tile(model.macro.target, 4)",
        "range(10)": "range(2)",
    },
    # what the study is expected to find it finds at its full size only
    "studies": {"range(1, 9)": "range(1, 3)", "of_study = result.runs.": 'of_study = result.runs.query("seed <= 2").'},
}
"""What is written otherwise in the cells of a notebook, so that it takes a second and not ten: text -> text."""


def test_there_is_a_notebook():
    assert NOTEBOOKS


def in_small(path):
    notebook = nbformat.read(path, as_version=4)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for text, smaller in SMALLER[path.stem].items():
        assert any(text in cell.source for cell in cells), text
        for cell in cells:
            cell.source = cell.source.replace(text, smaller)
    for cell in cells:
        cell.outputs = []
    return notebook


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
# the Jupyter client and zmq warn about their own future; nothing of ours runs in this process
@pytest.mark.filterwarnings("ignore")
def test_a_notebook_runs_and_shows_a_picture(path):
    notebook = in_small(path)
    NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": path.parent}}
    ).execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not any(output.get("name") == "stderr" for output in outputs)
