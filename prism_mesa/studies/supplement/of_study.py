"""What of a study's folder is packed."""

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from prism_mesa.errors import ConfigError, DataError, counted
from prism_mesa.runs.config import INPUT_FILES, Config, load_config
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.recorded import OWN_PACKAGE
from prism_mesa.runs.run_files import MANIFEST as RUN_MANIFEST
from prism_mesa.runs.run_files import check_within, naming_file
from prism_mesa.social.user_objects import objects_named
from prism_mesa.studies.collect import FACTS, RUNS
from prism_mesa.studies.design.points import find_file
from prism_mesa.studies.design.study_design import Worlds, condition_configs
from prism_mesa.studies.folder import LEDGER, MANIFEST, StudyFolder
from prism_mesa.studies.params import StudyParams, flat, settings, study_params
from prism_mesa.studies.supplement.of_run import (
    ENDED,
    INPUTS,
    check_table,
    hide_host,
    input_name,
    ledger_content,
    pack_run,
    put_module,
)
from prism_mesa.studies.supplement.packing import Action, Contents

_VALUES: Final = ("calibration.json", "trials.json", "validation.json")
_TEXTS: Final = ("study.yaml", "calibration.yaml", "fitted.yaml")
_REPORTS: Final = ("report.html", "report.md")
_LARGEST: Final = 50 * 2**20
UP: Final = "../.."  # the way from a run's folder in an archive to its top


def pack_study(
    study_dir: Path, facts: Mapping[str, Any], contents: Contents, *, data: bool
) -> tuple[Worlds, list[str]]:
    """Add the files of a study, whose manifest says `facts`, to the contents.

    Returns:
        The configurations of its conditions, and the keys that these change.

    Raises:
        DataError: If it has no results yet, or holds a secret where none can be taken out.
    """
    folder = StudyFolder(study_dir)
    folder.check()
    for name in (MANIFEST, "study.yaml", "base.yaml", f"{RUNS}.parquet", f"{FACTS}.parquet"):
        if not (study_dir / name).is_file():
            raise DataError(f"{study_dir}: {name} is missing: prism study run writes it")
    base, params = _base(folder), _params(study_dir / "study.yaml")
    inputs = _inputs(params, facts, base, contents)
    own = _pack_runs(folder, contents, data=data)
    for key, name in inputs.items():
        if name not in contents.files:
            contents.leave_out(f"{key[0]}: {Path(key[1]).name}: is not packed; a run needs it as {name}")
    contents.put_values(MANIFEST, facts)
    for name in filter(lambda one: (study_dir / one).is_file(), _VALUES):
        contents.put_values(name, _values(study_dir / name))
    for name in filter(lambda one: (study_dir / one).is_file(), _TEXTS):
        _put_yaml_text(study_dir / name, contents)
    measures = [("measures", measure) for measure in params.measures if ":" in measure]
    for named, where in (*objects_named(base).items(), *measures):
        if not where.startswith(OWN_PACKAGE):
            put_module(named, where, contents, "", own=own)
    _put_base(base, contents)
    _pack_tables(folder, contents)
    for name in filter(lambda one: (study_dir / one).is_file(), _REPORTS):
        contents.put_text(name, _read(study_dir / name))
    for figure in sorted((study_dir / "figures").glob("*.png")):
        check_within(study_dir, figure)
        contents.files[f"figures/{figure.name}"] = figure
    contents.actions.insert(0, _action(facts, contents))
    by_arms = [key for arm in params.arms.values() for key, _ in flat(settings(arm))]
    values = {"arms": params.arms, "vary": params.vary, "design": params.design}
    return condition_configs(base, values), list(dict.fromkeys([*by_arms, *params.vary]))


def _inputs(
    params: StudyParams, facts: Mapping[str, Any], base: Config, contents: Contents
) -> dict[tuple[str, str], str]:
    """Return the names in the archive of the files that the base and the conditions name, by key and path."""
    working, where = Path(str(facts["made"].get("working_directory", "."))), str(facts.get("file", ""))
    named = {key: list(values) for key, values in params.vary.items()}
    for arm in params.arms.values():
        for key, value in flat(settings(arm)):
            named.setdefault(key, []).append(value)
    names = dict[tuple[str, str], str]()
    for group, key in INPUT_FILES:
        for given in (getattr(getattr(base, group), key), *named.get(f"{group}.{key}", ())):
            if isinstance(given, str):
                names[f"{group}.{key}", given] = input_name(find_file(given, where, working), group, contents, "")
                contents.cleaner.call(given, names[f"{group}.{key}", given])
    for part in (params.base, params.set):
        for key, given in flat(part) if isinstance(part, Mapping) else ():
            group, _, name = key.partition(".")
            if isinstance(given, str) and (group, name) in INPUT_FILES:  # base.yaml has it with its whole path
                contents.cleaner.call(given, names[key, getattr(getattr(base, group), name)])
    return names


def _put_yaml_text(file: Path, contents: Contents) -> None:
    """Put in a YAML file as it was written, if it means the same without the paths of this machine."""
    name, values = file.name, contents.cleaner.value(_values(file))
    cleaned = str(contents.cleaner.value(_read(file)))
    try:
        same = yaml.safe_load(cleaned) == values
    except yaml.YAMLError:
        same = False
    if same:
        contents.files[name] = cleaned.encode()
    else:
        contents.put_yaml(name, values)


def _base(folder: StudyFolder) -> Config:
    try:
        return load_config(folder.base)
    except ConfigError as error:
        raise DataError(f"{error} (another version wrote it)") from None


def _read(file: Path) -> str:
    if file.stat().st_size > _LARGEST:
        raise DataError(f"{file}: has more than {_LARGEST // 2**20} MB")
    return file.read_text("utf-8", errors="replace")


def _values(file: Path) -> Any:
    """Return what a JSON or YAML file holds."""
    try:
        return json.loads(_read(file)) if file.suffix == ".json" else yaml.safe_load(_read(file))
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise DataError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from None


def _pack_runs(folder: StudyFolder, contents: Contents, *, data: bool) -> bool:
    """Put the runs that have folders of their own; return whether one of them was made here."""
    own, unfinished, runs = False, 0, folder.runs
    for run_dir in sorted(runs.iterdir()) if runs.is_dir() else ():
        if run_dir.is_symlink() or not (run_dir / RUN_MANIFEST).is_file():
            continue
        if read_run(run_dir).state.status not in ENDED:
            unfinished += 1
            continue
        run = pack_run(run_dir, contents, data=data, within=f"runs/{run_dir.name}/", shared=UP)
        own = own or run.whose == "own"
    if unfinished:
        contents.leave_out(f"{counted(unfinished, 'run')} that did not come to an end")
    return own


def _put_base(base: Config, contents: Contents) -> None:
    """Put the configuration that all runs start from."""
    values = contents.cleaner.value(base.model_dump(mode="json"))
    hide_host(base.reasoner, values, contents)
    for group, key in INPUT_FILES:
        given = getattr(getattr(base, group), key)
        if given is not None:
            values[group][key] = contents.cleaner.value(given)
    contents.put_yaml("base.yaml", values)


def _params(file: Path) -> StudyParams:
    try:
        return study_params(_values(file), str(file))
    except ConfigError as error:
        raise DataError(f"{file}: cannot be read as a study: {error}") from None


def _pack_tables(folder: StudyFolder, contents: Contents) -> None:
    for file in sorted(folder.path.glob("*.parquet")):
        if file.stem in (RUNS, FACTS):
            contents.files[file.name] = _cleaned(file, contents)
        else:
            check_table(file, contents.cleaner)
            contents.files[file.name] = file
    if folder.ledger.is_file():
        contents.files[LEDGER] = ledger_content(folder.ledger, contents.cleaner)


def _cleaned(file: Path, contents: Contents) -> bytes:
    """Return a table of a study with texts, such as commands and reasons, without what is of this machine."""
    with naming_file(file):
        table = pq.read_table(file)
    for place, column in enumerate(table.schema):
        if pa.types.is_string(column.type):
            texts = [contents.cleaner.value(text) for text in table.column(place).to_pylist()]
            table = table.set_column(place, column, pa.array(texts, column.type))
    written = io.BytesIO()
    pq.write_table(table, written, compression="zstd", compression_level=1)
    return written.getvalue()


def _action(facts: Mapping[str, Any], contents: Contents) -> Action:
    read: list[str] = [name for name in ("study.yaml", "base.yaml") if name in contents.files]
    read += [name for name in contents.files if name.startswith((INPUTS, "modules/"))]
    return Action(
        id="#study",
        name=f"The study {contents.name}",
        description="prism study run study.yaml",
        started=facts["made"].get("started"),
        ended=None,
        failed="",
        unended="",
        read=tuple(read),
        made=tuple(_made(contents, read)),
    )


def _made(contents: Contents, read: list[str]) -> Iterator[str]:
    """Yield what the study made, a run's folder as a whole."""
    yield from (name for name in contents.files if not name.startswith("runs/") and name not in read)
    yield from dict.fromkeys(f"runs/{name.split('/')[1]}/" for name in contents.files if name.startswith("runs/"))
