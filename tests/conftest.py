"""Fixtures that several files share, and how the tests are spread over processes."""

import atexit
import fcntl
import gc
import os
import shutil
import signal
import sys
import tempfile
from functools import partialmethod
from pathlib import Path

import hypothesis
import pytest
from _pytest.doctest import DoctestModule
from forked import FORKS, start_forking
from matplotlib.figure import Figure

from prism_mesa.cli import app as cli
from prism_mesa.llm import HostPool
from prism_mesa.llm.clients import embedded

# a slow machine fails no test; tests that need many examples say so themselves
hypothesis.settings.register_profile("prism", deadline=None, max_examples=20)
hypothesis.settings.load_profile("prism")

# in the background of a shell without job control SIGINT is ignored, in all children too
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# tests start many processes; without bytecode each would compile Mesa, numba and all tests anew
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# every process of the tests has one core; a second thread, which changes no answer, would make each wait for the other
embedded.THREADS = 1

# loading makes a million objects of which none is garbage; `pytest_collection_finish` turns this on again
gc.disable()

# runs of tests are signed with a key of their own, not with the user's
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="prism-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_DATA_HOME"], ignore_errors=True)


def pytest_configure(config):
    """Start the process that tests fork their processes from; it imports when a test first asks it."""
    if FORKS and not hasattr(config, "workerinput"):
        start_forking(os.environ["XDG_DATA_HOME"])


def _is_compiled():
    """Return whether the tests' bytecode is there."""
    return any(Path(__file__).parent.glob(f"__pycache__/test_*{sys.implementation.cache_tag}-pytest-*.pyc"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Without bytecode, let one process collect first; the others would compile all tests too."""
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_compiled():
            lock.close()
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Collect doctests of the package and the docs, not of the tests: that takes each process seconds."""
    return [file for file in (yield) if not isinstance(file, DoctestModule)]


def pytest_collection_modifyitems(config, items):
    """Let each process begin with its share of the files that have a slow test; xdist gives it equal parts in order."""
    n = getattr(config, "workerinput", {}).get("workercount", 1)
    slow = sorted({item.path for item in items if item.get_closest_marker("slow")})
    process_by_file = {path: place % n for place, path in enumerate(slow)}
    others, ordered, last = [item for item in items if item.path not in process_by_file], [], 0
    for process in range(n):
        ordered += [item for item in items if process_by_file.get(item.path) == process]
        first, last = last, max(last, (process + 1) * len(items) // n - len(ordered) + last)
        ordered += others[first:last]
    items[:] = ordered + others[last:]


def pytest_collection_finish():
    """Keep the garbage collector away from the million objects that are loaded by now."""
    gc.freeze()
    gc.enable()


def pytest_xdist_auto_num_workers():
    """Start two processes more than there are cores: many tests wait for a process of their own."""
    return min((os.cpu_count() or 1) + 2, 4)


@pytest.fixture
def hurried(monkeypatch):
    """Give servers half a second to come back instead of five."""
    monkeypatch.setattr(HostPool, "__init__", partialmethod(HostPool.__init__, grace_s=0.5))


@pytest.fixture
def coarse_pictures(monkeypatch):
    """Draw pictures coarsely and without a layout, in half the time."""
    save = Figure.savefig

    def coarse(figure, *arguments, **options):
        figure.set_layout_engine("none")
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", coarse)
    monkeypatch.setattr("prism_mesa.view.plots.files.DPI", 20)


def _blank_pictures(monkeypatch):
    """Save an empty page for each picture: drawing one takes as long as a small run."""
    save = Figure.savefig

    def blank(figure, *arguments, **options):
        save(Figure((1, 1)), *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", blank)
    monkeypatch.setattr(Figure, "draw_without_rendering", lambda figure: None)


@pytest.fixture
def prism(monkeypatch, capfd, tmp_path, request):
    """Call the command in an empty folder; returns exit code, stdout and stderr of the process.

    Pictures are blank unless a test uses `coarse_pictures`; tests/view look at them.
    """
    if "coarse_pictures" not in request.fixturenames:
        _blank_pictures(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["prism", *map(str, arguments)])
        try:
            code = cli.run_command()
        except SystemExit as end:  # completion of a shell
            code = end.code
        return code, *capfd.readouterr()

    return call


@pytest.fixture
def jobs(monkeypatch):
    """Run the runs of studies in this process, and return their jobs in order."""
    from inline_runs import opened

    from prism_mesa.studies import driver
    from prism_mesa.studies.engines.worker import carry_out

    done = []

    def run(job):
        done.append(job)
        return carry_out(job)

    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(driver, "open_engine", opened)
    monkeypatch.setattr(driver, "run_supervised", run)
    return done
