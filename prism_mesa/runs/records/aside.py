"""Rows that wait, in files beside the checkpoints: written once, where each checkpoint would write all of them anew.

A checkpoint says which of these files it counts on, and their checksums. None is ever changed.
"""

import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

import pyarrow as pa

from prism_mesa.runs.checkpoints.file import FOLDER, DamagedError, in_one_piece
from prism_mesa.runs.records.arrow_rows import write_stream

FEW: Final = 1 << 20
"""Bytes of rows; so many are written anew by each checkpoint, as a file of their own costs more."""
_NAME: Final = re.compile(r"rows-[a-z]+-(\d{9})\.arrow", re.ASCII)

type Aside = tuple[int, str]
"""After which round a file was written, and its checksum (SHA-256)."""


def write_aside(run: Path, table: str, done: int, rows: pa.Table) -> Aside:
    """Write rows of a table, in one piece and synced, and return what a checkpoint says of the file.

    Raises:
        OSError: If that cannot be done; nothing is left of it then.
    """
    (run / FOLDER).mkdir(exist_ok=True)
    file = _file(run, table, done)
    with in_one_piece(file) as stream:
        write_stream(rows, stream)
    return done, sha256(file.read_bytes()).hexdigest()


def read_aside(run: Path, table: str, aside: Aside) -> bytes:
    """Return what `write_aside` wrote.

    Raises:
        DamagedError: If it is not there, or is not what was written; the message names the file.
    """
    done, checksum = aside
    file = _file(run, table, done)
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise DamagedError(f"{file}: is damaged: {error.strerror}") from None
    if sha256(raw).hexdigest() != checksum:
        raise DamagedError(f"{file}: is damaged: its bytes are not what was written")
    return raw


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
    return min((done for done, _ in entries), default=otherwise)


def _file(run: Path, table: str, done: int) -> Path:
    return run / FOLDER / f"rows-{table}-{done:09d}.arrow"
