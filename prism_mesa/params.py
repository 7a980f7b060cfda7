"""The base class of parameter models, and validation with errors that name the key."""

import operator
import os
import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from typing import Annotated, Any, Final, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic.functional_validators import AfterValidator

from prism_mesa.errors import ConfigError, DataError, did_you_mean, printable, shorten
from prism_mesa.streams import draw_seed

UserPath = Annotated[str, AfterValidator(os.path.expanduser)]
"""A path from the user, in which ``~`` is the home folder."""

Seed = Annotated[int, BeforeValidator(lambda value: draw_seed() if value is None else value)]
"""A seed; None draws one."""

Share = Annotated[float, Field(ge=0, le=1)]
"""A share, or a probability."""

LogOdds = Annotated[float, Field(ge=-20, le=20)]

MAPPING_KEYS: Final = ("reasoner.model", "reasoner.host", "utility.appeal_by.effect")
"""Keys whose value may be a mapping. A later mapping replaces an earlier one; they are not merged."""

FROM_PARAMS: Final = object()
"""Default of a model's `rng`: take the seed from the parameters."""


def check_name_or_object(name: str, names: Iterable[str]) -> str:
    """Return a name that is in `names` or has the form ``module:object``. Raises ValueError for other names."""
    module, _, target = name.partition(":")
    if name not in names and not (module and target):
        allowed, hint = ", ".join(map(repr, names)), did_you_mean(name, names)
        raise ValueError(f"Input should be {allowed}, or module:object of your own{hint and f'.{hint}'}")
    return name


class _ShortRepr(reprlib.Repr):
    """Short representations of values for errors."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60

    def repr_instance(self, value: object, level: int) -> str:
        """Return an object's `repr` on one line."""
        return " ".join(super().repr_instance(value, level).split())

    def repr_int(self, number: int, level: int) -> str:
        """Return a whole number, or the number of its digits if it is too long to print."""
        if number.bit_length() < _MAX_PRINTED_BITS:
            return super().repr_int(number, level)
        return f"a number of about {round(number.bit_length() * 0.30103)} digits"


_MAX_PRINTED_BITS: Final = 2048
_LONGEST_KEY: Final = 60
_short_repr = _ShortRepr()


def short_repr(value: object) -> str:
    """Return a short representation of a value, on one line."""
    return printable(_short_repr.repr(value))


class Params(BaseModel):
    """Frozen parameters. Unknown keys are errors at every level."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)

    _overruled: dict[str, Any] = PrivateAttr(default_factory=dict)
    """Explicit values of the keys that another key in the group overrides."""

    def __repr__(self) -> str:
        """Return a string of dotted keys with the values that differ from the defaults."""
        values = (f"{key}={_short_repr.repr(value)}" for key, value in explicit_values(self).items())
        return f"{type(self).__name__}({', '.join(values)})"

    __str__ = __repr__

    @field_validator("*", mode="before")
    @classmethod
    def _no_boolean_as_number(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, bool) and cls.model_fields[info.field_name or ""].annotation in (int, float):
            raise ValueError("Input should be a number")
        return value


def validate_params[P: Params](kind: type[P], values: Mapping[str, Any], label: str) -> P:
    """Return `values` as an instance of `kind`.

    Raises:
        ConfigError: For the first fault, with `label`, the key, the value, and the allowed values.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        # report unknown keys before missing keys, which they may misspell
        fault = min(error.errors(), key=lambda fault: fault["type"] != "extra_forbidden")
        path = ".".join(part for part in map(str, fault["loc"]) if part != "constrained-str")
        more_faults = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        location = f"{label}: {_key_text(path)}" if path else label
        raise ConfigError(f"{location}: {_fault_text(kind, path, fault)}{more_faults}") from None


def _key_text(name: object) -> str:
    return printable(shorten(str(name), _LONGEST_KEY))


def _fault_text(kind: type[Params], path: str, fault: Mapping[str, Any]) -> str:
    """Describe the fault of the value at `path`, and the allowed values."""
    value = _short_repr.repr(fault["input"])
    match fault["type"]:
        case "extra_forbidden" | "invalid_key":
            *groups, last = path.split(".")
            siblings = list(_group_at(kind, groups).model_fields)
            keys = [key for key, _ in list_leaves(kind)]
            dotted = {key.replace(".", "_"): key for key in keys}.get(path.replace(".", "_"))  # agents_n: agents.n
            hint = f" Did you mean {dotted!r}?" if dotted else _other_group(path, keys, 1.0)
            hint = hint or did_you_mean(last, siblings) or did_you_mean(path, keys) or _other_group(path, keys)
            return f"no such key (allowed here: {', '.join(siblings)}).{hint}"
        case "model_type":
            names = ", ".join(_group_at(kind, path.split(".")).model_fields)
            return f"Input should be a group of keys ({names}), not {value}"
        case "missing":
            return str(fault["msg"])
        case "value_error" if isinstance(fault["input"], Mapping):  # a group's own validator
            return str(fault["ctx"]["error"])
        case "value_error":
            message = str(fault["ctx"]["error"])
            return message if message.endswith("?") else f"{message}, not {value}"
    return f"{fault['msg']}, not {value}{' (write null for no value)' * (value == "'None'")}"


def _other_group(path: str, keys: Sequence[str], cutoff: float = 0.6) -> str:
    """Return a hint with similar keys in other groups, if any."""
    names = {key.rpartition(".")[2] for key in keys}
    similar = get_close_matches(path.rpartition(".")[2][:_LONGEST_KEY], sorted(names), n=1, cutoff=cutoff)
    hints = [repr(key) for key in keys if key.rpartition(".")[2] in similar and key != path]
    return f" Did you mean {' or '.join(hints[:3])}?" if hints else ""


@cache
def list_leaves(kind: type[Params], prefix: str = "") -> tuple[tuple[str, Any], ...]:
    """Return the dotted key and the default of every parameter that is not a group."""
    pairs: list[tuple[str, Any]] = []
    for name, default in _defaults(kind).items():
        group = _group(kind.model_fields[name].annotation)
        pairs += list_leaves(group, f"{prefix}{name}.") if group is not None else [(f"{prefix}{name}", default)]
    return tuple(pairs)


@cache
def _defaults(kind: type[Params]) -> dict[str, Any]:
    return {name: field.get_default(call_default_factory=True) for name, field in kind.model_fields.items()}


def leaf_values(params: Params, prefix: str = "") -> dict[str, Any]:
    """Return the value of every parameter that is not a group, by dotted key."""
    values: dict[str, Any] = {}
    for name in type(params).model_fields:
        value = getattr(params, name)
        values |= leaf_values(value, f"{prefix}{name}.") if isinstance(value, Params) else {f"{prefix}{name}": value}
    return values


def explicit_values(params: Params, prefix: str = "") -> dict[str, Any]:
    """Return the values that differ from their defaults, or that another key overrides, by dotted key."""
    values: dict[str, Any] = {}
    for name, default in _defaults(type(params)).items():
        value = getattr(params, name)
        if isinstance(value, Params):
            values |= explicit_values(value, f"{prefix}{name}.")
        elif name in params._overruled:
            values[f"{prefix}{name}"] = params._overruled[name]
        elif value != default:
            values[f"{prefix}{name}"] = value
    return values


def nest_keys(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted keys as nested dictionaries.

    >>> nest_keys({"agents.n": 10, "seed": 1})
    {'agents': {'n': 10}, 'seed': 1}
    """
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        if mapping_key := next((name for name in MAPPING_KEYS if str(key).startswith(f"{name}.")), ""):
            raise ConfigError(
                f"{_key_text(key)}: {mapping_key} is set as a whole: give {mapping_key}={{NAME: VALUE, ...}}"
            )
        *groups, last = key.split(".") if isinstance(key, str) else [key]
        branch = tree
        for group in groups:
            branch = branch.setdefault(group, {})
            if not isinstance(branch, dict):
                raise ConfigError(f"{_key_text(key)}: {_key_text(group)} is a single value, not a group of keys")
        previous = branch.get(last)
        if isinstance(previous, dict) and key not in MAPPING_KEYS:
            if isinstance(value, Mapping):
                value = merge_values(previous, value, f"{key}.")
            elif previous:
                names = ", ".join(map(_key_text, previous))
                raise ConfigError(f"{_key_text(key)}: is a group of keys ({names} given before), not a single value")
        branch[last] = value
    return tree


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield nested values by dotted key, including keys that occur twice.

    >>> dict(flatten({"feed": {"mode": "random"}, "agents.n": 10}))
    {'feed.mode': 'random', 'agents.n': 10}
    """
    for key, value in values.items():
        if isinstance(value, Mapping) and value and f"{prefix}{key}" not in MAPPING_KEYS:
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def merge_values(base: Mapping[str, Any], update: Mapping[str, Any], label: str = "") -> dict[str, Any]:
    """Return `base` with the values in `update`, group by group. `label` is a prefix of the dotted keys."""
    result = dict(base)
    for key, value in update.items():
        base_value, name = result.get(key), f"{label}{key}"
        if isinstance(base_value, Mapping) and isinstance(value, Mapping) and name not in MAPPING_KEYS:
            value = merge_values(base_value, value, f"{name}.")
        result[key] = value
    return result


def _group(annotation: Any) -> type[Params] | None:
    return annotation if isinstance(annotation, type) and issubclass(annotation, Params) else None


def _group_at(kind: type[Params], path: Sequence[str]) -> type[Params]:
    for name in path:
        field = kind.model_fields.get(name)
        kind = (_group(field.annotation) or _item(field.annotation) if field else None) or kind
    return kind


def _item(annotation: Any) -> type[Params] | None:
    """Return the class of the groups in a list, if any."""
    groups = (_group(part) or _item(part) for part in get_args(annotation))
    return next((group for group in groups if group is not None), None)


def model_params[P: Params](
    kind: type[P], config: P | Mapping[str, Any] | None, scenario: Any, rng: Any, values: Mapping[str, Any], label: str
) -> P:
    """Return the parameters of a Mesa model: `config`, overridden by a scenario, by keywords, and by Mesa's seed.

    Args:
        kind: The class of the parameters.
        config: Parameters, or nested values; None for the defaults.
        scenario: A Mesa scenario whose attributes are parameters, or None.
        rng: The seed, or `FROM_PARAMS`; None draws a fresh seed, as in Mesa.
        values: Parameters by name, with _ instead of dots.
        label: The model's name for errors.

    Raises:
        ConfigError: If a name is unknown or a value is not allowed.
    """
    attributes = dict(scenario.to_dict()) if scenario is not None else {}
    named_values = {k: v for k, v in attributes.items() if k not in ("model", "rng", "_scenario_id")} | dict(values)
    seed = getattr(scenario, "rng", None) if rng is FROM_PARAMS else rng
    if config is not None and not isinstance(config, kind | Mapping):
        allowed = f"nested values or {kind.__name__} (load_config(path) returns one)"
        raise ConfigError(f"{label}: config: give {allowed}, not {short_repr(config)}")
    base = config if isinstance(config, Params) else validate_params(kind, nest_keys(config), label) if config else None
    paths = {key.replace(".", "_"): key for key, _ in list_leaves(kind)}
    flat = {}
    for name, value in named_values.items():
        path = paths.get(name.replace(".", "_"))
        if path is None:
            raise ConfigError(f"{label}: no parameter {name!r}.{did_you_mean(name, paths)}")
        flat[path] = value
    if seed is not None or rng is None:
        flat["seed"] = None if seed is None else _seed(seed, label)
    if base is None:
        return validate_params(kind, nest_keys(flat), label)
    if not flat:
        return base
    params = validate_params(type(base), merge_values(base.model_dump(exclude_unset=True), nest_keys(flat)), label)
    _carry_overruled(base, params, flat)
    return params


def _carry_overruled(old_params: Params, new_params: Params, changes: Mapping[str, Any], prefix: str = "") -> None:
    """Copy the explicit values of overruled keys to new parameters, unless these keys change."""
    for name in type(old_params).model_fields:
        old_value, new_value = getattr(old_params, name), getattr(new_params, name)
        if name in old_params._overruled and f"{prefix}{name}" not in changes:
            new_params._overruled.setdefault(name, old_params._overruled[name])
        if isinstance(old_value, Params) and isinstance(new_value, Params):
            _carry_overruled(old_value, new_value, changes, f"{prefix}{name}.")


def _seed(rng: Any, label: str) -> int:
    """Return the seed in Mesa's `rng`: an integer, a string of digits, or a draw from a NumPy generator."""
    if hasattr(rng, "integers"):
        return int(rng.integers(2**31))
    try:
        seed = int(rng)
    except (TypeError, ValueError, OverflowError):
        seed = None
    if seed is None or (isinstance(rng, float) and seed != rng):
        raise ConfigError(f"{label}: rng: {_short_repr.repr(rng)} is not a whole number")
    return seed


def require_whole_number(value: object, label: str, minimum: int | None = None) -> int:
    """Return a Python or NumPy integer as an int. Raises DataError for other values or numbers below `minimum`."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:
        raise DataError(f"{label}: must be a whole number, not {short_repr(value)}")
    if minimum is not None and number < minimum:
        raise DataError(f"{label}: must be at least {minimum}, not {short_repr(number)}")
    return number


def require_overrides(overrides: object) -> None:
    """Raise ConfigError unless overrides are values by dotted key, or ``key=value`` strings."""
    names = [overrides] if isinstance(overrides, str) else overrides
    if not isinstance(names, Mapping | Sequence) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"overrides: give values by dotted key, or key=value strings, not {short_repr(overrides)}")


def parse_whole_number(text: str) -> int | None:
    """Return a string of at most 18 digits as an integer; None for other strings.

    >>> parse_whole_number("12"), parse_whole_number("-1"), parse_whole_number("9" * 5000)
    (12, None, None)
    """
    return int(text) if text.isdecimal() and len(text) <= _MAX_DIGITS else None


_MAX_DIGITS: Final = 18
