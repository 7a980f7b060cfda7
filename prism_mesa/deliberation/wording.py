"""How values and errors read for an LLM: as short text that any file and any prompt can hold.

It never raises because of a value, and never decides what is told to whom.
"""

import reprlib
from typing import Any, Final

from pydantic_core import to_json, to_jsonable_python

from prism_mesa.errors import PrismError

_repr: Final = reprlib.Repr(maxstring=60, maxother=60, maxlong=60)


def shown(value: object) -> str:
    """Return `value` as Python writes it, cut."""
    try:
        return _repr.repr(value)
    except Exception:  # a number of too many digits
        return f"something of type {type(value).__name__}"


def told(value: object) -> str:
    """Return what a tool has returned, as text: as it is, or as JSON; "done" for None."""
    if value is None:
        return "done"
    if isinstance(value, str):
        return value
    try:
        plain = mended(to_jsonable_python(value, by_alias=True, fallback=_plain))
        return to_json(plain, inf_nan_mode="strings").decode()
    except Exception:  # circular, too deep, a number too long: the tool has run all the same
        return shown(value)


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)


def error_told(error: BaseException) -> str:
    """Return an error's message, after its class unless PRISM raised it on purpose."""
    name = type(error).__name__
    try:
        message = str(error)
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
