"""Values as JSON that is the same in every process: sets in order, no addresses of objects.

A dict keeps the order in which it was made.
"""

import re
from collections import deque
from collections.abc import Callable, ItemsView, KeysView, Mapping, ValuesView
from collections.abc import Set as AnySet
from dataclasses import fields, is_dataclass
from types import FunctionType, GeneratorType, MethodType
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_json, to_jsonable_python

ONCE: Final = (GeneratorType, map, filter, zip, enumerate, reversed)
"""What gives its parts once; to look at it is to run somebody's code."""

_LISTS: Final = (list, tuple, deque, KeysView, ValuesView, ItemsView, *ONCE)
_ADDRESS: Final = re.compile(r"\bat 0x[0-9A-Fa-f]{6,16}\b")
"""As Python writes an object that has no text of its own: ``<Agent object at 0x7f2c1d0e5a90>``."""


def without_addresses(text: str) -> str:
    """Return `text` with ``at 0x…`` for the address of an object, which is another one in every process.

    >>> without_addresses("<mesa.agent.Agent object at 0x7f2c1d0e5a90>")
    '<mesa.agent.Agent object at 0x…>'
    """
    return _ADDRESS.sub("at 0x…", text)


def jsonable(value: Any) -> Any:
    """Return `value` in what JSON can hold, the same in every process; what gives its parts once is used up.

    The parts of a set are sorted: numbers, then texts, then all others by their JSON. A pandas table is a list of
    its rows, a series with an index of its own a dict. What is of no kind that JSON knows is its `str`.

    Raises:
        Exception: Of many kinds: if it holds itself, is nested too deeply, or has a part that cannot be written.
    """
    if isinstance(value, Mapping):
        return {_key(key): jsonable(part) for key, part in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(jsonable, value), key=_rank)
    if isinstance(value, _LISTS):
        return [jsonable(part) for part in value]
    return in_order(to_jsonable_python(value, by_alias=True, fallback=_plain), value)


def _key(key: Any) -> str:
    """Return a dict's key as JSON has it."""
    if isinstance(key, frozenset):
        return ",".join(map(str, jsonable(key)))
    [text] = to_jsonable_python({key: None}, fallback=str)
    return without_addresses(text)


def _plain(value: Any) -> Any:
    """Return what pydantic has no JSON for in something that it has."""
    if hasattr(value, "tolist") or hasattr(value, "iterrows"):
        return jsonable(_rows(value) if hasattr(value, "index") else value.tolist())
    return text_of(value)


def text_of(value: Any, written: Callable[[Any], str] = str) -> str:
    """Return an object's own text without addresses; of a function or method its name, not whose it is."""
    of_code = isinstance(value, FunctionType | MethodType)
    return value.__qualname__ if of_code else without_addresses(written(value))


def _rows(table: Any) -> Any:
    """Return a pandas table whole: its own text depends on the width of the terminal."""
    counted = list(table.index) == list(range(len(table)))
    if not hasattr(table, "iterrows"):
        return table.tolist() if counted else dict(table.items()) if table.index.is_unique else [*table.items()]
    frame = table if counted else table.reset_index(allow_duplicates=True)
    names, rows = list(map(str, frame.columns)), frame.itertuples(index=False, name=None)
    if len(set(names)) < len(names):
        return {"columns": names, "rows": [*rows]}
    return [dict(zip(names, row, strict=True)) for row in rows]


def in_order(plain: Any, value: Any) -> Any:
    """Return `plain`, the JSON of a value, with what stems from a set in it sorted, and without addresses."""
    if isinstance(value, BaseModel):
        value = value.model_dump(by_alias=True)
    elif is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(plain, list) and isinstance(value, AnySet):
        like = next(iter(value), None)
        return sorted((in_order(part, like) for part in plain), key=_rank)
    if isinstance(plain, list) and isinstance(value, list | tuple) and len(plain) == len(value):
        return [in_order(part, of) for part, of in zip(plain, value, strict=True)]
    if isinstance(plain, dict) and isinstance(value, Mapping) and len(plain) == len(value):
        parts = zip(plain.items(), value.values(), strict=True)
        return {key: in_order(part, of) for (key, part), of in parts}
    return without_addresses(plain) if isinstance(plain, str) else plain


def _rank(part: Any) -> tuple[int, Any]:
    """Return where a part of a set stands: numbers, texts, all others."""
    if isinstance(part, int | float) and part == part:
        return 0, part
    return (1, part) if isinstance(part, str) else (2, to_json(part, inf_nan_mode="strings"))
