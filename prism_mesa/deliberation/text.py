"""Write values and errors as short strings for an LLM, identically in every process."""

import re
import reprlib
from collections import deque
from collections.abc import ItemsView, KeysView, Mapping, ValuesView
from dataclasses import fields, is_dataclass
from types import FunctionType, GeneratorType, MethodType
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_json, to_jsonable_python

from prism_mesa.errors import PrismError

ITERATORS: Final = (GeneratorType, map, filter, zip, enumerate, reversed)
"""Types whose items can be read only once; reading them runs users' code."""

_LISTS: Final = (list, tuple, deque, KeysView, ValuesView, ItemsView, *ITERATORS)
_ADDRESS: Final = re.compile(r"\bat 0x[0-9A-Fa-f]{6,16}\b")


def remove_addresses(text: str) -> str:
    """Replace memory addresses, which differ between processes, with ``at 0x…``.

    >>> remove_addresses("<mesa.agent.Agent object at 0x7f2c1d0e5a90>")
    '<mesa.agent.Agent object at 0x…>'
    """
    return _ADDRESS.sub("at 0x…", text)


def to_json_types(value: Any) -> Any:
    """Return `value` as JSON types, identically in every process.

    The items of a set are sorted: numbers, then strings, then other items. A pandas DataFrame becomes a list of rows, a
    Series with an explicit index becomes a dict, and other objects become their `str`.

    Raises:
        Exception: If `value` contains itself, is nested too deeply, or cannot be converted.
    """
    if isinstance(value, BaseModel):
        value = value.model_dump(by_alias=True)
    elif is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif hasattr(value, "tolist") or hasattr(value, "iterrows"):
        value = _pandas_items(value) if hasattr(value, "index") else value.tolist()
    if isinstance(value, Mapping):
        return {_key_text(key): to_json_types(part) for key, part in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(to_json_types, value), key=_sort_key)
    if isinstance(value, _LISTS):
        return [to_json_types(part) for part in value]
    plain = to_jsonable_python(value, fallback=_object_text)
    return remove_addresses(plain) if isinstance(plain, str) else plain


def _key_text(key: Any) -> str:
    if isinstance(key, frozenset):
        return ",".join(map(str, to_json_types(key)))
    [text] = to_jsonable_python({key: None}, fallback=str)
    return remove_addresses(text)


def _object_text(value: Any) -> str:
    return value.__qualname__ if isinstance(value, FunctionType | MethodType) else str(value)


def _pandas_items(table: Any) -> Any:
    """Return a pandas object in full, because its `str` depends on the width of the terminal."""
    has_default_index = list(table.index) == list(range(len(table)))
    if hasattr(table, "iterrows"):
        return (table if has_default_index else table.reset_index()).to_dict("records")
    return table.tolist() if has_default_index else dict(table.items()) if table.index.is_unique else [*table.items()]


def _sort_key(part: Any) -> tuple[int, Any]:
    if isinstance(part, int | float) and part == part:
        return 0, part
    return (1, part) if isinstance(part, str) else (2, to_json(part, inf_nan_mode="strings"))


_repr: Final = reprlib.Repr(maxstring=60, maxother=60, maxlong=60)


def short_repr(value: object) -> str:
    """Return a value's `repr`, truncated and without memory addresses."""
    try:
        return remove_addresses(_repr.repr(value))
    except Exception:  # an integer with too many digits
        return f"something of type {type(value).__name__}"


def result_text(value: object) -> str:
    """Return a tool's result as text: "done" for None, JSON (see `to_json_types`) for all values but strings."""
    if value is None:
        return "done"
    if isinstance(value, str):
        return remove_addresses(value)
    try:
        return to_json(replace_surrogates(to_json_types(value)), inf_nan_mode="strings").decode()
    except Exception:  # circular, too deep, a number too long: do not fail after the tool has run
        return short_repr(value)


def error_text(error: BaseException) -> str:
    """Return an error's message; the name of the error's class comes first, unless PRISM raised it."""
    name = type(error).__name__
    try:
        message = remove_addresses(str(error))
    except Exception:
        message = ""
    if isinstance(error, PrismError) and message:
        return message
    return f"{name}: {message}" if message else name


def truncate(text: str, cap: int) -> str:
    """Truncate `text` to `cap` characters, a note on the cut included, and replace lone surrogates.

    >>> truncate("x" * 100, 30)
    'xxxxxxxx… [92 characters cut]'
    """
    if len(text) > cap:
        n_kept = cap - len(f"… [{len(text)} characters cut]")
        text = f"{text[:n_kept]}… [{len(text) - n_kept} characters cut]"
    return str(replace_surrogates(text))


def replace_surrogates(value: Any) -> Any:
    r"""Replace lone surrogates in a JSON value with question marks, because files cannot store them.

    >>> replace_surrogates("Hi \ud800!")
    'Hi ?!'
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(part) for key, part in value.items()}
    return [replace_surrogates(part) for part in value] if isinstance(value, list) else value
