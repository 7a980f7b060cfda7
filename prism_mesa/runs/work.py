"""Protocols of runs, their records and checkpoints."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from prism_mesa.llm import AnswerStore
from prism_mesa.runs.records.arrow_rows import Rows
from prism_mesa.snapshot import Plain


class AnswerRecorder(Protocol):
    """A reasoner or an LLM client with a store of answers."""

    store: AnswerStore


class Checkpointing(Protocol):
    """Makes the checkpoints of a run.

    Attributes:
        cpu_s: CPU seconds spent on them.
        world: Returns the drawn world, to write it once; None if it is not written.
    """

    cpu_s: float
    world: Callable[[], Mapping[str, Plain] | None] | None

    def round_done(self, done: int, state: Callable[[], Mapping[str, Plain]], *, last: bool) -> None:
        """Make a checkpoint if it is due, or if this is the `last` round before a stop."""


class Records(Protocol):
    """The records of a run: a `RunFolder` or `RowsInMemory`.

    Attributes:
        cpu_s: CPU seconds spent on them.
        notes: Notes for the run's summary.
        checkpoints: Makes the run's checkpoints; None if there are none.
    """

    cpu_s: float
    notes: list[str]
    checkpoints: Checkpointing | None

    @property
    def path(self) -> Path | None:
        """The run's folder; None if it has none."""

    def write(self, table: str, columns: Rows) -> None:
        """Append rows to a table."""

    def write_whole(self, table: str, blocks: Rows | Iterable[Rows]) -> None:
        """Replace a table."""

    def round_done(self) -> None:
        """Count a round."""


class RunTask[R](Protocol):
    """A run of a platform, of nations, or a survey; its records go to an `R`."""

    @property
    def asked(self) -> AnswerRecorder | None:
        """The LLM or reasoner that is asked, if any."""

    def scope(self) -> str:
        """Return a name that is equal for runs whose tables differ only by their answers."""

    @property
    def checkpoint_every(self) -> int | None:
        """Rounds from one checkpoint to the next; None: by time; 0: no checkpoints."""

    def facts(self) -> dict[str, Any]:
        """Return facts for the manifest, besides `machine.provenance`."""

    def carry_out(self, folder: R) -> str:
        """Run; return why a complete run counts as failed, or an empty string."""

    def where(self) -> str:
        """Return the round or quarter, for errors."""

    def finish(self, folder: R, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Write the last tables, and return the summary; `ending` has the status and the error, if any."""
