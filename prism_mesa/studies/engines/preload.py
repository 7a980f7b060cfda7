"""Imported by the process that runs are forked from: all that a run needs, once.

Importing it changes the process, which is to do nothing else: one thread for each library that could have more, Ctrl-C
left to whoever waits for the runs, and compiled kernels loaded by a small run. None is run in parallel, as a fork after
that would hang.
"""

import gc
import os
import signal
import warnings
from contextlib import suppress
from tempfile import TemporaryDirectory

from prism_mesa.studies.engines.job import ONE_THREAD

gc.disable()  # of what is made from here on nothing is garbage
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.environ.update(ONE_THREAD)

from prism_mesa.studies.engines.job import Job  # noqa: E402 - the number of threads is read on import
from prism_mesa.studies.engines.worker import carry_out  # noqa: E402


def _run_a_little() -> None:
    """Do once what every run does, so that whatever is made at its first use is there."""
    config = {"agents": {"n": 40}, "rounds": 2, "ticks_per_round": 5, "threads": 1, "reasoner": {"kind": "rule"}}
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for keep in ("tables", "measures"):
            carry_out(Job("warm-up", config, (), keep=keep, folder=folder))


with suppress(OSError):  # without a place for the small run, each run does what it would have done
    _run_a_little()
gc.collect()
gc.freeze()  # what is here stays: the collector of a run does not touch it, so that its memory stays shared
gc.enable()
