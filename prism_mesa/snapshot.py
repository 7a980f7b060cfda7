"""Snapshots of a run's state as plain data: arrays and JSON values, never code.

A class lists in `saved_fields` the attributes that a run changes. The configuration determines the other attributes.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final

import numpy as np

from prism_mesa.errors import DataError, NotRestorableError

type Plain = Any
"""An array, None, a boolean, a number (also inf and nan), a string, or a list or dict (with string keys) of these."""

_TYPE_KEY: Final = "is"
_ARRAYS: Final[dict[type | None, tuple[str, type[np.generic]]]] = {
    int: ("ints", np.int64),
    float: ("floats", np.float64),
}
_NO_ARRAY: Final = ("", np.generic)
_KINDS: Final = [name for name, _ in _ARRAYS.values()]
_MAX_LIST_LENGTH: Final = 255
"""Maximum length of a list of numbers that stays a list. In a file, shorter arrays would not save space."""
_CONTAINERS: Final[dict[str, Any]] = {"tuple": tuple, "set": set, "deque": deque, "dict": dict, "Counter": Counter}


class OwnedArray(np.ndarray[Any, np.dtype[Any]]):
    """A contiguous array without another owner, so that `from_plain` need not copy it."""


class Restorable:
    """An object whose state can be saved as plain data and restored in a new object.

    A snapshot shares arrays with the object, so it is valid only until the object changes. Restored arrays are copies.
    """

    saved_fields: ClassVar[tuple[str, ...]] = ()

    def snapshot(self) -> dict[str, Plain]:
        """Return the attributes in `saved_fields` as plain data."""
        return {name: to_plain(getattr(self, name)) for name in self.saved_fields}

    def restore(self, data: Mapping[str, Plain]) -> None:
        """Restore a snapshot."""
        self.restore_each(self.saved_fields, data)

    def restore_each(self, names: Iterable[str], data: Mapping[str, Plain]) -> None:
        """Restore some attributes from a snapshot."""
        for name in names:
            value = getattr(self, name)
            if isinstance(value, Restorable):
                value.restore(data[name])
            else:
                object.__setattr__(self, name, from_plain(data[name]))


def to_plain(value: Any) -> Plain:
    """Return a value as plain data.

    Containers that JSON does not have become dicts with the name of their type. Long lists of whole numbers, or of
    floats, become arrays.

    >>> to_plain({1: (2, None)})
    {'is': 'dict', 'of': [[1, {'is': 'tuple', 'of': [2, None]}]]}

    Raises:
        NotRestorableError: If snapshots do not support the type.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Restorable):
        return value.snapshot()
    if isinstance(value, list):
        return _plain_list(value)
    kind = type(value).__name__
    if type(value) is not _CONTAINERS.get(kind):
        raise NotRestorableError(f"{kind} cannot be saved in a snapshot: {value!r:.80}")
    if isinstance(value, dict):
        return {_TYPE_KEY: kind, "of": [[to_plain(key), to_plain(item)] for key, item in value.items()]}
    result = {_TYPE_KEY: kind, "of": _plain_list(sorted(value) if isinstance(value, set) else list(value))}
    return result | {"most": value.maxlen} if isinstance(value, deque) else result


def _plain_list(values: list[Any]) -> Plain:
    kinds = set(map(type, values)) if len(values) > _MAX_LIST_LENGTH else set()
    kind = kinds.pop() if len(kinds) == 1 else None
    name, dtype = _ARRAYS.get(kind, _NO_ARRAY)
    if name:
        with suppress(OverflowError):
            return {_TYPE_KEY: name, "of": np.array(values, dtype)}
    if kind is str:
        return values
    return [to_plain(item) for item in values]


def from_plain(value: Plain) -> Any:
    """Return the original value of plain data. Arrays are copied, except an `OwnedArray`."""
    if isinstance(value, list):
        return [from_plain(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray) if isinstance(value, OwnedArray) else np.array(value, order="C")
    if not isinstance(value, dict):
        return value
    kind, items = value[_TYPE_KEY], value["of"]
    if kind in _KINDS:
        return items.tolist()
    if kind in ("dict", "Counter"):
        return _CONTAINERS[kind](dict(from_plain(items)))
    return deque(from_plain(items), value["most"]) if kind == "deque" else _CONTAINERS[kind](from_plain(items))


def take_snapshot(component: object) -> Plain:
    """Return an object's snapshot, or None for None. Raises NotRestorableError if the snapshot is not plain data."""
    if component is None or isinstance(component, Restorable):
        return None if component is None else component.snapshot()
    if not (callable(getattr(component, "snapshot", None)) and callable(getattr(component, "restore", None))):
        raise NotRestorableError(
            f"{type(component).__name__}: its state is unknown: add snapshot(), which returns plain data (numbers, "
            "text, lists, dicts, arrays), and restore(data)"
        )
    return to_plain(component.snapshot())  # type: ignore[attr-defined]


def restore_object(component: object, data: Plain) -> None:
    """Restore an object from its snapshot. Raises DataError if only the object or only the snapshot is None."""
    if (component is None) != (data is None):
        raise DataError(f"{type(component).__name__}: does not match the object in the snapshot")
    if isinstance(component, Restorable):
        component.restore(data)
    elif component is not None:
        component.restore(from_plain(data))  # type: ignore[attr-defined]
