"""Checks an archive against its checksums."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from prism_mesa.errors import DataError, printable, shortened
from prism_mesa.studies.supplement.packing import CHECKSUMS, CRATE, FACTS, FORMAT, README, VERSIONS
from prism_mesa.studies.supplement.zip_files import Archive, open_archive, unpack

_LINE: Final = re.compile(r"([0-9a-f]{64}) [ *](.+)")
_MOST_TEXT: Final = 200 * 2**20
_NEEDED: Final = {
    "run": ("manifest.json", "config.yaml", VERSIONS, README, CRATE),
    "study": ("study.json", "study.yaml", "base.yaml", "runs.parquet", "facts.parquet", VERSIONS, README, CRATE),
}
_MOST_LINES: Final = 10_000


@dataclass(frozen=True)
class Checked:
    """The result of checking an archive.

    Attributes:
        kind: `run`, `study`, or empty if unknown.
        size_bytes: The size of all files, unpacked.
        faults: What is missing, changed or wrong, a line each; empty if the archive is whole.
        left_out: What was left out of the archive, a line each.
    """

    path: Path
    kind: str
    name: str
    files: int
    size_bytes: int
    faults: tuple[str, ...]
    left_out: tuple[str, ...]


def check(path: Path, *, out: Path | None = None) -> Checked:
    """Check an archive and unpack it if it is whole; arguments and errors as in `api.archives.check_archive`.

    The checksums are in the archive: they reveal damage and changes, not an archive that somebody made anew.
    """
    with open_archive(path) as archive:
        if FACTS not in archive.sizes:
            raise DataError(f"{path}: is no archive of PRISM: {FACTS} is missing")
        try:
            facts = json.loads(archive.read(FACTS, _MOST_TEXT))
        except (ValueError, RecursionError):
            facts = None
        facts = facts if isinstance(facts, dict) else {}
        kind, left_out = facts.get("kind"), facts.get("left_out")
        kind = kind if isinstance(kind, str) and kind in _NEEDED else ""
        faults = [*_missing(archive, facts, kind), *_changed(archive)]
        if out is not None and not faults:
            unpack(archive, out)
        return Checked(
            path=path,
            kind=kind,
            name=_short(facts.get("name", "")),
            files=len(archive.sizes),
            size_bytes=sum(archive.sizes.values()),
            faults=tuple(map(_short, faults[:_MOST_LINES])),
            left_out=tuple(map(_short, left_out if isinstance(left_out, list) else ())),
        )


def _short(text: object) -> str:
    return printable(shortened(str(text), 300))


def _missing(archive: Archive, facts: dict[str, Any], kind: str) -> Iterator[str]:
    if facts.get("format") != FORMAT:
        yield f"{FACTS}: says format {facts.get('format')!r}; this version knows {FORMAT}"
    if not kind:
        yield f"{FACTS}: does not say whether it is of a run or of a study"
    for name in _NEEDED.get(kind, ()):
        if name not in archive.sizes:
            yield f"{name}: is missing: an archive of a {kind} has it"


def _changed(archive: Archive) -> Iterator[str]:
    if CHECKSUMS not in archive.sizes:
        yield f"{CHECKSUMS}: is missing: nothing can be checked"
        return
    checksums: dict[str, str] = {}
    for number, line in enumerate(archive.read(CHECKSUMS, _MOST_TEXT).decode("utf-8", "replace").splitlines(), 1):
        match = _LINE.fullmatch(line)
        if match is None:
            yield f"{CHECKSUMS}: line {number}: is no checksum and name"
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
            yield f"{name}: was changed (its SHA-256 is not that in {CHECKSUMS})"
    for name in archive.sizes:
        if name not in checksums and name != CHECKSUMS:
            yield f"{name}: was added (not in {CHECKSUMS})"
