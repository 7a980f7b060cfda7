"""Step, time and summarise the rounds of a run."""

import json
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median
from typing import Any, Final

import numpy as np

from prism_mesa.errors import PrismWarning
from prism_mesa.runs.process.machine import peak_memory_mb
from prism_mesa.runs.process.stopping import finish_rounds, raise_if_stopped
from prism_mesa.runs.work import Records
from prism_mesa.snapshot import Plain
from prism_mesa.streams import digest64


class RunTimer:
    """The clocks of a run, which start when the timer is made.

    Attributes:
        rounds: CPU seconds of each completed round, excluding its records.
    """

    def __init__(self) -> None:
        self._wall, self._cpu = time.monotonic(), time.process_time()
        self.rounds: list[float] = []

    @contextmanager
    def round(self, folder: Records) -> Iterator[None]:
        """Time a round, excluding its records."""
        start_s = time.process_time() - folder.cpu_s
        yield
        self.rounds.append(time.process_time() - folder.cpu_s - start_s)

    def snapshot(self) -> dict[str, Plain]:
        """Return the times so far."""
        clocks = self.read()
        return {"rounds": np.array(self.rounds, np.float64), "cpu_s": clocks["cpu_s"], "wall_s": clocks["wall_s"]}

    def restore(self, snapshot: Mapping[str, Plain]) -> None:
        """Add the times of a stopped run."""
        self.rounds = snapshot["rounds"].tolist()
        self._cpu -= snapshot["cpu_s"]
        self._wall -= snapshot["wall_s"]

    def read(self) -> dict[str, float]:
        """Return CPU and wall seconds, excluding imports, and the median CPU seconds of a round after the first."""
        return {
            "cpu_s": time.process_time() - self._cpu,
            "wall_s": time.monotonic() - self._wall,
            "round_cpu_s": median(self.rounds[1:] or self.rounds or [0.0]),
        }


@contextmanager
def without_repeated_warnings() -> Iterator[None]:
    """Suppress PRISM's warnings while the block repeats a run that already gave them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        yield


def run_rounds(
    model: Any, rounds: int, records: Records, timer: RunTimer, on_round: Callable[[int], None] | None
) -> None:
    """Step a model through the remaining rounds; a model that sets `running` to False ends them early.

    After a signal, the round is completed, a checkpoint is made, and KeyboardInterrupt is raised, except in the last
    round.
    """
    model.recorder = records
    with finish_rounds() as is_stopped:
        for n_done in range(len(timer.rounds) + 1, rounds + 1):
            with timer.round(records):
                model.step()
            records.round_done()
            if on_round is not None:
                on_round(n_done)
            if n_done < rounds and not model.running:
                records.notes.append(f"running was set to False: the run ended after {n_done} of {rounds} rounds")
            if n_done == rounds or not model.running:
                return
            if records.checkpoints is not None:
                records.checkpoints.round_done(
                    n_done, lambda: {"model": model.snapshot(), "clocks": timer.snapshot()}, last=is_stopped()
                )
            raise_if_stopped()


WITHOUT_EFFECT: Final = set(
    "kind model host timeout_s max_concurrency attempts backoff_s max_fallback_share ledger ledger_path".split()
)
"""Parameters of a reasoner that do not change a run's tables if the answers are the same."""


def scope_name(values: Mapping[str, Any]) -> str:
    """Return a name for all runs with these values (see `RunTask.scope`)."""
    return f"{digest64(json.dumps(values, sort_keys=True)):016x}"


def run_summary(
    records: Records, ending: Mapping[str, Any], results: Mapping[str, Any], timer: RunTimer
) -> dict[str, Any]:
    """Return the summary of a run: folder, status, results, costs and notes."""
    return {
        "run_dir": None if records.path is None else str(records.path),
        **ending,
        **results,
        **timer.read(),
        "records_cpu_s": records.cpu_s,
        "checkpoints_cpu_s": 0.0 if records.checkpoints is None else records.checkpoints.cpu_s,
        "peak_memory_mb": peak_memory_mb(),
        "notes": [*results["notes"], *records.notes],
    }
