"""Identify runs by their configuration, data, code and seed."""

import json
import os
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b, file_digest
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from prism_mesa.runs.config import INPUT_FILES, Config
from prism_mesa.social.user_objects import find_user_objects

_PACKAGE: Final = Path(__file__).parents[1]
_UPPER_LAYERS: Final = ("cli", "view", "analysis", "studies", "api")
"""Subpackages that do not affect runs."""
MODULES: Final = "modules"
"""The folder for the user's modules in an archive."""
_WITHOUT_EFFECT: Final = ("max_concurrency", "ledger", "ledger_path")
"""Keys of the reasoner that do not identify a run; the content of a replayed ledger identifies it instead."""


def digest(*parts: bytes | str) -> str:
    """Return a digest of its arguments, with 16 hexadecimal digits.

    >>> digest("a", "b") == digest("ab")
    False
    """
    state = blake2b(digest_size=8)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode()
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()


@dataclass(frozen=True)
class Identity:
    """Digests of a configuration, its data and its code; together with a seed they identify a run."""

    config: str
    data: str
    code: str

    def run_identity(self, seed: int) -> str:
        """Return the identity of a run with this seed."""
        return digest(self.config, self.data, self.code, str(seed))


def identify_config(config: Config) -> Identity:
    """Return the identity of a configuration without its seed."""
    values = config.model_dump(mode="json", exclude={"seed": True, "threads": True, "checkpoint_every": True})
    values["reasoner"] = {key: v for key, v in values["reasoner"].items() if key not in _WITHOUT_EFFECT}
    for group, key in INPUT_FILES:  # the content identifies a file, not its path
        values[group][key] = values[group][key] is not None
    values["reasoner"]["distilled"] = config.reasoner.distilled is not None
    code = digest(code_version(), _modules_digest(config))
    return Identity(digest(json.dumps(values, sort_keys=True)), data_version(config), code)


def user_modules(config: Config) -> tuple[str, ...]:
    """Return the modules that a configuration names, each once."""
    return tuple(dict.fromkeys(where.partition(":")[0] for where in find_user_objects(config).values()))


def _modules_digest(config: Config) -> str:
    """Return a digest of the user's modules that a configuration names; empty if it names none."""
    digests = [module_digest(module) for module in user_modules(config)]
    return digests[0] if len(digests) == 1 else digest(*digests) if digests else ""


def inputs_version(config: Config) -> str:
    """Return a digest of the files and modules that a configuration names."""
    return digest(data_version(config), _modules_digest(config))


def data_version(config: Config) -> str:
    """Return a digest of the files that a configuration names."""
    return digest(*(b"" if file is None else _content_digest(Path(file)) for file in _input_files(config).values()))


def input_digests(config: Config) -> dict[str, str]:
    """Return the digest of each file and module of a configuration, by its key or `module_input`."""
    files = {key: _content_digest(Path(file)) for key, file in _input_files(config).items() if file is not None}
    return files | {module_input(module): module_digest(module) for module in user_modules(config)}


def module_input(module: str) -> str:
    """Return the name under which a module is listed among inputs."""
    return f"code of {module}"


def input_text(name: str) -> str:
    """Return an input's name for messages; a module has its file in parentheses."""
    module = name.removeprefix(module_input(""))
    files = [] if module == name else list((source_files(module) or {}).values())
    return f"{name} ({files[0]})" if files else name


def _input_files(config: Config) -> dict[str, str | None]:
    """Return the input files of a configuration by dotted key; None for keys without a file."""
    files = {f"{group}.{key}": getattr(getattr(config, group), key) for group, key in INPUT_FILES}
    files["reasoner.distilled"] = config.reasoner.distilled
    return files | {"reasoner.ledger_path": config.reasoner.ledger_path if config.reasoner.ledger == "replay" else None}


@cache
def code_version() -> str:
    """Return a digest of PRISM's code that runs depend on."""
    parts: list[bytes | str] = []
    for folder, folders, files in os.walk(_PACKAGE):
        relative = Path(folder).relative_to(_PACKAGE)
        folders[:] = sorted(name for name in folders if relative.parts or name not in _UPPER_LAYERS)
        for name in sorted(files):
            if name.endswith((".py", ".csv")):
                parts += [str(relative / name), Path(folder, name).read_bytes()]
    return digest(*parts)


def module_digest(module: str) -> str:
    """Return a digest of a module's package without importing it; empty if the module is missing."""
    files = source_files(module)
    return "" if files is None else digest(*(file.read_bytes() for file in files.values()))


def source_files(module: str) -> dict[str, Path] | None:
    """Return the files of a module's package by import path; None if the module is missing."""
    name = module.partition(".")[0]
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    roots = [Path(folder) for folder in spec.submodule_search_locations or ()]
    files = {f"{name}/{file.relative_to(top).as_posix()}": file for top in roots for file in sorted(top.rglob("*.py"))}
    single_file = Path(spec.origin or "")
    return {where: file for where, file in (files or {single_file.name: single_file}).items() if file.is_file()}


_digests: dict[tuple[str, int, int], str] = {}


def _content_digest(file: Path) -> str:
    """Return a digest of a file or folder; a missing file counts as empty: reading it raises an error later."""
    paths = sorted(path for path in file.rglob("*") if path.is_file()) if file.is_dir() else [file]
    return digest(*(_file_digest(path) for path in paths if path.is_file()))


def _file_digest(path: Path) -> str:
    stat = path.stat()
    key = (str(path.resolve()), stat.st_size, stat.st_mtime_ns)
    if key not in _digests:
        with path.open("rb") as stream:
            _digests[key] = file_digest(stream, lambda: blake2b(digest_size=8)).hexdigest()
    return _digests[key]
