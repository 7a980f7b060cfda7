"""Packing a run or a study as one archive."""

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import yaml

from prism_mesa.errors import DataError, PrismError
from prism_mesa.params import Params
from prism_mesa.runs.config import Config
from prism_mesa.runs.identity import MODULES
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.recorded import as_config, manifest_values
from prism_mesa.runs.run_files import MANIFEST as RUN_MANIFEST
from prism_mesa.runs.run_files import read_manifest, run_around
from prism_mesa.studies.design.study_design import Worlds
from prism_mesa.studies.folder import MANIFEST as STUDY_MANIFEST
from prism_mesa.studies.folder import read_json
from prism_mesa.studies.supplement.checking import crate_metadata
from prism_mesa.studies.supplement.of_run import GIVEN, INPUTS, LACKS, pack_run
from prism_mesa.studies.supplement.of_study import pack_study
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
from prism_mesa.studies.supplement.zip_files import open_archive, write_zip

_VERSIONS: Final = ("packages", "python", "machine", "git", "code")

type OddText = Callable[[Worlds, list[str], str, bool], str]
"""Writes the ODD protocol of configurations: the keys that vary, a question, whether own modules may be loaded."""


@dataclass(frozen=True)
class Packed:
    """An archive that was written.

    Attributes:
        files: How many files are in it.
        left_out: What is not in it that one might look for, a line each.
    """

    file: Path
    files: int
    size_bytes: int
    left_out: tuple[str, ...]


def pack(
    folder: Path,
    odd: OddText,
    *,
    out: Path | None = None,
    data: bool = True,
    license: str | None = None,
    author: str | None = None,
) -> Packed:
    """Write the archive of a run or a study; the same content has the same bytes.

    Args:
        folder: The folder of the run, or of the study; it is only read.
        odd: What writes the ODD protocol.
        out: The file; by default the folder's name with ``.zip``, beside it.
        data: Whether files that runs read (a network, posts, profiles) are packed.
        license: Under which the content may be used: its address or SPDX name.
        author: Who made it.

    Raises:
        DataError: If there is no run and no study, it has not come to an end, holds a secret that cannot be taken out,
            or something else has the name of the file.
        RunError: If the file cannot be written.
    """
    file = folder.absolute().with_name(f"{folder.absolute().name}.zip") if out is None else out
    _check_out(file)
    if (folder / STUDY_MANIFEST).is_file():
        contents, facts = _study(folder, odd, data=data)
    elif (folder / RUN_MANIFEST).is_file() or not folder.is_dir():
        contents, facts = _run(folder, odd, data=data)
    else:
        raise DataError(f"{folder}: holds neither a run ({RUN_MANIFEST}) nor a study ({STUDY_MANIFEST})")
    facts |= {"version": version("prism-mesa"), "license": license, "author": author}
    own = {"format": FORMAT, "kind": contents.kind, "name": contents.name, "left_out": contents.left_out}
    contents.files[FACTS] = (json.dumps(own, indent=2) + "\n").encode()
    contents.files[README] = _readme(contents).encode()
    contents.check()
    contents.files[CRATE] = crate_metadata(contents, facts)
    contents.files[CHECKSUMS] = checksums(contents.files)
    write_zip(file, contents.files)
    return Packed(file, len(contents.files), file.stat().st_size, tuple(contents.left_out))


def _check_out(file: Path) -> None:
    """Check that nothing is lost where the archive is written: only an archive is replaced."""
    if (run := run_around(file.parent)) is not None:
        raise DataError(f"--out: {file}: lies in the folder of a run, {run}, which is only read: name another")
    if not os.path.lexists(file):
        return
    try:
        with open_archive(file) as there:
            ours = not file.is_symlink() and file.is_file() and FACTS in there.sizes
    except PrismError:
        ours = False
    if not ours:
        raise DataError(f"{file}: is there, and is no archive of PRISM: name another file with --out")


def _run(folder: Path, odd: OddText, *, data: bool) -> tuple[Contents, dict[str, Any]]:
    run, facts = read_run(folder), read_manifest(folder)
    working = facts.get("working_directory")
    cleaner = Cleaner([str(folder.absolute()), *([working] if isinstance(working, str) else [])])
    contents = Contents("run", folder.absolute().name, cleaner)
    pack_run(folder, contents, data=data)
    if status := contents.actions[0].unended:
        contents.leave_out(f"the end of the run: its status is {status}, so there is nothing to repeat")
    _put_versions(contents, facts)
    if run.manifest.of_nations:
        contents.leave_out("odd.md: the ODD protocol is written of platforms, not of nations")
    else:
        config = as_config(Config, manifest_values(folder, run.manifest), folder)
        _put_odd(contents, odd, {(): config}, [], "", run.whose == "own")
    return contents, {
        "title": f"PRISM run {contents.name}",
        "published": _day(facts.get("ended"), facts.get("started")),
    }


def _study(folder: Path, odd: OddText, *, data: bool) -> tuple[Contents, dict[str, Any]]:
    facts = dict(read_json(folder / STUDY_MANIFEST) or {})
    made = facts["made"] = facts["made"] if isinstance(facts.get("made"), dict) else {}
    working = made.get("working_directory")
    cleaner = Cleaner([str(folder.absolute()), *([working] if isinstance(working, str) else [])])
    contents = Contents("study", folder.absolute().name, cleaner)
    worlds, varied = pack_study(folder, facts, contents, data=data)
    _put_versions(contents, made)
    question = str(facts.get("question", ""))
    _put_odd(contents, odd, worlds, varied, question, False)
    ended = [action.ended for action in contents.actions if action.ended]
    title = f"PRISM study {contents.name}: {question}"
    return contents, {"title": cleaner.value(title), "published": _day(max(ended, default=None), made.get("started"))}


def _put_odd(
    contents: Contents, odd: OddText, worlds: Worlds, varied: list[str], question: str, may_load: bool
) -> None:
    """Put in the ODD protocol: it shortens long values, and a shortened path is none that the cleaner knows."""
    cleaned = {arm: _without_paths(config, contents.cleaner) for arm, config in worlds.items()}
    written = odd(cleaned, varied, question, may_load)
    contents.put_text(ODD, contents.cleaner.value(written))


def _without_paths[P: Params](params: P, cleaner: Cleaner) -> P:
    """Return parameters with cleaned texts, which need not be valid any more."""
    changed: dict[str, Any] = {}
    for name in type(params).model_fields:
        value = getattr(params, name)
        if isinstance(value, Params):
            changed[name] = _without_paths(value, cleaner)
        elif isinstance(value, str) and (cleaned := cleaner.value(value)) != value:
            changed[name] = cleaned
    return params.model_copy(update=changed)


def _put_versions(contents: Contents, facts: Mapping[str, Any]) -> None:
    contents.put_values(VERSIONS, {key: facts[key] for key in _VERSIONS if key in facts})


def _day(*times: Any) -> str:
    """Return the day of the first time that is one; a crate has to have one."""
    return next((time[:10] for time in times if isinstance(time, str) and len(time) >= 10), "1980-01-01")


def _readme(contents: Contents) -> str:
    """Return what a reader of the archive sees first."""
    paragraphs = [
        f"# {contents.kind.capitalize()} {contents.name}",
        "Made with PRISM on Mesa. Nothing in here is code that runs by itself; paths of the machine and keys were "
        f"taken out, and {'`[removed]`'} stands for them.",
        "| file | holds |\n|---|---|\n" + "\n".join(f"| `{name}` | {text} |" for name, text in _told(contents)),
        "Checked with `sha256sum -c manifest-sha256.txt`, or, unpacked or not, with `prism archive --check`.",
    ]
    if any(line.startswith(GIVEN) for line in contents.left_out):
        paragraphs.append("What was given in Python is not in here, so `prism replay` repeats nothing of it.")
    elif contents.kind == "study":
        has_runs = any(name.startswith("runs/") for name in contents.files)
        paragraphs.append(_repeated_runs(contents.actions[1:]) if has_runs else _NO_TABLES)
        if not _FITTED & set(contents.files):
            paragraphs.append(_made_anew(contents))
    elif contents.actions[0].unended:
        paragraphs.append("The run has not come to its end, so `prism replay` repeats nothing of it.")
    else:
        command = _replay(".", contents.actions[0])
        paragraphs.append(f"The run is repeated, and its tables compared, with `{command}` in this folder.")
    if contents.left_out:
        paragraphs.append("Not in here:\n\n" + "\n".join(f"- {line}" for line in contents.left_out))
    return "\n\n".join(paragraphs) + "\n"


_NO_TABLES: Final = (
    "Runs left no tables: a run is made again with `prism run base.yaml` and the settings in the column `again` of "
    "`facts.parquet`."
)


def _repeated_runs(runs: Sequence[Action]) -> str:
    """Say how the runs of a study are repeated, each with its command, and of which there is nothing to repeat."""
    ended = [run for run in runs if not run.unended]
    others = ", ".join(f"`{run.id.removeprefix('#run-')}` ({run.unended})" for run in runs if run.unended)
    paragraphs = [f"Of runs that have not come to their end there is nothing to repeat: {others}."] if others else []
    names = defaultdict[str, list[str]](list)
    for run in ended:
        shares = any(name.startswith(f"{INPUTS}/") for name in run.read)
        names[_replay("runs/<run>", run, trust=shares)].append(run.id.removeprefix("#run-"))
    how = f"{'Each other run' if others else 'Each run'} in `runs/` is repeated, and its tables compared, with"
    if len(names) == 1:
        paragraphs.append(f"{how} `{next(iter(names))}` in this folder.")
    elif names:
        lines = [f"- `{command}`: {', '.join(f'`{name}`' for name in names[command])}" for command in sorted(names)]
        paragraphs.append(f"{how} its command in this folder:\n\n" + "\n".join(lines))
    return "\n\n".join(paragraphs)


def _made_anew(contents: Contents) -> str:
    """Return how a study is made anew, beside the folder that its archive is unpacked into, which stays as it is."""
    study = contents.files["study.yaml"]
    values = yaml.safe_load(study.read_bytes() if isinstance(study, Path) else study)
    named = isinstance(values.get("base"), str)
    own = any(name.startswith(f"{MODULES}/") for name in contents.files)
    command = f"{_BESIDE if own else ''}prism study run {'../again.yaml' if named else 'study.yaml'} --out ../again"
    told = f"The whole study is made anew, in a folder beside this one, with `{command}` in this folder"
    if any(LACKS in line for line in contents.left_out):
        told += ", once what is not in here has been put there"
    return told + (", where `../again.yaml` is `study.yaml` with `base: base.yaml`." if named else ".")


def _replay(where: str, run: Action, *, trust: bool = False) -> str:
    """Return the command that repeats a run: only one with code of the user's own needs to be told where that is."""
    own = any(name.startswith(f"{MODULES}/") for name in run.read)
    how = " --trust" if own or trust else ""
    return f"{_BESIDE if own else ''}prism replay{how} {where}"


_BESIDE: Final = f"PYTHONPATH={MODULES} "  # what a command begins with that needs code of the user's own
_FITTED: Final = {"calibration.json", "validation.json"}  # what studies hold that `prism study run` does not make
_HOLDS: Final = {
    "study.yaml": "question, arms, factors, seeds, measures, expectations",
    "base.yaml": "the configuration that all runs start from, with every key",
    "config.yaml": "the configuration, with every key",
    "manifest.json": "the manifest: configuration, versions, who decided, the summary",
    "runs.parquet": "a row for each run: arm, seed, factors, measures",
    "facts.parquet": "a row for each run: how it ended, who decided, what makes it again",
    "report.html": "the report",
    "decisions.sqlite": "the ledger: every prompt, answer and fallback of an LLM",
    "answers.sqlite": "the ledger that runs share: every prompt and answer of an LLM",
    "odd.md": "the model by the ODD protocol",
    "versions.json": "versions of PRISM, Python and packages",
    "manifest-sha256.txt": "checksums of all files",
    "ro-crate-metadata.json": "all this for machines, as a Process Run Crate",
}


def _told(contents: Contents) -> Iterator[tuple[str, str]]:
    names = {*contents.files, CRATE, CHECKSUMS}
    yield from ((name, told) for name, told in _HOLDS.items() if name in names)
    folders = {"inputs/": "data that runs read", "modules/": "code of the user's own that runs used", "runs/": "runs"}
    yield from ((name, told) for name, told in folders.items() if any(one.startswith(name) for one in names))
    if contents.kind == "run":
        yield "*.parquet", "the tables"
