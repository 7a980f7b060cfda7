"""Plain data of what changes in a run: arrays, and values that JSON holds. Nothing in it is code.

A class says in `changes` which of its attributes a run changes; all else is made from the configuration once more.
"""

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final

import numpy as np

from prism_mesa.errors import DataError, NotRestorableError

type Plain = Any
"""An array, None, a truth value, a number, a text, a list of these, or a dict of them by text.

A number may be infinite or none at all (nan): JSON has to hold these as Python writes them.
"""

_MARK: Final = "is"
_COLUMNS: Final[dict[type | None, tuple[str, type[np.generic]]]] = {
    int: ("ints", np.int64),
    float: ("floats", np.float64),
}
_NO_COLUMN: Final = ("", np.generic)
_KINDS: Final = [name for name, _ in _COLUMNS.values()]
_SHORT: Final = 255
"""Up to so many numbers a list of them stays a list: an array of a file costs as much as so many numbers in JSON."""
_CONTAINERS: Final[dict[str, Any]] = {"tuple": tuple, "set": set, "deque": deque, "dict": dict, "Counter": Counter}


class OwnedArray(np.ndarray[Any, np.dtype[Any]]):
    """An array that nobody else has, in one piece: `restored` returns its memory, where it copies other arrays."""


class Restorable:
    """What can be put down as plain data, and be brought back into an equal one that has just been made.

    Arrays of a snapshot are those of the object, not copies: it holds until the object changes. What is restored has
    arrays of its own.
    """

    changes: ClassVar[tuple[str, ...]] = ()

    def snapshot(self) -> dict[str, Plain]:
        """Return what a run changes."""
        return {name: plain(getattr(self, name)) for name in self.changes}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Bring back what `snapshot` returned."""
        self.restore_each(self.changes, kept)

    def restore_each(self, names: Iterable[str], kept: Mapping[str, Plain]) -> None:
        """Bring back some of what `snapshot` returned, as `restore` does."""
        for name in names:
            before = getattr(self, name)
            if isinstance(before, Restorable):
                before.restore(kept[name])
            else:
                object.__setattr__(self, name, restored(kept[name]))


def plain(value: Any) -> Plain:
    """Return a value as plain data; what is no list or JSON value is a dict that says what it is.

    Long lists of whole numbers, or of floats, are arrays there.

    >>> plain({1: (2, None)})
    {'is': 'dict', 'of': [[1, {'is': 'tuple', 'of': [2, None]}]]}

    Raises:
        NotRestorableError: If it is of a type that no snapshot holds.
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
        raise NotRestorableError(f"{kind} is held by no snapshot: {value!r:.80}")
    if isinstance(value, dict):
        return {_MARK: kind, "of": [[plain(key), plain(held)] for key, held in value.items()]}
    held = sorted(value) if isinstance(value, set) else value
    found = {_MARK: kind, "of": _plain_list(list(held))}
    return found | {"most": value.maxlen} if isinstance(value, deque) else found


def _plain_list(values: list[Any]) -> Plain:
    kinds = set(map(type, values)) if len(values) > _SHORT else set()
    kind = kinds.pop() if len(kinds) == 1 else None
    name, dtype = _COLUMNS.get(kind, _NO_COLUMN)
    if name:
        with suppress(OverflowError):
            return {_MARK: name, "of": np.array(values, dtype)}
    if kind is str:
        return values
    return [plain(one) for one in values]


def restored(value: Plain) -> Any:
    """Return what `plain` was given; arrays are copied, but for those that are handed over."""
    if isinstance(value, list):
        return [restored(item) for item in value]
    if isinstance(value, np.ndarray):
        return value.view(np.ndarray) if isinstance(value, OwnedArray) else np.array(value, order="C")
    if not isinstance(value, dict):
        return value
    kind, items = value[_MARK], value["of"]
    if kind in _KINDS:
        return items.tolist()
    if kind in ("dict", "Counter"):
        return _CONTAINERS[kind](dict(restored(items)))
    return deque(restored(items), value["most"]) if kind == "deque" else _CONTAINERS[kind](restored(items))


def state_of(thing: object) -> Plain:
    """Return what an object's own `snapshot` says; None of None.

    Raises:
        NotRestorableError: If it has none, or something in it that is no plain data.
    """
    if thing is None or isinstance(thing, Restorable):
        return None if thing is None else thing.snapshot()
    if not (callable(getattr(thing, "snapshot", None)) and callable(getattr(thing, "restore", None))):
        raise NotRestorableError(
            f"{type(thing).__name__}: its state is not known: give it snapshot(), which returns plain data (numbers, "
            "texts, lists, dicts, arrays), and restore(data), which takes it back"
        )
    return plain(thing.snapshot())  # type: ignore[attr-defined]


def restore_object(thing: object, kept: Plain) -> None:
    """Let an object take back what `state_of` said; nothing if that is None.

    Raises:
        DataError: If only one of the two is there.
    """
    if (thing is None) != (kept is None):
        raise DataError(f"{type(thing).__name__}: is not what the run was given")
    if isinstance(thing, Restorable):
        thing.restore(kept)
    elif thing is not None:
        thing.restore(restored(kept))  # type: ignore[attr-defined]
