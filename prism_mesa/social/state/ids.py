"""Agents' ids and names as compact lists of strings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Self, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from prism_mesa.errors import counted, printable
from prism_mesa.snapshot import Plain, Restorable

type Rows = npt.NDArray[np.integer[Any]]
type Objects = npt.NDArray[np.object_]

_BLANK_IDS: Final = ("NA", "N/A", "NaN", "nan", "NULL", "null", "None", "none")
_ROUNDED_BY_EXCEL: Final = r"^\d(?:[.,]\d+)?[eE]\+\d+$"


class Labels(Sequence[str]):
    """Ids or names, which read and compare like a list."""

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
        more = ", ..." if len(self) > 3 else ""
        return f"{type(self).__name__}([{', '.join(map(repr, self[:3]))}{more}])"


def _normalised(texts: pa.Array) -> pa.Array:
    """Return ids in lower case, without a leading @; numbers without plus, leading zeros or zero decimals."""
    normalised = pc.replace_substring_regex(texts, r"^(?:@|\+?0*(\d+?)(?:\.0*)?$)", r"\1")
    return pc.utf8_lower(normalised)


class Ids(Labels, Restorable):
    """The ids of the agents: row numbers, whole numbers from a file, or strings.

    >>> ids = Ids(range(1_000_000))
    >>> ids[-1], "77" in ids, "077" in ids, ids.rows_of(["3", "x"]).tolist()
    ('999999', True, False, [3, -1])

    Args:
        ids: A range or an array of int64, which become decimal digits, or strings.
    """

    changes = ("_added",)

    def __init__(self, ids: range | npt.NDArray[np.int64] | pa.Array | Sequence[str]) -> None:
        self._base: Any = ids if isinstance(ids, range | np.ndarray | pa.Array) else pa.array(list(ids), pa.string())
        self._added: list[str] = []

    def __len__(self) -> int:
        return len(self._base) + len(self._added)

    def _label(self, row: int) -> str:
        return str(self._base[row]) if row < len(self._base) else self._added[row - len(self._base)]

    @property
    def is_range(self) -> bool:
        """Whether the ids are row numbers, as in a network without a file."""
        return isinstance(self._base, range)

    def __contains__(self, label: object) -> bool:
        if isinstance(self._base, range) and isinstance(label, str):
            is_plain = label.isdecimal() and len(label) < 20 and str(int(label)) == label
            return label in self._added or (is_plain and int(label) in self._base)
        return isinstance(label, str) and self._row(label) >= 0

    def index(self, label: str, start: int = 0, stop: int | None = None) -> int:
        """Return the first row of a label."""
        row = self._row(label)
        if row < start or (stop is not None and row >= stop):
            raise ValueError(f"{label!r} is not an id")
        return row

    def _row(self, label: str) -> int:
        return int(pc.index(self.to_arrow(), label).as_py())

    def rows_of(self, labels: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the row of each label, -1 if there is none."""
        rows = pc.index_in(pa.array(labels, pa.string()), value_set=self.to_arrow())
        return np.asarray(rows.fill_null(-1), np.int64)

    def otherwise(self, labels: Sequence[str]) -> tuple[str, str] | None:
        """Return the first label that is an id only if numbers or capitals are spelt differently, and that id.

        >>> Ids(["1", "Ann"]).otherwise(["0001"]), Ids(["1", "Ann"]).otherwise(["1", "bo"])
        (('0001', '1'), None)
        """
        unknown = [label for label, row in zip(labels, self.rows_of(labels).tolist(), strict=True) if row < 0]
        rows = pc.index_in(_normalised(pa.array(unknown, pa.string())), value_set=_normalised(self.to_arrow()))
        similar = np.flatnonzero(rows.is_valid())
        return (unknown[similar[0]], self[rows[int(similar[0])].as_py()]) if len(similar) else None

    def doubts(self) -> Iterator[str]:
        """Yield notes on ids from a file that may be misspelt or blank."""
        if not isinstance(self._base, pa.Array):
            return
        normalised = _normalised(self._base)
        repeats = normalised.to_pandas().duplicated().to_numpy()
        if repeats.any():
            row = int(np.flatnonzero(repeats)[0])
            pair = f"{self[int(pc.index(normalised, normalised[row]).as_py())]!r} and {self[row]!r}"
            yield f"{counted(int(repeats.sum()), 'id')} spelt almost like another ({pair}): read as different agents"
        rounded = np.flatnonzero(pc.match_substring_regex(self._base, _ROUNDED_BY_EXCEL).fill_null(False))
        if len(rounded):
            yield (
                f"{counted(len(rounded), 'id')} such as {self[int(rounded[0])]!r} may stand for several agents: "
                "Excel rounds long numbers; export the column as text"
            )
        for row in self.rows_of(_BLANK_IDS).tolist():
            if row >= 0:
                yield f"{self[row]!r} is read as the id of an agent: leave the cell empty if it means none"

    def extend(self, more: Iterable[str]) -> None:
        """Append ids."""
        self._added.extend(more)

    def to_arrow(self) -> pa.Array:
        """Return all ids as an Arrow array of strings."""
        base = self._base
        if not isinstance(base, pa.Array):
            base = pa.array(np.arange(base.start, base.stop, base.step) if isinstance(base, range) else base)
        return pa.concat_arrays([base.cast(pa.string()), pa.array(self._added, pa.string())])

    def to_numpy(self) -> Objects:
        """Return all ids as an array of strings."""
        return np.asarray(self.to_arrow().to_numpy(zero_copy_only=False), object)


def shortened(text: str, max_length: int = 40) -> str:
    """Return a text for a message, on one line, truncated after `max_length` characters."""
    return printable(text if len(text) <= max_length else f"{text[:max_length]}...")


def examples(labels: Sequence[str], max_labels: int = 3) -> str:
    """Return the first labels for a message.

    >>> examples(["ann", "bo", "cy", "di"])
    "'ann', 'bo', 'cy', ..."
    """
    more = ", ..." if len(labels) > max_labels else ""
    return ", ".join(repr(shortened(label)) for label in labels[:max_labels]) + more


class Names(Labels, Restorable):
    """The agents' names in prompts: indices into a pool of names, shape (n,), and the names that you have set."""

    changes = ("_codes",)

    def __init__(self, codes: npt.NDArray[np.uint16], pool: Sequence[str]) -> None:
        self._codes, self._pool = codes, pool
        self._set: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def _label(self, row: int) -> str:
        name = self._set.get(row)
        return self._pool[self._codes[row]] if name is None else name

    def snapshot(self) -> dict[str, Plain]:
        """Return codes, and the names that you have set."""
        rows = np.array(list(self._set), np.int64)
        return super().snapshot() | {"rows": rows, "names": list(self._set.values())}

    def restore(self, kept: Mapping[str, Plain]) -> None:
        """Restore a snapshot."""
        super().restore(kept)
        self._set = dict(zip(kept["rows"].tolist(), kept["names"], strict=True))

    def __setitem__(self, row: int | slice, name: str | Sequence[str]) -> None:
        if isinstance(row, slice):
            self._set.update(zip(range(*row.indices(len(self))), name, strict=True))
        else:
            self._set[range(len(self))[row]] = str(name)

    def extend(self, more: Self) -> None:
        """Append the names of other agents, drawn from the same pool."""
        self._set |= {len(self) + row: name for row, name in more._set.items()}
        self._codes = np.concatenate([self._codes, more._codes])

    def to_numpy(self) -> Objects:
        """Return all names as an array of strings."""
        names = np.array(self._pool, object)[self._codes]
        names[list(self._set)] = list(self._set.values())
        return np.asarray(names, object)
