"""The base of all parameter models, and their validation with errors that name the key. It holds no parameter."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from prism_mesa.errors import ConfigError, did_you_mean


class Params(BaseModel):
    """Frozen parameters; an unknown key is an error at every level."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)


def validated[P: Params](kind: type[P], values: Mapping[str, Any], where: str) -> P:
    """Return `values` as `kind`.

    Raises:
        ConfigError: One line for the first fault: where, which key, what was given, what is allowed.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        fault = error.errors()[0]
        path = ".".join(str(part) for part in fault["loc"])
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        if fault["type"] == "extra_forbidden":
            known = sorted(key for key, _ in leaves(kind))
            near = did_you_mean(path, known) or did_you_mean(path.split(".")[-1], [k.split(".")[-1] for k in known])
            siblings = ", ".join(_siblings(kind, path))
            raise ConfigError(f"{where}: {path}: no such key (allowed here: {siblings}).{near}{more}") from None
        raise ConfigError(f"{where}: {path}: {fault['msg']}, not {fault['input']!r}{more}") from None


def leaves(kind: type[Params], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted key, default) of every parameter that is not itself a group."""
    for name, field in kind.model_fields.items():
        group = _group(field.annotation)
        if group is not None:
            yield from leaves(group, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", field.get_default(call_default_factory=True)


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted keys as nested dictionaries.

    >>> nested({"agents.n": 10, "seed": 1})
    {'agents': {'n': 10}, 'seed': 1}
    """
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        *groups, last = key.split(".")
        branch = tree
        for group in groups:
            branch = branch.setdefault(group, {})
            if not isinstance(branch, dict):
                raise ConfigError(f"{key}: {group} is a single value, not a group of keys")
        branch[last] = value
    return tree


def merged(base: Mapping[str, Any], top: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the values of `top`, group by group."""
    result = dict(base)
    for key, value in top.items():
        below = result.get(key)
        result[key] = merged(below, value) if isinstance(below, Mapping) and isinstance(value, Mapping) else value
    return result


def _group(annotation: Any) -> type[Params] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, Params) else None


def _siblings(kind: type[Params], path: str) -> list[str]:
    for name in path.split(".")[:-1]:
        field = kind.model_fields.get(name)
        group = _group(field.annotation) if field else None
        if group is None:
            break
        kind = group
    return list(kind.model_fields)
