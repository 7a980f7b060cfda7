"""Plain data of what changes in a run: arrays, and values that JSON holds. Nothing in it is code.

A class says in `changes` which of its attributes a run changes; all else is made from the configuration once more.
"""

from collections import Counter, deque
from collections.abc import Mapping
from typing import Any, ClassVar, Final

import numpy as np

from prism_mesa.errors import DataError

type Plain = Any
"""An array, None, a truth value, a number, a text, a list of these, or a dict of them by text."""

_MARK: Final = "is"
_CONTAINERS: Final[dict[str, Any]] = {"tuple": tuple, "set": set, "deque": deque, "dict": dict, "Counter": Counter}


class Restorable:
    """What can be put down as plain data, and be brought back into an equal one that has just been made."""

    changes: ClassVar[tuple[str, ...]] = ()

    def snapshot(self) -> dict[str, Plain]:
        """Return what a run changes."""
        return {name: plain(getattr(self, name)) for name in self.changes}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Bring back what `snapshot` returned.

        Raises:
            DataError: If something is missing, or is of another type.
        """
        for name in self.changes:
            if name not in kept:
                raise DataError(f"{type(self).__name__}.{name}: is missing")
            before = getattr(self, name)
            if isinstance(before, Restorable):
                before.restore(kept[name])
                continue
            value = restored(kept[name])
            check_like(f"{type(self).__name__}.{name}", value, before)
            object.__setattr__(self, name, value)  # frozen ones too


def plain(value: Any) -> Plain:
    """Return a value as plain data; what is no list or JSON value is a dict that says what it is.

    >>> plain({1: (2, None)})
    {'is': 'dict', 'of': [[1, {'is': 'tuple', 'of': [2, None]}]]}

    Raises:
        TypeError: If it is of a type that no snapshot holds.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Restorable):
        return value.snapshot()
    if isinstance(value, list):
        return [plain(one) for one in value]
    kind = type(value).__name__
    if type(value) is not _CONTAINERS.get(kind):
        raise TypeError(f"{kind} is not held by a snapshot: {value!r:.80}")
    if isinstance(value, dict):
        return {_MARK: kind, "of": [[plain(key), plain(held)] for key, held in value.items()]}
    held = sorted(value) if isinstance(value, set) else value
    found = {_MARK: kind, "of": [plain(one) for one in held]}
    return found | {"most": value.maxlen} if isinstance(value, deque) else found


def restored(value: Plain) -> Any:
    """Return what `plain` was given.

    Raises:
        DataError: If it is not what that returns.
    """
    if isinstance(value, list):
        return [restored(one) for one in value]
    if not isinstance(value, dict):
        return value
    kind, of = value.get(_MARK), value.get("of")
    if kind not in _CONTAINERS or not isinstance(of, list):
        raise DataError(f"a snapshot holds no {kind!r}")
    try:
        if kind in ("dict", "Counter"):
            return _CONTAINERS[kind]({restored(key): restored(held) for key, held in of})
        held = [restored(one) for one in of]
        return deque(held, value.get("most")) if kind == "deque" else _CONTAINERS[kind](held)
    except (TypeError, ValueError) as error:
        raise DataError(f"a snapshot holds a damaged {kind}: {error}") from None


def check_like(what: str, value: Any, before: Any) -> None:
    """Check that a value is of the type that one has which was made from the configuration; of arrays but the length.

    Raises:
        DataError: If not.
    """
    if isinstance(before, np.ndarray):
        fits = isinstance(value, np.ndarray) and (value.dtype, value.shape[1:]) == (before.dtype, before.shape[1:])
    elif isinstance(before, float):
        fits = isinstance(value, float | int)
    else:
        fits = type(value) is type(before) or before is None or value is None
    if not fits:
        raise DataError(f"{what}: is no {_kind(before)}, but a {_kind(value)}")


def _kind(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} array of shape {value.shape}"
    return type(value).__name__
