"""Who runs runs: executors of the standard library's kind, here or on a cluster. Their tasks call `run_supervised`."""

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from threading import Thread
from typing import Final, Literal, get_args

from prism_mesa.errors import ConfigError, did_you_mean, printable, shortened
from prism_mesa.studies.engines.job import Job, Outcome
from prism_mesa.studies.engines.supervise import kill_runs

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
    from prism_mesa.studies.engines import dask

    return dask.open_dask(scheduler, workers) if kind == "dask" else dask.open_slurm(workers)


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


def outcome_of(future: "Future[Outcome]", job: Job) -> Outcome:
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
