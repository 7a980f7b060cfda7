"""Fixtures that several files share."""

import atexit
import fcntl
import gc
import importlib
import inspect
import os
import shutil
import signal
import sys
import tempfile
from functools import partial, partialmethod
from pathlib import Path
from types import SimpleNamespace

import hypothesis
import pytest
from _pytest.doctest import DoctestModule
from forked import FORKS, start_forking
from matplotlib.figure import Figure
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher

from prism_mesa.analysis.distill import fit
from prism_mesa.cli import app as cli
from prism_mesa.llm import HostPool
from prism_mesa.llm.clients import embedded

# Mesa asks who imports it, each time with the source of all the frames of pytest, which takes each process a second
with pytest.MonkeyPatch.context() as patch:
    patch.setattr(inspect, "stack", partial(inspect.stack, 0))
    importlib.import_module("mesa.visualization")

# how long an example takes is the machine's affair; tests that need many examples say so themselves
hypothesis.settings.register_profile("prism", deadline=None, max_examples=20)
hypothesis.settings.load_profile("prism")

# whoever starts the tests in the background of a shell without job control has SIGINT ignored, in all its children too
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# without bytecode each process, of which tests start many, would compile Mesa, numba and all tests anew
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# every process of the tests has one core; a second thread, which changes no answer, would make each wait for the other
embedded.THREADS = 1

# scikit-learn looks for the bins of weighted columns one by one: 255 of them, as it has by default, take most of a fit
fit._TREES["max_bins"] = 32

# loading makes a million objects of which none is garbage; `pytest_collection_finish` turns this on again
gc.disable()

# a command leaves its garbage to the end of its process, which comes at once; here that process runs all other tests
cli.gc = SimpleNamespace(set_threshold=lambda *_: None, freeze=lambda: None)

# runs of tests are signed with a key of their own, not with that of whoever runs the tests
os.environ["XDG_DATA_HOME"] = tempfile.mkdtemp(prefix="prism-tests-")
atexit.register(shutil.rmtree, os.environ["XDG_DATA_HOME"], ignore_errors=True)


def pytest_configure(config):
    """Start the process from which all processes of this session fork children; it imports when it is first asked."""
    if FORKS and not hasattr(config, "workerinput"):
        start_forking(os.environ["XDG_DATA_HOME"])


def _is_compiled():
    """Return whether tests have been imported here before."""
    return any(Path(__file__).parent.glob(f"__pycache__/test_*{sys.implementation.cache_tag}-pytest-*.pyc"))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Let one process look for tests first where none is compiled; the others would compile all of them too."""
    with Path(__file__).open() as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        if _is_compiled():
            turn.close()
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_collect_file():
    """Look for doctests in the package and the docs, not in all files of tests, which takes each process seconds."""
    return [file for file in (yield) if not isinstance(file, DoctestModule)]


def pytest_collection_modifyitems(config, items):
    """Let each process begin with its share of the files with a slow test, and end with what others can take from it.

    Processes begin with equal parts of the tests in their order.
    """
    n = getattr(config, "workerinput", {}).get("workercount", 1)
    slow = sorted({item.path for item in items if item.get_closest_marker("slow")})
    taken = {path: place % n for place, path in enumerate(slow)}
    others, ordered, last = [item for item in items if item.path not in taken], [], 0
    for process in range(n):
        ordered += [item for item in items if taken.get(item.path) == process]
        first, last = last, max(last, (process + 1) * len(items) // n - len(ordered) + last)
        ordered += others[first:last]
    items[:] = ordered + others[last:]


def pytest_collection_finish():
    """Leave all that is loaded by now to itself: the collector would look through a million objects again and again."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 10)
    gc.enable()


def pytest_xdist_auto_num_workers():
    """Two processes more than there are cores: tests wait for processes of their own, and for each other's kernels."""
    return min((os.cpu_count() or 1) + 2, 4)


_compiling = set()


def _in_turn(self, sig, compile_=Dispatcher.compile):
    """Compile a kernel while other processes that want it wait, and then find it in the cache.

    The tests run in several processes. On an empty cache all would compile the same kernels, and two that save one
    kernel for different types at once can swap them: numba writes each file whole, but not those that belong together.
    """
    folder = self._cache.cache_path
    if folder is None or self.py_func.__qualname__ in _compiling:
        return compile_(self, sig)
    with global_compiler_lock, (Path(folder) / f"{self.py_func.__qualname__}.lock").open("w") as lock:
        _compiling.add(self.py_func.__qualname__)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return compile_(self, sig)
        finally:
            _compiling.remove(self.py_func.__qualname__)


Dispatcher.compile = _in_turn


@pytest.fixture
def hurried(monkeypatch):
    """Give servers that are all down half a second to come back, and not five."""
    monkeypatch.setattr(HostPool, "__init__", partialmethod(HostPool.__init__, grace_s=0.5))


@pytest.fixture
def coarse_pictures(monkeypatch):
    """Draw pictures coarsely, with everything on them, without finding the best place for it: half of their time."""
    save = Figure.savefig

    def coarse(figure, *arguments, **options):
        figure.set_layout_engine("none")
        save(figure, *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", coarse)
    monkeypatch.setattr("prism_mesa.view.plots.files.DPI", 20)


def _blank_pictures(monkeypatch):
    """Save an empty page for each picture, and lay nothing out: drawing one takes as long as a small run."""
    save = Figure.savefig

    def blank(figure, *arguments, **options):
        save(Figure((1, 1)), *arguments, **options)

    monkeypatch.setattr(Figure, "savefig", blank)
    monkeypatch.setattr(Figure, "draw_without_rendering", lambda figure: None)


@pytest.fixture
def prism(monkeypatch, capfd, tmp_path, request):
    """Call the command in an empty folder; returns exit code, stdout, stderr, caught below Python's own streams.

    Pictures are made and left blank, but for tests that ask for `coarse_pictures`; they are looked at in tests/view.
    """
    if "coarse_pictures" not in request.fixturenames:
        _blank_pictures(monkeypatch)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["prism", *map(str, arguments)])
        try:
            cli.main()
        except SystemExit as end:
            return end.code, *capfd.readouterr()
        raise AssertionError("main() did not exit")

    return call


@pytest.fixture
def jobs(monkeypatch):
    """Return the runs of studies that were made, in order; they are made in this process."""
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
