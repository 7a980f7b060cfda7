"""Writing a zip of the same bytes for the same content, and reading one that may come from anybody."""

import io
import os
import re
import secrets
import shutil
import stat
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

from prism_mesa.errors import DataError, RunError, printable, shortened

type Content = bytes | Path

MOST_FILES: Final = 200_000
MOST_BYTES: Final = 64 * 10**9  # of all files of an archive, unpacked
MOST_TIMES: Final = 100  # how many times its own size an archive may unpack to, beside `_FREE` bytes
_FREE: Final = 50 * 10**6
_DATE: Final = (1980, 1, 1, 0, 0, 0)  # the first that a zip can say
_PACKED: Final = (".parquet", ".png")  # files that are compressed already
_BLOCK: Final = 1 << 20
_LONGEST_NAME: Final = 300
_RESERVED: Final = re.compile(r"[\x00-\x1f\x7f<>:\"|?*\\]")
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError)


def write_zip(file: Path, contents: Mapping[str, Content]) -> None:
    """Write a zip in one piece: sorted names, fixed dates, so that the same content has the same bytes.

    Raises:
        RunError: If it cannot be written.
    """
    part = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with part.open("xb") as stream, zipfile.ZipFile(stream, "w") as packed:
            for name in sorted(contents):
                _write(packed, name, contents[name])
        part.replace(file)
    except OSError as error:
        raise RunError(f"{file}: cannot be written: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def _write(packed: zipfile.ZipFile, name: str, content: Content) -> None:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.create_system, entry.external_attr = 3, (stat.S_IFREG | 0o644) << 16
    entry.compress_type = zipfile.ZIP_STORED if name.endswith(_PACKED) else zipfile.ZIP_DEFLATED
    entry.file_size = content.stat().st_size if isinstance(content, Path) else len(content)
    with packed.open(entry, "w") as target, opened_content(content) as source:
        shutil.copyfileobj(source, target, _BLOCK)


def opened_content(content: Content) -> io.BufferedReader | io.BytesIO:
    """Open a content for reading."""
    return content.open("rb") if isinstance(content, Path) else io.BytesIO(content)


class Archive:
    """An archive that may come from anybody: a zip, or the folder that one was unpacked into.

    Attributes:
        sizes: Bytes of each of its files, unpacked, by name.
    """

    def __init__(self, path: Path, sizes: Mapping[str, int], packed: zipfile.ZipFile | None) -> None:
        self.path, self.sizes, self._packed = path, sizes, packed

    def blocks(self, name: str) -> Iterator[bytes]:
        """Yield the bytes of one of its files, piece by piece, and no more of them than it says it has.

        Raises:
            DataError: If it is damaged.
        """
        left = self.sizes[name]
        try:
            with self._opened(name) as stream:
                while block := stream.read(_BLOCK):
                    left -= len(block)
                    if left < 0:
                        raise DataError(f"{self.path}: {name}: has more bytes than it says")
                    yield block
        except _DAMAGED as error:
            if isinstance(error, DataError):
                raise
            raise DataError(f"{self.path}: {name}: is damaged: {error}") from None

    def _opened(self, name: str) -> IO[bytes]:
        return (self.path / name).open("rb") if self._packed is None else self._packed.open(name)

    def read(self, name: str, most: int) -> bytes:
        """Return the bytes of one of its files.

        Raises:
            DataError: If it is damaged, or has more than `most`.
        """
        if self.sizes[name] > most:
            raise DataError(f"{self.path}: {name}: has more than {most:,} bytes")
        return b"".join(self.blocks(name))


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Yield an archive, its names and sizes checked before anything of it is read.

    Raises:
        DataError: If there is none, it is damaged, a name in it leads out of its folder or means a link, or it unpacks
            to more than an archive has.
    """
    if path.is_dir():
        yield Archive(path, _files_of(path), None)
        return
    try:
        packed = zipfile.ZipFile(path)
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except _DAMAGED as error:
        raise DataError(f"{path}: is no archive: {error}") from None
    with packed:
        yield Archive(path, _checked(path, packed.infolist()), packed)


def _checked(path: Path, entries: list[zipfile.ZipInfo]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for entry in entries:
        name = entry.orig_filename
        fault = "is in it twice" if name in sizes else _fault_of(name)
        if fault:
            raise DataError(f"{path}: {printable(shortened(name, 80))}: {fault}")
        sizes[name] = entry.file_size
    _check_sizes(path, sizes, MOST_TIMES * path.stat().st_size + _FREE)
    return sizes


def _check_sizes(path: Path, sizes: Mapping[str, int], most: int) -> None:
    if len(sizes) > MOST_FILES:
        raise DataError(f"{path}: holds {len(sizes):,} files, more than the {MOST_FILES:,} that an archive has")
    size, most = sum(sizes.values()), min(most, MOST_BYTES)
    if size > most:
        raise DataError(f"{path}: unpacks to {size:,} bytes, more than the {most:,} that it may have")


def _fault_of(name: str) -> str:
    """Return why a name is none of a file in an archive; empty if it is one."""
    if not name or len(name) > _LONGEST_NAME or _RESERVED.search(name):
        return "is no name of a file in an archive"
    parts = name.split("/")
    if any(part in ("", ".", "..") or part != part.rstrip(" .") for part in parts):
        return "leads out of the archive's folder, or is a folder"
    return ""


def _files_of(folder: Path) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for where, folders, files in os.walk(folder):
        folders.sort()
        for name in (*folders, *files):
            if (Path(where) / name).is_symlink():
                raise DataError(f"{Path(where) / name}: is a link")
        for name in sorted(files):
            file = Path(where) / name
            if not file.is_file():
                raise DataError(f"{file}: is no plain file")
            sizes[file.relative_to(folder).as_posix()] = file.stat().st_size
        if len(sizes) > MOST_FILES:
            break
    _check_sizes(folder, sizes, MOST_BYTES)
    return sizes


def unpack(archive: Archive, folder: Path) -> None:
    """Write the files of an archive, whose names were checked, into a folder that is missing or empty.

    Raises:
        DataError: If the folder is not empty, or a file is damaged.
        RunError: If a file cannot be written.
    """
    try:
        if folder.is_symlink() or (folder.exists() and (not folder.is_dir() or any(folder.iterdir()))):
            raise DataError(f"{folder}: is not empty: name a folder that is missing or empty")
        for name in archive.sizes:
            file = folder / name
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("xb") as stream:
                for block in archive.blocks(name):
                    stream.write(block)
    except OSError as error:
        raise RunError(f"{folder}: cannot be written: {error.strerror or error}") from None
