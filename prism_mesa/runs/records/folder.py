"""Write the folder of a run: Parquet tables and the manifest."""

import glob
import json
import os
import shutil
import time
import warnings
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from prism_mesa.errors import DataError, PrismWarning, redact_credentials
from prism_mesa.runs.process.lock import RunLock, require_free
from prism_mesa.runs.records.arrow_rows import Rows, WaitingRows, arrow_table
from prism_mesa.runs.run_files import MANIFEST, table_path
from prism_mesa.runs.trust import sign
from prism_mesa.runs.work import CheckpointMaker
from prism_mesa.snapshot import Plain
from prism_mesa.tables import TableSchema

PART_ROWS = 1_000_000
PART_ROUNDS = 50
_INCOMPRESSIBLE: Final = ("post", "root")
"""Columns that do not compress well after encoding, because their numbers are far apart."""


class RunFolder:
    """The folder of a run while it is written (see `work.Records`).

    A large table is a folder of parts, which are written after `PART_ROWS` rows or `PART_ROUNDS` rounds. Complete files
    are renamed, so a crash loses at most one part.

    Args:
        out: Parent folder; made if missing.
        tables: Schemas by name; tables without a schema are not checked.
        has_date: Whether to add date and time to the name. Otherwise an existing folder is renamed, with a note.

    Attributes:
        lock: The lock on the folder, if any; it records each round.
    """

    def __init__(self, out: Path, name: str, tables: Mapping[str, TableSchema], *, has_date: bool = True) -> None:
        path, earlier = (new_folder(out, name), None) if has_date else replace_folder(out, name)
        self._begin(path, tables)
        self.notes += [f"an earlier attempt at this run is in {earlier.name}"] if earlier else []

    def _begin(self, path: Path, tables: Mapping[str, TableSchema]) -> None:
        self.path = path
        self._tables = tables
        self._progress: dict[str, tuple[int, WaitingRows]] = {}
        """Number of written parts and waiting rows by table, in one tuple so that an interrupt cannot separate them."""
        self._rounds = 0
        self.cpu_s = 0.0
        self.lock: RunLock | None = None
        self.notes: list[str] = []
        self.checkpoints: CheckpointMaker | None = None
        self._unsynced: list[Path] = []

    def write(self, table: str, columns: Rows) -> None:
        """Append rows to a table; raises TypeError if they do not fit the schema."""
        start_s = time.process_time()
        _, waiting = self._progress.setdefault(table, (0, WaitingRows(self._tables.get(table))))
        waiting.add(columns)
        while len(waiting) >= PART_ROWS:
            waiting = self._flush(table)
        self.cpu_s += time.process_time() - start_s

    def replace_table(self, table: str, blocks: Rows | Iterable[Rows]) -> None:
        """Replace a table with one file, or with a folder of parts if there are several blocks."""
        start_s = time.process_time()
        blocks = [blocks] if isinstance(blocks, Mapping) else blocks
        file = table_path(self.path, table)
        parts = self.path / f".{table}.parts"
        shutil.rmtree(parts, ignore_errors=True)
        parts.mkdir()
        n = 0
        for n, block in enumerate(blocks, start=1):
            _write_file(arrow_table(block, self._tables.get(table)), parts / part_name(n - 1))
        if n == 1:
            (parts / part_name(0)).replace(file)
            parts.rmdir()
        else:
            if file.is_dir():
                shutil.rmtree(file)
            else:
                file.unlink(missing_ok=True)
            parts.replace(file)
        self.cpu_s += time.process_time() - start_s

    def round_done(self) -> None:
        """Count a round, and write the waiting rows after every `PART_ROUNDS` rounds."""
        self._rounds += 1
        if self.lock is not None:
            self.lock.note_round(self._rounds)
        if self._rounds % PART_ROUNDS == 0:
            for table in self._progress:
                self._flush(table)

    def close(self) -> None:
        """Write all waiting rows."""
        for table, (_, waiting) in self._progress.items():
            file = table_path(self.path, table)
            if file.is_dir():
                while self._flush(table):
                    pass
            elif not waiting.is_new:
                _write_file(waiting.table(), file)
                waiting.clear()

    def _flush(self, table: str) -> WaitingRows:
        """Write a part of at most `PART_ROWS` waiting rows, and return the rest."""
        part, waiting = self._progress[table]
        if not len(waiting):
            return waiting
        rows = waiting.table()
        folder = table_path(self.path, table)
        folder.mkdir(exist_ok=True)
        _write_file(rows[:PART_ROWS], folder / part_name(part))
        self._unsynced.append(folder / part_name(part))
        remaining = WaitingRows(self._tables.get(table), rows[PART_ROWS:] if len(rows) > PART_ROWS else None)
        self._progress[table] = part + 1, remaining
        return remaining

    def snapshot(self) -> dict[str, Plain]:
        """Sync the parts to the disk, and return their sizes and the waiting rows."""
        for path in (*self._unsynced, *{file.parent for file in self._unsynced}):
            _sync(path)
        self._unsynced.clear()
        tables = {
            table: {
                "sizes": [(table_path(self.path, table) / part_name(part)).stat().st_size for part in range(parts)],
                "waiting": waiting.snapshot(),
            }
            for table, (parts, waiting) in self._progress.items()
        }
        return {"rounds": self._rounds, "cpu_s": self.cpu_s, "notes": list(self.notes), "tables": tables}

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write a signed manifest.json atomically, without passwords in addresses."""
        values, note = sign(_redacted(dict(manifest)))
        part = self.path / f".{MANIFEST}"
        part.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        part.replace(self.path / MANIFEST)
        if self.lock is not None:
            self.lock.has_ended = manifest.get("status") != "running"
        if note and note not in self.notes:
            self.notes.append(note)
            warnings.warn(note, PrismWarning, stacklevel=2)


def _redacted(value: Any) -> Any:
    """Return a value without passwords in addresses; an address under `host` may lack ``http://``."""
    if isinstance(value, dict):
        return {key: _redacted_host(item) if key == "host" else _redacted(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_redacted(item) for item in value]
    return redact_credentials(value) if isinstance(value, str) else value


def _redacted_host(host: Any) -> Any:
    if isinstance(host, str):
        return redact_credentials(f"host={host}").removeprefix("host=")
    return [_redacted_host(item) for item in host] if isinstance(host, list | tuple) else _redacted(host)


def make_folder(out: Path) -> None:
    """Make a folder and its parents if they are missing; raises DataError if that fails."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"--out: {out}: cannot make that folder: {error.strerror}") from None


def new_folder(out: Path, name: str) -> Path:
    """Make and return ``out/<name>-<date>-<time>``, numbered if it exists."""
    make_folder(out)
    stem = f"{name}-{datetime.now(UTC):%Y%m%d-%H%M%S}"
    for number in range(1000):
        folder = out / (stem if not number else f"{stem}-{number}")
        try:
            folder.mkdir()
        except FileExistsError:
            continue
        except OSError as error:
            raise DataError(f"--out: {out}: cannot make a folder there: {error.strerror}") from None
        return folder
    raise DataError(f"--out: {out}: no free name for {stem}")


def replace_folder(out: Path, name: str) -> tuple[Path, Path | None]:
    """Make ``out/<name>``, and move an earlier folder of that name to ``<name>.broken-N``; return both.

    Raises DataError if that fails, or a process writes to the earlier folder.
    """
    make_folder(out)
    folder, earlier = out / name, None
    require_free(folder)
    try:
        if folder.exists():
            suffixes = (other.name.rpartition("-")[2] for other in out.glob(f"{glob.escape(name)}.broken-*"))
            number = max((int(suffix) for suffix in suffixes if suffix.isdecimal()), default=0) + 1
            earlier = folder.rename(out / f"{name}.broken-{number}")
        folder.mkdir()
    except OSError as error:
        raise DataError(f"--out: {out}: cannot make the folder {name} there: {error.strerror}") from None
    return folder, earlier


def _sync(path: Path) -> None:
    """Sync a file or folder to the disk; Windows can sync writable files only."""
    is_folder = path.is_dir()
    if os.name == "nt" and is_folder:
        return
    descriptor = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def part_name(number: int) -> str:
    """Return the name of a part of a table, counted from 0."""
    return f"part-{number:05d}.parquet"


def _write_file(table: pa.Table, file: Path) -> None:
    """Write a table atomically, with statistics of round, tick and agent for queries."""
    encoded = [f.name for f in table.schema if pa.types.is_dictionary(f.type) or f.name == "interests"]
    integers = [f.name for f in table.schema if pa.types.is_integer(f.type)]
    uncompressed = () if "to_state" in table.column_names else _INCOMPRESSIBLE
    part = file.with_name(f".{file.name}")
    pq.write_table(
        table.combine_chunks(),  # the file does not depend on how the rows were added
        part,
        compression={name: "NONE" if name in uncompressed else "ZSTD" for name in table.column_names},
        compression_level=dict.fromkeys((name for name in table.column_names if name not in uncompressed), 1),
        use_dictionary=encoded,
        column_encoding=dict.fromkeys(integers, "DELTA_BINARY_PACKED"),
        write_statistics=[name for name in ("round", "tick", "agent") if name in table.column_names],
    )
    part.replace(file)
