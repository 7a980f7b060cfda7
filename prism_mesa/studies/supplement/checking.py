"""Archives described as a Process Run Crate (https://w3id.org/ro/wfrun/process/0.5), and checked."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import quote, unquote

from prism_mesa.errors import DataError, printable, shortened
from prism_mesa.studies.supplement.packing import CHECKSUMS, CRATE, FACTS, FORMAT, README, VERSIONS, Action, Contents
from prism_mesa.studies.supplement.zip_files import Archive, open_archive, unpack

PROFILE: Final = "https://w3id.org/ro/wfrun/process/0.5"
_SPECIFICATION: Final = "https://w3id.org/ro/crate/1.1"
_CONTEXT: Final = [f"{_SPECIFICATION}/context", "https://w3id.org/ro/terms/workflow-run/context"]
_SOFTWARE: Final = "#prism-mesa"
_FORMATS: Final = {
    ".json": "application/json",
    ".yaml": "application/yaml",
    ".md": "text/markdown",
    ".html": "text/html",
    ".txt": "text/plain",
    ".csv": "text/csv",
    ".py": "text/x-python",
    ".png": "image/png",
    ".parquet": "application/vnd.apache.parquet",
    ".sqlite": "application/vnd.sqlite3",
}
type Entity = dict[str, Any]


def crate_metadata(contents: Contents, facts: Mapping[str, Any]) -> bytes:
    """Return the crate's metadata: files, PRISM as the tool, and each run as an action that read and made files.

    Args:
        contents: What is packed, but for the crate and the checksums.
        facts: `title`, `published` (a date), `version` of PRISM; `license` and `author` or None.
    """
    names = sorted({*contents.files, CHECKSUMS})
    folders = sorted({f"runs/{name.split('/')[1]}/" for name in names if name.startswith("runs/")})
    top = [name for name in names if not name.startswith("runs/")]
    root: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "name": facts["title"],
        "description": f"What PRISM keeps of the {contents.kind} {contents.name}, packed by prism archive.",
        "datePublished": facts["published"],
        "conformsTo": _reference(PROFILE),
        "hasPart": [*map(_file_reference, top), *map(_reference, map(quote, folders))],
        "mentions": [_reference(quote(action.id, safe="#")) for action in contents.actions],
    }
    own: list[Entity] = []
    if facts.get("license"):
        root["license"] = facts["license"]
    if facts.get("author"):
        own.append({"@id": "#author", "@type": "Person", "name": facts["author"]})
        root["author"] = _reference("#author")
    graph: list[Entity] = [
        {
            "@id": CRATE,
            "@type": "CreativeWork",
            "conformsTo": _reference(_SPECIFICATION),
            "about": _reference("./"),
        },
        root,
        {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        {
            "@id": _SOFTWARE,
            "@type": "SoftwareApplication",
            "name": "PRISM on Mesa",
            "softwareVersion": facts["version"],
            "description": "prism-mesa: simulates social platforms whose agents are statecharts",
        },
        *own,
        *(_action(action, by_author=bool(own)) for action in contents.actions),
        *(_folder(folder, names) for folder in folders),
        *map(_file, names),
    ]
    return (json.dumps({"@context": _CONTEXT, "@graph": graph}, indent=2) + "\n").encode()


def _reference(name: str) -> Entity:
    return {"@id": name}


def _file_reference(name: str) -> Entity:
    return _reference(quote(name))


def _file(name: str) -> Entity:
    entity: Entity = {"@id": quote(name), "@type": "File", "name": PurePosixPath(name).name}
    form = _FORMATS.get(PurePosixPath(name).suffix)
    return entity | ({"encodingFormat": form} if form else {})


def _folder(folder: str, names: Iterable[str]) -> Entity:
    parts = [_file_reference(name) for name in names if name.startswith(folder)]
    return {"@id": quote(folder), "@type": "Dataset", "name": folder.split("/")[1], "hasPart": parts}


def _action(action: Action, *, by_author: bool) -> Entity:
    entity: Entity = {
        "@id": quote(action.id, safe="#"),
        "@type": "CreateAction",
        "name": action.name,
        "description": action.description,
        "instrument": _reference(_SOFTWARE),
        "object": [_file_reference(name) for name in action.read],
        "result": [_file_reference(name) for name in sorted(action.made)],
        "actionStatus": _reference(f"http://schema.org/{'Failed' if action.failed else 'Completed'}ActionStatus"),
    }
    entity |= {key: when for key, when in (("startTime", action.started), ("endTime", action.ended)) if when}
    entity |= {"error": action.failed} if action.failed else {}
    return entity | ({"agent": _reference("#author")} if by_author else {})


def crate_faults(raw: bytes, names: Iterable[str]) -> list[str]:
    """Return what is wrong with a crate's metadata, a line each; `names` are the names of the archive's files.

    Its bytes have a checksum, so this is about metadata that another program wrote or that does not fit the files.
    """
    try:
        graph = json.loads(raw)["@graph"]
        entities: dict[str, Entity] = {str(entity["@id"]): entity for entity in graph}
    except (ValueError, TypeError, KeyError, RecursionError):
        return [f"{CRATE}: is no crate: JSON-LD with an @graph of entities is expected"]
    faults, known = [], {quote(name) for name in names}
    if PROFILE not in _ids(entities.get("./", {}).get("conformsTo")):
        faults.append(f"{CRATE}: ./ does not conform to {PROFILE}")
    files = [name for name, entity in entities.items() if entity.get("@type") == "File"]
    faults += [
        f"{CRATE}: describes {unquote(name)}, which is not in the archive" for name in files if name not in known
    ]
    faults += [f"{CRATE}: does not describe {unquote(name)}" for name in sorted(known - {*files, CRATE})]
    actions = [entity for entity in entities.values() if entity.get("@type") == "CreateAction"]
    if not actions:
        faults.append(f"{CRATE}: has no CreateAction")
    for action in actions:
        pointed = [name for key in ("instrument", "object", "result") for name in _ids(action.get(key))]
        lost = [name for name in pointed if name not in entities]
        faults += [f"{CRATE}: {action['@id']}: names {unquote(name)}, which is not described" for name in lost]
    return faults


def _ids(value: Any) -> list[str]:
    """Return what a value of JSON-LD refers to."""
    values = value if isinstance(value, list) else [value]
    return [one["@id"] for one in values if isinstance(one, dict) and isinstance(one.get("@id"), str)]


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
        path: The archive.
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
        yield from crate_faults(archive.read(CRATE, _MOST_TEXT), archive.sizes)
    except DataError as error:
        yield str(error).removeprefix(f"{archive.path}: ")
