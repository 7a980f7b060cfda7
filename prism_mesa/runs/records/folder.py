"""The folder of a run while it is written: Parquet tables in parts, and the manifest."""

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

from prism_mesa.errors import DataError, PrismWarning, said_openly
from prism_mesa.runs.process.lock import RunLock, require_free
from prism_mesa.runs.records.arrow_rows import Rows, WaitingRows, arrow_table
from prism_mesa.runs.records.aside import FEW, oldest, write_aside
from prism_mesa.runs.run_files import MANIFEST, file_of
from prism_mesa.runs.trust import sign
from prism_mesa.runs.work import Checkpointing
from prism_mesa.snapshot import Plain
from prism_mesa.tables import TableSchema

PART_ROWS = 1_000_000
PART_ROUNDS = 50
_DENSE: Final = ("post", "root")
"""Columns of numbers that lie far apart, but where agents do one thing after the other with the same post: what is
left of them by their encoding is not made smaller."""


class RunFolder:
    """A run's folder while it is written.

    A table is one file, or a folder of parts once it has grown: a part is written when it holds
    `PART_ROWS` rows or `PART_ROUNDS` rounds, under a name with a leading dot that is then taken off, so
    that a crash loses at most the part that was being filled.

    Args:
        out: Parent folder; made if missing.
        name: What the folder is named for.
        tables: Schemas by name, against which each write is checked; a table without one is written as it comes.
        dated: Whether date and time are added to the name. Without them a folder of that name that is there already is
            moved aside, and a note says so (see `own_folder`).

    Attributes:
        cpu_s: CPU seconds that went into writing so far.
        notes: What whoever made the run should know of its folder.
        lock: The lock that is held on it, which is told each round that begins; None if none is.
        checkpoints: What makes checkpoints of the run; None: nothing does.
    """

    def __init__(self, out: Path, name: str, tables: Mapping[str, TableSchema], *, dated: bool = True) -> None:
        path, aside = (new_folder(out, name), None) if dated else own_folder(out, name)
        self._begin(path, tables)
        self.notes += [f"an earlier attempt at this run lies in {aside.name}"] if aside else []

    def _begin(self, path: Path, tables: Mapping[str, TableSchema]) -> None:
        """Begin to write into a folder."""
        self.path = path
        self._tables = tables
        self._open: dict[str, tuple[int, WaitingRows]] = {}
        """Table -> parts written, rows waiting; one value, so that an interrupt cannot come in between."""
        self._rounds = 0
        self.cpu_s = 0.0
        self.lock: RunLock | None = None
        self.notes: list[str] = []
        self.checkpoints: Checkpointing | None = None
        self._unsynced: list[Path] = []

    def write(self, table: str, columns: Rows) -> None:
        """Append rows to a table; columns are arrays of one length.

        Raises:
            TypeError: If they are not the columns of its schema, in their order, each of its type.
        """
        at = time.process_time()
        _, waiting = self._open.setdefault(table, (0, WaitingRows(self._tables.get(table))))
        waiting.add(columns)
        while len(waiting) >= PART_ROWS:
            waiting = self._flush(table)
        self.cpu_s += time.process_time() - at

    def write_whole(self, table: str, blocks: Rows | Iterable[Rows]) -> None:
        """Write a table in place of what it held: one file, or a folder of parts if it comes in several blocks.

        A block is made when the one before has been written, so no more than two are in memory.

        Raises:
            TypeError: As for `write`.
        """
        at = time.process_time()
        blocks = [blocks] if isinstance(blocks, Mapping) else blocks
        file = file_of(self.path, table)
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
        self.cpu_s += time.process_time() - at

    def round_done(self) -> None:
        """Count a round; every `PART_ROUNDS` rounds what waits is written."""
        self._rounds += 1
        if self.lock is not None:
            self.lock.note_round(self._rounds)
        if self._rounds % PART_ROUNDS == 0:
            for table in self._open:
                self._flush(table)

    def close(self) -> None:
        """Write what waits."""
        for table, (_, waiting) in self._open.items():
            file = file_of(self.path, table)
            if file.is_dir():
                while self._flush(table):
                    pass
            elif not waiting.is_new:
                _write_file(waiting.table(), file)
                waiting.clear()

    def _flush(self, table: str) -> WaitingRows:
        """Write a part of what waits, `PART_ROWS` rows at most, and return the rest."""
        part, waiting = self._open[table]
        if not len(waiting):
            return waiting
        rows = waiting.table()
        folder = file_of(self.path, table)
        folder.mkdir(exist_ok=True)
        _write_file(rows[:PART_ROWS], folder / part_name(part))
        self._unsynced.append(folder / part_name(part))
        rest = WaitingRows(self._tables.get(table), rows[PART_ROWS:] if len(rows) > PART_ROWS else None)
        self._open[table] = part + 1, rest
        return rest

    @property
    def oldest_aside(self) -> int:
        """After which round the oldest file was written that holds rows that wait (`records.aside`)."""
        return min((oldest(waiting.aside, self._rounds) for _, waiting in self._open.values()), default=self._rounds)

    def snapshot(self) -> dict[str, Plain]:
        """Return how far it is written: parts, which are on the disk for good now, and rows that wait.

        Of these many are put aside, into files that later ones count on too.

        Raises:
            OSError: If they cannot be brought there.
        """
        for file in self._unsynced:
            _sync(file)
        for folder in {file.parent for file in self._unsynced}:
            _sync(folder)
        self._unsynced.clear()
        for table, (_, waiting) in self._open.items():
            fresh = waiting.fresh()
            if fresh is not None and fresh.nbytes > FEW:
                waiting.put_aside(write_aside(self.path, table, self._rounds, fresh))
        tables = {
            table: {
                "aside": list(map(list, waiting.aside)),
                "sizes": [(file_of(self.path, table) / part_name(part)).stat().st_size for part in range(parts)],
                "waiting": waiting.snapshot(),
            }
            for table, (parts, waiting) in self._open.items()
        }
        return {"rounds": self._rounds, "cpu_s": self.cpu_s, "notes": list(self.notes), "tables": tables}

    def write_manifest(self, manifest: Mapping[str, Any]) -> None:
        """Write manifest.json, in one piece, signed (`trust.sign`), without passwords of addresses."""
        values, unsigned = sign(_openly(dict(manifest)))
        part = self.path / f".{MANIFEST}"
        part.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")
        part.replace(self.path / MANIFEST)
        if self.lock is not None:
            self.lock.ended = manifest.get("status") != "running"
        if unsigned and unsigned not in self.notes:
            self.notes.append(unsigned)
            warnings.warn(unsigned, PrismWarning, stacklevel=2)


def _openly(value: Any) -> Any:
    """Return a value with no password of an address in any text of it."""
    if isinstance(value, dict):
        return {key: _openly(held) for key, held in value.items()} | _host_openly(value.get("host"))
    if isinstance(value, list | tuple):
        return [_openly(held) for held in value]
    return said_openly(value) if isinstance(value, str) else value


def _host_openly(host: Any) -> dict[str, Any]:
    """Return the addresses of servers, if they are some, without who asks, which may be written before an @."""
    if isinstance(host, str):
        return {"host": said_openly(f"host={host}").removeprefix("host=")}
    return {"host": [_host_openly(one).get("host", one) for one in host]} if isinstance(host, list | tuple) else {}


def make_folder(out: Path) -> None:
    """Make a folder and its parents, if they are missing.

    Raises:
        DataError: If that cannot be done.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"--out: {out}: cannot make that folder: {error.strerror}") from None


def new_folder(out: Path, name: str) -> Path:
    """Make and return ``out/<name>-<date>-<time>``, with a number if that is taken."""
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


def own_folder(out: Path, name: str) -> tuple[Path, Path | None]:
    """Make and return ``out/<name>``, and where a folder of this name was moved to that was there already.

    That is the next of ``<name>.broken-1``, ``<name>.broken-2``, ...

    Raises:
        DataError: If that cannot be done, or somebody writes to the folder that is there.
    """
    make_folder(out)
    folder, aside = out / name, None
    require_free(folder)
    try:
        if folder.exists():
            taken = [_number(other) for other in out.glob(f"{glob.escape(name)}.broken-*")]
            aside = folder.rename(out / f"{name}.broken-{max(taken, default=0) + 1}")
        folder.mkdir()
    except OSError as error:
        raise DataError(f"--out: {out}: cannot make the folder {name} there: {error.strerror}") from None
    return folder, aside


def _number(folder: Path) -> int:
    """Return the number that the name of a folder ends with, or 0."""
    number = folder.name.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def _sync(path: Path) -> None:
    """Have a file or folder reach the disk; Windows opens no folders, and syncs what can be written only."""
    is_folder = path.is_dir()
    if os.name == "nt" and is_folder:
        return
    number = os.open(path, os.O_RDONLY if is_folder else os.O_RDWR)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def part_name(number: int) -> str:
    """Return the name of a part of a table, counted from 0."""
    return f"part-{number:05d}.parquet"


def _write_file(table: pa.Table, file: Path) -> None:
    """Write a file in one piece: small, in little time, and with the bounds of round, tick and agent for queries."""
    few = [f.name for f in table.schema if pa.types.is_dictionary(f.type) or f.name == "interests"]
    steps = [f.name for f in table.schema if pa.types.is_integer(f.type)]
    dense = () if "to_state" in table.column_names else _DENSE
    part = file.with_name(f".{file.name}")
    pq.write_table(
        table.combine_chunks(),  # how rows came in, and where a run was stopped, leaves no trace
        part,
        compression={name: "NONE" if name in dense else "ZSTD" for name in table.column_names},
        compression_level=dict.fromkeys((name for name in table.column_names if name not in dense), 1),
        use_dictionary=few,
        column_encoding=dict.fromkeys(steps, "DELTA_BINARY_PACKED"),
        write_statistics=[name for name in ("round", "tick", "agent") if name in table.column_names],
    )
    part.replace(file)
