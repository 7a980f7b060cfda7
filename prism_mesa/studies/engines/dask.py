"""Runs on the workers of a Dask cluster (extra `dask`): one that is there, one of this machine, or one that SLURM has.

What a worker does for a run is what is done here: it waits for a process of its own (`supervise.run_supervised`). A
worker may die; Dask then has others run again what it ran, and after a few such deaths gives up.
"""

import logging
import os
from collections.abc import Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from prism_mesa.errors import ConfigError
from prism_mesa.extras import how_to_install
from prism_mesa.studies.engines.processes import main_left_alone

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
    """Open an executor on the workers of a scheduler; without an address on so many processes of this machine.

    Raises:
        ConfigError: If distributed is not installed, or nobody is at the address.
    """
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
    """Return a module of the extra.

    Raises:
        ConfigError: If it is not installed.
    """
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
