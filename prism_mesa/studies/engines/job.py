"""What is sent to the process that runs a run, and what comes back: plain data."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal


@dataclass(frozen=True)
class Limits:
    """What one run may take; None: no limit.

    Attributes:
        memory_gb: Of RAM, in GB of 10**9 bytes.
    """

    seconds: float | None = None
    memory_gb: float | None = None


@dataclass(frozen=True)
class Job:
    """A run of a study that is to be run.

    Attributes:
        keep: Whether its tables are kept in a folder, as ``prism run`` keeps them, or only its measures.
        collect: Tables of which the rows are to come back.
        folder: Parent folder of the run's own, which is ``folder/run``.
        path: Folders in which modules of the user's own are looked for, after everything installed.
        spent: Calls and tokens of an LLM that attempts before this one have told: one that goes on does not tell them
            again.
    """

    run: str
    config: dict[str, Any]
    measures: tuple[str, ...]
    keep: Literal["tables", "measures"] = "tables"
    collect: tuple[str, ...] = ()
    folder: str = "."
    path: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    spent: dict[str, int] = field(default_factory=dict)


type Ending = Literal["done", "raised", "timeout", "memory", "killed", "skipped"]


@dataclass(frozen=True)
class Outcome:
    """What became of a run.

    Attributes:
        ending: `done`; `raised`: the run raised an error; `timeout` and `memory`: it hit a limit; `killed`: an outside
            signal ended it, or its process vanished; `skipped`: it did not begin, as its LLM is missing.
        reason: One line that says why the run is not done; empty if it is.
        measures: By name; a number that is none (NaN) where a measure is not defined for this run.
        facts: What it took and who decided: `cpu_s`, `wall_s`, `model_cpu_s`, `peak_memory_mb`, `signal` (its name),
            `decided_by`, `open`, `by_source`, `fallback`, `calls`, `tokens`, `notes`. Of a run that is not done only
            what is known.
        tables: Rows of the tables to collect, each an Arrow IPC stream.
    """

    run: str
    ending: Ending
    reason: str = ""
    measures: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, bytes] = field(default_factory=dict)


ONE_THREAD: Final = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
}
"""Variables of the environment that say how many threads libraries start; they read them when they are imported."""
