"""What of a run's folder is packed."""

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
from prism_mesa.reasoner.distilled import FILE as DISTILLED
from prism_mesa.runs.config import INPUT_FILES, Config, EconomyConfig
from prism_mesa.runs.identity import MODULES, inputs_version, source_files
from prism_mesa.runs.manifest import RecordedRun, read_run
from prism_mesa.runs.recorded import OWN_PACKAGE, as_config, manifest_values
from prism_mesa.runs.records.table_checks import RUN_TABLES
from prism_mesa.runs.run_files import (
    LEDGER,
    MANIFEST,
    check_within,
    file_of,
    files_of,
    has_table,
    naming_file,
    read_manifest,
)
from prism_mesa.runs.trust import is_inside
from prism_mesa.social.tables import ALWAYS as SOCIAL_ALWAYS
from prism_mesa.social.user_objects import objects_named
from prism_mesa.studies.params import flat
from prism_mesa.studies.supplement.packing import Action, Cleaner, Contents
from prism_mesa.studies.supplement.zip_files import Content

ENDED: Final = ("done", "failed", "interrupted")  # how runs stand that can be packed
CONFIG: Final = "config.yaml"
INPUTS: Final = "inputs"
GIVEN: Final = "a chart, agents or a reasoner that were given in Python"
LACKS: Final = "needs it"  # what is said of all that is left out without which something cannot be done
_STAYS: Final = "cannot be taken out without changing the run: nothing was packed"
_NOT_NEEDED: Final = {
    *(f"{group}.{key}" for group, key in INPUT_FILES),
    *(f"reasoner.{key}" for key in ("host", "ledger_path", "distilled")),
}
"""Keys whose values are others in an archive: a replay finds what they name in it, or does not ask for it."""


def pack_run(run_dir: Path, contents: Contents, *, data: bool, within: str = "", shared: str = "") -> RecordedRun:
    """Put the files of a run among contents, and return the run.

    Args:
        run_dir: Its folder.
        contents: What is packed.
        data: Whether its input files, if it read any, are packed.
        within: Where in the archive: empty, or a folder with a slash at its end.
        shared: The way from there to where input files and modules are, which several runs share: empty, or ``../``.

    Raises:
        DataError: If there is no run, it has not come to its end, or holds a secret where none can be taken out.
    """
    run = read_run(run_dir)
    if run.state.status not in ENDED:
        raise DataError(f"{run_dir}: has not come to its end (status {run.state}){run.way_on}: nothing is packed")
    files = contents.files
    for table in RUN_TABLES:
        for part in files_of(file_of(run_dir, table)) if has_table(run_dir, table) else ():
            check_within(run_dir, part)
            check_table(part, contents.cleaner)
            files[within + part.relative_to(run_dir).as_posix()] = part
    for name in (LEDGER, DISTILLED, *sorted(file.name for file in run_dir.glob("*.png"))):
        if (run_dir / name).is_file():
            check_within(run_dir, run_dir / name)
            files[within + name] = run_dir / name
    if within + LEDGER in files:
        files[within + LEDGER] = ledger_content(run_dir / LEDGER, contents.cleaner)
    if run.manifest.status == "done":
        always = ECONOMY_ALWAYS if run.manifest.of_nations else SOCIAL_ALWAYS
        for name in (*(f"{table}.parquet" for table in always if not has_table(run_dir, table)), LEDGER):
            if within + name not in files:
                contents.leave_out(f"{within}{name}: is missing from the run's folder; a replay {LACKS}")
    read = _put_config(run, contents, within, shared, data=data)
    made = tuple(name for name in files if name.startswith(within) and name not in read)
    contents.actions.append(_action(run, contents, within, read, made))
    if any(run.manifest.made_in_python):
        contents.leave_out(f"{GIVEN}; no folder holds them, and prism replay needs them")
    return run


def _put_config(run: RecordedRun, contents: Contents, within: str, shared: str, *, data: bool) -> tuple[str, ...]:
    """Put a run's configuration, what it names, and its manifest; return the names of what the run read."""
    facts, read = read_manifest(run.folder), list[str]()
    values = manifest_values(run.folder, run.manifest)
    config: Config | EconomyConfig
    if run.manifest.of_nations:
        config = as_config(EconomyConfig, values, run.folder)
    else:
        config = as_config(Config, values, run.folder)
    beside, named = "" if shared else within, dict[str, str]()
    if isinstance(config, Config):
        for group, key in INPUT_FILES:
            if name := _put_input(run, config, contents, (group, key), beside, data=data):
                named[f"{group}.{key}"] = name.removeprefix(beside)
                read += [name] if name in contents.files else []
        read += _put_modules(run, config, contents, beside)
    own: dict[str, Any] = contents.cleaner.value(values)
    for dotted, name in named.items():
        group, key = dotted.split(".")
        own[group][key] = name
    _tell_changed(values, own, contents)
    hide_host(config.reasoner, own, contents)
    cleaned = contents.cleaner.value({key: value for key, value in facts.items() if key != "config"})
    contents.put_values(within + MANIFEST, {**cleaned, "working_directory": shared or ".", "config": own})
    contents.put_yaml(within + CONFIG, own)
    return (within + CONFIG, *dict.fromkeys(read))


def _tell_changed(values: dict[str, Any], own: dict[str, Any], contents: Contents) -> None:
    """Note which values of a configuration are not what they were, besides those that a replay does not need."""
    before = dict(flat(values))
    for key, value in flat(own):
        if key not in _NOT_NEEDED and value != before.get(key):
            contents.leave_out(f"{key}: what looks like a path or a key was taken out of it; a replay needs it")


def hide_host(params: LLMParams, values: dict[str, Any], contents: Contents) -> None:
    """Remove the servers from a configuration's values: they are private, and no replay needs them."""
    contents.cleaner.hide(*params.hosts)
    values.setdefault("reasoner", {})["host"] = None


def _put_input(
    run: RecordedRun, config: Config, contents: Contents, key: tuple[str, str], beside: str, *, data: bool
) -> str:
    """Put a file that a run read, if it may be packed; return where it is, or would be; empty if it read none."""
    given = getattr(getattr(config, key[0]), key[1])
    if given is None:
        return ""
    file, told = run.started_in / given, ".".join(key)
    name = input_name(file, key[0], contents, beside)
    if not data:
        why = "own data were to be left out"
    elif not (run.whose == "own" or is_inside(run.folder, file)):
        why = "the run was not made here, and the file is not in its folder"
    elif not file.is_file():
        why = "it is not there any more"
    else:
        if _changed(run, config):
            raise DataError(
                f"{run.folder}: {told} or a module of its own is not what it was: put it back, or --no-data"
            )
        if file.suffix == ".parquet":
            check_table(file, contents.cleaner)
        contents.files[name] = file
        return name
    contents.leave_out(f"{told}: {file.name}: {why}; a replay needs it as {name}")
    return name


def input_name(file: Path, group: str, contents: Contents, beside: str) -> str:
    """Return what a file that runs read is called in an archive; others of its name, from elsewhere, are numbered."""
    where, taken = str(file.absolute()), contents.inputs
    name, number = f"{beside}{INPUTS}/{group}-{file.name}", 1
    while taken.setdefault(name, where) != where:
        number += 1
        name = f"{beside}{INPUTS}/{group}-{number}-{file.name}"
    contents.cleaner.call(where, name.removeprefix(beside))
    return name


def _changed(run: RecordedRun, config: Config) -> bool:
    """Return whether what a run read is not what it was, as far as its manifest says."""
    was = read_manifest(run.folder).get("inputs")
    if was is None or config.reasoner.distilled is not None:  # the model has a checksum of its own
        return False
    there: dict[str, Any] = {}
    for group, key in INPUT_FILES:
        given = getattr(getattr(config, group), key)
        if given is not None:
            there[group] = getattr(config, group).model_copy(update={key: str(run.started_in / given)})
    return bool(inputs_version(config.model_copy(update=there)) != was)


def _put_modules(run: RecordedRun, config: Config, contents: Contents, beside: str) -> list[str]:
    """Put the sources of the modules that a configuration names; return their names."""
    named = {key: where for key, where in objects_named(config).items() if not where.startswith(OWN_PACKAGE)}
    put = (put_module(key, where, contents, beside, own=run.whose == "own") for key, where in named.items())
    return [name for names in put for name in names]


def put_module(key: str, where: str, contents: Contents, beside: str, *, own: bool) -> list[str]:
    """Put the source of a module of a user's own; nothing is imported.

    Args:
        key: What names it.
        where: ``module:object``.
        contents: What is packed.
        beside: Where in the archive.
        own: Whether the user made the run; else the name is somebody else's, and means nothing here.

    Returns:
        The names of its files in the archive; none if it is left out.
    """
    files = (source_files(where.partition(":")[0]) if own else None) or {}
    files = {name: file for name, file in files.items() if not is_inside(Path(sys.prefix), file)}
    held = next(
        (
            found
            for file in files.values()
            if (found := contents.cleaner.found_in(file.read_text("utf-8", errors="replace")))
        ),
        "",
    )
    if not files or held:
        why = "its source is not here, or in an installed package" if own else "no run in here is known to be your own"
        why = f"its source holds {held}" if held else why
        contents.leave_out(f"{key}: {where}: {why}; a replay needs it")
        return []
    contents.files |= {f"{beside}{MODULES}/{name}": file for name, file in files.items()}
    return [f"{beside}{MODULES}/{name}" for name in files]


def _action(run: RecordedRun, contents: Contents, within: str, read: tuple[str, ...], made: tuple[str, ...]) -> Action:
    facts = read_manifest(run.folder)
    command = "economy" if run.manifest.of_nations else "run"
    failed = run.manifest.error if run.state.status == "failed" else ""
    return Action(
        id=f"#run-{run.folder.name}",
        name=f"A run of {'nations' if run.manifest.of_nations else 'a platform'} with seed {run.manifest.seed}",
        description=f"prism {command} {within}{CONFIG}; decided by {contents.cleaner.value(run.manifest.decided_by)}",
        started=facts.get("started"),
        ended=facts.get("ended"),
        failed=contents.cleaner.value(failed),
        unended="" if run.is_over else run.state.status,
        read=read,
        made=(*made, within + MANIFEST),
    )


def check_table(file: Path, cleaner: Cleaner) -> None:
    """Make sure that no text of a table holds a secret, or a path of this machine."""
    with naming_file(file), pq.ParquetFile(file) as opened:
        texts = [one.name for one in opened.schema_arrow if _is_text(one.type)]
        for batch in opened.iter_batches(columns=texts) if texts else ():
            for name in texts:
                _check_column(batch.column(name), f"{file.name}: column {name!r}", cleaner)


def _is_text(kind: pa.DataType) -> bool:
    of = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(of) or pa.types.is_large_string(of))


def _check_column(values: pa.Array, where: str, cleaner: Cleaner) -> None:
    secrets, paths = cleaner.needles
    values = values.dictionary if pa.types.is_dictionary(values.type) else values
    for what, needles in (("a key or password", secrets), ("a path of this machine", paths)):
        if any(pc.any(pc.match_substring(values, needle)).as_py() for needle in needles):
            raise DataError(f"{where}: holds {what}, which {_STAYS}")


def ledger_content(file: Path, cleaner: Cleaner) -> Content:
    """Return a ledger as it is packed: the file, or its bytes if a log holds some of its rows.

    Raises:
        DataError: If a prompt or an answer holds a secret or a path of this machine, or the ledger cannot be read.
    """
    with Ledger(file, read_only=True) as ledger:
        for answer in ledger.answers():
            texts = (answer.prompt, answer.raw, answer.llm, answer.decoding)
            if found := next((found for text in texts if (found := cleaner.found_in(text))), ""):
                raise DataError(f"{file}: an answer holds {found}, which {_STAYS}")
        for reason in {row.reason for row in ledger.asked()}:
            if found := cleaner.found_in(reason):
                raise DataError(f"{file}: the reason of a fallback holds {found}, which {_STAYS}")
        if not has_log(file):
            return file
        with TemporaryDirectory(prefix="prism-archive-", suffix=".temporary") as folder:
            ledger.copy_to(Path(folder) / LEDGER)
            return (Path(folder) / LEDGER).read_bytes()
