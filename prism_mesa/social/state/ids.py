"""Agents' ids and names as compact sequences of strings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from prism_mesa.arrays import Ints, UInt16
from prism_mesa.errors import format_count, printable
from prism_mesa.snapshot import Plain, Restorable

type Objects = npt.NDArray[np.object_]

_BLANK_IDS: Final = ("NA", "N/A", "NaN", "nan", "NULL", "null", "None", "none")
_EXCEL_ROUNDED_NUMBER: Final = r"^\d(?:[.,]\d+)?[eE]\+\d+$"


class Labels(Sequence[str]):
    """A sequence of ids or names, which compares like a list."""

    def to_numpy(self) -> Objects:
        """Return all labels as an array of strings."""
        raise NotImplementedError

    def to_arrow(self) -> pa.Array:
        """Return all labels as an Arrow array of strings."""
        return pa.array(self.to_numpy(), pa.string())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return self.to_numpy() if dtype is None else self.to_numpy().astype(dtype)

    def __iter__(self) -> Iterator[str]:
        return iter(self.to_numpy().tolist())

    @overload
    def __getitem__(self, row: int) -> str: ...
    @overload
    def __getitem__(self, row: slice) -> list[str]: ...
    def __getitem__(self, row: int | slice) -> str | list[str]:
        if isinstance(row, slice):
            return [self._label(i) for i in range(*row.indices(len(self)))]
        return self._label(range(len(self))[row])

    def _label(self, row: int) -> str:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and len(self) == len(other) and all(map(str.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        ending = ", ..." if len(self) > 3 else ""
        return f"{type(self).__name__}([{', '.join(map(repr, self[:3]))}{ending}])"


def _normalised(texts: pa.Array) -> pa.Array:
    """Return ids in lower case without a leading @, and numbers without plus sign, leading zeros and zero decimals."""
    return pc.utf8_lower(pc.replace_substring_regex(texts, r"^(?:@|\+?0*(\d+?)(?:\.0*)?$)", r"\1"))


class Ids(Labels, Restorable):
    """The agents' ids: row numbers, whole numbers from a file, or strings.

    >>> ids = Ids(range(1_000_000))
    >>> ids[-1], "77" in ids, "077" in ids, ids.rows_of(["3", "x"]).tolist()
    ('999999', True, False, [3, -1])

    Args:
        ids: Strings, or numbers (a range or an int64 array), which are read as their decimal digits.
    """

    saved_fields = ("_added",)

    def __init__(self, ids: range | Ints | pa.Array | Sequence[str]) -> None:
        self._base: Any = ids if isinstance(ids, range | np.ndarray | pa.Array) else pa.array(list(ids), pa.string())
        self._added: list[str] = []

    def __len__(self) -> int:
        return len(self._base) + len(self._added)

    def _label(self, row: int) -> str:
        return str(self._base[row]) if row < len(self._base) else self._added[row - len(self._base)]

    @property
    def is_range(self) -> bool:
        """Whether the ids are row numbers, as in a generated network."""
        return isinstance(self._base, range)

    def __contains__(self, label: object) -> bool:
        if isinstance(self._base, range) and isinstance(label, str):
            is_decimal_label = label.isdecimal() and len(label) < 20 and str(int(label)) == label
            return label in self._added or (is_decimal_label and int(label) in self._base)
        return isinstance(label, str) and self._find_row(label) >= 0

    def index(self, label: str, start: int = 0, stop: int | None = None) -> int:
        """Return the first row of a label."""
        row = self._find_row(label)
        if row < start or (stop is not None and row >= stop):
            raise ValueError(f"{label!r} is not an id")
        return row

    def _find_row(self, label: str) -> int:
        return int(pc.index(self.to_arrow(), label).as_py())

    def rows_of(self, labels: Sequence[str]) -> Ints:
        """Return the row of each label, -1 if there is none."""
        return np.asarray(pc.index_in(pa.array(labels, pa.string()), value_set=self.to_arrow()).fill_null(-1), np.int64)

    def find_misspelt(self, labels: Sequence[str]) -> tuple[str, str] | None:
        """Return the first label that matches an id except in capitals or the spelling of numbers, and that id.

        >>> ids = Ids(["1", "Ann"])
        >>> ids.find_misspelt(["0001"]), ids.find_misspelt(["1", "bo"])
        (('0001', '1'), None)
        """
        unknown = [label for label, row in zip(labels, self.rows_of(labels).tolist(), strict=True) if row < 0]
        rows = pc.index_in(_normalised(pa.array(unknown, pa.string())), value_set=_normalised(self.to_arrow()))
        similar_rows = np.flatnonzero(rows.is_valid())
        return (unknown[similar_rows[0]], self[rows[int(similar_rows[0])].as_py()]) if len(similar_rows) else None

    def spelling_notes(self) -> Iterator[str]:
        """Yield notes on ids from a file that may be misspelt or meant as blank."""
        if not isinstance(self._base, pa.Array):
            return
        normalised = _normalised(self._base)
        is_repeated = normalised.to_pandas().duplicated().to_numpy()
        if is_repeated.any():
            row = int(np.flatnonzero(is_repeated)[0])
            pair = f"{self[int(pc.index(normalised, normalised[row]).as_py())]!r} and {self[row]!r}"
            count = format_count(int(is_repeated.sum()), "id")
            yield f"{count} spelt almost like another ({pair}): read as different agents"
        rounded_rows = np.flatnonzero(pc.match_substring_regex(self._base, _EXCEL_ROUNDED_NUMBER).fill_null(False))
        if len(rounded_rows):
            yield (
                f"{format_count(len(rounded_rows), 'id')} such as {self[int(rounded_rows[0])]!r} may stand for several "
                "agents: Excel rounds long numbers; export the column as text"
            )
        for row in self.rows_of(_BLANK_IDS).tolist():
            if row >= 0:
                yield f"{self[row]!r} is read as the id of an agent: leave the cell empty if it means none"

    def extend(self, added: Iterable[str]) -> None:
        """Append ids."""
        self._added.extend(added)

    def to_arrow(self) -> pa.Array:
        """Return all ids as an Arrow array of strings."""
        ids = self._base
        if not isinstance(ids, pa.Array):
            ids = pa.array(np.arange(ids.start, ids.stop, ids.step) if isinstance(ids, range) else ids)
        return pa.concat_arrays([ids.cast(pa.string()), pa.array(self._added, pa.string())])

    def to_numpy(self) -> Objects:
        """Return all ids as an array of strings."""
        return np.asarray(self.to_arrow().to_numpy(zero_copy_only=False), object)


def shorten(text: str, max_length: int = 40) -> str:
    """Return a string for a message: on one line, truncated after `max_length` characters."""
    return printable(text if len(text) <= max_length else f"{text[:max_length]}...")


def examples(labels: Sequence[str], max_labels: int = 3) -> str:
    """Return the first labels for a message.

    >>> examples(["ann", "bo", "cy", "di"])
    "'ann', 'bo', 'cy', ..."
    """
    ending = ", ..." if len(labels) > max_labels else ""
    return ", ".join(repr(shorten(label)) for label in labels[:max_labels]) + ending


class Names(Labels, Restorable):
    """The agents' names in prompts: indices into a pool of names, and names that you have set."""

    saved_fields = ("_codes",)

    def __init__(self, codes: UInt16, pool: Sequence[str]) -> None:
        self._codes, self._pool = codes, pool
        self._custom_names: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def _label(self, row: int) -> str:
        name = self._custom_names.get(row)
        return self._pool[self._codes[row]] if name is None else name

    def snapshot(self) -> dict[str, Plain]:
        """Return the indices into the pool, and the names that you have set."""
        rows = np.array(list(self._custom_names), np.int64)
        return super().snapshot() | {"rows": rows, "names": list(self._custom_names.values())}

    def restore(self, data: Mapping[str, Plain]) -> None:
        """Restore a snapshot."""
        super().restore(data)
        self._custom_names = dict(zip(data["rows"].tolist(), data["names"], strict=True))

    def __setitem__(self, row: int | slice, name: str | Sequence[str]) -> None:
        if isinstance(row, slice):
            self._custom_names.update(zip(range(*row.indices(len(self))), name, strict=True))
        else:
            self._custom_names[range(len(self))[row]] = str(name)

    def extend(self, added: Self) -> None:
        """Append the names of other agents, which come from the same pool."""
        self._custom_names |= {len(self) + row: name for row, name in added._custom_names.items()}
        self._codes = np.concatenate([self._codes, added._codes])

    def to_numpy(self) -> Objects:
        """Return all names as an array of strings."""
        names = np.array(self._pool, object)[self._codes]
        names[list(self._custom_names)] = list(self._custom_names.values())
        return np.asarray(names, object)
