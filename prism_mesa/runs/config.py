"""The configuration of a run: one model composed of the packages' own parameters, YAML, and overrides."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import Field

from prism_mesa.economy.params import EconomyParams
from prism_mesa.errors import ConfigError, printable
from prism_mesa.params import Params, merged, nested, shown, validated
from prism_mesa.runs.yaml_text import fault_of, parsed, read_yaml
from prism_mesa.social.params import SocialParams

INPUT_FILES = (("network", "edges"), ("posts", "file"), ("agents", "profiles"))
"""The keys, group and name, that hold paths of files to read."""


class Config(SocialParams):
    """Everything that decides a run. ``Config()`` is the default run, with open choices decided by rule."""

    checkpoint_every: int | None = Field(
        None, ge=0, le=10**9, description="a checkpoint every so many rounds; null: by time; 0: none"
    )
    name: str = Field("run", pattern=r"^[\w.-]{1,60}$", description="first part of the name of the run's folder")


class EconomyConfig(EconomyParams):
    """Everything that decides a run of nations. ``EconomyConfig()`` is the default, decided by Taylor's rule."""

    name: str = Field("economy", pattern=r"^[\w.-]{1,60}$", description="first part of the name of the run's folder")


def make_config(values: Mapping[str, Any], where: str = "config") -> Config:
    """Return nested values as a `Config`.

    Raises:
        ConfigError: One line that names the key, what was given and what is allowed.
    """
    return validated(Config, nested(values), where)


def given_config[C: Params](kind: type[C], given: object) -> C:
    """Return a configuration as a user gives it: made, as nested values, or as the path of a YAML file (see `load`).

    Raises:
        ConfigError: If it is anything else, the file is missing or no YAML, or a key or value is not allowed.
    """
    path = os.fspath(given) if isinstance(given, str | os.PathLike) else None
    if isinstance(path, str):
        return load(kind, path)
    if isinstance(given, kind):
        return given
    if given is not None and not isinstance(given, Mapping):
        name = kind.__name__
        article = "an" if name[0] in "AEIOU" else "a"
        raise ConfigError(
            f"config: give {article} {name}, nested values, or the path of a YAML file, not {shown(given)}"
        )
    return validated(kind, nested(given or {}), "config")


def load_config(
    path: str | Path | None, overrides: Sequence[str] = (), *, defaults: Mapping[str, Any] | None = None
) -> Config:
    """Return the configuration of a YAML file with overrides ``a.b=c`` on top; see `load` for the arguments."""
    return load(Config, path, overrides, defaults=defaults)


def load[C: Params](
    kind: type[C],
    path: str | Path | None,
    overrides: Sequence[str] = (),
    *,
    defaults: Mapping[str, Any] | None = None,
) -> C:
    """Return a configuration of some kind, `Config` or `EconomyConfig`, with overrides ``a.b=c`` on top.

    Args:
        kind: What is configured.
        path: The YAML file; None for the defaults.
        overrides: ``key=value``, the value in YAML.
        defaults: Nested values that count where the file says nothing.

    Raises:
        ConfigError: If the file is missing or no YAML, or a key or value is not allowed.
    """
    _require_texts(overrides)
    if not isinstance(path, str | os.PathLike | None):
        raise ConfigError(f"path: give that of a YAML file, or None for the defaults, not {shown(path)}")
    given = {} if path is None else read_yaml(Path(path))
    where = str(path or "config")
    if hint := _of_another_command(kind, given, where):
        raise ConfigError(hint)
    values = merged(defaults or {}, given)
    validated(kind, nested(values), where)  # so that a fault of the file is not put down to an override
    return overridden(kind, values, overrides) if overrides else validated(kind, nested(values), where)


def _require_texts(overrides: Any) -> None:
    """Check that overrides are a list of texts.

    Raises:
        ConfigError: If not.
    """
    listed = isinstance(overrides, Sequence) and not isinstance(overrides, str)
    if not listed or not all(isinstance(one, str) for one in overrides):
        raise ConfigError(f"overrides: give a list of texts, such as ['agents.n=200'], not {shown(overrides)}")


_OF_COMMANDS: Final = (
    (("questions",), "questions of a survey", "prism survey RUN"),
    (("question", "arms"), "a study", "prism study run"),
    (("parameters", "fit"), "a calibration", "prism calibrate"),
    (("economy",), "a configuration of nations", "prism economy"),
    (("agents", "network", "feed"), "a configuration of a platform", "prism run"),
)
"""Keys that only files of one command have, what such a file holds, and the command."""


def _of_another_command(kind: type[Params], values: Mapping[str, Any], where: str) -> str:
    """Return that a file is for another command, and for which; empty if none of its keys says so."""
    for keys, what, command in _OF_COMMANDS:
        if any(key in values and key not in kind.model_fields for key in keys):
            return f"{where}: holds {what}: use '{command} {where}'"
    return ""


def overridden[C: Params](kind: type[C], values: Mapping[str, Any], overrides: Sequence[str]) -> C:
    """Return nested values as a configuration of some kind, with overrides ``a.b=c`` on top.

    Raises:
        ConfigError: If one is not written like that, or a key or value is not allowed.
    """
    top = nested(dict(parse_override(text) for text in overrides))
    return validated(kind, merged(nested(values), top), "override")


def parse_override(text: str) -> tuple[str, Any]:
    """Return the dotted key and the value of a text ``key=value``, the value in YAML.

    Raises:
        ConfigError: If it is not written like that.
    """
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"{text!r}: an override is written key=value, for example agents.n=100")
    try:
        return key.strip(), parsed(value)
    except (yaml.scanner.ScannerError, yaml.parser.ParserError):  # it is no YAML, so it is a text: @name, 100%, a: b: c
        return key.strip(), value
    except yaml.YAMLError as error:
        raise ConfigError(f"override: {printable(key.strip())}: {fault_of(error)}") from None
