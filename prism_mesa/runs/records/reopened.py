"""The folder of a resumed run, restored to a checkpoint or to the start."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from prism_mesa.errors import DataError
from prism_mesa.runs.checkpoints.file import DamagedError
from prism_mesa.runs.records.arrow_rows import WaitingRows
from prism_mesa.runs.records.folder import RunFolder, part_name
from prism_mesa.runs.run_files import table_path
from prism_mesa.snapshot import Plain
from prism_mesa.tables import TableSchema


class ReopenedFolder(RunFolder):
    """The folder of a resumed run; call `remove_later_tables` before writing.

    `snapshot` comes from `RunFolder.snapshot`, and `check_parts` has checked it; None starts without tables.
    """

    def __init__(self, path: Path, tables: Mapping[str, TableSchema], snapshot: Mapping[str, Plain] | None) -> None:
        self._begin(path, tables)
        if snapshot is not None:
            self._rounds, self.cpu_s = snapshot["rounds"], snapshot["cpu_s"]
            self.notes += snapshot["notes"]
            for table, rows in snapshot["tables"].items():
                waiting = WaitingRows.from_snapshot(tables.get(table), rows["waiting"])
                self._progress[table] = len(rows["sizes"]), waiting

    def remove_later_tables(self) -> None:
        """Remove parts and tables that were written after the checkpoint."""
        for table in self._tables:
            parts, _ = self._progress.get(table, (0, None))
            file = table_path(self.path, table)
            if parts:
                names = {part_name(part) for part in range(parts)}
                later_paths = [part for part in file.iterdir() if part.name not in names]
            else:
                later_paths = [file]
            for path in (*later_paths, self.path / f".{table}.parts", self.path / f".{table}.parquet"):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path)
                else:
                    path.unlink(missing_ok=True)


def check_parts(run: Path, snapshot: Mapping[str, Any]) -> None:
    """Raise DamagedError if a part of a table is missing, or its size differs from that at the checkpoint."""
    for table, rows in snapshot["tables"].items():
        for number, size in enumerate(rows["sizes"]):
            part = table_path(run, table) / part_name(number)
            try:
                if part.stat().st_size != size:
                    raise DamagedError(f"{part} is damaged: has {part.stat().st_size:,} bytes of {size:,}")
                pq.read_metadata(part)
            except (OSError, pa.ArrowException) as error:
                why = getattr(error, "strerror", None) or next(iter(str(error).splitlines()), "")
                raise DamagedError(f"{part} is damaged: {why}") from None


def check_no_links(run: Path) -> None:
    """Raise DataError if a run's folder contains a link, because a resumed run writes into the folder."""
    for folder, folders, files in os.walk(run):
        for link in (os.path.join(folder, name) for name in (*folders, *files)):
            if os.path.islink(link):
                raise DataError(f"{link} is a link; a run is resumed in its folder only: put the file itself there")
