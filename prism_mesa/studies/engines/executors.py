"""Executors for runs: threads of this machine, or the workers of a Dask cluster (extra `dask`)."""

import logging
import os
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from importlib.util import find_spec
from threading import Thread
from typing import Any, Final, Literal, get_args

from prism_mesa.errors import ConfigError, did_you_mean, printable, shortened
from prism_mesa.extras import how_to_install
from prism_mesa.studies.engines.job import Job, Outcome
from prism_mesa.studies.engines.supervise import kill_runs, main_left_alone

_TIMEOUT_S: Final = 10
_SETTINGS: Final = {
    "distributed.scheduler.worker-saturation": 1.0,  # a task waits at the scheduler, not at a worker that is busy
    "distributed.worker.memory.target": False,  # what takes memory are processes that Dask knows nothing of
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.admin.tick.limit": "1h",
}


@contextmanager
def open_dask(scheduler: str | None, workers: int) -> Iterator[Executor]:
    """Open an executor on the workers of a scheduler; without an address on so many processes of this machine."""
    distributed = _imported("distributed")
    with _imported("dask", "distributed").config.set(_SETTINGS):
        if scheduler is not None:
            with _client_at(distributed, scheduler) as client:
                yield from _executor(client, has_own_workers=True)
            return
        here: dict[str, Any] = {"n_workers": workers, "threads_per_worker": 1, "memory_limit": None}
        here |= {"processes": True, "dashboard_address": ":0", "silence_logs": logging.ERROR}
        with (
            _environment_left_alone(),
            main_left_alone(),  # whenever a worker is started: one that has died is started again
            distributed.LocalCluster(**here) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield from _executor(client)


@contextmanager
def _environment_left_alone() -> Iterator[None]:
    """Bring back the variables of this process's environment: dask sets some before it starts a worker."""
    before = os.environ.copy()
    try:
        yield
    finally:
        for name in os.environ.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)


@contextmanager
def open_slurm(workers: int) -> Iterator[Executor]:
    """Open an executor on so many workers that SLURM starts, as ``jobqueue.slurm`` of the user's configuration says.

    Raises:
        ConfigError: If dask-jobqueue is not installed, or its configuration lacks something.
    """
    distributed, jobqueue = _imported("distributed"), _imported("dask_jobqueue", "dask-jobqueue")
    with _imported("dask", "distributed").config.set(_SETTINGS):
        try:
            cluster = jobqueue.SLURMCluster()
        except ValueError as error:
            told = str(error).strip().partition("\n")[0]
            raise ConfigError(f"--engine slurm: jobqueue.slurm in ~/.config/dask/jobqueue.yaml: {told}") from None
        with cluster, distributed.Client(cluster) as client:
            cluster.scale(workers)
            yield from _executor(client)


def _imported(module: str, package: str = "") -> Any:
    """Return a module of the extra."""
    package = package or module
    if find_spec(module) is None:
        raise ConfigError(f"--engine: {package} is not installed: {how_to_install('dask', package)}")
    return import_module(module)


def _client_at(distributed: Any, scheduler: str) -> Any:
    try:
        return distributed.Client(scheduler, timeout=_TIMEOUT_S)
    except (OSError, ValueError, TypeError) as error:
        told = str(error).strip().partition("\n")[0]
        raise ConfigError(f"--scheduler: {scheduler}: no Dask scheduler there: {told}") from None


def _executor(client: Any, *, has_own_workers: bool = False) -> Iterator[Executor]:
    """Yield the executor of a client; what was submitted and has not been begun is dropped if that ends in an error.

    With workers of the scheduler's own it says how many runs they take (see `executors.runs_at_a_time`).
    """
    executor: Any = client.get_executor(pure=False)
    if has_own_workers:
        executor.runs_at_a_time = lambda: sum(client.nthreads().values())
    try:
        yield executor
    except BaseException:
        executor.shutdown(wait=False)  # which drops them
        raise
    executor.shutdown()


type EngineKind = Literal["local", "dask", "slurm"]
ENGINES: Final[tuple[EngineKind, ...]] = get_args(EngineKind.__value__)
_AGAIN_S: Final = 0.05


def open_engine(kind: EngineKind, *, workers: int, scheduler: str | None = None) -> AbstractContextManager[Executor]:
    """Return an executor for ``submit(run_supervised, job)``, as a context: leaving it ends what it started.

    Left by an error or Ctrl-C, it ends runs that are on their way, and begins no others. On a cluster that somebody
    else has started, those that are on their way go on.

    Args:
        kind: `local`: processes of this machine. `dask`: the workers of a Dask scheduler, or of one that is started
            here. `slurm`: Dask workers that SLURM starts, as the user's own configuration of dask-jobqueue says.
        workers: Runs at a time, at least 1. A scheduler that somebody else has started has its own workers
            (`runs_at_a_time` tells how many).
        scheduler: Address of a Dask scheduler, such as ``tcp://node:8786``; for `dask` only.

    Raises:
        ConfigError: If there is no such kind, too few workers, an address that is of no use, or something is not
            installed; when the context is entered, if there is nobody at the address.
    """
    if kind not in ENGINES:
        raise ConfigError(f"--engine: {kind!r} is none ({', '.join(ENGINES)}).{did_you_mean(kind, ENGINES)}")
    if workers < 1:
        raise ConfigError(f"--workers: give at least 1, not {workers}")
    if scheduler is not None and kind != "dask":
        raise ConfigError(f"--scheduler: has no use with --engine {kind}, only with dask")
    if kind == "local":
        return _local(workers)
    return open_dask(scheduler, workers) if kind == "dask" else open_slurm(workers)


def runs_at_a_time(engine: Executor, workers: int) -> int:
    """Return how many runs an engine has at the same time: `workers`, or as many as a scheduler's workers take now.

    Those of a scheduler that somebody else has started may come and go.
    """
    ask: Callable[[], int] | None = getattr(engine, "runs_at_a_time", None)
    return workers if ask is None else ask()


@contextmanager
def _local(workers: int) -> Iterator[Executor]:
    """Open threads, each of which waits for one process at a time."""
    pool = ThreadPoolExecutor(workers, thread_name_prefix="run")
    try:
        yield pool
        pool.shutdown()
    except BaseException:
        ending = Thread(target=pool.shutdown, kwargs={"cancel_futures": True})
        ending.start()
        while ending.is_alive():  # again and again: one may be about to start its process
            kill_runs()
            ending.join(_AGAIN_S)
        raise


def future_outcome(future: "Future[Outcome]", job: Job) -> Outcome:
    """Return the outcome of a job whose future is done, whatever became of the future.

    A worker of a cluster may be gone, and with it what it ran: that is an outcome too.
    """
    try:
        return future.result()
    except CancelledError:
        return Outcome(job.run, "killed", "cancelled before it was begun")
    except Exception as error:
        told = shortened(printable(f"{type(error).__name__}: {error}"))
        return Outcome(job.run, "killed", f"whoever was to run it could not: {told}")
