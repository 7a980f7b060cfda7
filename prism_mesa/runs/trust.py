"""Whose a run's folder is, and what of it may be used: a folder is data, and comes from anybody.

Manifests and checkpoints are signed with a key in the user's own data folder, so that runs made here are known again
wherever they were moved. Without `trust` no other folder is resumed or branched, and of it no module is imported, no
server asked, and no file outside of it read.
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

from prism_mesa.errors import DataError

SIGNATURE: Final = "signature"
"""The key of a manifest under which its signature stands."""
KEY_BYTES: Final = 32
_MEANING: Final = b"prism-mesa manifest 1\n"
"""What is signed besides the content, so that the signature means nothing else."""
_MEANING_OF_SEAL: Final = b"prism-mesa checkpoint 1\n"
_NOT_OWN: Final = {
    "unsigned": "was not made here (its manifest.json is not signed)",
    "changed": "was not made here, or was changed (the signature of its manifest.json does not match)",
}
_SHOWN: Final = 90
_MOST_NAMED: Final = 4

_unsigned: Final = ContextVar("unsigned", default=False)

type Origin = Literal["own", "unsigned", "changed"]


@dataclass(frozen=True)
class Named:
    """Something outside of itself that a folder names: the key, its value, and what using it would do."""

    key: str
    value: str
    does: str

    def __str__(self) -> str:
        value = self.value if len(self.value) <= _SHOWN else f"{self.value[:_SHOWN]}..."
        return f"{self.key}={value} ({self.does})"


class _NoKeyError(Exception):
    """There is no key, and none could be made."""


def key_file() -> Path:
    """Return where the user's key is: ``$XDG_DATA_HOME/prism-mesa/key``, or below ``~/.local/share``.

    Raises:
        RuntimeError: If the user has no home.
    """
    given = Path(os.environ.get("XDG_DATA_HOME", ""))
    folder = given if given.is_absolute() else Path.home() / ".local" / "share"  # as its specification says
    return folder / "prism-mesa" / "key"


def sign(manifest: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """Return a manifest as JSON values with its signature; without one, and why, where no key can be kept.

    What it was signed with before is dropped. In a block of `unsigned` there is none.
    """
    values: dict[str, Any] = json.loads(json.dumps(manifest, default=str))
    values.pop(SIGNATURE, None)
    if _unsigned.get():
        return values, ""
    try:
        return values | {SIGNATURE: _signature(values, _key_made_at_need())}, ""
    except _NoKeyError as error:
        return values, (
            f"{error}: the run is not signed, so a server, module or file that its manifest names will be used "
            "after --trust only; make that folder writable, or set XDG_DATA_HOME"
        )


@contextmanager
def unsigned() -> Iterator[None]:
    """Sign nothing in the block: what is made of a configuration from elsewhere is from elsewhere as well."""
    token = _unsigned.set(True)
    try:
        yield
    finally:
        _unsigned.reset(token)


def origin(manifest: Mapping[str, Any]) -> Origin:
    """Return whether a manifest was written by this user and is as it was; it may lie anywhere."""
    values = dict(manifest)
    signature = values.pop(SIGNATURE, None)
    if signature is None:
        return "unsigned"
    with suppress(_NoKeyError, RecursionError):
        expected = _signature(values, _key())
        if isinstance(signature, str) and hmac.compare_digest(expected.encode(), signature.encode(errors="replace")):
            return "own"
    return "changed"


def require_trust(folder: Path, whose: Origin, named: Sequence[Named], *, trust: bool, instead: str = "") -> None:
    """Make sure that what a folder names may be used.

    Args:
        folder: The run's folder.
        whose: Its `origin`.
        named: What of it would be used.
        trust: Whether whoever calls trusts it.
        instead: What else can be done, for the error.

    Raises:
        DataError: If not; its line says what the folder names and how to allow it.
    """
    if trust or whose == "own" or not named:
        return
    told = "; ".join(map(str, named[:_MOST_NAMED]))
    more = f"; and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    raise DataError(
        f"{folder}: {_NOT_OWN[whose]}, and it names {told}{more}: nothing of that is used unless you "
        f"{f'{instead}, or ' if instead else ''}allow it with --trust (in Python trust=True)"
    )


def require_own(folder: Path, whose: Origin, doing: str, *, trust: bool) -> None:
    """Make sure that a run was made here, or that the user trusts it.

    Args:
        folder: The run's folder.
        whose: Its `origin`.
        doing: What is to be done with it: `resuming` or `branching`.
        trust: Whether the user trusts it.

    Raises:
        DataError: If not; its line says how to allow it.
    """
    if not trust and whose != "own":
        raise DataError(
            f"{folder}: {_NOT_OWN[whose]}: {doing} it uses its checkpoints, and the modules, servers and files that it "
            "names: allow that with --trust (in Python trust=True)"
        )


def seal(parts: Iterable[Buffer]) -> bytes:
    """Return a signature of data with the user's key; empty if there is none."""
    try:
        mac = hmac.new(_key(), _MEANING_OF_SEAL, sha256)
    except _NoKeyError:
        return b""
    for part in parts:
        mac.update(part)
    return mac.digest()


def is_inside(folder: Path, path: str | Path) -> bool:
    """Return whether a path, with all links followed, lies in a folder; one that cannot be followed does not."""
    try:
        return Path(path).resolve().is_relative_to(folder.resolve())
    except (OSError, ValueError, RuntimeError):  # a loop of links, a name that is none
        return False


def _signature(values: Mapping[str, Any], key: bytes) -> str:
    canonical = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hmac.new(key, _MEANING + canonical.encode(), sha256).hexdigest()


def _key() -> bytes:
    """Return the user's key.

    Raises:
        _NoKeyError: If there is none.
    """
    try:
        file = key_file()
        key = file.read_bytes() if file.is_file() else None
    except (OSError, RuntimeError, ValueError) as error:
        raise _NoKeyError(f"the key that runs are signed with cannot be read ({error})") from None
    if key is None:
        raise _NoKeyError(f"{file}: is not there")
    if len(key) != KEY_BYTES:
        raise _NoKeyError(f"{file}: is no key, which has {KEY_BYTES} bytes (delete it, and a new one is made)")
    return key


def _key_made_at_need() -> bytes:
    """Return the user's key, made if there is none: in one piece, so that of two processes one makes it.

    Raises:
        _NoKeyError: If it cannot be read or made.
    """
    try:
        file = key_file()
        if not file.exists():
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_key(file)
    except (OSError, RuntimeError, ValueError) as error:
        raise _NoKeyError(f"a key to sign runs with cannot be made ({error})") from None
    return _key()


def _make_key(file: Path) -> None:
    handle, part = mkstemp(prefix=".key-", dir=file.parent)  # which only its owner may read
    try:
        with os.fdopen(handle, "wb") as opened:
            opened.write(secrets.token_bytes(KEY_BYTES))
            opened.flush()
            os.fsync(opened.fileno())
        with suppress(FileExistsError):  # another process was first, and its key stands
            os.link(part, file)
    finally:
        Path(part).unlink(missing_ok=True)
