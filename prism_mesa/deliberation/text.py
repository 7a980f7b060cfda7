"""How values and errors read for an LLM: as short text that any file and any prompt can hold.

No value makes it raise.
"""

import reprlib
from collections.abc import Set as AnySet
from dataclasses import is_dataclass
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_json

from prism_mesa.deliberation.jsonable import jsonable, text_of, without_addresses
from prism_mesa.errors import PrismError


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
