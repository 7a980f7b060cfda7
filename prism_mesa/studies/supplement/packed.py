"""Pack a run or a study as one archive."""

import json
import os
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import quote

import yaml

from prism_mesa.errors import DataError, PrismError
from prism_mesa.params import Params
from prism_mesa.runs.config import Config
from prism_mesa.runs.identity import MODULES
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.recorded import as_config, manifest_values
from prism_mesa.runs.run_files import MANIFEST as RUN_MANIFEST
from prism_mesa.runs.run_files import enclosing_run, read_manifest
from prism_mesa.studies.design.study_design import Worlds
from prism_mesa.studies.folder import MANIFEST as STUDY_MANIFEST
from prism_mesa.studies.folder import read_json
from prism_mesa.studies.supplement.packing import (
    CHECKSUMS,
    CRATE,
    FACTS,
    FORMAT,
    ODD,
    README,
    VERSIONS,
    Action,
    Cleaner,
    Contents,
    checksums,
)
from prism_mesa.studies.supplement.run_contents import INPUTS, NEEDS_IT, PYTHON_OBJECTS, pack_run
from prism_mesa.studies.supplement.study_contents import pack_study
from prism_mesa.studies.supplement.zip_files import open_archive, write_zip

_VERSIONS: Final = ("packages", "python", "machine", "git", "code")

type OddText = Callable[[Worlds, list[str], str, bool], str]
"""Returns the ODD protocol of configurations; takes also the varied keys, a question, and whether to load modules."""


@dataclass(frozen=True)
class PackedArchive:
    """A written archive; `left_out` lists omitted files with reasons."""

    file: Path
    files: int
    size_bytes: int
    left_out: tuple[str, ...]


def pack(
    folder: Path,
    write_odd: OddText,
    *,
    out: Path | None = None,
    data: bool = True,
    license: str | None = None,
    author: str | None = None,
) -> PackedArchive:
    """Write the archive of a run or a study (see `api.archives.archive`)."""
    file = folder.absolute().with_name(f"{folder.absolute().name}.zip") if out is None else out
    _check_out(file)
    if (folder / STUDY_MANIFEST).is_file():
        contents, facts = _study_contents(folder, write_odd, data=data)
    elif (folder / RUN_MANIFEST).is_file() or not folder.is_dir():
        contents, facts = _run_contents(folder, write_odd, data=data)
    else:
        raise DataError(f"{folder}: is neither a run ({RUN_MANIFEST}) nor a study ({STUDY_MANIFEST})")
    facts |= {"version": version("prism-mesa"), "license": license, "author": author}
    archive_facts = {"format": FORMAT, "kind": contents.kind, "name": contents.name, "left_out": contents.left_out}
    contents.files[FACTS] = (json.dumps(archive_facts, indent=2) + "\n").encode()
    contents.files[README] = _readme_text(contents).encode()
    contents.check()
    contents.files[CRATE] = crate_metadata(contents, facts)
    contents.files[CHECKSUMS] = checksums(contents.files)
    write_zip(file, contents.files)
    return PackedArchive(file, len(contents.files), file.stat().st_size, tuple(contents.left_out))


def _check_out(file: Path) -> None:
    """Raise DataError if the file is in a run's folder, or replaces something other than an archive."""
    if (run := enclosing_run(file.parent)) is not None:
        raise DataError(f"--out: {file}: is in the folder of a run, {run}, which is only read: name another file")
    if not os.path.lexists(file):
        return
    try:
        with open_archive(file) as archive:
            is_archive = not file.is_symlink() and file.is_file() and FACTS in archive.sizes
    except PrismError:
        is_archive = False
    if not is_archive:
        raise DataError(f"{file}: exists and is not an archive of PRISM: name another file with --out")


def _new_contents(kind: str, folder: Path, facts: Mapping[str, Any]) -> Contents:
    folders = [folder.absolute(), facts.get("working_directory")]
    cleaner = Cleaner([str(path) for path in folders if isinstance(path, str | Path)])
    return Contents(kind, folder.absolute().name, cleaner)


def _run_contents(folder: Path, write_odd: OddText, *, data: bool) -> tuple[Contents, dict[str, Any]]:
    run, facts = read_run(folder), read_manifest(folder)
    contents = _new_contents("run", folder, facts)
    pack_run(folder, contents, data=data)
    if status := contents.actions[0].unfinished:
        contents.note_omission(f"the end of the run: its status is {status}, so it cannot be repeated")
    contents.add_values(VERSIONS, {key: facts[key] for key in _VERSIONS if key in facts})
    if run.manifest.is_economy:
        contents.note_omission("odd.md: only platforms have an ODD protocol")
    else:
        config = as_config(Config, manifest_values(folder, run.manifest), folder)
        _add_odd(contents, write_odd, {(): config}, [], "", run.origin == "own")
    published = _first_day(facts.get("ended"), facts.get("started"))
    return contents, {"title": f"PRISM run {contents.name}", "published": published}


def _study_contents(folder: Path, write_odd: OddText, *, data: bool) -> tuple[Contents, dict[str, Any]]:
    facts = dict(read_json(folder / STUDY_MANIFEST) or {})
    made = facts["made"] = facts["made"] if isinstance(facts.get("made"), dict) else {}
    contents = _new_contents("study", folder, made)
    worlds, varied_keys = pack_study(folder, facts, contents, data=data)
    contents.add_values(VERSIONS, {key: made[key] for key in _VERSIONS if key in made})
    question = str(facts.get("question", ""))
    _add_odd(contents, write_odd, worlds, varied_keys, question, False)
    end_times = [action.ended for action in contents.actions if action.ended]
    title = contents.cleaner.clean_value(f"PRISM study {contents.name}: {question}")
    return contents, {"title": title, "published": _first_day(max(end_times, default=None), made.get("started"))}


def _add_odd(
    contents: Contents, write_odd: OddText, worlds: Worlds, varied_keys: list[str], question: str, may_load: bool
) -> None:
    """Add the ODD protocol of cleaned values: the protocol shortens paths, but the cleaner needs whole paths."""
    cleaned_worlds = {arm: _clean_params(config, contents.cleaner) for arm, config in worlds.items()}
    contents.add_text(ODD, contents.cleaner.clean_value(write_odd(cleaned_worlds, varied_keys, question, may_load)))


def _clean_params[P: Params](params: P, cleaner: Cleaner) -> P:
    """Return parameters with cleaned strings; they may no longer be valid."""
    values = {name: getattr(params, name) for name in type(params).model_fields}
    changed_values = {
        name: _clean_params(value, cleaner) if isinstance(value, Params) else cleaner.clean_value(value)
        for name, value in values.items()
        if isinstance(value, str | Params)
    }
    return params.model_copy(update={name: value for name, value in changed_values.items() if value != values[name]})


def _first_day(*times: Any) -> str:
    """Return the day of the first known time, or 1980-01-01, because a crate must have a date."""
    return next((time[:10] for time in times if isinstance(time, str) and len(time) >= 10), "1980-01-01")


_MODULE_PATH: Final = f"PYTHONPATH={MODULES} "
_NOT_REPEATED: Final = {"calibration.json", "validation.json"}  # files that `prism study run` does not make
_FILE_TEXTS: Final = {
    "study.yaml": "question, arms, factors, seeds, measures, expectations",
    "base.yaml": "the configuration that all runs start from, with every key",
    "config.yaml": "the configuration, with every key",
    "manifest.json": "the manifest: configuration, versions, who decided, the summary",
    "runs.parquet": "a row for each run: arm, seed, factors, measures",
    "facts.parquet": "a row for each run: how it ended, who decided, the overrides that repeat it",
    "report.html": "the report",
    "decisions.sqlite": "the ledger: every prompt, answer and fallback of an LLM",
    "answers.sqlite": "the ledger that runs share: every prompt and answer of an LLM",
    "odd.md": "the model by the ODD protocol",
    "versions.json": "versions of PRISM, Python and packages",
    "manifest-sha256.txt": "checksums of all files",
    "ro-crate-metadata.json": "machine-readable metadata, as a Process Run Crate",
    "inputs/": "data that runs read",
    "modules/": "the user's code that runs used",
    "runs/": "runs",
}


def _readme_text(contents: Contents) -> str:
    names = {*contents.files, CRATE, CHECKSUMS}
    names |= {f"{name.partition('/')[0]}/" for name in names}
    rows = [f"| `{name}` | {text} |" for name, text in _FILE_TEXTS.items() if name in names]
    rows += ["| `*.parquet` | the tables |"] if contents.kind == "run" else []
    paragraphs = [
        f"# {contents.kind.capitalize()} {contents.name}",
        "Made with PRISM on Mesa. No file runs by itself. `[removed]` replaces paths of the machine and keys.",
        "| file | contents |\n|---|---|\n" + "\n".join(rows),
        "Check it with `sha256sum -c manifest-sha256.txt`, or, unpacked or not, with `prism archive --check`.",
    ]
    if any(line.startswith(PYTHON_OBJECTS) for line in contents.left_out):
        paragraphs.append("Objects passed in Python are not included, so `prism replay` cannot repeat the run.")
    elif contents.kind == "study":
        paragraphs += _describe_replays(contents)
        paragraphs += [] if _NOT_REPEATED & set(contents.files) else [_describe_study(contents)]
    elif contents.actions[0].unfinished:
        paragraphs.append("The run did not finish, so `prism replay` cannot repeat it.")
    else:
        command = _replay_command(".", contents.actions[0])
        paragraphs.append(f"To repeat the run and compare its tables, type `{command}` in this folder.")
    if contents.left_out:
        paragraphs.append("Not included:\n\n" + "\n".join(f"- {line}" for line in contents.left_out))
    return "\n\n".join(paragraphs) + "\n"


def _describe_replays(contents: Contents) -> list[str]:
    if not any(name.startswith("runs/") for name in contents.files):
        command = "`prism run base.yaml` and the settings in the column `again` of `facts.parquet`"
        return [f"Runs kept no tables: repeat a run with {command}."]
    runs = {action.id.removeprefix("#run-"): action for action in contents.actions[1:]}
    paragraphs, names = [], defaultdict[str, list[str]](list)
    if unfinished := ", ".join(f"`{name}` ({run.unfinished})" for name, run in runs.items() if run.unfinished):
        paragraphs.append(f"These runs did not finish, so they cannot be repeated: {unfinished}.")
    for name, run in runs.items():
        if not run.unfinished:
            needs_trust = any(file.startswith(f"{INPUTS}/") for file in run.inputs)
            names[_replay_command("runs/<run>", run, trust=needs_trust)].append(f"`{name}`")
    intro = f"To repeat {'one of the other runs' if unfinished else 'a run'} in `runs/` and compare its tables, type"
    if len(names) == 1:
        paragraphs.append(f"{intro} `{next(iter(names))}` in this folder.")
    elif names:
        lines = [f"- `{command}`: {', '.join(names[command])}" for command in sorted(names)]
        paragraphs.append(f"{intro} its command in this folder:\n\n" + "\n".join(lines))
    return paragraphs


def _describe_study(contents: Contents) -> str:
    """Describe how to repeat a study in a folder next to the unpacked archive, which stays unchanged."""
    study = contents.files["study.yaml"]
    values = yaml.safe_load(study.read_bytes() if isinstance(study, Path) else study)
    names_base = isinstance(values.get("base"), str)
    modules = _MODULE_PATH if any(name.startswith(f"{MODULES}/") for name in contents.files) else ""
    command = f"{modules}prism study run {'../again.yaml' if names_base else 'study.yaml'} --out ../again"
    text = f"To repeat the whole study in a folder next to this one, type `{command}` in this folder"
    if any(NEEDS_IT in line for line in contents.left_out):
        text += " after adding the files that are not included"
    return text + (", where `../again.yaml` is `study.yaml` with `base: base.yaml`." if names_base else ".")


def _replay_command(folder: str, run: Action, *, trust: bool = False) -> str:
    has_modules = any(name.startswith(f"{MODULES}/") for name in run.inputs)
    option = " --trust" if has_modules or trust else ""
    return f"{_MODULE_PATH if has_modules else ''}prism replay{option} {folder}"


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
