"""An engine that makes the runs of a study in this process, one after another."""

from concurrent.futures import Executor, Future
from contextlib import contextmanager


class Inline(Executor):
    """Runs a job when it is handed in."""

    def submit(self, work, job):
        future = Future()
        future.set_result(work(job))
        return future


@contextmanager
def opened(kind, *, workers, scheduler=None):
    yield Inline()
