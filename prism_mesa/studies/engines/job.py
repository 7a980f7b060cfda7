"""What is sent to the process of a run, and what it sends back: plain data."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal


@dataclass(frozen=True)
class Limits:
    """Limits of one run, in wall seconds and GB (10**9 bytes) of RAM; None: no limit."""

    seconds: float | None = None
    memory_gb: float | None = None


@dataclass(frozen=True)
class Job:
    """The data that a process needs to do one run of a study.

    Attributes:
        keep: Whether to keep its tables in a folder, as ``prism run`` does, or only its measures.
        collect: Tables whose rows are to come back.
        folder: Parent of the run's folder, which is ``folder/run``.
        path: Folders with modules of the user's own, searched after everything installed.
        spent: LLM calls and tokens that earlier attempts have reported, and that a resumed run does not report again.
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
    """The outcome of a run.

    Attributes:
        ending: `done`; `raised`: it raised an error; `timeout` and `memory`: it hit a limit; `killed`: a signal ended
            it, or its process vanished; `skipped`: it did not start because its LLM is missing.
        reason: One line on why it is not done; empty if it is.
        measures: Values by name; NaN where a measure is not defined for this run.
        facts: What the run took and who decided, as far as is known (see `journal.Facts`).
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
"""Environment variables by which libraries, when they are imported, choose their number of threads."""
