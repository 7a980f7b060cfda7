"""Files of checkpoints.

A checkpoint is nested plain data (`prism_mesa.snapshot`) in one ``.npz`` file without pickle: arrays, and everything
else as JSON. Each file is signed with the user's key; PRISM uses other files only if the user trusts them.
"""

import hmac
import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from prism_mesa.errors import DataError, NotRestorableError, shorten
from prism_mesa.runs.trust import sign_bytes
from prism_mesa.snapshot import OwnedArray, Plain

FOLDER: Final = "checkpoints"
"""The checkpoints' folder in a run's folder."""
WORLD: Final = "world.npz"
"""The file with the drawn world, in the checkpoints' folder."""
FROM_START: Final = "with --from-start (in Python from_start=True)"
"""How to start a run again despite a checkpoint."""
_NAME: Final = re.compile(r"round-(\d{1,9})\.npz", re.ASCII)
_JSON: Final = "json"
_SEAL: Final = "seal"
_MARK: Final = "array"


class DamagedError(DataError):
    """A checkpoint cannot be read."""


class RefusedError(DataError):
    """A run cannot continue from an intact checkpoint.

    Attributes:
        why: The reason, without a remedy.
    """

    def __init__(self, why: str, remedy: str = "") -> None:
        super().__init__(f"{why}{remedy}")
        self.why = why


def checkpoint_name(n_rounds: int) -> str:
    """Return the file name of the checkpoint after `n_rounds` rounds."""
    return f"round-{n_rounds:09d}.npz"


def checkpoint_files(run: Path) -> list[Path]:
    """Return the checkpoints of a run, newest first."""
    paths = (file for file in (run / FOLDER).glob("round-*") if file.is_file() and _NAME.fullmatch(file.name))
    return sorted(paths, key=checkpoint_round, reverse=True)


def checkpoint_round(file: Path) -> int:
    """Return the number of complete rounds from the name of a checkpoint."""
    return int(file.stem.rpartition("-")[2])


def last_round(run: Path) -> int | None:
    """Return the number of complete rounds in the newest checkpoint; None without a checkpoint."""
    return next(map(checkpoint_round, checkpoint_files(run)), None)


def write_checkpoint(file: Path, data: Mapping[str, Plain]) -> None:
    """Write nested plain data atomically; raises NotRestorableError for other values."""
    arrays: dict[str, npt.NDArray[Any]] = {}
    try:
        text = json.dumps(_without_arrays(data, arrays), separators=(",", ":")).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise NotRestorableError(f"a checkpoint cannot hold this value: {error}") from error
    arrays[_JSON] = np.frombuffer(text, np.uint8)
    members: dict[str, Any] = {**arrays, _SEAL: np.frombuffer(_signature(arrays), np.uint8)}
    with atomic_write(file) as stream:
        np.savez(stream, **members)


@contextmanager
def atomic_write(file: Path) -> Iterator[IO[bytes]]:
    """Yield a stream to a temporary file, which is synced to the disk and renamed at the end."""
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
    """Sync the entries of a folder to the disk, if the system supports it."""
    with suppress(OSError):  # Windows cannot open folders
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def read_checkpoint(file: Path, *, trust: bool = False) -> dict[str, Plain]:
    """Return the data of a checkpoint, with contiguous arrays.

    Raises DamagedError if the file cannot be read, and RefusedError if the user's key did not sign the checkpoint.
    """
    try:
        with file.open("rb") as stream:
            if not zipfile.is_zipfile(stream):
                raise ValueError("it is truncated, or not a checkpoint")
            members = np.load(stream, allow_pickle=False)
            arrays = {name: np.asarray(members[name], order="C").view(OwnedArray) for name in members.files}
    except Exception as error:  # zipfile and numpy raise errors of many classes for a damaged file
        why = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
        raise DamagedError(f"{file} is damaged: {shorten(why)}") from None
    if _SEAL not in arrays:
        raise other_version_error(file)
    is_own = hmac.compare_digest(arrays.pop(_SEAL).tobytes(), _signature(arrays) or b"no key")
    if not (is_own or trust):
        remedy = f": use it with --trust (in Python trust=True), or start the run again {FROM_START}"
        raise RefusedError(f"{file}: was not written here, or was changed", remedy)
    data: dict[str, Plain] = _with_arrays(json.loads(arrays.pop(_JSON).tobytes()), arrays)
    return data


def other_version_error(file: Path) -> RefusedError:
    """Return the error for a checkpoint that another version of PRISM wrote."""
    return RefusedError(
        f"{file}: another version of PRISM wrote it, and a run may continue differently in this version",
        f": go on with that version, or start the run again in this version {FROM_START}",
    )


def _signature(arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """Return the signature of named arrays; empty if the user has no key."""
    return sign_bytes(
        piece
        for name, array in arrays.items()
        for piece in (
            f"{name} {array.dtype.descr} {array.shape}\n".encode(),
            np.asarray(array, order="C").reshape(-1).view(np.uint8),
        )
    )


def _without_arrays(value: Plain, arrays: dict[str, npt.NDArray[Any]]) -> Plain:
    """Move arrays from the data to `arrays`, and return the data with a mark in place of each array."""
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError(f"an array of {value.dtype}")
        name = str(len(arrays))
        arrays[name] = value
        return {_MARK: name}
    if isinstance(value, Mapping):
        if value.keys() == {_MARK} or not all(isinstance(key, str) for key in value):
            raise TypeError(f"a dict with the keys {list(value)}")
        return {key: _without_arrays(item, arrays) for key, item in value.items()}
    if isinstance(value, list) and any(isinstance(item, list | Mapping | np.ndarray) for item in value):
        return [_without_arrays(item, arrays) for item in value]
    return value


def _with_arrays(value: Plain, arrays: Mapping[str, npt.NDArray[Any]]) -> Plain:
    if isinstance(value, dict):
        if value.keys() == {_MARK}:
            return arrays[value[_MARK]]
        return {key: _with_arrays(item, arrays) for key, item in value.items()}
    return [_with_arrays(item, arrays) for item in value] if isinstance(value, list) else value
