"""Pack the folder of a run."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from prism_mesa.economy.tables import ALWAYS as ECONOMY_ALWAYS
from prism_mesa.errors import DataError
from prism_mesa.llm import Ledger, LLMParams
from prism_mesa.llm.sqlite_file import has_log
from prism_mesa.params import flatten
from prism_mesa.reasoner.distilled import MODEL_FILE as DISTILLED
from prism_mesa.runs.config import INPUT_FILES, Config, EconomyConfig
from prism_mesa.runs.identity import MODULES, inputs_version, source_files
from prism_mesa.runs.manifest import RecordedRun, read_run
from prism_mesa.runs.recorded import PACKAGE_PREFIX, as_config, manifest_values
from prism_mesa.runs.records.table_checks import RUN_TABLES
from prism_mesa.runs.run_files import (
    LEDGER,
    MANIFEST,
    check_within,
    has_table,
    name_file_in_errors,
    read_manifest,
    table_files,
    table_path,
)
from prism_mesa.runs.trust import is_inside
from prism_mesa.social.tables import ALWAYS as SOCIAL_ALWAYS
from prism_mesa.social.user_objects import find_user_objects
from prism_mesa.social.world.cells import is_text
from prism_mesa.studies.supplement.packing import Action, Cleaner, Contents
from prism_mesa.studies.supplement.zip_files import Content

ENDED: Final = ("done", "failed", "interrupted")  # statuses of runs that can be packed
CONFIG: Final = "config.yaml"
INPUTS: Final = "inputs"
PYTHON_OBJECTS: Final = "a chart, agents or a reasoner passed in Python"
NEEDS_IT: Final = "needs it"  # for notes on omitted files that a repetition needs
_CANNOT_REMOVE: Final = "cannot be removed without changing the run: nothing was packed"
_NOT_NEEDED: Final = {
    *(f"{group}.{key}" for group, key in INPUT_FILES),
    *(f"reasoner.{key}" for key in ("host", "ledger_path", "distilled")),
}
"""Keys whose values may change in an archive: it has the files that they name, or a replay does not need them."""


def pack_run(run_dir: Path, contents: Contents, *, data: bool, prefix: str = "", shared_path: str = "") -> RecordedRun:
    """Add the files of a run to the contents, and return the run.

    `prefix` is the run's folder in the archive with a slash, or empty. `shared_path` leads from this folder to the
    files that runs share: empty, or ``../..``.
    """
    run = read_run(run_dir)
    if run.state.status not in ENDED:
        raise DataError(f"{run_dir}: did not finish (status {run.state}){run.advice}: nothing is packed")
    files = contents.files
    for table in RUN_TABLES:
        for part in table_files(table_path(run_dir, table)) if has_table(run_dir, table) else ():
            check_within(run_dir, part)
            check_table(part, contents.cleaner)
            files[prefix + part.relative_to(run_dir).as_posix()] = part
    for name in (LEDGER, DISTILLED, *sorted(file.name for file in run_dir.glob("*.png"))):
        if (run_dir / name).is_file():
            check_within(run_dir, run_dir / name)
            files[prefix + name] = run_dir / name
    if prefix + LEDGER in files:
        files[prefix + LEDGER] = ledger_content(run_dir / LEDGER, contents.cleaner)
    if run.manifest.status == "done":
        always = ECONOMY_ALWAYS if run.manifest.is_economy else SOCIAL_ALWAYS
        for name in (*(f"{table}.parquet" for table in always if not has_table(run_dir, table)), LEDGER):
            if prefix + name not in files:
                contents.note_omission(f"{prefix}{name}: is missing from the run's folder; a replay {NEEDS_IT}")
    inputs = _add_config(run, contents, prefix, shared_path, data=data)
    outputs = tuple(name for name in files if name.startswith(prefix) and name not in inputs)
    contents.actions.append(_run_action(run, contents, prefix, inputs, outputs))
    if any(run.manifest.made_in_python):
        contents.note_omission(f"{PYTHON_OBJECTS}; a replay {NEEDS_IT}")
    return run


def _add_config(run: RecordedRun, contents: Contents, prefix: str, shared_path: str, *, data: bool) -> tuple[str, ...]:
    """Add a run's configuration, input files and manifest; return the names of the files that the run read."""
    facts, inputs = read_manifest(run.folder), list[str]()
    recorded_values = manifest_values(run.folder, run.manifest)
    kind: type[Config] | type[EconomyConfig] = EconomyConfig if run.manifest.is_economy else Config
    config = as_config(kind, recorded_values, run.folder)
    input_prefix, names = "" if shared_path else prefix, dict[tuple[str, str], str]()
    if isinstance(config, Config):
        for group, key in INPUT_FILES:
            if name := _add_input(run, config, contents, (group, key), input_prefix, data=data):
                names[group, key] = name.removeprefix(input_prefix)
                inputs += [name] if name in contents.files else []
        for key, object_name in find_user_objects(config).items():
            if not object_name.startswith(PACKAGE_PREFIX):
                inputs += add_module(key, object_name, contents, input_prefix, is_own=run.origin == "own")
    values: dict[str, Any] = contents.cleaner.clean_value(recorded_values)
    for (group, key), name in names.items():
        values[group][key] = name
    flat_before = dict(flatten(recorded_values))
    for key, value in flatten(values):
        if key not in _NOT_NEEDED and value != flat_before.get(key):
            contents.note_omission(f"{key}: text like a path or a key was removed; a replay {NEEDS_IT}")
    hide_host(config.reasoner, values, contents)
    manifest = contents.cleaner.clean_value({key: value for key, value in facts.items() if key != "config"})
    contents.add_values(prefix + MANIFEST, {**manifest, "working_directory": shared_path or ".", "config": values})
    contents.add_yaml(prefix + CONFIG, values)
    return (prefix + CONFIG, *dict.fromkeys(inputs))


def hide_host(params: LLMParams, values: dict[str, Any], contents: Contents) -> None:
    """Remove the addresses of servers from a configuration's values; replays do not need them."""
    contents.cleaner.hidden_words.update(params.hosts)
    values.setdefault("reasoner", {})["host"] = None


def _add_input(
    run: RecordedRun, config: Config, contents: Contents, key: tuple[str, str], input_prefix: str, *, data: bool
) -> str:
    """Add an input file if it may be packed; return its name in the archive (packed or not), empty without a file."""
    path = getattr(getattr(config, key[0]), key[1])
    if path is None:
        return ""
    file, dotted_key = run.start_dir / path, ".".join(key)
    name = input_name(file, key[0], contents, input_prefix)
    if not data:
        reason = "left out on request"
    elif not (run.origin == "own" or is_inside(run.folder, file)):
        reason = "the run was not made here, and the file is not in its folder"
    elif not file.is_file():
        reason = "the file is missing"
    elif _inputs_have_changed(run, config):
        raise DataError(f"{run.folder}: {dotted_key} or a user's module has changed: restore it, or use --no-data")
    else:
        if file.suffix == ".parquet":
            check_table(file, contents.cleaner)
        contents.files[name] = file
        return name
    contents.note_omission(f"{dotted_key}: {file.name}: {reason}; a replay {NEEDS_IT} as {name}")
    return name


def input_name(file: Path, group: str, contents: Contents, input_prefix: str) -> str:
    """Return the name of an input file in the archive; files with the same name are numbered."""
    path = str(file.absolute())
    name, number = f"{input_prefix}{INPUTS}/{group}-{file.name}", 1
    while contents.inputs.setdefault(name, path) != path:
        number += 1
        name = f"{input_prefix}{INPUTS}/{group}-{number}-{file.name}"
    contents.cleaner.replace_path(path, name.removeprefix(input_prefix))
    return name


def _inputs_have_changed(run: RecordedRun, config: Config) -> bool:
    recorded_version = read_manifest(run.folder).get("inputs")
    if recorded_version is None or config.reasoner.distilled is not None:  # a distilled model checks its own checksum
        return False
    groups: dict[str, Any] = {}
    for group, key in INPUT_FILES:
        path = getattr(getattr(config, group), key)
        if path is not None:
            groups[group] = getattr(config, group).model_copy(update={key: str(run.start_dir / path)})
    return bool(inputs_version(config.model_copy(update=groups)) != recorded_version)


def add_module(key: str, object_name: str, contents: Contents, input_prefix: str, *, is_own: bool) -> list[str]:
    """Add the source of a user's module without importing it, and return the names of its files in the archive.

    The setting `key` is `object_name` (``module:object``). The module is looked for on this machine only if `is_own`.
    """
    files = (source_files(object_name.partition(":")[0]) if is_own else None) or {}
    files = {name: file for name, file in files.items() if not is_inside(Path(sys.prefix), file)}
    leaks = (contents.cleaner.find_leak(file.read_text("utf-8", errors="replace")) for file in files.values())
    if leak := next(filter(None, leaks), ""):
        reason = f"its source contains {leak}"
    elif not files:
        reason = "its source is missing, or in an installed package" if is_own else "no run is known to be your own"
    else:
        contents.files |= {f"{input_prefix}{MODULES}/{name}": file for name, file in files.items()}
        return [f"{input_prefix}{MODULES}/{name}" for name in files]
    contents.note_omission(f"{key}: {object_name}: {reason}; a replay {NEEDS_IT}")
    return []


def _run_action(
    run: RecordedRun, contents: Contents, prefix: str, inputs: tuple[str, ...], outputs: tuple[str, ...]
) -> Action:
    facts, nations = read_manifest(run.folder), run.manifest.is_economy
    command = f"prism {'economy' if nations else 'run'} {prefix}{CONFIG}"
    return Action(
        id=f"#run-{run.folder.name}",
        name=f"A run of {'nations' if nations else 'a platform'} with seed {run.manifest.seed}",
        description=f"{command}; decided by {contents.cleaner.clean_value(run.manifest.decided_by)}",
        started=facts.get("started"),
        ended=facts.get("ended"),
        failed=contents.cleaner.clean_value(run.manifest.error if run.state.status == "failed" else ""),
        unfinished="" if run.is_over else run.state.status,
        inputs=inputs,
        outputs=(*outputs, prefix + MANIFEST),
    )


def check_table(file: Path, cleaner: Cleaner) -> None:
    """Raise DataError if a string in a table contains a secret or a path of this machine."""
    with name_file_in_errors(file), pq.ParquetFile(file) as parquet:
        texts = [field.name for field in parquet.schema_arrow if is_text(field.type)]
        for batch in parquet.iter_batches(columns=texts) if texts else ():
            for name in texts:
                values = batch.column(name)
                values = values.dictionary if pa.types.is_dictionary(values.type) else values
                for kind, words in cleaner.forbidden.items():
                    if any(pc.any(pc.match_substring(values, word)).as_py() for word in words):
                        raise DataError(f"{file.name}: column {name!r}: contains {kind}, which {_CANNOT_REMOVE}")


def ledger_content(file: Path, cleaner: Cleaner) -> Content:
    """Check the texts of a ledger, and return its content: the file, or bytes if some rows are still in a log."""
    with Ledger(file, read_only=True) as ledger:
        texts = [("an answer", text) for a in ledger.answers() for text in (a.prompt, a.raw, a.llm, a.decoding)]
        texts += [("the reason of a fallback", reason) for reason in {row.reason for row in ledger.asked()}]
        for kind, text in texts:
            if leak := cleaner.find_leak(text):
                raise DataError(f"{file}: {kind} contains {leak}, which {_CANNOT_REMOVE}")
        if not has_log(file):
            return file
        with TemporaryDirectory(prefix="prism-archive-", suffix=".temporary") as folder:
            ledger.copy_to(Path(folder) / LEDGER)
            return (Path(folder) / LEDGER).read_bytes()
