"""Looking whether an archive is whole: its checksums, its crate, and what it has to have."""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import DataError, printable, shortened
from prism_mesa.studies.supplement.crate import faults_of
from prism_mesa.studies.supplement.packing import CHECKSUMS, CRATE, FACTS, FORMAT, README, VERSIONS
from prism_mesa.studies.supplement.zip_files import Archive, open_archive, unpack

_LINE: Final = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_MOST_TEXT: Final = 200 * 2**20
_NEEDED: Final = {
    "run": ("manifest.json", "config.yaml", VERSIONS, README),
    "study": ("study.json", "study.yaml", "base.yaml", "runs.parquet", "facts.parquet", VERSIONS, README),
}
_MOST_LINES: Final = 10_000


@dataclass(frozen=True)
class Checked:
    """What is known of an archive.

    Attributes:
        kind: `run`, `study`, or empty if it does not say.
        size_bytes: Of all, unpacked.
        faults: What is missing, changed or wrong, a line each; none if it is whole.
        left_out: What was left out when it was packed, a line each.
    """

    path: Path
    kind: str
    name: str
    files: int
    size_bytes: int
    faults: tuple[str, ...]
    left_out: tuple[str, ...]


def check(path: Path, *, out: Path | None = None) -> Checked:
    """Return whether an archive, a zip or the folder it was unpacked into, is whole. Nothing in it is run.

    The checksums are in the archive: they show what was damaged or changed, not that somebody made all of them anew.

    Args:
        out: A folder, missing or empty, into which it is unpacked if it is whole.

    Raises:
        DataError: If it is no archive, is damaged as a zip, a name in it leads out of its folder, or it unpacks to more
            than an archive has; or there is something in `out`.
        RunError: If `out` cannot be written.
    """
    with open_archive(path) as archive:
        facts = _facts(archive)
        kind = facts.get("kind", "")
        faults = [*_missing(archive, facts), *_changed(archive), *_crate(archive)]
        left_out = facts.get("left_out")
        found = Checked(
            path=path,
            kind=kind if isinstance(kind, str) and kind in _NEEDED else "",
            name=_short(facts.get("name", "")),
            files=len(archive.sizes),
            size_bytes=sum(archive.sizes.values()),
            faults=tuple(map(_short, faults[:_MOST_LINES])),
            left_out=tuple(map(_short, left_out if isinstance(left_out, list) else ())),
        )
        if out is not None and not faults:
            unpack(archive, out)
    return found


def _short(told: object) -> str:
    return printable(shortened(str(told), 300))


def _facts(archive: Archive) -> dict[str, Any]:
    """Return what an archive says of itself; nothing if it does not."""
    if FACTS not in archive.sizes:
        raise DataError(f"{archive.path}: is no archive of PRISM: {FACTS} is missing")
    try:
        facts = json.loads(archive.read(FACTS, _MOST_TEXT))
    except (ValueError, RecursionError):
        facts = None
    return facts if isinstance(facts, dict) else {}


def _missing(archive: Archive, facts: dict[str, Any]) -> Iterable[str]:
    if facts.get("format") != FORMAT:
        yield f"{FACTS}: says format {facts.get('format')!r}; this version knows {FORMAT}"
    kind = facts.get("kind")
    if not isinstance(kind, str) or kind not in _NEEDED:
        yield f"{FACTS}: does not say whether it is of a run or of a study"
        return
    yield from (
        f"{name}: is missing: an archive of a {kind} has it" for name in _NEEDED[kind] if name not in archive.sizes
    )
    if kind == "run" and not any(name.endswith(".parquet") or ".parquet/" in name for name in archive.sizes):
        yield "there is no table in it"


def _changed(archive: Archive) -> Iterable[str]:
    """Yield which files are not what their checksums say."""
    if CHECKSUMS not in archive.sizes:
        yield f"{CHECKSUMS}: is missing: nothing can be checked"
        return
    said: dict[str, str] = {}
    for number, line in enumerate(archive.read(CHECKSUMS, _MOST_TEXT).decode("utf-8", "replace").splitlines(), 1):
        found = _LINE.fullmatch(line)
        if found is None:
            yield f"{CHECKSUMS}: line {number}: is no checksum and name"
            continue
        said[found[2]] = found[1]
    for name, checksum in said.items():
        if name not in archive.sizes:
            yield f"{name}: is missing"
            continue
        try:
            digest = sha256()
            for block in archive.blocks(name):
                digest.update(block)
        except DataError as error:
            yield str(error).removeprefix(f"{archive.path}: ")
            continue
        if digest.hexdigest() != checksum:
            yield f"{name}: was changed (its SHA-256 is not that in {CHECKSUMS})"
    yield from (
        f"{name}: was added (not in {CHECKSUMS})" for name in archive.sizes if name not in said and name != CHECKSUMS
    )


def _crate(archive: Archive) -> Iterable[str]:
    if CRATE not in archive.sizes:
        yield f"{CRATE}: is missing"
        return
    try:
        yield from faults_of(archive.read(CRATE, _MOST_TEXT), archive.sizes)
    except DataError as error:
        yield str(error).removeprefix(f"{archive.path}: ")
