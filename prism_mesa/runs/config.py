"""The configuration of a run, from YAML files and overrides."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import Field

from prism_mesa.economy.params import EconomyParams
from prism_mesa.errors import ConfigError, printable
from prism_mesa.params import Params, merge_values, nest_keys, short_repr, validate_params
from prism_mesa.runs.yaml_text import fault_text, parse_yaml, read_yaml
from prism_mesa.social.params import SocialParams

INPUT_FILES = (("network", "edges"), ("posts", "file"), ("agents", "profiles"))
"""The keys, as (group, name), that hold paths of input files."""


class Config(SocialParams):
    """Everything that determines a run. ``Config()`` is the default run, in which the rule decides open choices."""

    checkpoint_every: int | None = Field(
        None, ge=0, le=10**9, description="rounds between checkpoints; null: decided by time; 0: none"
    )
    name: str = Field("run", pattern=r"^[\w.-]{1,60}$", description="first part of the run folder's name")


class EconomyConfig(EconomyParams):
    """Everything that determines a run of nations. In ``EconomyConfig()``, the default, Taylor's rule decides."""

    name: str = Field("economy", pattern=r"^[\w.-]{1,60}$", description="first part of the run folder's name")


def make_config(values: Mapping[str, Any], where: str = "config") -> Config:
    """Return nested values as a `Config`; raises ConfigError if a key or value is not allowed."""
    return validate_params(Config, nest_keys(values), where)


def read_config[C: Params](kind: type[C], config: object) -> C:
    """Return a configuration from an object of `kind`, nested values, a YAML file, or None for the defaults.

    Raises ConfigError for any other object, if the file cannot be read, or if a key or value is not allowed.
    """
    path = os.fspath(config) if isinstance(config, str | os.PathLike) else None
    if isinstance(path, str):
        return load(kind, path)
    if isinstance(config, kind):
        return config
    if config is not None and not isinstance(config, Mapping):
        allowed = f"nested values, the path of a YAML file, or {kind.__name__}(...)"
        raise ConfigError(f"config: give {allowed}, not {short_repr(config)}")
    return validate_params(kind, nest_keys(config or {}), "config")


def load_config(
    path: str | Path | None, overrides: Sequence[str] = (), *, defaults: Mapping[str, Any] | None = None
) -> Config:
    """Return the configuration of a YAML file with overrides ``a.b=c`` on top; see `load` for the arguments."""
    return load(Config, path, overrides, defaults=defaults)


def load[C: Params](
    kind: type[C], path: str | Path | None, overrides: Sequence[str] = (), *, defaults: Mapping[str, Any] | None = None
) -> C:
    """Return the configuration of a YAML file (None: the defaults) with overrides ``a.b=c`` on top.

    Values in `overrides` are YAML; `defaults` has nested values for keys that the file does not have.

    Raises ConfigError if the file cannot be read, or a key or value is not allowed.
    """
    is_list = isinstance(overrides, Sequence) and not isinstance(overrides, str)
    if not is_list or not all(isinstance(text, str) for text in overrides):
        raise ConfigError(f"overrides: give a list of strings, such as ['agents.n=200'], not {short_repr(overrides)}")
    if not isinstance(path, str | os.PathLike | None):
        raise ConfigError(f"path: give the path of a YAML file, or None for the defaults, not {short_repr(path)}")
    content = {} if path is None else read_yaml(Path(path))
    where = str(path or "config")
    for keys, meaning, command in _COMMAND_KEYS:
        if any(key in content and key not in kind.model_fields for key in keys):
            raise ConfigError(f"{where}: holds {meaning}: use '{command} {where}'")
    values = merge_values(defaults or {}, content)
    config = validate_params(kind, nest_keys(values), where)  # first without overrides, so that errors name the file
    return with_overrides(kind, values, overrides) if overrides else config


_COMMAND_KEYS: Final = (
    (("questions",), "questions of a survey", "prism survey RUN"),
    (("question", "arms"), "a study", "prism study run"),
    (("parameters", "fit"), "a calibration", "prism calibrate"),
    (("economy",), "a configuration of nations", "prism economy"),
    (("agents", "network", "feed"), "a configuration of a platform", "prism run"),
)
"""Keys that occur only in the files of one command, the content of these files, and the command."""


def with_overrides[C: Params](kind: type[C], values: Mapping[str, Any], overrides: Sequence[str]) -> C:
    """Return nested values as a configuration, with overrides ``a.b=c`` on top; raises ConfigError if any is bad."""
    changes = nest_keys(dict(parse_override(text) for text in overrides))
    return validate_params(kind, merge_values(nest_keys(values), changes), "override")


def parse_override(text: str) -> tuple[str, Any]:
    """Return the dotted key and the value (in YAML) of ``key=value``; raises ConfigError for other strings."""
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise ConfigError(f"{text!r}: an override is written key=value, for example agents.n=100")
    try:
        return key.strip(), parse_yaml(value)
    except (yaml.scanner.ScannerError, yaml.parser.ParserError):  # a plain string: @name, 100%, a: b: c
        return key.strip(), value
    except yaml.YAMLError as error:
        raise ConfigError(f"override: {printable(key.strip())}: {fault_text(error)}") from None
