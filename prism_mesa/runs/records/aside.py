"""Rows that wait, in files beside the checkpoints: written once, where each checkpoint would write all of them anew.

A checkpoint says which of these files it counts on, and their sizes and checksums. None is ever changed.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from prism_mesa.errors import DataError
from prism_mesa.runs.checkpoints.file import in_one_piece
from prism_mesa.runs.checkpoints.names import FOLDER
from prism_mesa.runs.records.arrow_rows import write_stream

FEW: Final = 1 << 20
"""Bytes of rows; so many are written anew by each checkpoint, as a file of their own costs more."""
_NAME: Final = re.compile(r"rows-[a-z]+-(\d{9})\.arrow", re.ASCII)

type Aside = list[int]
"""After which round a file was written, its size in bytes, and its checksum (CRC-32)."""


def write_aside(run: Path, table: str, done: int, rows: pa.Table) -> Aside:
    """Write rows of a table, in one piece and synced, and return what a checkpoint says of the file.

    Raises:
        OSError: If that cannot be done; nothing is left of it then.
    """
    (run / FOLDER).mkdir(exist_ok=True)
    with in_one_piece(_file(run, table, done)) as stream:
        through = _Checked(stream)
        write_stream(rows, through)
    return [done, through.size, through.checksum]


def read_aside(run: Path, table: str, aside: Aside) -> npt.NDArray[np.uint8]:
    """Return what `write_aside` wrote.

    Raises:
        DataError: If it is not there, or is not what was written; the message names the file.
    """
    done, size, checksum = aside
    file = _file(run, table, done)
    try:
        has = file.stat().st_size
        if has != size or not file.is_file():  # nobody waits at a pipe
            raise DataError(f"{file}: is damaged: has {has:,} bytes of {size:,}")
        raw = np.fromfile(file, np.uint8)
    except OSError as error:
        raise DataError(f"{file}: is damaged: {error.strerror}") from None
    if len(raw) != size or crc32(raw) != checksum:
        raise DataError(f"{file}: is damaged: its bytes are not what was written")
    return raw


def check_aside(run: Path, kept: Mapping[str, Any], rounds: int) -> None:
    """Check that the files are there, and whole, that a checkpoint counts on: each once, from the oldest to the newest.

    Raises:
        DataError: If not.
    """
    for table, of in kept["tables"].items():
        for aside in of["aside"]:
            if not (len(aside) == 3 and all(type(number) is int for number in aside) and 0 <= aside[0] <= rounds):
                raise DataError(f"{table!r:.80}: {aside!r:.80} is no file of rows")
        if any(before[0] >= after[0] for before, after in pairwise(of["aside"])):
            raise DataError(f"{table!r:.80}: its files of rows are not in their order")
        for aside in of["aside"]:
            read_aside(run, table, aside)


def aside_files(run: Path) -> Iterator[tuple[int, Path]]:
    """Yield such files of a run, and after which round each was written."""
    folder = run / FOLDER
    for file in list(folder.iterdir()) if folder.is_dir() else ():
        if (name := _NAME.fullmatch(file.name)) and file.is_file():
            yield int(name[1]), file


def remove_aside(run: Path, wanted: range) -> None:
    """Remove such files, but for those that were written after rounds that are wanted, and what is half written."""
    for done, file in aside_files(run):
        if done not in wanted:
            file.unlink(missing_ok=True)
    for part in (run / FOLDER).glob(".rows-*"):
        part.unlink(missing_ok=True)


def oldest(entries: Sequence[Aside], otherwise: int) -> int:
    """Return after which round the first of some files was written."""
    return min((done for done, _, _ in entries), default=otherwise)


def _file(run: Path, table: str, done: int) -> Path:
    return run / FOLDER / f"rows-{table}-{done:09d}.arrow"


class _Checked:
    """Passes bytes on, and takes note of how many they are, and of their checksum."""

    closed = False

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self.size, self.checksum = stream, 0, 0

    def write(self, data: bytes) -> int:
        """Write bytes, and return how many."""
        self.checksum = crc32(data, self.checksum)
        written = self._stream.write(data)
        self.size += written
        return written

    def flush(self) -> None:
        """Do nothing: whoever opened the stream sees to that."""
