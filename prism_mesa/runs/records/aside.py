"""Waiting rows in files beside the checkpoints, so that each checkpoint writes only what is new.

A checkpoint names the files that it counts on, with their checksums. They never change.
"""

import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import pyarrow as pa

from prism_mesa.runs.checkpoints.file import FOLDER, DamagedError, in_one_piece
from prism_mesa.runs.records.arrow_rows import write_stream

FEW: Final = 1 << 20
"""Bytes of rows that each checkpoint holds itself; a file for so few would cost more."""
_NAME: Final = re.compile(r"rows-[a-z]+-(\d{9})\.arrow", re.ASCII)

type Aside = tuple[int, str]
"""The round after which a file was written, and its checksum (SHA-256)."""


def write_aside(run: Path, table: str, done: int, rows: pa.Table) -> Aside:
    """Write rows of a table (see `in_one_piece`), and return what a checkpoint says of the file."""
    (run / FOLDER).mkdir(exist_ok=True)
    file = _file(run, table, done)
    with in_one_piece(file) as stream:
        write_stream(rows, stream)
    return done, sha256(file.read_bytes()).hexdigest()


def read_aside(run: Path, table: str, aside: Aside) -> bytes:
    """Return what `write_aside` wrote; raises DamagedError if the file is missing, or has changed."""
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
    """Yield these files of a run, each after the round after which it was written."""
    folder = run / FOLDER
    for file in list(folder.iterdir()) if folder.is_dir() else ():
        if (name := _NAME.fullmatch(file.name)) and file.is_file():
            yield int(name[1]), file


def remove_aside(run: Path, wanted: range) -> None:
    """Remove these files, except those of wanted rounds, and half-written ones."""
    for done, file in aside_files(run):
        if done not in wanted:
            file.unlink(missing_ok=True)
    for part in (run / FOLDER).glob(".rows-*"):
        part.unlink(missing_ok=True)


def _file(run: Path, table: str, done: int) -> Path:
    return run / FOLDER / f"rows-{table}-{done:09d}.arrow"
