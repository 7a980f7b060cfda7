"""The main function of a run's process. It is imported before `preload`."""

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


def run_child(job: Job, sender: "Connection[object, object]", output_file: str, environment: Mapping[str, str]) -> None:
    """Carry out a job, send its `Outcome`, and end the process; printed output goes to `output_file`."""
    if hasattr(os, "setsid"):
        os.setsid()  # lead a process group that holds all children and does not receive Ctrl-C
    _redirect_output(output_file)
    os.environ.clear()
    os.environ.update({**environment, **ONE_THREAD})
    threading.Thread(target=_end_with_parent, daemon=True, name="end with parent").start()
    from prism_mesa.studies.engines import preload  # noqa: F401 - already imported in forked processes
    from prism_mesa.studies.engines.worker import carry_out

    sender.send(carry_out(job))
    sender.close()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # do not wait for threads and connections that the run left open


def _redirect_output(output_file: str) -> None:
    """Write output and crash reports to a file. The parent has it open, so it is unlinked to leave nothing behind."""
    with open(output_file, "ab", buffering=0) as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    with suppress(OSError):  # Windows keeps the name of an open file
        os.unlink(output_file)
    faulthandler.enable(all_threads=False)


def _end_with_parent() -> None:
    """Wait for the end of the parent process, then end this process and all its children."""
    parent = parent_process()
    if parent is None:
        return
    parent.join()
    if hasattr(os, "killpg"):
        os.killpg(0, signal.SIGKILL)
    os._exit(1)
