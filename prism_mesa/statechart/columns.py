"""Many agents, or the posts before them, as columns that guards read."""

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt

type Codes = npt.NDArray[np.integer]


class Columns(Protocol):
    """Many agents, or the posts before them: columns for expressions, rows for callable guards."""

    def take(self, rows: Codes) -> Self:
        """Return these rows only, in this order."""
        ...

    def column(self, name: str) -> Any:
        """Return the values of a field; raise AttributeError if they are not held as a column."""
        ...

    def row(self, i: int) -> Any:
        """Return row `i` as the object that a callable guard is given."""
        ...


class ArrayColumns:
    """Columns over a mapping of arrays of one length.

    >>> posts = ArrayColumns({"relevance": np.array([0.2, 0.9])})
    >>> posts.row(1).relevance
    0.9
    """

    def __init__(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        self.arrays = arrays

    def take(self, rows: Codes) -> "ArrayColumns":
        """Return these rows only."""
        return ArrayColumns({name: array[rows] for name, array in self.arrays.items()})

    def column(self, name: str) -> Any:
        """Return one array."""
        if name not in self.arrays:
            raise AttributeError(f"no column {name!r}")
        return self.arrays[name]

    def row(self, i: int) -> SimpleNamespace:
        """Return one row, with plain Python values."""
        return SimpleNamespace(**{name: array[i].item() for name, array in self.arrays.items()})


class Reader:
    """Columns read by attribute, with a row's Python numbers: floats in double precision, a bool as 0 or 1."""

    __slots__ = ("__columns",)

    def __init__(self, columns: Columns) -> None:
        self.__columns = columns

    def __getattr__(self, name: str) -> Any:
        values = self.__columns.column(name)
        kind = values.dtype.kind if isinstance(values, np.ndarray) else ""
        if kind == "f":
            return values.astype(np.float64, copy=False)
        return values.astype(np.int64, copy=False) if kind and kind in "biu" else values
