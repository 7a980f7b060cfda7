"""Executors of runs: threads on this machine, or workers of a Dask cluster (extra `dask`)."""

import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from threading import Thread
from typing import Any, Final, Literal, get_args

from prism_mesa.errors import ConfigError, did_you_mean, printable, shorten
from prism_mesa.extras import install_hint
from prism_mesa.studies.engines.job import Job, Outcome
from prism_mesa.studies.engines.supervise import kill_runs, without_main_import

_DASK_SETTINGS: Final = {
    "distributed.scheduler.worker-saturation": 1.0,  # tasks wait at the scheduler, not at a busy worker
    "distributed.worker.memory.target": False,  # runs use memory in processes that Dask does not know
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.tick.limit": "1h",
}


@contextmanager
def open_dask(scheduler: str | None, workers: int) -> Iterator[Executor]:
    """Open an executor on the workers of a scheduler, or without an address on processes of this machine."""
    distributed = _import_package("distributed")
    with _import_package("dask", "distributed").config.set(_DASK_SETTINGS):
        if scheduler is not None:
            try:
                client = distributed.Client(scheduler, timeout=10)
            except (OSError, ValueError, TypeError) as error:
                raise ConfigError(f"--scheduler: {scheduler}: no Dask scheduler: {_first_line(error)}") from None
            with client:
                yield from _yield_executor(client, has_own_workers=True)
            return
        options: dict[str, Any] = {"n_workers": workers, "threads_per_worker": 1, "memory_limit": None}
        options |= {"processes": True, "dashboard_address": ":0", "silence_logs": logging.ERROR}
        environment = os.environ.copy()  # Dask sets variables before it starts a worker
        try:
            with (
                without_main_import(),  # applies to restarted workers too
                distributed.LocalCluster(**options) as cluster,
                distributed.Client(cluster) as client,
            ):
                yield from _yield_executor(client)
        finally:
            os.environ.clear()
            os.environ.update(environment)


@contextmanager
def open_slurm(workers: int) -> Iterator[Executor]:
    """Open an executor on SLURM jobs, configured by ``jobqueue.slurm`` in the user's Dask configuration."""
    distributed, jobqueue = _import_package("distributed"), _import_package("dask_jobqueue", "dask-jobqueue")
    with _import_package("dask", "distributed").config.set(_DASK_SETTINGS):
        try:
            cluster = jobqueue.SLURMCluster()
        except ValueError as error:
            config_file = "jobqueue.slurm in ~/.config/dask/jobqueue.yaml"
            raise ConfigError(f"--engine slurm: {config_file}: {_first_line(error)}") from None
        with cluster, distributed.Client(cluster) as client:
            cluster.scale(workers)
            yield from _yield_executor(client)


def _import_package(module: str, package: str = "") -> Any:
    package = package or module
    if find_spec(module) is None:
        raise ConfigError(f"--engine: {package} is not installed: {install_hint('dask', package)}")
    return import_module(module)


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _yield_executor(client: Any, *, has_own_workers: bool = False) -> Iterator[Executor]:
    """Yield the executor of a client; after an error, drop waiting jobs.

    If the scheduler has its own workers, the executor returns their capacity in `runs_at_a_time`.
    """
    executor: Any = client.get_executor(pure=False)
    if has_own_workers:
        executor.runs_at_a_time = lambda: sum(client.nthreads().values())
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False)
        raise
    executor.shutdown()


type EngineKind = Literal["local", "dask", "slurm"]
ENGINES: Final[tuple[EngineKind, ...]] = get_args(EngineKind.__value__)


def open_engine(kind: EngineKind, *, workers: int, scheduler: str | None = None) -> AbstractContextManager[Executor]:
    """Return a context manager with an executor, for ``submit(run_supervised, job)``; see `driver.Engine`.

    After an error or Ctrl-C, no other runs start. Active runs are ended, except on a cluster that PRISM did not start.
    """
    if kind not in ENGINES:
        raise ConfigError(f"--engine: {kind!r} does not exist ({', '.join(ENGINES)}).{did_you_mean(kind, ENGINES)}")
    if workers < 1:
        raise ConfigError(f"--workers: give at least 1, not {workers}")
    if scheduler is not None and kind != "dask":
        raise ConfigError(f"--scheduler: needs --engine dask, not {kind}")
    if kind == "local":
        return _open_local(workers)
    return open_dask(scheduler, workers) if kind == "dask" else open_slurm(workers)


def runs_at_a_time(engine: Executor, workers: int) -> int:
    """Return the number of simultaneous runs: the current capacity of a scheduler's workers, or else `workers`."""
    capacity: Callable[[], int] | None = getattr(engine, "runs_at_a_time", None)
    return workers if capacity is None else capacity()


@contextmanager
def _open_local(workers: int) -> Iterator[Executor]:
    pool = ThreadPoolExecutor(workers, thread_name_prefix="run")
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        shutdown = Thread(target=pool.shutdown, kwargs={"cancel_futures": True})
        shutdown.start()
        while shutdown.is_alive():  # a thread may be about to start its process
            kill_runs()
            shutdown.join(0.05)
        raise


def future_outcome(future: "Future[Outcome]", job: Job) -> Outcome:
    """Return the outcome of a finished future, even if its worker was lost or its job cancelled."""
    try:
        return future.result()
    except CancelledError:
        return Outcome(job.run, "killed", "cancelled before it started")
    except Exception as error:
        fault = shorten(printable(f"{type(error).__name__}: {error}"))
        return Outcome(job.run, "killed", f"its worker could not run it: {fault}")
