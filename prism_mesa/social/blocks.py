"""Going through many rows a block at a time, so that what is made on the way stays small. It draws nothing itself."""

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

BLOCK: Final = 1 << 14
"""Rows in a block. No row's value depends on it."""


def blocks(n: int, size: int = BLOCK) -> Iterator[slice]:
    """Yield slices that cover rows 0 .. n-1 in turn."""
    for first in range(0, n, size):
        yield slice(first, min(first + size, n))


def filled[T: np.generic](
    out: npt.NDArray[T], rows: npt.NDArray[np.integer[Any]], made: Callable[[npt.NDArray[np.integer[Any]]], Any]
) -> npt.NDArray[T]:
    """Return `out` with ``made(rows)`` in it, which is called with a block of rows at a time."""
    for part in blocks(len(rows)):
        out[part] = made(rows[part])
    return out
