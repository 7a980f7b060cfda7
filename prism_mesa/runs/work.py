"""Protocols for runs, their records and their checkpoints."""

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
        world: Returns the drawn world, which is written once; None: the world is not written.
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
    def answerer(self) -> AnswerRecorder | None:
        """The LLM or the reasoner that answers questions; None without one."""

    def scope(self) -> str:
        """Return a name that runs share if their tables differ only by the LLM's answers."""

    @property
    def checkpoint_every(self) -> int | None:
        """Rounds from one checkpoint to the next; None: by time; 0: no checkpoints."""

    def facts(self) -> dict[str, Any]:
        """Return facts for the manifest, besides `machine.provenance`."""

    def carry_out(self, folder: R) -> str:
        """Run, and return why a complete run counts as failed, or an empty string."""

    def progress(self) -> str:
        """Return the round or quarter, for errors."""

    def finish(self, folder: R, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Write the last tables, and return the summary; `ending` has the status and the error, if any."""
