"""What a run does, and where its records go, as `lifecycle` sees them: any work whose end is to be written down."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from prism_mesa.llm import AnswerStore
from prism_mesa.runs.records.arrow_rows import Rows
from prism_mesa.snapshot import Plain


class Asked(Protocol):
    """Who is asked in a run, and keeps answers."""

    store: AnswerStore


class Checkpointing(Protocol):
    """What makes checkpoints of a run.

    Attributes:
        cpu_s: CPU seconds that went into them.
        world: Returns what is kept once beside them, if anything; None: nothing is.
    """

    cpu_s: float
    world: Callable[[], Mapping[str, Plain] | None] | None

    def round_done(self, done: int, state: Callable[[], Mapping[str, Plain]], *, last: bool) -> None:
        """Make a checkpoint if one is due; `last`: the run is stopped now."""
        ...


class Records(Protocol):
    """Where the records of a run go: a `RunFolder`, or `records.in_memory.RowsInMemory`.

    Attributes:
        cpu_s: CPU seconds that went into them.
        notes: What whoever made the run should know of them.
        checkpoints: What makes checkpoints of the run; None: nothing does.
    """

    cpu_s: float
    notes: list[str]
    checkpoints: Checkpointing | None

    @property
    def path(self) -> Path | None:
        """The run's folder; None if it has none."""
        ...

    def write(self, table: str, columns: Rows) -> None:
        """Append rows to a table."""
        ...

    def write_whole(self, table: str, blocks: Rows | Iterable[Rows]) -> None:
        """Write a table in place of what it held."""
        ...

    def round_done(self) -> None:
        """Count a round."""
        ...


class Work[R](Protocol):
    """What a run does from the facts of its manifest to its end: what runs of one kind do not share with others.

    `R` is where its records may go.
    """

    @property
    def asked(self) -> Asked | None:
        """Who is asked; None if nobody."""
        ...

    def scope(self) -> str:
        """Return a name for all runs in which the same happens, if the answers are the same."""
        ...

    @property
    def checkpoint_every(self) -> int | None:
        """Rounds after which a checkpoint is made; None: by time; 0: never."""
        ...

    def facts(self) -> dict[str, Any]:
        """Return what the manifest says before it begins, beside `process.machine.provenance`."""
        ...

    def carry_out(self, folder: R) -> str:
        """Do it; return why it counts as failed although it came to its end, or an empty string."""
        ...

    def where(self) -> str:
        """Return how far it has come, for errors."""
        ...

    def finish(self, folder: R, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Write the last tables, and return the summary; `ending`: status, and the error if there was one."""
        ...


class Stepped(Protocol):
    """A model whose rounds are run."""

    recorder: Any
    running: bool

    def snapshot(self) -> Mapping[str, Plain]:
        """Return its state as plain data; it is asked for only where checkpoints are made."""
        ...

    def step(self) -> None:
        """Run the next round."""
        ...
