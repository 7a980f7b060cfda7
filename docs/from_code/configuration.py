"""All keys of a configuration, from the models that check them."""

from collections.abc import Iterator
from enum import Enum
from inspect import cleandoc
from types import NoneType, UnionType
from typing import Any, Literal, TypeAliasType, Union, get_args, get_origin

import yaml
from pydantic.fields import FieldInfo

from prism_mesa.params import Params

_BOUNDS = (("ge", "from {}"), ("gt", "above {}"), ("le", "to {}"), ("lt", "below {}"))
_WORDS = {int: "whole number", float: "number", str: "text", bool: "true or false", NoneType: "null"}


def sections(kind: type[Params]) -> str:
    """Return a section for each group of keys."""
    return "\n".join(text for name, group in _groups(kind, "") if (text := _section(name, group)))


def _groups(kind: type[Params], name: str) -> Iterator[tuple[str, type[Params]]]:
    yield name, kind
    for key, field in kind.model_fields.items():
        if (group := _group(field)) is not None:
            yield from _groups(group, f"{name}.{key}" if name else key)


def _group(field: FieldInfo) -> type[Params] | None:
    kind = field.annotation
    return kind if isinstance(kind, type) and issubclass(kind, Params) else None


def _section(name: str, kind: type[Params]) -> str:
    fields = {key: field for key, field in kind.model_fields.items() if _group(field) is None}
    if not fields:
        return ""
    title = f"`{name}`" if name else "The run"
    meaning = cleandoc(kind.__doc__ or "").partition("\n")[0] if name else "Keys outside of groups."
    head = f"### {title}\n\n{_escaped(meaning)}\n\n| key | type and range | default | meaning |\n|---|---|---|---|\n"
    return head + "".join(_row(f"{name}.{key}" if name else key, field) for key, field in fields.items())


def _row(key: str, field: FieldInfo) -> str:
    default = field.get_default(call_default_factory=True)
    cells = (f"`{key}`", _kind(field), _value(default), field.description or "")
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |\n"


def _kind(field: FieldInfo) -> str:
    bounds = {name: getattr(rule, name) for rule in field.metadata for name, _ in _BOUNDS if hasattr(rule, name)}
    ends = " ".join(form.format(f"{bounds[name]:,}") for name, form in _BOUNDS if bounds.get(name) is not None)
    return f"{_type(field.annotation)}{', ' if ends else ''}{ends}"


def _type(kind: Any) -> str:
    """Return a type in the terms of YAML."""
    origin, parts = get_origin(kind), get_args(kind)
    match origin:
        case _ if isinstance(kind, TypeAliasType):
            return _type(kind.__value__)
        case _ if origin is Literal:
            return ", ".join(f"`{part}`" for part in parts)
        case _ if origin in (Union, UnionType):
            return " or ".join(_type(part) for part in parts)
        case _ if origin in (list, tuple, set, frozenset):
            inner = dict.fromkeys(_type(part) for part in parts if part is not Ellipsis)
            return f"list of {' and '.join(inner)}"
        case _ if origin is dict:
            return f"{_type(parts[1])} by name"
        case _ if hasattr(kind, "__metadata__"):
            return _type(parts[0])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return ", ".join(f"`{member.value}`" for member in kind)
    if isinstance(kind, type) and issubclass(kind, Params):
        return f"group of {', '.join(f'`{key}`' for key in kind.model_fields)}"
    return _WORDS.get(kind, getattr(kind, "__name__", str(kind)))


def _value(value: Any) -> str:
    """Return a default as YAML; for a list of groups, their number."""
    if isinstance(value, Enum):
        value = value.value
    if isinstance(value, tuple | list):
        if any(isinstance(part, Params) for part in value):
            return f"{len(value)} of them"
        value = list(value)
    if isinstance(value, float) and abs(value) >= 1e6:
        return f"`{value:g}`"
    text = yaml.safe_dump(value, default_flow_style=True, width=10_000).removesuffix("...\n").strip()
    return f"`{text}`"


def _escaped(text: str) -> str:
    """Return text as a table cell."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
