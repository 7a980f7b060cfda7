"""The description of an archive as a Process Run Crate, for machines: https://w3id.org/ro/wfrun/process/0.5."""

import json
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote, unquote

from prism_mesa.studies.supplement.packing import CHECKSUMS, CRATE, Action, Contents

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


def crate_of(contents: Contents, facts: Mapping[str, Any]) -> bytes:
    """Return the crate's metadata: files, PRISM as the tool, and each run as an action that read and made files.

    Args:
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


def faults_of(raw: bytes, names: Iterable[str]) -> list[str]:
    """Return what is wrong with a crate's metadata, given the names of the archive's files, a line each."""
    try:
        graph = json.loads(raw)["@graph"]
        entities: dict[str, Entity] = {str(one["@id"]): one for one in graph}
    except (ValueError, TypeError, KeyError, RecursionError):
        return [f"{CRATE}: is no crate: JSON-LD with an @graph of entities is expected"]
    told, known = [], {quote(name) for name in names}
    root = entities.get("./", {})
    if _ids(entities.get(CRATE, {}).get("about")) != ["./"]:
        told.append(f"{CRATE}: does not say that it is about ./")
    if PROFILE not in _ids(root.get("conformsTo")):
        told.append(f"{CRATE}: ./ does not conform to {PROFILE}")
    files = [name for name, one in entities.items() if one.get("@type") == "File"]
    told += [f"{CRATE}: describes {unquote(name)}, which is not in the archive" for name in files if name not in known]
    told += [f"{CRATE}: does not describe {unquote(name)}" for name in sorted(known - {*files, CRATE})]
    parts, seen = ["./"], set[str]()
    while parts:
        if (part := parts.pop()) in seen:
            continue
        seen.add(part)
        parts += [one for one in _ids(entities.get(part, {}).get("hasPart")) if one not in seen]
    told += [f"{CRATE}: {unquote(name)} is no part of ./" for name in files if name not in seen]
    actions = [one for one in entities.values() if one.get("@type") == "CreateAction"]
    if not actions:
        told.append(f"{CRATE}: has no CreateAction")
    for action in actions:
        pointed = [*_ids(action.get("instrument")), *_ids(action.get("object")), *_ids(action.get("result"))]
        if not _ids(action.get("instrument")):
            told.append(f"{CRATE}: {action['@id']}: names no instrument")
        lost = [one for one in pointed if one not in entities]
        told += [f"{CRATE}: {action['@id']}: names {unquote(one)}, which is not described" for one in lost]
    return told


def _ids(value: Any) -> list[str]:
    """Return what a value of JSON-LD refers to."""
    values = value if isinstance(value, list) else [value]
    return [one["@id"] for one in values if isinstance(one, dict) and isinstance(one.get("@id"), str)]
