"""The plain data that a run's process receives and sends back."""

from dataclasses import dataclass, field
from typing import Any, Final, Literal


@dataclass(frozen=True)
class Limits:
    """Limits of one run, in wall seconds and GB (10**9 bytes) of RAM; None: no limit."""

    seconds: float | None = None
    memory_gb: float | None = None


@dataclass(frozen=True)
class Job:
    """The data for one run of a study.

    Attributes:
        keep: Whether to keep its tables in a folder, as ``prism run`` does, or only its measures.
        collect: Tables whose rows are returned.
        folder: Parent of the run's folder, ``folder/run``.
        path: Folders with the user's modules, searched after installed packages.
        spent: LLM calls and tokens that earlier attempts reported, so that a resumed run does not report them again.
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
        reason: Why the run is not done, in one line; empty if it is.
        measures: Values by name; NaN if undefined.
        facts: Costs and deciders, as far as known (see `journal.Facts`).
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
"""Environment variables that limit libraries to one thread; they are read on import."""
