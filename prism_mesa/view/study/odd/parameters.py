"""All parameters of a configuration with their values, those that are not the default first."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from pydantic.fields import FieldInfo

from prism_mesa.params import Params
from prism_mesa.runs.config import Config
from prism_mesa.view.study.blocks import (
    Block,
    Code,
    Column,
    Fold,
    Group,
    Paragraph,
    Part,
    Quiet,
    Strong,
    Table,
    Words,
    brief,
    table,
)
from prism_mesa.view.study.numbers import level

_COLUMNS: Final = (Column("key"), Column("value"), Column("meaning", long=True))
_NOT_OF_THE_MODEL: Final = frozenset({"name", "seed", "threads"})


def changed_parameters(config: Config, varied: Collection[str]) -> tuple[Block, ...]:
    """Return the values that are not the default, which make this model what it is."""
    rows = [
        _row(key, field, value, varied)
        for key, field, value in _leaves(config)
        if key not in _NOT_OF_THE_MODEL and (value != _default(field) or key in varied)
    ]
    if not rows:
        return (Paragraph("All parameters have their default values."),)
    said = "What is not the default in the base, or is changed by the study:"
    return (Paragraph(said), table(_COLUMNS, rows))


def parameter_tables(config: Config, varied: Collection[str]) -> tuple[Block, ...]:
    """Return all parameters, a group of rows for each group of keys."""
    groups: dict[str, list[tuple[Words, ...]]] = {}
    for key, field, value in _leaves(config):
        group = key.rpartition(".")[0]
        groups.setdefault(group, []).append(_row(key, field, value, varied))
    told = tuple(Group(_title(config, name), tuple(rows)) for name, rows in groups.items())
    return (Fold("All parameters", (Table(_COLUMNS, told),)),)


def _title(config: Config, group: str) -> Words:
    """Return a group with the first sentence that its parameters say of themselves."""
    params: Any = config
    for name in filter(None, group.split(".")):
        params = getattr(params, name)
    said = (type(params).__doc__ or "").strip().partition("\n")[0] if group else "The run"
    return (Code(group), Quiet(f"  {said}")) if group else said


def _leaves(params: Params, prefix: str = "") -> Iterator[tuple[str, FieldInfo, Any]]:
    """Yield (dotted key, field, value), those of a group together."""
    groups: list[tuple[str, Params]] = []
    for name, field in type(params).model_fields.items():
        value = getattr(params, name)
        if isinstance(value, Params):
            groups.append((f"{prefix}{name}.", value))
        else:
            yield f"{prefix}{name}", field, value
    for deeper, group in groups:
        yield from _leaves(group, deeper)


def _default(field: FieldInfo) -> Any:
    return field.get_default(call_default_factory=True)


def _row(key: str, field: FieldInfo, value: Any, varied: Collection[str]) -> tuple[Words, ...]:
    shown = Code(_value(value))
    parts: list[Part] = [shown]
    if value != _default(field):
        parts = [Strong(shown.text), Quiet(f"  default {_value(_default(field))}")]
    if key in varied:
        parts.append(Quiet("  varies"))
    return (Code(key), tuple(parts), field.description or "")


def _value(value: Any) -> str:
    """Return a value as a configuration has it."""
    return brief(_plain(value) if isinstance(value, Mapping | list | tuple) else level(value), 80)


def _plain(value: Any) -> Any:
    """Return a value with the keys of its groups that are not the default."""
    if isinstance(value, Params):
        return value.model_dump(mode="json", exclude_defaults=True)
    if isinstance(value, Mapping):
        return {key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
