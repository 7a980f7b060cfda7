"""Trust in the folder of a run.

Manifests and checkpoints are signed with a key in the user's data folder. Without `trust`, PRISM does not resume or
branch other runs, import their modules, send requests to their servers, or read files outside of their folders.
"""

import hmac
import json
import os
import secrets
from collections.abc import Buffer, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from tempfile import mkstemp
from typing import Any, Final, Literal

from prism_mesa.errors import DataError, shorten

SIGNATURE: Final = "signature"
"""The manifest's key for its signature."""
KEY_BYTES: Final = 32
_MANIFEST: Final = b"prism-mesa manifest 1\n"
_CHECKPOINT: Final = b"prism-mesa checkpoint 1\n"
_NOT_OWN: Final = {
    "unsigned": "was not made here (its manifest.json is not signed)",
    "changed": "was not made here, or was changed (the signature of its manifest.json does not match)",
}
_MAX_EXAMPLES: Final = 4

_unsigned: Final = ContextVar("unsigned", default=False)

type Origin = Literal["own", "unsigned", "changed"]


@dataclass(frozen=True)
class Resource:
    """A server, a module, or a file outside of the folder, that a configuration names: key, value and use."""

    key: str
    value: str
    use: str

    def __str__(self) -> str:
        return f"{self.key}={shorten(self.value, 90)} ({self.use})"


class _NoKeyError(Exception):
    """The user's key is missing, and cannot be made."""


def key_file() -> Path:
    """Return the path of the user's key: ``$XDG_DATA_HOME/prism-mesa/key``, or below ``~/.local/share``.

    Raises RuntimeError if the user has no home.
    """
    folder = Path(os.environ.get("XDG_DATA_HOME", ""))
    if not folder.is_absolute():  # as the XDG specification says
        folder = Path.home() / ".local" / "share"
    return folder / "prism-mesa" / "key"


def sign(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return a manifest with its signature and an empty string, or an unsigned manifest and the reason.

    In an `unsigned` block, the manifest is unsigned and the reason is empty.
    """
    values: dict[str, Any] = json.loads(json.dumps(manifest, default=str))
    values.pop(SIGNATURE, None)
    if _unsigned.get():
        return values, ""
    try:
        return values | {SIGNATURE: _signature(values, _key(make=True))}, ""
    except _NoKeyError as error:
        effect = "so a server, module or file that its manifest names will be used after --trust only"
        return values, f"{error}: the run is not signed, {effect}; make that folder writable, or set XDG_DATA_HOME"


@contextmanager
def unsigned() -> Iterator[None]:
    """Sign no manifests in the block, because a run that repeats another user's run is not the user's own."""
    token = _unsigned.set(True)
    try:
        yield
    finally:
        _unsigned.reset(token)


def find_origin(manifest: Mapping[str, Any]) -> Origin:
    """Return whether the user signed a manifest that has not changed since."""
    values = dict(manifest)
    signature = values.pop(SIGNATURE, None)
    if signature is None:
        return "unsigned"
    with suppress(_NoKeyError, RecursionError):
        expected = _signature(values, _key())
        if isinstance(signature, str) and hmac.compare_digest(expected.encode(), signature.encode(errors="replace")):
            return "own"
    return "changed"


def require_trust(
    folder: Path, origin: Origin, resources: Sequence[Resource], *, trust: bool, instead: str = ""
) -> None:
    """Raise DataError if a folder from elsewhere names resources; the error says how to allow them."""
    if trust or origin == "own" or not resources:
        return
    names = "; ".join(map(str, resources[:_MAX_EXAMPLES]))
    more = f"; and {len(resources) - _MAX_EXAMPLES} more" if len(resources) > _MAX_EXAMPLES else ""
    raise DataError(
        f"{folder}: {_NOT_OWN[origin]}, and it names {names}{more}: to use that, "
        f"{f'{instead}, or ' if instead else ''}allow it with --trust (in Python trust=True)"
    )


def require_own_run(folder: Path, origin: Origin, activity: str, *, trust: bool) -> None:
    """Raise DataError before an `activity` (resuming or branching) if the user neither made a run nor trusts it."""
    if not trust and origin != "own":
        raise DataError(
            f"{folder}: {_NOT_OWN[origin]}: {activity} it uses its checkpoints, and the modules, servers and "
            "files that it names: allow that with --trust (in Python trust=True)"
        )


def sign_bytes(parts: Iterable[Buffer]) -> bytes:
    """Return a signature of data with the user's key; empty without a key."""
    try:
        mac = hmac.new(_key(), _CHECKPOINT, sha256)
    except _NoKeyError:
        return b""
    for part in parts:
        mac.update(part)
    return mac.digest()


def is_inside(folder: Path, path: str | Path) -> bool:
    """Return whether a path lies in a folder, after following links."""
    try:
        return Path(path).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a loop of links, an impossible name
        return False


def _signature(values: Mapping[str, Any], key: bytes) -> str:
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hmac.new(key, _MANIFEST + canonical.encode(), sha256).hexdigest()


def _key(*, make: bool = False) -> bytes:
    """Return the user's key; `make` creates a missing key. Raises `_NoKeyError`."""
    fault = "the key for signing runs cannot be made" if make else "the key for signing runs cannot be read"
    try:
        file = key_file()
        if make and not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_key(file)
        key = file.read_bytes()
    except (OSError, RuntimeError, ValueError) as error:
        raise _NoKeyError(f"{fault} ({error})") from None
    if len(key) != KEY_BYTES:
        raise _NoKeyError(f"{file} is not a key of {KEY_BYTES} bytes (delete it, and PRISM makes a new key)")
    return key


def _make_key(file: Path) -> None:
    """Write a new key atomically, so that two processes use the same key."""
    handle, path = mkstemp(prefix=".key-", dir=file.parent)  # readable by the owner only
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(secrets.token_bytes(KEY_BYTES))
            stream.flush()
            os.fsync(stream.fileno())
        with suppress(FileExistsError):  # another process was faster
            os.link(path, file)
    finally:
        Path(path).unlink(missing_ok=True)
