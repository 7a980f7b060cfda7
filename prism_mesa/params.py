"""The base of all parameter models, and their validation with errors that name the key."""

import operator
import os
import reprlib
from collections.abc import Iterable, Mapping, Sequence
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

from prism_mesa.errors import ConfigError, DataError, did_you_mean, printable, shortened
from prism_mesa.streams import fresh_seed

UserPath = Annotated[str, AfterValidator(os.path.expanduser)]
"""A path that a user gives; ``~`` is the home folder."""

Seed = Annotated[int, BeforeValidator(lambda value: fresh_seed() if value is None else value)]
"""A seed; None draws one."""

Share = Annotated[float, Field(ge=0, le=1)]
"""A share, or a probability."""

LogOdds = Annotated[float, Field(ge=-20, le=20)]

ONE_VALUE: Final = ("reasoner.model", "reasoner.host")
"""Keys whose value may be a mapping, which replaces an earlier value and is never merged with it."""

FROM_PARAMS: Final = object()
"""What a model's `rng` is where nobody gives one: the seed of the parameters counts."""


def known_or_object(name: str, known: Iterable[str]) -> str:
    """Return a name that is known or has the form ``module:object``.

    Raises:
        ValueError: If it is neither.
    """
    module, _, target = name.partition(":")
    if name not in known and not (module and target):
        allowed, near = ", ".join(map(repr, known)), did_you_mean(name, known)
        raise ValueError(f"Input should be {allowed}, or module:object of your own{near and f'.{near}'}")
    return name


class _Shown(reprlib.Repr):
    """Values in short, for errors."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxother = 60

    def repr_instance(self, thing: object, level: int) -> str:
        """Return what anything else says of itself, on one line: a DataFrame takes several."""
        return " ".join(super().repr_instance(thing, level).split())

    def repr_int(self, number: int, level: int) -> str:
        """Return a whole number in digits, or how long it is: Python writes out so many digits and no more."""
        if number.bit_length() < _WRITTEN_BITS:
            return super().repr_int(number, level)
        return f"a number of about {round(number.bit_length() * 0.30103)} digits"


_WRITTEN_BITS: Final = 2048
_LONGEST_KEY: Final = 60
_shown = _Shown()


def shown(value: object) -> str:
    """Return a value in short and on one line, for errors."""
    return printable(_shown.repr(value))


class Params(BaseModel):
    """Frozen parameters; an unknown key is an error at every level."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True, allow_inf_nan=False)

    _overruled: dict[str, Any] = PrivateAttr(default_factory=dict)
    """What was said of keys in whose place another key of the group has put something else."""

    def __repr__(self) -> str:
        """Return what was set, by dotted key: what is not there is the default."""
        told = (f"{key}={_shown.repr(value)}" for key, value in said_of(self).items())
        return f"{type(self).__name__}({', '.join(told)})"

    __str__ = __repr__

    @field_validator("*", mode="before")
    @classmethod
    def _truth_is_no_number(cls, value: object, info: ValidationInfo) -> object:
        if isinstance(value, bool) and cls.model_fields[info.field_name or ""].annotation in (int, float):
            raise ValueError("Input should be a number")
        return value


def validated[P: Params](kind: type[P], values: Mapping[str, Any], where: str) -> P:
    """Return `values` as `kind`.

    Raises:
        ConfigError: One line for the first fault: where, which key, what was given, what is allowed.
    """
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        # a key that is not known first: a missing one beside it is often the same one, written rightly
        fault = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        path = ".".join(part for part in map(str, fault["loc"]) if part != "constrained-str")
        said = _key(path)
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        said = f"{where}: {said}" if said else where  # what the whole contradicts has no key
        raise ConfigError(f"{said}: {_fault_text(kind, path, fault)}{more}") from None


def _key(name: object) -> str:
    """Return a key as it can be said: on one line, and not at length."""
    return printable(shortened(str(name), _LONGEST_KEY))


def _fault_text(kind: type[Params], path: str, fault: Mapping[str, Any]) -> str:
    """Return what is wrong with the value at `path`, what was given, and what is allowed."""
    given = _shown.repr(fault["input"])
    match fault["type"]:
        case "extra_forbidden" | "invalid_key":
            *groups, last = path.split(".")
            siblings = list(_group_at(kind, groups).model_fields)
            known = [key for key, _ in leaves(kind)]
            dotted = {key.replace(".", "_"): key for key in known}.get(path.replace(".", "_"))  # agents_n: agents.n
            near = f" Did you mean {dotted!r}?" if dotted else did_you_mean(last, siblings)
            near = near or _elsewhere(path, known, 1.0) or did_you_mean(path, known) or _elsewhere(path, known)
            return f"no such key (allowed here: {', '.join(siblings)}).{near}"
        case "model_type":
            keys = ", ".join(_group_at(kind, path.split(".")).model_fields)
            return f"Input should be a group of keys ({keys}), not {given}"
        case "missing":
            return str(fault["msg"])
        case "value_error" if isinstance(fault["input"], Mapping):  # what a group's own validator says
            return str(fault["ctx"]["error"])
        case "value_error":
            said = str(fault["ctx"]["error"])
            return said if said.endswith("?") else f"{said}, not {given}"
    return f"{fault['msg']}, not {given}{' (no value is written null)' * (given == "'None'")}"


def _elsewhere(path: str, known: Sequence[str], cutoff: float = 0.6) -> str:
    """Return the question whether a key was meant that stands in another group under such a name, or nothing."""
    names = {key.rpartition(".")[2] for key in known}
    near = get_close_matches(path.rpartition(".")[2][:_LONGEST_KEY], sorted(names), n=1, cutoff=cutoff)
    keys = [repr(key) for key in known if key.rpartition(".")[2] in near and key != path]
    return f" Did you mean {' or '.join(keys[:3])}?" if keys else ""


@cache
def leaves(kind: type[Params], prefix: str = "") -> tuple[tuple[str, Any], ...]:
    """Return (dotted key, default) of every parameter that is not itself a group."""
    found: list[tuple[str, Any]] = []
    for name, default in _defaults(kind).items():
        group = _group(kind.model_fields[name].annotation)
        found += leaves(group, f"{prefix}{name}.") if group is not None else [(f"{prefix}{name}", default)]
    return tuple(found)


@cache
def _defaults(kind: type[Params]) -> dict[str, Any]:
    """Return the default of each parameter of a group, made once: nobody changes them."""
    return {name: field.get_default(call_default_factory=True) for name, field in kind.model_fields.items()}


def leaf_values(params: Params, prefix: str = "") -> dict[str, Any]:
    """Return the value of every parameter that is not itself a group, by dotted key."""
    found: dict[str, Any] = {}
    for name in type(params).model_fields:
        value = getattr(params, name)
        found |= leaf_values(value, f"{prefix}{name}.") if isinstance(value, Params) else {f"{prefix}{name}": value}
    return found


def said_of(params: Params, prefix: str = "") -> dict[str, Any]:
    """Return what was said of each key that was set: its value is not the default, or another key has overruled it."""
    found: dict[str, Any] = {}
    overruled = params._overruled
    for name, default in _defaults(type(params)).items():
        value = getattr(params, name)
        if isinstance(value, Params):
            found |= said_of(value, f"{prefix}{name}.")
        elif name in overruled:
            found[f"{prefix}{name}"] = overruled[name]
        elif value != default:
            found[f"{prefix}{name}"] = value
    return found


def nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    """Return dotted keys as nested dictionaries.

    >>> nested({"agents.n": 10, "seed": 1})
    {'agents': {'n': 10}, 'seed': 1}
    """
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        if whole := next((name for name in ONE_VALUE if str(key).startswith(f"{name}.")), ""):
            raise ConfigError(
                f"{_key(key)}: {whole} is one value: give the whole mapping, {whole}={{NAME: VALUE, ...}}"
            )
        *groups, last = key.split(".") if isinstance(key, str) else [key]
        branch = tree
        for group in groups:
            branch = branch.setdefault(group, {})
            if not isinstance(branch, dict):
                raise ConfigError(f"{_key(key)}: {_key(group)} is a single value, not a group of keys")
        branch[last] = _beside(branch.get(last), value, key)
    return tree


def _beside(before: Any, value: Any, key: str) -> Any:
    """Return what stands at a key after `value` is given beside what was given before; groups come together."""
    if isinstance(before, dict) and isinstance(value, Mapping) and key not in ONE_VALUE:
        return merged(before, value, f"{key}.")
    if isinstance(before, dict) and before and key not in ONE_VALUE:
        raise ConfigError(
            f"{_key(key)}: is a group of keys ({', '.join(map(_key, before))} given before), not a single value"
        )
    return value


def merged(base: Mapping[str, Any], top: Mapping[str, Any], where: str = "") -> dict[str, Any]:
    """Return `base` with the values of `top`, group by group; `where` is the prefix of their dotted keys."""
    result = dict(base)
    for key, value in top.items():
        below, name = result.get(key), f"{where}{key}"
        if isinstance(below, Mapping) and isinstance(value, Mapping) and name not in ONE_VALUE:
            value = merged(below, value, f"{name}.")
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
    """Return the group of which a list has many, or None."""
    found = (_group(part) or _item(part) for part in get_args(annotation))
    return next((group for group in found if group is not None), None)


def model_params[P: Params](
    kind: type[P], config: P | Mapping[str, Any] | None, scenario: Any, rng: Any, given: Mapping[str, Any], where: str
) -> P:
    """Return the parameters of a Mesa model: those of `config`, then a scenario's, keywords, and Mesa's seed on top.

    Args:
        kind: What they are.
        config: All of them, or nested values; None for the defaults.
        scenario: A Mesa scenario, whose attributes are parameters, or None.
        rng: The seed (Mesa's name for it), or `FROM_PARAMS`; an explicit None draws a fresh one, as Mesa does.
        given: Parameters by name, dots written as _.
        where: The model's name, for errors.

    Raises:
        ConfigError: If a name is unknown or a value is not allowed.
    """
    of_scenario = dict(scenario.to_dict()) if scenario is not None else {}
    named = {name: v for name, v in of_scenario.items() if name not in ("model", "rng", "_scenario_id")} | dict(given)
    seed = getattr(scenario, "rng", None) if rng is FROM_PARAMS else rng
    if config is not None and not isinstance(config, kind | Mapping):
        raise ConfigError(
            f"{where}: config: give nested values or {kind.__name__}, not {shown(config)} (single values by name: "
            "rounds=10; a YAML file: load_config(path), for nations run_economy(path))"
        )
    before = config if isinstance(config, Params) else validated(kind, nested(config), where) if config else None
    paths = {key.replace(".", "_"): key for key, _ in leaves(kind)}
    flat = {}
    for name, value in named.items():
        path = paths.get(name.replace(".", "_"))
        if path is None:
            raise ConfigError(f"{where}: no parameter {name!r}.{did_you_mean(name, paths)}")
        flat[path] = value
    if seed is not None or rng is None:
        flat["seed"] = None if seed is None else _seed(seed, where)
    if before is None:
        return validated(kind, nested(flat), where)
    if not flat:
        return before
    made = validated(type(before), merged(before.model_dump(exclude_unset=True), nested(flat)), where)
    _carry_overruled(before, made, flat)
    return made


def _carry_overruled(before: Params, after: Params, given: Mapping[str, Any], prefix: str = "") -> None:
    """Keep what was said of overruled keys, where values were taken over and nothing else was said since."""
    overruled = before._overruled
    for name in type(before).model_fields:
        old, new = getattr(before, name), getattr(after, name)
        if name in overruled and f"{prefix}{name}" not in given:
            after._overruled.setdefault(name, overruled[name])
        if isinstance(old, Params) and isinstance(new, Params):
            _carry_overruled(old, new, given, f"{prefix}{name}.")


def _seed(rng: Any, where: str) -> int:
    """Return Mesa's rng as a seed: a whole number, text that holds one, or a NumPy generator to draw one from."""
    if hasattr(rng, "integers"):
        return int(rng.integers(2**31))
    try:
        seed = int(rng)
    except (TypeError, ValueError, OverflowError):
        seed = None
    if seed is None or (isinstance(rng, float) and seed != rng):
        raise ConfigError(f"{where}: rng: {_shown.repr(rng)} is no whole number")
    return seed


def require_whole_number(value: object, where: str, least: int | None = None) -> int:
    """Return a whole number that a user gave, which may be one of NumPy's.

    Raises:
        DataError: If it is none, or below `least`.
    """
    try:
        number = None if isinstance(value, bool) else operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:
        raise DataError(f"{where}: must be a whole number, not {shown(value)}")
    if least is not None and number < least:
        raise DataError(f"{where}: must be at least {least}, not {shown(number)}")
    return number


def require_overrides(given: object) -> None:
    """Check that overrides are given as such: values by dotted key, or texts ``key=value``.

    Raises:
        ConfigError: If not.
    """
    texts = [given] if isinstance(given, str) else given
    if not isinstance(given, Mapping) and not (
        isinstance(texts, Sequence) and all(isinstance(text, str) for text in texts)
    ):
        raise ConfigError(
            f"overrides: give values by dotted key, or a list of texts key=value, not {shown(given)} "
            "(for example {'reasoner.kind': 'embedded'})"
        )
    for key in given if isinstance(given, Mapping) else ():
        if not isinstance(key, str):
            raise ConfigError(f"overrides: a key is a text (reasoner.kind), not {shown(key)}")


def whole_number(text: str) -> int | None:
    """Return the whole number from 0 that a text writes out, None for any other text and for one of over 18 digits.

    >>> whole_number("12"), whole_number("-1"), whole_number("9" * 5000)
    (12, None, None)
    """
    return int(text) if text.isdecimal() and len(text) <= _MOST_DIGITS else None


_MOST_DIGITS: Final = 18
