"""What a run does, and where its records go, as `lifecycle` and `rounds` see them."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from prism_mesa.llm import AnswerStore
from prism_mesa.runs.records.arrow_rows import Rows
from prism_mesa.snapshot import Plain


class AnswerRecorder(Protocol):
    """A reasoner or an LLM client, which keeps its answers in a store."""

    store: AnswerStore


class Checkpointing(Protocol):
    """Makes the checkpoints of a run.

    Attributes:
        cpu_s: CPU seconds spent on them.
        world: Returns the drawn world, which is kept once beside them; None if nothing is kept.
    """

    cpu_s: float
    world: Callable[[], Mapping[str, Plain] | None] | None

    def round_done(self, done: int, state: Callable[[], Mapping[str, Plain]], *, last: bool) -> None:
        """Make a checkpoint if one is due; `last`: the run stops now."""


class Records(Protocol):
    """Where the records of a run go: a `RunFolder`, or `RowsInMemory`.

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
        """Write a table, and replace what it held."""

    def round_done(self) -> None:
        """Count a round."""


class RunTask[R](Protocol):
    """What one kind of run does between its first manifest and its end; its records go to an `R`."""

    @property
    def asked(self) -> AnswerRecorder | None:
        """The LLM or reasoner that is asked, if any."""

    def scope(self) -> str:
        """Return a name that runs share if equal answers give them equal tables."""

    @property
    def checkpoint_every(self) -> int | None:
        """Rounds from one checkpoint to the next; None: by time; 0: no checkpoints."""

    def facts(self) -> dict[str, Any]:
        """Return what the manifest says before the run begins, besides `machine.provenance`."""

    def carry_out(self, folder: R) -> str:
        """Run it; return why it counts as failed although it reached its end, or an empty string."""

    def where(self) -> str:
        """Return the round or quarter, for errors."""

    def finish(self, folder: R, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Write the last tables, and return the summary; `ending` has the status, and the error if there is one."""
