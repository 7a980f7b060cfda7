"""The process of a run, from its first line to its last. What is imported here is imported before `preload`."""

import faulthandler
import os
import signal
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing import parent_process
from multiprocessing.connection import Connection

from prism_mesa.studies.engines.job import ONE_THREAD, Job


def begin(job: Job, sender: "Connection[object, object]", said: str, environment: Mapping[str, str]) -> None:
    """Carry out a job, send its outcome, and end.

    Args:
        job: The run.
        sender: Where its `Outcome` goes.
        said: The file that gets what the run prints.
        environment: Variables, as whoever waits for the run has them now.
    """
    if hasattr(os, "setsid"):
        os.setsid()  # lead a group: all processes that this one starts are in it, and Ctrl-C does not reach it
    _listen_to(said)
    os.environ.clear()
    os.environ.update({**environment, **ONE_THREAD})
    threading.Thread(target=_end_with_parent, daemon=True, name="end with parent").start()
    from prism_mesa.studies.engines import preload  # noqa: F401 - forked processes have it, others get it here
    from prism_mesa.studies.engines.worker import carry_out

    sender.send(carry_out(job))
    sender.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # threads and connections that a run has left open keep nobody waiting


def _listen_to(said: str) -> None:
    """Have all that is printed go to a file, and why the process crashed, if it does.

    Whoever waits has it open: its name is taken away, so that nothing is left behind if they are killed.
    """
    with open(said, "ab", buffering=0) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    with suppress(OSError):  # where a file that is open keeps its name
        os.unlink(said)
    faulthandler.enable(all_threads=False)


def _end_with_parent() -> None:
    """Wait until whoever started this process is gone, however that came, and end with all that it started."""
    parent = parent_process()
    if parent is None:
        return
    parent.join()
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
