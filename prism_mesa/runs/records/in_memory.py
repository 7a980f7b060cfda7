"""Records of a run that writes no files."""

import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

import pandas as pd

from prism_mesa.errors import DataError, did_you_mean
from prism_mesa.runs.records.arrow_rows import Rows, WaitingRows
from prism_mesa.runs.work import CheckpointMaker
from prism_mesa.tables import TableSchema


class RowsInMemory:
    """The records of a run in memory instead of a `RunFolder` (see `work.Records`).

    Args:
        tables: Schemas by name, against which rows are checked.
        recorded_tables: Tables whose rows are kept during rounds; None keeps all. Final tables are made when read.
    """

    path: Path | None = None
    checkpoints: CheckpointMaker | None = None

    def __init__(self, tables: Mapping[str, TableSchema], recorded_tables: Collection[str] | None = None) -> None:
        self.cpu_s = 0.0
        self.notes: list[str] = []
        self._schemas, self._recorded_tables = tables, recorded_tables
        self._rows: dict[str, WaitingRows] = {}
        self._final_tables: dict[str, Rows | Iterable[Rows]] = {}

    def wants(self, table: str) -> bool:
        """Return whether rows of a table are kept during rounds."""
        return self._recorded_tables is None or table in self._recorded_tables

    def write(self, table: str, columns: Rows) -> None:
        """Append rows to a table if its rows are kept (see `RunFolder.write`)."""
        start_s = time.process_time()
        if self.wants(table):
            self._rows.setdefault(table, WaitingRows(self._schemas.get(table))).add(columns)
        self.cpu_s += time.process_time() - start_s

    def replace_table(self, table: str, blocks: Rows | Iterable[Rows]) -> None:
        """Replace the rows of a table with blocks, which are kept until the table is read."""
        self._rows.pop(table, None)
        self._final_tables[table] = blocks

    def round_done(self) -> None:
        """Do nothing after a round."""

    def table(self, name: str) -> pd.DataFrame:
        """Return a table like `run_files.read_table`; raises DataError if it was not recorded."""
        if name in self._final_tables:
            blocks = self._final_tables.pop(name)
            rows = self._rows[name] = WaitingRows(self._schemas.get(name))
            for block in [blocks] if isinstance(blocks, Mapping) else blocks:
                rows.add(block)
        if name not in self._rows:
            raise DataError(f"no table {name!r} was recorded.{did_you_mean(name, self._schemas)}")
        frame: pd.DataFrame = self._rows[name].table().to_pandas(ignore_metadata=True)
        return frame
