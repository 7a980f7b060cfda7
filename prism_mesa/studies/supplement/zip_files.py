"""Reproducible zip files, and a reader for untrusted zips and folders."""

import io
import os
import re
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from prism_mesa.errors import DataError, RunError, printable, shorten
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.studies.folder import replacing

type Content = bytes | Path

MAX_FILES: Final = 200_000
MAX_BYTES: Final = 64 * 10**9  # largest unpacked size of all files
MAX_RATIO: Final = 100  # largest ratio of unpacked to packed size, apart from `_ALLOWANCE` bytes
_ALLOWANCE: Final = 50 * 10**6
_DATE: Final = (1980, 1, 1, 0, 0, 0)  # the earliest date in a zip
_COMPRESSED: Final = (".parquet", ".png")  # already compressed
_BLOCK: Final = 1 << 20
_MAX_NAME: Final = 300
_RESERVED: Final = re.compile(r"[\x00-\x1f\x7f<>:\"|?*\\]")
_FAULTS: Final = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError)


def write_zip(file: Path, contents: Mapping[str, Content]) -> None:
    """Write a zip with sorted names and fixed dates, so that equal contents give equal bytes."""
    make_folder(file.parent)
    with replacing(file) as new_file, zipfile.ZipFile(new_file, "w") as zip_file:
        for name, content in sorted(contents.items()):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o644) << 16
            entry.compress_type = zipfile.ZIP_STORED if name.endswith(_COMPRESSED) else zipfile.ZIP_DEFLATED
            entry.file_size = content.stat().st_size if isinstance(content, Path) else len(content)
            with zip_file.open(entry, "w") as target, open_content(content) as source:
                shutil.copyfileobj(source, target, _BLOCK)


def open_content(content: Content) -> io.BufferedReader | io.BytesIO:
    """Open content for reading."""
    return content.open("rb") if isinstance(content, Path) else io.BytesIO(content)


class Archive:
    """An untrusted archive, as a zip or unpacked in a folder; `sizes` has the unpacked size of each file by name."""

    def __init__(self, path: Path, sizes: Mapping[str, int], zip_file: zipfile.ZipFile | None) -> None:
        self.path, self.sizes, self._zip_file = path, sizes, zip_file

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of a file in blocks; raise DataError if it is damaged or longer than declared."""
        n_left = self.sizes[name]
        try:
            with (self.path / name).open("rb") if self._zip_file is None else self._zip_file.open(name) as stream:
                while block := stream.read(_BLOCK):
                    n_left -= len(block)
                    if n_left < 0:
                        raise EOFError("has more bytes than declared")
                    yield block
        except _FAULTS as error:
            raise DataError(f"{self.path}: {name} is damaged: {error}") from None

    def read(self, name: str, max_bytes: int) -> bytes:
        """Return the bytes of a file; raise DataError if it is damaged or longer than `max_bytes`."""
        if self.sizes[name] > max_bytes:
            raise DataError(f"{self.path}: {name}: has more than {max_bytes:,} bytes")
        return b"".join(self.blocks(name))


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Yield an archive with checked names and sizes; raise DataError if it is damaged, unsafe or too large."""
    if path.is_dir():
        yield Archive(path, _sizes_in_folder(path), None)
        return
    try:
        zip_file = zipfile.ZipFile(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except _FAULTS as error:
        raise DataError(f"{path}: is not an archive: {error}") from None
    with zip_file:
        sizes: dict[str, int] = {}
        for entry in zip_file.infolist():
            name = entry.orig_filename
            fault = "occurs twice" if name in sizes else _name_fault(name)
            if fault:
                raise DataError(f"{path}: {printable(shorten(name, 80))}: {fault}")
            sizes[name] = entry.file_size
        _check_sizes(path, sizes, MAX_RATIO * path.stat().st_size + _ALLOWANCE)
        yield Archive(path, sizes, zip_file)


def _check_sizes(path: Path, sizes: Mapping[str, int], max_bytes: int = MAX_BYTES) -> None:
    size, max_bytes = sum(sizes.values()), min(max_bytes, MAX_BYTES)
    if len(sizes) > MAX_FILES or size > max_bytes:
        raise DataError(f"{path}: unpacks to {size:,} bytes in {len(sizes):,} files, more than allowed")


def _name_fault(name: str) -> str:
    """Return why a name is not allowed in an archive; empty if it is allowed."""
    if not name or len(name) > _MAX_NAME or _RESERVED.search(name):
        return "is not a valid name of a file"
    if any(part in ("", ".", "..") or part != part.rstrip(" .") for part in name.split("/")):
        return "leads out of the archive's folder, or is a folder"
    return ""


def _sizes_in_folder(folder: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for root, folders, files in os.walk(folder):
        folders.sort()
        for file in (Path(root) / name for name in (*folders, *sorted(files))):
            if file.is_symlink() or not (file.is_dir() or file.is_file()):
                raise DataError(f"{file}: is a link or a special file")
            if file.is_file():
                sizes[file.relative_to(folder).as_posix()] = file.stat().st_size
        if len(sizes) > MAX_FILES:
            break
    _check_sizes(folder, sizes)
    return sizes


def unpack(archive: Archive, folder: Path) -> None:
    """Write the files of a checked archive into a missing or empty folder."""
    try:
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise DataError(f"{folder}: is not empty: name a missing or empty folder")
        for name in archive.sizes:
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as stream:
                for block in archive.blocks(name):
                    stream.write(block)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None
