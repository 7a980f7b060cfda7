"""Who runs runs: opened by name, refused in a line, and the same runs on Dask's workers."""

import importlib.util
import os
import time
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from engine_jobs import are_gone, good_job, job_that

from prism_mesa.errors import ConfigError
from prism_mesa.studies.engines import executors as dask_engine
from prism_mesa.studies.engines.executors import future_outcome, open_engine, runs_at_a_time
from prism_mesa.studies.engines.job import Job, Limits, Outcome
from prism_mesa.studies.engines.supervise import run_supervised

needs_dask = pytest.mark.skipif(not importlib.util.find_spec("distributed"), reason="the extra dask is not installed")


def test_the_local_engine_is_the_executor_of_the_standard_library():
    with open_engine("local", workers=2) as engine:
        assert isinstance(engine, ThreadPoolExecutor)
        assert engine.submit(pow, 2, 3).result() == 8


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"kind": "dusk", "workers": 1}, "--engine: 'dusk'"),
        ({"kind": "local", "workers": 0}, "--workers"),
        ({"kind": "local", "workers": 1, "scheduler": "tcp://a:1"}, "--scheduler"),
        ({"kind": "slurm", "workers": 1, "scheduler": "tcp://a:1"}, "--scheduler"),
    ],
)
def test_what_cannot_be_opened_is_refused_in_a_line(given, told):
    with pytest.raises(ConfigError, match=told):
        open_engine(**given)


def test_an_error_while_runs_are_given_out_begins_no_others():
    began, late = [], []

    def give_out():
        with open_engine("local", workers=1) as engine:
            engine.submit(began.append, "first").result()
            engine.submit(time.sleep, 0.2)
            late.append(engine.submit(began.append, "late"))
            raise RuntimeError("of the driver")

    with pytest.raises(RuntimeError, match="of the driver"):
        give_out()
    assert late[0].cancelled()
    assert began == ["first"]


def test_a_future_that_failed_is_an_outcome_too():
    job, kept = Job("a", {}, ()), Outcome("a", "done")
    done, failed, dropped = Future(), Future(), Future()
    done.set_result(kept)
    failed.set_exception(RuntimeError("worker tcp://x died\n3 times"))
    dropped.cancel()
    assert future_outcome(done, job) is kept
    lost = future_outcome(failed, job)
    assert (lost.run, lost.ending) == ("a", "killed")
    assert "RuntimeError: worker tcp://x died 3 times" in lost.reason
    assert future_outcome(dropped, job).reason == "cancelled before it started"


def test_without_the_extra_dask_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(dask_engine, "find_spec", lambda name: None)
    for kind in ("dask", "slurm"):
        with (
            pytest.raises(ConfigError, match="--engine: distributed is not installed"),
            open_engine(kind, workers=1),
        ):
            pass


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_scheduler_that_is_there_says_how_many_runs_its_workers_take():
    from distributed import LocalCluster

    here = {"n_workers": 2, "threads_per_worker": 7, "processes": False, "dashboard_address": ":0"}
    with (
        LocalCluster(**here) as cluster,
        open_engine("dask", workers=1, scheduler=cluster.scheduler_address) as engine,
    ):
        assert runs_at_a_time(engine, 1) == 14
        assert engine.submit(pow, 2, 3).result() == 8


@needs_dask
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_the_same_runs_break_on_dask(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    broken = [
        job_that("raises", tmp_path),
        job_that("hangs", tmp_path, limits=Limits(seconds=2)),
        job_that("is_killed", tmp_path),
        job_that("exits", tmp_path),
    ]
    jobs = [*broken, *(good_job(seed, tmp_path) for seed in range(4))]
    environment = dict(os.environ)
    with open_engine("dask", workers=2) as engine:
        pids = [engine.submit(os.getpid) for _ in range(8)]
        workers = {future.result() for future in pids}
        assert os.getpid() not in workers
        futures = {job.run: (engine.submit(run_supervised, job), job) for job in jobs}
        assert {run: future_outcome(*given).ending for run, given in futures.items()} == {
            "raises": "raised",
            "hangs": "timeout",
            "is_killed": "killed",
            "exits": "killed",
            **{f"good-{seed}": "done" for seed in range(4)},
        }
    assert are_gone(list(workers))
    assert dict(os.environ) == environment
