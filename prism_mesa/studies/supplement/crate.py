"""The metadata of an archive as a Process Run Crate (https://w3id.org/ro/wfrun/process/0.5)."""

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, Final
from urllib.parse import quote

from prism_mesa.studies.supplement.packing import CHECKSUMS, CRATE, Action, Contents

PROFILE: Final = "https://w3id.org/ro/wfrun/process/0.5"
_SPECIFICATION: Final = "https://w3id.org/ro/crate/1.1"
_CONTEXT: Final = [f"{_SPECIFICATION}/context", "https://w3id.org/ro/terms/workflow-run/context"]
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
_AUTHOR: Final = {"@id": "#author"}
_SOFTWARE: Final = {"@id": "#prism-mesa"}
type Entity = dict[str, Any]


def crate_metadata(contents: Contents, facts: Mapping[str, Any]) -> bytes:
    """Return the metadata of an archive: files, PRISM as the tool, and runs as actions that read and made files.

    `facts` holds `title`, `published` (a date), `version` of PRISM, `license` and `author`.
    """
    names = sorted({*contents.files, CHECKSUMS})
    folders = sorted({f"runs/{name.split('/')[1]}/" for name in names if name.startswith("runs/")})
    top_files = [name for name in names if not name.startswith("runs/")]
    author = facts.get("author")
    root: Entity = {
        "@id": "./",
        "@type": "Dataset",
        "name": facts["title"],
        "description": f"What PRISM keeps of the {contents.kind} {contents.name}, packed by prism archive.",
        "datePublished": facts["published"],
        "conformsTo": {"@id": PROFILE},
        "hasPart": [{"@id": quote(name)} for name in (*top_files, *folders)],
        "mentions": [{"@id": quote(action.id, safe="#")} for action in contents.actions],
    }
    root |= {"license": facts["license"]} if facts.get("license") else {}
    root |= {"author": _AUTHOR} if author else {}
    conformance = {"conformsTo": {"@id": _SPECIFICATION}, "about": {"@id": "./"}}
    graph: list[Entity] = [
        {"@id": CRATE, "@type": "CreativeWork", **conformance},
        root,
        {"@id": PROFILE, "@type": "CreativeWork", "name": "Process Run Crate", "version": "0.5"},
        {
            **_SOFTWARE,
            "@type": "SoftwareApplication",
            "name": "PRISM on Mesa",
            "softwareVersion": facts["version"],
            "description": "prism-mesa: simulates social platforms whose agents are statecharts",
        },
        *([{**_AUTHOR, "@type": "Person", "name": author}] if author else []),
        *(_action_entity(action, has_author=bool(author)) for action in contents.actions),
    ]
    for folder in folders:
        members = [{"@id": quote(name)} for name in names if name.startswith(folder)]
        graph.append({"@id": quote(folder), "@type": "Dataset", "name": folder.split("/")[1], "hasPart": members})
    for name in names:
        path = PurePosixPath(name)
        encoding = {"encodingFormat": _FORMATS[path.suffix]} if path.suffix in _FORMATS else {}
        graph.append({"@id": quote(name), "@type": "File", "name": path.name, **encoding})
    return (json.dumps({"@context": _CONTEXT, "@graph": graph}, indent=2) + "\n").encode()


def _action_entity(action: Action, *, has_author: bool) -> Entity:
    entity: Entity = {
        "@id": quote(action.id, safe="#"),
        "@type": "CreateAction",
        "name": action.name,
        "description": action.description,
        "instrument": _SOFTWARE,
        "object": [{"@id": quote(name)} for name in action.inputs],
        "result": [{"@id": quote(name)} for name in sorted(action.outputs)],
        "actionStatus": {"@id": f"http://schema.org/{'Failed' if action.failed else 'Completed'}ActionStatus"},
    }
    optional = {"startTime": action.started, "endTime": action.ended, "error": action.failed}
    entity |= {key: value for key, value in optional.items() if value}
    return entity | ({"agent": _AUTHOR} if has_author else {})
