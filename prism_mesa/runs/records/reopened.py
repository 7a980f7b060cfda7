"""The folder of a run that goes on: as it stood at a checkpoint, or empty but for the ledger."""

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
from prism_mesa.runs.records.aside import read_aside
from prism_mesa.runs.records.folder import RunFolder, part_name
from prism_mesa.runs.run_files import file_of
from prism_mesa.snapshot import Plain
from prism_mesa.tables import TableSchema


class ReopenedFolder(RunFolder):
    """A run's folder, written further from where it stood; before that `remove_later` is to be called.

    Args:
        path: The folder.
        tables: As for `RunFolder`.
        kept: What `RunFolder.snapshot` returned, and `check_parts` has looked at; None: no table counts.
    """

    def __init__(self, path: Path, tables: Mapping[str, TableSchema], kept: Mapping[str, Plain] | None) -> None:
        self._begin(path, tables)
        if kept is not None:
            self._rounds, self.cpu_s = kept["rounds"], kept["cpu_s"]
            self.notes += kept["notes"]
            self._open = {
                table: (len(rows["sizes"]), self._waiting(table, rows)) for table, rows in kept["tables"].items()
            }

    def _waiting(self, table: str, rows: Mapping[str, Plain]) -> WaitingRows:
        aside = [((done, checksum), read_aside(self.path, table, (done, checksum))) for done, checksum in rows["aside"]]
        return WaitingRows.of(self._tables.get(table), rows["waiting"], aside)

    def remove_later(self) -> None:
        """Remove what was written later: parts and tables, whole or half written.

        Raises:
            OSError: If something cannot be removed.
        """
        for table in self._tables:
            parts, _ = self._open.get(table, (0, None))
            _remove_later(file_of(self.path, table), parts)
            _remove(self.path / f".{table}.parts")
            _remove(self.path / f".{table}.parquet")


def _remove_later(table: Path, parts: int) -> None:
    """Remove a table, or of one in parts those that came later, and what was half written."""
    if not parts:
        _remove(table)
        return
    names = {part_name(part) for part in range(parts)}
    for file in list(table.iterdir()):
        if file.name not in names:
            _remove(file)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def check_parts(run: Path, kept: Mapping[str, Any]) -> None:
    """Check that the parts of tables that a checkpoint counts are there, and whole as far as their ends tell.

    So are the files of rows that wait, of which every byte counts.

    Raises:
        DamagedError: If not; the message names the file.
    """
    for table, rows in kept["tables"].items():
        for number, size in enumerate(rows["sizes"]):
            part = file_of(run, table) / part_name(number)
            try:
                if part.stat().st_size != size:
                    raise DamagedError(f"{part}: is damaged: has {part.stat().st_size:,} bytes of {size:,}")
                pq.read_metadata(part)
            except (OSError, pa.ArrowException) as error:
                why = getattr(error, "strerror", None) or next(iter(str(error).splitlines()), "")
                raise DamagedError(f"{part}: is damaged: {why}") from None
        for aside in rows["aside"]:
            read_aside(run, table, aside)


def check_no_links(run: Path) -> None:
    """Check that nothing in a run's folder, or in a folder in it, is a link: what goes on is written into it.

    Raises:
        DataError: If something is.
    """
    for folder, folders, files in os.walk(run):
        for name in (*folders, *files):
            if os.path.islink(os.path.join(folder, name)):
                link = os.path.join(folder, name)
                raise DataError(f"{link}: is a link: a run goes on in its own folder only: put the file itself there")
