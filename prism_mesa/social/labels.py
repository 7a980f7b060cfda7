"""Agents' ids and names, as lists of text that are not stored as such. They never change an agent's row."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

type Rows = npt.NDArray[np.integer[Any]]
type Objects = npt.NDArray[np.object_]


class Labels(Sequence[str]):
    """What ids and names have in common: they read like a list, and compare with one."""

    def to_numpy(self) -> Objects:
        """Return all of them as an array of texts."""
        raise NotImplementedError

    def to_arrow(self) -> pa.Array:
        """Return all of them as an Arrow array of strings."""
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
        place = int(row) + len(self) * (row < 0)
        if not 0 <= place < len(self):
            raise IndexError(f"row {row} of {len(self)}")
        return self._label(place)

    def _label(self, row: int) -> str:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(a == b for a, b in zip(self, other, strict=True))
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        more = ", ..." if len(self) > 3 else ""
        return f"{type(self).__name__}([{', '.join(map(repr, self[:3]))}{more}])"


class Ids(Labels):
    """The users' ids of the agents: the rows' numbers, whole numbers from a file, or texts.

    >>> ids = Ids(range(1_000_000))
    >>> ids[-1], "77" in ids, "077" in ids, ids.rows_of(["3", "x"]).tolist()
    ('999999', True, False, [3, -1])

    Args:
        given: A range or an array of int64, which stand for their decimal digits, or texts.
    """

    def __init__(self, given: range | npt.NDArray[np.int64] | pa.Array | Sequence[str]) -> None:
        is_kept = isinstance(given, range | np.ndarray | pa.Array)
        self._base: Any = given if is_kept else pa.array(list(given), pa.string())
        self._added: list[str] = []

    def __len__(self) -> int:
        return len(self._base) + len(self._added)

    def _label(self, row: int) -> str:
        return str(self._base[row]) if row < len(self._base) else self._added[row - len(self._base)]

    def __contains__(self, label: object) -> bool:
        if isinstance(self._base, range) and isinstance(label, str):
            return label in self._added or (label.isdecimal() and int(label) in self._base and label == str(int(label)))
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
        """Return the row of each label, -1 where there is none."""
        found = pc.index_in(pa.array(labels, pa.string()), value_set=self.to_arrow())
        return np.asarray(found.fill_null(-1), np.int64)

    def extend(self, more: Iterable[str]) -> None:
        """Add labels below."""
        self._added.extend(more)

    def to_arrow(self) -> pa.Array:
        """Return all of them as an Arrow array of strings."""
        base = self._base
        if not isinstance(base, pa.Array):
            base = pa.array(np.arange(base.start, base.stop, base.step) if isinstance(base, range) else base)
        return pa.concat_arrays([base.cast(pa.string()), pa.array(self._added, pa.string())])

    def to_numpy(self) -> Objects:
        """Return all of them as an array of texts."""
        return np.asarray(self.to_arrow().to_numpy(zero_copy_only=False), object)


class Names(Labels):
    """What prompts call the agents: a code for each, into a pool of names, and the names that users have given.

    Args:
        codes: Shape (n,), places in the pool.
    """

    def __init__(self, codes: npt.NDArray[np.uint16], pool: Sequence[str]) -> None:
        self._codes, self._pool = codes, pool
        self._given: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._codes)

    def _label(self, row: int) -> str:
        name = self._given.get(row)
        return self._pool[self._codes[row]] if name is None else name

    def __setitem__(self, row: int | slice, name: str | Sequence[str]) -> None:
        if isinstance(row, slice):
            self._given.update(zip(range(*row.indices(len(self))), name, strict=True))
        else:
            self._given[range(len(self))[row]] = str(name)

    def extend(self, more: Self) -> None:
        """Add the names of others below, drawn from the same pool."""
        self._given |= {len(self) + row: name for row, name in more._given.items()}
        self._codes = np.concatenate([self._codes, more._codes])

    def to_numpy(self) -> Objects:
        """Return all of them as an array of texts."""
        names = np.array(self._pool, object)[self._codes]
        names[list(self._given)] = list(self._given.values())
        return np.asarray(names, object)
