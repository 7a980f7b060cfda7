"""The plain data that a run's process receives and sends back."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal


@dataclass(frozen=True)
class Limits:
    """Limits of one run: seconds of real time, and GB (10**9 bytes) of RAM; None means no limit."""

    seconds: float | None = None
    memory_gb: float | None = None


@dataclass(frozen=True)
class Job:
    """The data for one run of a study.

    Attributes:
        keep: `tables` keeps the run's folder, as ``prism run`` does; `measures` keeps only the measures.
        collect: Tables whose rows are part of the outcome.
        folder: Parent of the run's folder, ``folder/run``.
        path: Folders with the user's modules, searched after installed packages.
        spent: LLM calls and tokens that earlier attempts reported; a resumed run does not report them again.
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
        ending: `done`; `raised` an error; `timeout` or `memory` if it exceeded a limit; `killed` by a signal, or its
            process was lost; `skipped` because its LLM is missing.
        reason: Why the run is not done, in one line; empty for a finished run.
        measures: Values by name; NaN if undefined.
        facts: Known costs, and who decided (see `journal.Facts`).
        tables: Rows of the collected tables as Arrow IPC streams.
    """

    run: str
    ending: Ending
    reason: str = ""
    measures: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    tables: dict[str, bytes] = field(default_factory=dict)


_THREADS: Final = ("OMP_NUM", "OPENBLAS_NUM", "MKL_NUM", "NUMEXPR_NUM", "VECLIB_MAXIMUM", "NUMBA_NUM")
ONE_THREAD: Final = {f"{library}_THREADS": "1" for library in _THREADS}
"""Environment variables that limit libraries to one thread. Libraries read them on import."""
