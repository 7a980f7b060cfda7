"""Executes notebooks of this folder, all or those that are named, and saves them with what they show.

uv run python notebooks/execute.py [NAME ...]
"""

import os
import re
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError

HERE = Path(__file__).parent
TIMEOUT_S = 300
"""Of a cell, on a machine that does much else at the same time."""


def executed(path: Path, kernel: str = "python3") -> nbformat.NotebookNode:
    """Return a notebook as it is after all its cells were executed, from top to bottom, in a new kernel.

    It holds nothing that another execution would not have, but for times that a cell itself shows.

    Args:
        kernel: What Jupyter knows the kernel as that is started.

    Raises:
        CellExecutionError: If a cell raises.
    """
    notebook = nbformat.read(path, as_version=4)
    for place, cell in enumerate(notebook.cells):
        cell.id, cell.metadata = f"cell-{place}", {}
    resources = {"metadata": {"path": str(path.parent)}}
    client = NotebookClient(notebook, timeout=TIMEOUT_S, kernel_name=kernel, resources=resources, record_timing=False)
    # a kernel that may write no bytecode compiles whatever it imports anew, which takes longer than most notebooks
    client.execute(env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"})
    spec = {"display_name": "Python 3", "language": "python", "name": "python3"}
    notebook.metadata = {"kernelspec": spec, "language_info": {"name": "python"}}
    return notebook


def save_executed(path: Path) -> str:
    """Execute a notebook, save it in its place unless it raises, and return how that went, in a line."""
    before = _cpu_s()
    try:
        notebook = executed(path)
    except (CellExecutionError, CellTimeoutError) as error:
        return f"{path.stem}: not saved: {re.sub(r'\x1b\[[0-9;]*m', '', str(error))}"
    nbformat.write(notebook, path)
    return f"{path.stem}: {_cpu_s() - before:.1f} CPU seconds, {path.stat().st_size / 1024:.0f} KB"


def _cpu_s() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main(names: list[str]) -> int:
    """Execute the named notebooks, or all, at the same time, and return the exit code."""
    paths = {path.stem: path for path in sorted(HERE.glob("*.ipynb"))}
    if unknown := [name for name in names if Path(name).stem not in paths]:
        print(f"{unknown[0]}: is no notebook here ({', '.join(paths)})", file=sys.stderr)
        return 2
    chosen = [paths[Path(name).stem] for name in names] or list(paths.values())
    failed = False
    with ProcessPoolExecutor(min(len(chosen), os.cpu_count() or 1), max_tasks_per_child=1) as pool:
        for line in pool.map(save_executed, chosen):
            failed |= ": not saved: " in line
            print(line, flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
