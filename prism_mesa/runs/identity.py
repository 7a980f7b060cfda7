"""What makes a run the same run: its configuration, its data, the code, and its seed."""

import json
import os
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from prism_mesa.runs.config import INPUT_FILES, Config
from prism_mesa.social.user_objects import objects_named

_PACKAGE: Final = Path(__file__).parents[1]
_ABOVE: Final = ("cli", "view", "analysis", "studies", "api")
"""Of the package, what no run depends on."""
MODULES: Final = "modules"
"""Where in an archive the modules of a user's own are."""
_WITHOUT_EFFECT: Final = ("max_concurrency", "ledger", "ledger_path")
"""Of the reasoner, what runs may differ in that are the same run; a ledger that is replayed counts by what it holds."""


def digest(*parts: bytes | str) -> str:
    """Return 16 hexadecimal digits that stand for some parts.

    >>> digest("a", "b") == digest("ab")
    False
    """
    found = blake2b(digest_size=8)
    for part in parts:
        data = part if isinstance(part, bytes) else part.encode()
        found.update(len(data).to_bytes(8, "little") + data)
    return found.hexdigest()


@dataclass(frozen=True)
class Identity:
    """Of what a condition is made, each as a digest: two runs are the same run if these and their seeds are."""

    config: str
    data: str
    code: str

    def run_of(self, seed: int) -> str:
        """Return the name of the run with a seed."""
        return digest(self.config, self.data, self.code, str(seed))


def identity_of(config: Config) -> Identity:
    """Return of what the runs of a configuration are made, whatever its seed is."""
    values = config.model_dump(mode="json", exclude={"seed": True, "threads": True, "checkpoint_every": True})
    values["reasoner"] = {key: v for key, v in values["reasoner"].items() if key not in _WITHOUT_EFFECT}
    for group, key in INPUT_FILES:  # a file counts by what it holds, wherever it lies
        values[group][key] = values[group][key] is not None
    values["reasoner"]["distilled"] = config.reasoner.distilled is not None
    code = digest(code_version(), _own_modules(config))
    return Identity(digest(json.dumps(values, sort_keys=True)), data_version(config), code)


def modules_named(config: Config) -> tuple[str, ...]:
    """Return the modules that a configuration names, each once."""
    return tuple(dict.fromkeys(where.partition(":")[0] for where in objects_named(config).values()))


def _own_modules(config: Config) -> str:
    """Return what stands for the modules of a user's own that a configuration names; empty if it names none."""
    digests = [module_digest(module) for module in modules_named(config)]
    return digests[0] if len(digests) == 1 else digest(*digests) if digests else ""


def inputs_version(config: Config) -> str:
    """Return what stands for all that a configuration names: files, and the module of a chart of one's own."""
    return digest(data_version(config), _own_modules(config))


def data_version(config: Config) -> str:
    """Return what stands for the content of the files that a configuration names."""
    return digest(*(b"" if file is None else _content(Path(file)) for file in _files_named(config).values()))


def inputs_one_by_one(config: Config) -> dict[str, str]:
    """Return what stands for each file, by its key, and for each module, by `of_module`, that a configuration names."""
    files = {key: _content(Path(file)) for key, file in _files_named(config).items() if file is not None}
    return files | {of_module(module): module_digest(module) for module in modules_named(config)}


def of_module(module: str) -> str:
    """Return what the code of a module is called among inputs."""
    return f"code of {module}"


def in_words(name: str) -> str:
    """Return what an input is called, of a module also the file that it is imported from."""
    module = name.removeprefix(of_module(""))
    files = [] if module == name else list((source_files(module) or {}).values())
    return f"{name} ({files[0]})" if files else name


def kept_digest(folder: Path, module: str) -> str | None:
    """Return what stands for a module as it lies in an archive's folder of modules; None if it is not there."""
    name = module.partition(".")[0]
    files = sorted((folder / name).rglob("*.py")) or [file for file in [folder / f"{name}.py"] if file.is_file()]
    return digest(*(file.read_bytes() for file in files)) if files else None


def _files_named(config: Config) -> dict[str, str | None]:
    """Return the files that a configuration names, by dotted key; None where it names none."""
    files = {f"{group}.{key}": getattr(getattr(config, group), key) for group, key in INPUT_FILES}
    files["reasoner.distilled"] = config.reasoner.distilled
    return files | {"reasoner.ledger_path": config.reasoner.ledger_path if config.reasoner.ledger == "replay" else None}


@cache
def code_version() -> str:
    """Return what stands for the code of PRISM that runs depend on."""
    parts: list[bytes | str] = []
    for folder, folders, files in os.walk(_PACKAGE):
        within = Path(folder).relative_to(_PACKAGE)
        folders[:] = sorted(name for name in folders if within.parts or name not in _ABOVE)
        for name in sorted(files):
            if name.endswith((".py", ".csv")):
                parts += [str(within / name), Path(folder, name).read_bytes()]
    return digest(*parts)


def module_digest(module: str) -> str:
    """Return what stands for the source of a module of a user's own, empty if it has none; nothing is imported.

    Of a module in a package it is all of the package. What it imports from elsewhere does not count.
    """
    files = source_files(module)
    return "" if files is None else digest(*(file.read_bytes() for file in files.values()))


def source_files(module: str) -> dict[str, Path] | None:
    """Return the files of a module, or of the package that it is in, by where they lie below what is imported from.

    None if there is no such module; nothing is imported.
    """
    name = module.partition(".")[0]
    try:
        spec = find_spec(name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    within = [Path(folder) for folder in spec.submodule_search_locations or ()]
    files = {f"{name}/{file.relative_to(top).as_posix()}": file for top in within for file in sorted(top.rglob("*.py"))}
    alone = Path(spec.origin or "")
    return {where: file for where, file in (files or {alone.name: alone}).items() if file.is_file()}


_read: dict[tuple[str, int, int], str] = {}


def _content(file: Path) -> str:
    """Return what stands for the content of a file or folder; empty if it is not there, which whoever reads it says."""
    paths = sorted(path for path in file.rglob("*") if path.is_file()) if file.is_dir() else [file]
    return digest(*(_digest_of_file(path) for path in paths if path.is_file()))


def _digest_of_file(path: Path) -> str:
    stat = path.stat()
    key = (str(path.resolve()), stat.st_size, stat.st_mtime_ns)
    if key not in _read:
        found = blake2b(digest_size=8)
        with path.open("rb") as stream:
            while block := stream.read(1 << 20):
                found.update(block)
        _read[key] = found.hexdigest()
    return _read[key]
