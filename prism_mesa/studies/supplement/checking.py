"""Check an archive against its checksums."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import DataError, printable, shorten
from prism_mesa.studies.supplement.packing import CHECKSUMS, CRATE, FACTS, FORMAT, README, VERSIONS
from prism_mesa.studies.supplement.zip_files import Archive, open_archive, unpack

_LINE: Final = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_MAX_TEXT: Final = 200 * 2**20
_REQUIRED_FILES: Final = {
    "run": ("manifest.json", "config.yaml", VERSIONS, README, CRATE),
    "study": ("study.json", "study.yaml", "base.yaml", "runs.parquet", "facts.parquet", VERSIONS, README, CRATE),
}
_MAX_LINES: Final = 10_000


@dataclass(frozen=True)
class ArchiveCheck:
    """The result of checking an archive.

    Attributes:
        kind: `run`, `study`, or empty if unknown.
        size_bytes: The unpacked size of all files.
        faults: Missing, changed and added files, a line for each; empty if the archive is intact.
        left_out: Files that the archive omits, a line for each.
    """

    path: Path
    kind: str
    name: str
    files: int
    size_bytes: int
    faults: tuple[str, ...]
    left_out: tuple[str, ...]


def check(path: Path, *, out: Path | None = None) -> ArchiveCheck:
    """Check an archive, and unpack it if it is intact (see `api.archives.check_archive`).

    The checksums are part of the archive, so they reveal damage and changes, but not a forged archive.
    """
    with open_archive(path) as archive:
        if FACTS not in archive.sizes:
            raise DataError(f"{path}: is not an archive of PRISM: {FACTS} is missing")
        try:
            facts = json.loads(archive.read(FACTS, _MAX_TEXT))
        except (ValueError, RecursionError):
            facts = None
        facts = facts if isinstance(facts, dict) else {}
        kind, left_out = facts.get("kind"), facts.get("left_out")
        kind = kind if isinstance(kind, str) and kind in _REQUIRED_FILES else ""
        faults = [*_find_missing(archive, facts, kind), *_find_changed(archive)]
        if out is not None and not faults:
            unpack(archive, out)
        name, size = _shorten_line(facts.get("name", "")), sum(archive.sizes.values())
        lines = left_out if isinstance(left_out, list) else []
        texts = (tuple(map(_shorten_line, part)) for part in (faults[:_MAX_LINES], lines))
        return ArchiveCheck(path, kind, name, len(archive.sizes), size, *texts)


def _shorten_line(text: object) -> str:
    return printable(shorten(str(text), 300))


def _find_missing(archive: Archive, facts: dict[str, Any], kind: str) -> Iterator[str]:
    if facts.get("format") != FORMAT:
        yield f"{FACTS}: format: must be {FORMAT}, not {facts.get('format')!r}"
    if not kind:
        yield f"{FACTS}: kind: must be run or study"
    for name in _REQUIRED_FILES.get(kind, ()):
        if name not in archive.sizes:
            yield f"{name}: is missing from an archive of a {kind}"


def _find_changed(archive: Archive) -> Iterator[str]:
    if CHECKSUMS not in archive.sizes:
        yield f"{CHECKSUMS}: is missing, so nothing can be checked"
        return
    checksums: dict[str, str] = {}
    for number, line in enumerate(archive.read(CHECKSUMS, _MAX_TEXT).decode("utf-8", "replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            yield f"{CHECKSUMS}: line {number}: must be a checksum and a name"
        else:
            checksums[match[2]] = match[1]
    for name, checksum in checksums.items():
        if name not in archive.sizes:
            yield f"{name}: is missing"
            continue
        digest = sha256()
        try:
            for block in archive.blocks(name):
                digest.update(block)
        except DataError as error:
            yield str(error).removeprefix(f"{archive.path}: ")
            continue
        if digest.hexdigest() != checksum:
            yield f"{name}: was changed (its SHA-256 differs from {CHECKSUMS})"
    for name in archive.sizes:
        if name not in checksums and name != CHECKSUMS:
            yield f"{name}: was added (not in {CHECKSUMS})"
