"""Protocols for runs, their records and their checkpoints."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from prism_mesa.llm import LLMClient
from prism_mesa.reasoner import Reasoner
from prism_mesa.runs.records.arrow_rows import Rows
from prism_mesa.snapshot import Plain


class CheckpointMaker(Protocol):
    """Makes the checkpoints of a run.

    Attributes:
        cpu_s: CPU seconds spent on checkpoints.
        world: Returns the drawn world, which is written once; None if it is not written.
    """

    cpu_s: float
    world: Callable[[], Mapping[str, Plain] | None] | None

    def round_done(self, n_rounds: int, state: Callable[[], Mapping[str, Plain]], *, last: bool) -> None:
        """Make a checkpoint if one is due after `n_rounds` rounds, or if the run stops after this (`last`) round."""


class Records(Protocol):
    """The records of a run: a `RunFolder` or `RowsInMemory`.

    Attributes:
        cpu_s: CPU seconds spent on records.
        checkpoints: Makes the run's checkpoints; None for a run without checkpoints.
    """

    cpu_s: float
    notes: list[str]
    checkpoints: CheckpointMaker | None

    @property
    def path(self) -> Path | None:
        """The run's folder; None if it has none."""

    def write(self, table: str, columns: Rows) -> None:
        """Append rows to a table."""

    def replace_table(self, table: str, blocks: Rows | Iterable[Rows]) -> None:
        """Replace a table."""

    def round_done(self) -> None:
        """Count a round."""


class RunTask[R](Protocol):
    """A run of a platform, a run of nations, or a survey; an `R` receives its records."""

    @property
    def answerer(self) -> Reasoner | LLMClient | None:
        """The LLM or the reasoner that answers questions, if any."""

    def scope(self) -> str:
        """Return a name that is the same for runs whose tables differ only by the LLM's answers."""

    @property
    def checkpoint_every(self) -> int | None:
        """Rounds from one checkpoint to the next; None: by time; 0: no checkpoints."""

    def facts(self) -> dict[str, Any]:
        """Return facts for the manifest, besides `machine.provenance`."""

    def carry_out(self, folder: R) -> str:
        """Run; return an empty string, or the reason why a complete run counts as failed."""

    def progress(self) -> str:
        """Return the current round or quarter, for errors."""

    def finish(self, folder: R, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Write the last tables, and return the summary; `ending` has the status and the error, if any."""
