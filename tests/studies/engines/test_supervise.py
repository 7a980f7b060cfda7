"""Runs in processes of their own: whatever one does, it is told, and nobody else is touched."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from engine_jobs import are_gone, good_job, is_there, job_that, pids_in
from forked import PYTHON

from prism_mesa.studies.engines.executors import future_outcome, open_engine
from prism_mesa.studies.engines.job import Limits
from prism_mesa.studies.engines.supervise import run_supervised

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="looks at processes as Linux shows them"),
]


def outcomes_of(jobs, workers=2):
    with open_engine("local", workers=workers) as engine:
        futures = [engine.submit(run_supervised, job) for job in jobs]
        return {job.run: future_outcome(future, job) for job, future in zip(jobs, futures, strict=True)}


def test_a_run_that_breaks_in_any_way_is_told_with_its_reason_and_takes_nobody_with_it(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    soon, little = Limits(seconds=3), Limits(memory_gb=0.9)
    broken = [
        job_that("raises", tmp_path, keep="tables"),
        job_that("hangs", tmp_path, limits=soon),
        job_that("is_killed", tmp_path),
        job_that("exits", tmp_path),
        job_that("crashes", tmp_path),
        job_that("eats", tmp_path, limits=little),
    ]
    good = [good_job(seed, tmp_path) for seed in range(3)]
    found = outcomes_of([broken[1], *good, broken[0], *broken[2:]])
    assert capfd.readouterr() == ("", "")
    assert [found[job.run].ending for job in good] == ["done"] * 3
    assert {run: (o.ending, o.facts["signal"]) for run, o in found.items() if o.ending != "done"} == {
        "raises": ("raised", None),
        "hangs": ("timeout", "SIGKILL"),
        "is_killed": ("killed", "SIGKILL"),
        "exits": ("killed", None),
        "crashes": ("killed", "SIGSEGV"),
        "eats": ("memory", "SIGKILL"),
    }
    assert "ValueError: no such luck (agent 0 in round 0, tick 2" in found["raises"].reason
    assert found["raises"].reason.endswith("chart_that_raises.py:6 in engages)")
    assert found["hangs"].reason == "took more than limits.seconds = 3"
    assert found["is_killed"].reason == "its process was killed by SIGKILL"
    assert found["exits"].reason == "its process ended with exit code 7; its last output: bye now"
    assert found["crashes"].reason.startswith(
        "its process was killed by SIGSEGV; its last output: Fatal Python error: Segmentation fault File "
    )
    assert found["eats"].reason.endswith("GB, more than limits.memory_gb = 0.9")
    assert are_gone(pids_in(tmp_path))
    for outcome in found.values():
        assert outcome.facts["wall_s"] > 0
        assert outcome.facts["peak_memory_mb"] > 50
    assert found["eats"].facts["peak_memory_mb"] > 500
    assert 3 <= found["hangs"].facts["wall_s"] < 20
    assert (tmp_path / "raises" / "manifest.json").exists()


def test_a_run_has_one_thread_for_each_library_and_what_its_driver_has_around_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    for value in ("first", "second"):
        monkeypatch.setenv("OF_A_TEST", value)
        outcome = run_supervised(job_that("looks_around", tmp_path))
        assert f"ValueError: 1 {value} {tmp_path} (" in outcome.reason
    assert os.environ["OMP_NUM_THREADS"] == "8"


def test_a_run_says_of_whoever_ends_it_from_outside_that_it_was_killed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with open_engine("local", workers=1) as engine:
        job = job_that("hangs", tmp_path)
        future = engine.submit(run_supervised, job)
        run, *children = pids_in(tmp_path)
        os.kill(run, signal.SIGTERM)
        outcome = future_outcome(future, job)
    assert (outcome.ending, outcome.reason) == ("killed", "its process was killed by SIGTERM")
    assert outcome.facts["signal"] == "SIGTERM"
    assert len(children) == 1
    assert are_gone(children)


SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = {tests!r}
from engine_jobs import good_job, job_that
from prism_mesa.studies.engines.executors import open_engine
from prism_mesa.studies.engines.supervise import run_supervised

print("script", __name__, flush=True)
here = Path({folder!r})
with open_engine({kind!r}, workers=2) as engine:
    good = engine.submit(run_supervised, good_job(1, here)).result()
    print(good.ending, good.reason, flush=True)
    if {hangs}:
        futures = [engine.submit(run_supervised, job_that("hangs", here, run=str(n))) for n in range(5)]
        print([future.result().ending for future in futures])
"""


def script(folder, *, hangs, kind="local", python=(sys.executable,)):
    """Start a script without a guard of `__main__`."""
    file = folder / "study_script.py"
    tests = [str(Path(__file__).parent), str(Path(__file__).parents[2])]
    file.write_text(SCRIPT.format(tests=tests, folder=str(folder), hangs=hangs, kind=kind))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen([*python, str(file)], cwd=folder, **pipes)


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, -15)])
def test_runs_end_with_their_driver_however_that_ends(tmp_path, how, code):
    driver = script(tmp_path, hangs=True, python=[sys.executable] if how == signal.SIGKILL else PYTHON)
    pids = pids_in(tmp_path, runs=2)
    assert len(pids) == 4
    assert all(map(is_there, pids))
    at = time.monotonic()
    driver.send_signal(how)
    assert are_gone(pids, within_s=5)
    said, errors = driver.communicate(timeout=10)
    assert time.monotonic() - at < 20
    assert driver.returncode == code
    assert said.split("\n") == ["script __main__", "done ", ""]
    assert errors.count("Traceback") <= (how == signal.SIGINT)
