"""The records of a run that leaves nothing on disk: in memory, and only of the tables that somebody wants."""

import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import pandas as pd

from prism_mesa.errors import DataError, did_you_mean
from prism_mesa.runs.records.arrow_rows import Rows, WaitingRows
from prism_mesa.runs.work import Checkpointing
from prism_mesa.tables import TableSchema


class RowsInMemory:
    """What a run records, in the place of a `RunFolder`.

    A table that a run ends with is made when somebody asks for it.

    Args:
        tables: Schemas by name, against which rows are checked.
        wanted: Tables of which rows are kept while rounds are run; None: all.

    Attributes:
        path: None: there is no folder.
        cpu_s: CPU seconds that went into keeping rows.
        notes: What whoever made the run should know of its records: nothing.
        checkpoints: None: none are made.
    """

    path: Path | None = None
    checkpoints: Checkpointing | None = None

    def __init__(self, tables: Mapping[str, TableSchema], wanted: Collection[str] | None = None) -> None:
        self.cpu_s = 0.0
        self.notes: list[str] = []
        self._schemas, self._wanted = tables, wanted
        self._rows: dict[str, WaitingRows] = {}
        self._whole: dict[str, Rows | Iterable[Rows]] = {}

    def wants(self, table: str) -> bool:
        """Return whether rows of a table are kept while rounds are run."""
        return self._wanted is None or table in self._wanted

    def write(self, table: str, columns: Rows) -> None:
        """Append rows to a table, if it is wanted; the rest is as for `RunFolder.write`."""
        at = time.process_time()
        if self.wants(table):
            self._rows.setdefault(table, WaitingRows(self._schemas.get(table))).add(columns)
        self.cpu_s += time.process_time() - at

    def write_whole(self, table: str, blocks: Rows | Iterable[Rows]) -> None:
        """Have a table made, in place of what it held, when somebody asks for it."""
        self._rows.pop(table, None)
        self._whole[table] = blocks

    def round_done(self) -> None:
        """Count a round: nothing is written."""

    def table(self, name: str) -> pd.DataFrame:
        """Return a table as `run_files.read_table` returns that of a folder.

        Raises:
            DataError: If nothing of it was recorded.
        """
        if name in self._whole:
            blocks = self._whole.pop(name)
            blocks = [blocks] if isinstance(blocks, Mapping) else blocks
            rows = self._rows[name] = WaitingRows(self._schemas.get(name))
            for block in blocks:
                rows.add(block)
        if name not in self._rows:
            raise DataError(f"no table {name!r} was recorded.{did_you_mean(name, self._schemas)}")
        frame: pd.DataFrame = self._rows[name].table().to_pandas(ignore_metadata=True)
        return frame
