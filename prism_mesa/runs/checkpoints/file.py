"""The file of a checkpoint: nested plain data (`prism_mesa.snapshot`) in one ``.npz``, without code and without pickle.

It has an array for each array, uncompressed, and the rest as JSON in an array of bytes. Each has its checksum (CRC-32,
as zip files do). It may come from anybody: what an array declares is compared with what is there before there is memory
for it, so that reading takes no more than the file has bytes.
"""

import io
import json
import os
import struct
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import DataError, NotRestorableError, shortened
from prism_mesa.snapshot import HandedOver, Plain

FORMAT: Final = 1
"""The version of what is in the file."""
_JSON: Final = "json"
_MARK: Final = "array"
_KINDS: Final = "biufSUV"
"""Kinds of arrays: truth values, numbers, texts, and rows of these; none holds objects."""
_BEFORE_NAME: Final = 26
"""Bytes of what stands before a file in a zip file, up to the lengths of its name and of what comes after that."""
_BEFORE_HEADER: Final = 12
"""Bytes of what stands before the header of an array, at most."""
_MOST_HEADER: Final = 4096
_MOST_ARRAYS: Final = 100_000
_FAULTS: Final = (OSError, ValueError, KeyError, TypeError, EOFError, RecursionError, zipfile.BadZipFile, struct.error)
_UNSUPPORTED: Final = (NotImplementedError, RuntimeError, AssertionError, SyntaxError, TokenError, UnicodeError)


class DamagedError(DataError):
    """A checkpoint that cannot be read whole."""


def write_checkpoint(file: Path, data: Mapping[str, Plain]) -> int:
    """Write nested plain data in one piece: under another name, synced to the disk, and then renamed.

    Args:
        file: Where it goes; its folder is there.
        data: What is to be kept.

    Returns:
        The bytes that were written.

    Raises:
        OSError: If that cannot be done; nothing is left of it then.
        NotRestorableError: If something in it is no plain data.
    """
    arrays: list[npt.NDArray[Any]] = []
    try:
        text = json.dumps(_without_arrays(data, arrays), separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise NotRestorableError(f"a checkpoint holds no such thing: {error}") from error
    with in_one_piece(file) as stream:
        with zipfile.ZipFile(stream, "w", allowZip64=True) as members:
            _write_array(members, _JSON, np.frombuffer(text, np.uint8))
            for place, array in enumerate(arrays):
                _write_array(members, str(place), array)
        return stream.tell()


@contextmanager
def in_one_piece(file: Path) -> Iterator[IO[bytes]]:
    """Yield where to write a file: under another name, synced to the disk as the block ends, and then renamed.

    Raises:
        OSError: If that cannot be done; nothing is left of it then.
    """
    part = file.with_name(f".{file.name}")
    try:
        with part.open("wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(file)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
    sync_folder(file.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder reach the disk, where that can be asked for."""
    with suppress(OSError):  # Windows opens no folders
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def read_checkpoint(file: Path) -> dict[str, Plain]:
    """Return what `write_checkpoint` was given; its arrays are handed over to whoever takes it back.

    Raises:
        DamagedError: If it cannot be read, or holds something else.
    """
    try:
        with file.open("rb") as stream, zipfile.ZipFile(stream) as members:
            size = os.fstat(stream.fileno()).st_size
            found = members.infolist()
            if len(found) > _MOST_ARRAYS:
                raise ValueError(f"it has {len(found)} arrays")
            if any(one.compress_type != zipfile.ZIP_STORED for one in found):
                raise ValueError("an array in it is compressed")
            if sum(one.file_size for one in found) > size:
                raise ValueError("its arrays are larger than it is")
            held = {one.filename.removesuffix(".npy"): _read_array(stream, one) for one in found}
        data = _with_arrays(json.loads(held.pop(_JSON).tobytes()), held)
    except (*_FAULTS, *_UNSUPPORTED) as error:
        raise DamagedError(f"{file}: is damaged: {_said(error)}") from None
    if not isinstance(data, dict):
        raise DamagedError(f"{file}: is damaged: it holds no keys and values")
    return data


def _said(error: BaseException) -> str:
    if isinstance(error, KeyError):
        return f"it has no array {error}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return shortened(" ".join(str(error).split())) or type(error).__name__


def _without_arrays(value: Plain, arrays: list[npt.NDArray[Any]]) -> Plain:
    """Return data with a mark in the place of each array, which is added to `arrays`."""
    if isinstance(value, np.ndarray):
        if not _is_plain(value.dtype):
            raise TypeError(f"no checkpoint holds an array of {value.dtype}")
        arrays.append(value)
        return {_MARK: len(arrays) - 1}
    if isinstance(value, Mapping):
        if value.keys() == {_MARK}:
            raise TypeError(f"no checkpoint holds a dict of nothing but {_MARK!r}")
        return {_key(key): _without_arrays(held, arrays) for key, held in value.items()}
    if isinstance(value, list):
        if not any(isinstance(one, list | Mapping | np.ndarray) for one in value):
            return value
        return [_without_arrays(one, arrays) for one in value]
    return value


def _is_plain(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in _KINDS and not dtype.hasobject


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"no checkpoint holds a dict by {type(key).__name__}")
    return key


def _with_arrays(value: Plain, arrays: dict[str, npt.NDArray[Any]]) -> Plain:
    """Return data with the arrays in their places, each in one only, as they are handed over."""
    if isinstance(value, dict):
        if value.keys() == {_MARK}:
            return arrays.pop(str(value[_MARK]))
        return {key: _with_arrays(held, arrays) for key, held in value.items()}
    return [_with_arrays(one, arrays) for one in value] if isinstance(value, list) else value


def _write_array(members: zipfile.ZipFile, name: str, array: npt.NDArray[Any]) -> None:
    """Add an array as `numpy.savez` does, without a copy of what lies in one piece."""
    array = array if array.flags.c_contiguous else np.ascontiguousarray(array)
    header = np.lib.format.header_data_from_array_1_0(array)
    with members.open(f"{name}.npy", "w", force_zip64=True) as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        if array.nbytes:
            stream.write(memoryview(array.reshape(-1).view(np.uint8)))


def _read_array(stream: IO[bytes], member: zipfile.ZipInfo) -> npt.NDArray[Any]:
    """Return an array of a file, in memory of its own into which it was read, whose checksum is looked at first."""
    stream.seek(member.header_offset + _BEFORE_NAME)
    stream.seek(sum(struct.unpack("<HH", stream.read(4))), os.SEEK_CUR)
    raw = np.empty(member.file_size, np.uint8)
    if stream.readinto(raw) != len(raw) or crc32(raw) != member.CRC:  # type: ignore[attr-defined]
        raise ValueError(f"{member.filename} is not what was written")
    told = io.BytesIO(raw[: _MOST_HEADER + _BEFORE_HEADER].tobytes())
    shape, in_columns, dtype = _header(told)
    size, has = dtype.itemsize * int(np.prod(shape, dtype=object)), len(raw) - told.tell()
    if not _is_plain(dtype) or size != has:
        raise ValueError(f"{member.filename} declares {size} bytes of {dtype}, and has {has}")
    array = raw[told.tell() :].view(dtype) if dtype.itemsize else np.zeros(shape, dtype)
    return np.ascontiguousarray(array.reshape(shape, order="F" if in_columns else "C")).view(HandedOver)


def _header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return shape, order and type of an array, as its first bytes declare them."""
    version = np.lib.format.read_magic(stream)
    read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}.get(version)
    if read is None:
        raise ValueError(f"an array in it is of version {version}")
    shape, in_columns, dtype = read(stream, max_header_size=_MOST_HEADER)
    if any(n < 0 for n in shape) or (not dtype.itemsize and np.prod(shape, dtype=object) > _MOST_ARRAYS):
        raise ValueError("an array in it has an impossible shape")
    return shape, in_columns, dtype
