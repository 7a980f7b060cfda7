"""Values and errors as short text for an LLM that any file and any prompt can hold, the same in every process.

No value makes it raise, except in `jsonable`.
"""

import re
import reprlib
from collections import deque
from collections.abc import Callable, ItemsView, KeysView, Mapping, ValuesView
from collections.abc import Set as AnySet
from dataclasses import fields, is_dataclass
from types import FunctionType, GeneratorType, MethodType
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_json, to_jsonable_python

from prism_mesa.errors import PrismError

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


class _Repr(reprlib.Repr):
    """As Python writes values, cut, but the same in every process."""

    def repr_set(self, x: AnySet[Any], level: int) -> str:
        return super().repr_set(_sorted(x), level)

    def repr_frozenset(self, x: AnySet[Any], level: int) -> str:
        return super().repr_frozenset(_sorted(x), level)

    def repr_str(self, x: str, level: int) -> str:
        return super().repr_str(without_addresses(x), level)

    def repr_instance(self, x: Any, level: int) -> str:
        """Write what has parts as JSON; anything else loses its address first, while that is whole."""
        try:
            has_parts = isinstance(x, BaseModel) or is_dataclass(x) or hasattr(x, "tolist") or hasattr(x, "iterrows")
            text = f"{type(x).__name__}({to_json(jsonable(x)).decode()})" if has_parts else text_of(x, repr)
        except Exception:
            return f"<{type(x).__name__}>"
        half = (self.maxother - 3) // 2
        return text if len(text) <= self.maxother else f"{text[:half]}...{text[-half:]}"


_repr: Final = _Repr(maxstring=60, maxother=60, maxlong=60)


def _sorted(parts: AnySet[Any]) -> Any:
    return sorted(parts, key=_repr.repr)


def shown(value: object) -> str:
    """Return `value` as Python writes it, cut; sets in order, without addresses of objects."""
    try:
        return _repr.repr(value)
    except Exception:  # a number of too many digits
        return f"something of type {type(value).__name__}"


def as_text(value: object) -> str:
    """Return what a tool has returned, as text that is the same in every process; "done" for None.

    A text is told as it is, but for addresses of objects; anything else is JSON (see `jsonable`).
    """
    if value is None:
        return "done"
    if isinstance(value, str):
        return without_addresses(value)
    try:
        return to_json(mended(jsonable(value)), inf_nan_mode="strings").decode()
    except Exception:  # circular, too deep, a number too long: the tool has run all the same
        return shown(value)


def error_text(error: BaseException) -> str:
    """Return an error's message, after its class unless PRISM raised it on purpose."""
    name = type(error).__name__
    try:
        holds_sets = len(error.args) == 1 and isinstance(error.args[0], set | frozenset | dict | list | tuple)
        is_plain = type(error).__str__ in (BaseException.__str__, KeyError.__str__)
        message = as_text(error.args[0]) if holds_sets and is_plain else without_addresses(str(error))
    except Exception:
        message = ""
    if not message:
        return name
    return message if isinstance(error, PrismError) else f"{name}: {message}"


def capped(text: str, cap: int) -> str:
    """Return `text`, mended, with at most `cap` characters, the note on what was cut among them.

    >>> capped("x" * 100, 30)
    'xxxxxxxx… [92 characters cut]'
    """
    if len(text) > cap:
        room = cap - len(f"… [{len(text)} characters cut]")
        text = f"{text[:room]}… [{len(text) - room} characters cut]"
    return str(mended(text))


def mended(value: Any) -> Any:
    """Return JSON's `value` with a question mark for each half of a surrogate pair, which no file can hold.

    Raises:
        RecursionError: If it is nested too deeply, or holds itself.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {mended(key): mended(part) for key, part in value.items()}
    return [mended(part) for part in value] if isinstance(value, list) else value
