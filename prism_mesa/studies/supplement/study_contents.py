"""Pack the folder of a study."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from prism_mesa.errors import ConfigError, DataError, format_count
from prism_mesa.params import flatten
from prism_mesa.runs.config import INPUT_FILES, Config, load_config
from prism_mesa.runs.manifest import read_run
from prism_mesa.runs.recorded import PACKAGE_PREFIX
from prism_mesa.runs.run_files import MANIFEST as RUN_MANIFEST
from prism_mesa.runs.run_files import check_within, name_file_in_errors
from prism_mesa.social.user_objects import find_user_objects
from prism_mesa.studies.collect import FACTS, RUNS
from prism_mesa.studies.design.points import find_file
from prism_mesa.studies.design.study_design import Worlds, condition_configs
from prism_mesa.studies.folder import LEDGER, MANIFEST, StudyFolder
from prism_mesa.studies.params import StudyParams, settings, study_params
from prism_mesa.studies.supplement.packing import Action, Contents
from prism_mesa.studies.supplement.run_contents import (
    ENDED,
    INPUTS,
    NEEDS_IT,
    add_module,
    check_table,
    hide_host,
    input_name,
    ledger_content,
    pack_run,
)

_VALUE_FILES: Final = ("calibration.json", "trials.json", "validation.json")
_TEXTS: Final = ("study.yaml", "calibration.yaml", "fitted.yaml")
_REPORTS: Final = ("report.html", "report.md")
_MAX_BYTES: Final = 50 * 2**20
PATH_TO_TOP: Final = "../.."  # from a run's folder to the top of the archive


def pack_study(
    study_dir: Path, facts: Mapping[str, Any], contents: Contents, *, data: bool
) -> tuple[Worlds, list[str]]:
    """Add a study with the manifest `facts`; return its configurations by condition, and the keys that vary."""
    folder = StudyFolder(study_dir)
    folder.check()
    for name in (MANIFEST, "study.yaml", "base.yaml", f"{RUNS}.parquet", f"{FACTS}.parquet"):
        if not (study_dir / name).is_file():
            raise DataError(f"{study_dir}: {name} is missing: run prism study run first")
    try:
        base = load_config(folder.base)
        params = study_params(_read_values(study_dir / "study.yaml"), str(study_dir / "study.yaml"))
    except ConfigError as error:
        raise DataError(f"{error} (another version wrote it)") from None
    inputs = _name_inputs(params, facts, base, contents)
    has_own_runs = _pack_runs(folder, contents, data=data)
    for (key, path), name in inputs.items():
        if name not in contents.files:
            contents.note_omission(f"{key}: {Path(path).name}: is not packed; a run {NEEDS_IT} as {name}")
    contents.add_values(MANIFEST, facts)
    _add_files(study_dir, contents)
    measures = [("measures", measure) for measure in params.measures if ":" in measure]
    for key, object_name in (*find_user_objects(base).items(), *measures):
        if not object_name.startswith(PACKAGE_PREFIX):
            add_module(key, object_name, contents, "", is_own=has_own_runs)
    values = contents.cleaner.clean_value(base.model_dump(mode="json"))
    hide_host(base.reasoner, values, contents)
    contents.add_yaml("base.yaml", values)
    _pack_tables(folder, contents)
    for name in _REPORTS:  # at the end, because the cleaner then knows all paths
        if (study_dir / name).is_file():
            contents.add_text(name, _read_text(study_dir / name))
    contents.actions.insert(0, _study_action(facts, contents))
    arm_keys = [key for arm in params.arms.values() for key, _ in flatten(settings(arm))]
    levels = {"arms": params.arms, "vary": params.vary, "design": params.design}
    return condition_configs(base, levels), list(dict.fromkeys([*arm_keys, *params.vary]))


def _name_inputs(
    params: StudyParams, facts: Mapping[str, Any], base: Config, contents: Contents
) -> dict[tuple[str, str], str]:
    """Return the names of input files in the archive, by key and original path."""
    working_dir, study_file = Path(str(facts["made"].get("working_directory", "."))), str(facts.get("file", ""))
    levels = {key: list(values) for key, values in params.vary.items()}
    for arm in params.arms.values():
        for key, value in flatten(settings(arm)):
            levels.setdefault(key, []).append(value)
    names = dict[tuple[str, str], str]()
    for group, key in INPUT_FILES:
        for path in (getattr(getattr(base, group), key), *levels.get(f"{group}.{key}", ())):
            if isinstance(path, str):
                name = input_name(find_file(path, study_file, working_dir), group, contents, "")
                names[f"{group}.{key}", path] = name
                contents.cleaner.replace_path(path, name)
    for part in (params.base, params.set):
        for key, path in flatten(part) if isinstance(part, Mapping) else ():
            group, _, name = key.partition(".")
            if isinstance(path, str) and (group, name) in INPUT_FILES:  # base.yaml has its absolute path
                contents.cleaner.replace_path(path, names[key, getattr(getattr(base, group), name)])
    return names


def _add_files(study_dir: Path, contents: Contents) -> None:
    for name in (*_VALUE_FILES, *_TEXTS):
        file = study_dir / name
        if not file.is_file():
            continue
        if name in _VALUE_FILES:
            contents.add_values(name, _read_values(file))
        else:
            _add_yaml_text(file, contents)
    for figure in sorted((study_dir / "figures").glob("*.png")):
        check_within(study_dir, figure)
        contents.files[f"figures/{figure.name}"] = figure


def _add_yaml_text(file: Path, contents: Contents) -> None:
    """Add the cleaned text of a YAML file, or its cleaned values if the text has other values."""
    values = contents.cleaner.clean_value(_read_values(file))
    text = str(contents.cleaner.clean_value(_read_text(file)))
    try:
        is_equal = yaml.safe_load(text) == values
    except yaml.YAMLError:
        is_equal = False
    if is_equal:
        contents.files[file.name] = text.encode()
    else:
        contents.add_yaml(file.name, values)


def _read_text(file: Path) -> str:
    if file.stat().st_size > _MAX_BYTES:
        raise DataError(f"{file}: is larger than {_MAX_BYTES // 2**20} MB")
    return file.read_text("utf-8", errors="replace")


def _read_values(file: Path) -> Any:
    try:
        return json.loads(_read_text(file)) if file.suffix == ".json" else yaml.safe_load(_read_text(file))
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise DataError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from None


def _pack_runs(folder: StudyFolder, contents: Contents, *, data: bool) -> bool:
    """Add the kept runs; return whether any of them is the user's own."""
    has_own_runs, n_unfinished = False, 0
    for run_dir in sorted(folder.runs.iterdir()) if folder.runs.is_dir() else ():
        if run_dir.is_symlink() or not (run_dir / RUN_MANIFEST).is_file():
            continue
        if read_run(run_dir).state.status not in ENDED:
            n_unfinished += 1
            continue
        run = pack_run(run_dir, contents, data=data, prefix=f"runs/{run_dir.name}/", shared_path=PATH_TO_TOP)
        has_own_runs = has_own_runs or run.origin == "own"
    if n_unfinished:
        contents.note_omission(f"{format_count(n_unfinished, 'run')} that did not finish")
    return has_own_runs


def _pack_tables(folder: StudyFolder, contents: Contents) -> None:
    for file in sorted(folder.path.glob("*.parquet")):
        if file.stem in (RUNS, FACTS):
            contents.files[file.name] = _clean_table(file, contents)
        else:
            check_table(file, contents.cleaner)
            contents.files[file.name] = file
    if folder.ledger.is_file():
        contents.files[LEDGER] = ledger_content(folder.ledger, contents.cleaner)


def _clean_table(file: Path, contents: Contents) -> bytes:
    with name_file_in_errors(file):
        table = pq.read_table(file)
    for index, column in enumerate(table.schema):
        if pa.types.is_string(column.type):
            texts = [contents.cleaner.clean_value(text) for text in table.column(index).to_pylist()]
            table = table.set_column(index, column, pa.array(texts, column.type))
    buffer = io.BytesIO()
    pq.write_table(table, buffer, compression="zstd", compression_level=1)
    return buffer.getvalue()


def _study_action(facts: Mapping[str, Any], contents: Contents) -> Action:
    names = contents.files
    inputs: list[str] = [name for name in ("study.yaml", "base.yaml") if name in names]
    inputs += [name for name in names if name.startswith((INPUTS, "modules/"))]
    outputs = [name for name in names if not name.startswith("runs/") and name not in inputs]
    runs = dict.fromkeys(f"runs/{name.split('/')[1]}/" for name in names if name.startswith("runs/"))
    return Action(
        id="#study",
        name=f"The study {contents.name}",
        description="prism study run study.yaml",
        started=facts["made"].get("started"),
        ended=None,
        failed="",
        unfinished="",
        inputs=tuple(inputs),
        outputs=(*outputs, *runs),
    )
