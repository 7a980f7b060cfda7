"""Import everything that a run needs into the process from which runs are forked.

The import changes that process: libraries use one thread, Ctrl-C is ignored, and a small run loads compiled kernels.
This module must not use parallel kernels, because a fork would then hang.
"""

import gc
import os
import signal
import warnings
from contextlib import suppress
from tempfile import TemporaryDirectory

from prism_mesa.studies.engines.job import ONE_THREAD

gc.disable()  # objects created from here on stay
signal.signal(signal.SIGINT, signal.SIG_IGN)
os.environ.update(ONE_THREAD)

from prism_mesa.studies.engines.job import Job  # noqa: E402 - the number of threads is read on import
from prism_mesa.studies.engines.worker import carry_out  # noqa: E402


def _warm_up() -> None:
    """Run a small model to fill the caches."""
    config = {"agents": {"n": 40}, "rounds": 2, "ticks_per_round": 5, "threads": 1, "reasoner": {"kind": "rule"}}
    with TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for keep in ("tables", "measures"):
            carry_out(Job("warm-up", config, (), keep=keep, folder=folder))


with suppress(OSError):  # if the disk is full, each run fills its own caches
    _warm_up()
gc.collect()
gc.freeze()  # the garbage collector of a run skips these objects, so their memory stays shared
gc.enable()
