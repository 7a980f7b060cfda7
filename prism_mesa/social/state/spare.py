"""Memory for arrays: fresh memory is dear where they are large, so it is lent again, or taken in one piece."""

from collections.abc import Mapping
from itertools import accumulate
from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

_KEPT: Final = 8
"""Pieces of memory that are kept at most."""
_ROOM: Final = 16
"""A new piece has one part in so many beyond what is asked for."""

_ALIGNED: Final = 64
"""Bytes of a line of the processor's caches: each column begins with one."""

_LONG: Final = 1 << 20
"""Rows above which each column has its own memory."""

type Bytes = npt.NDArray[np.uint8]


class _Lent:
    """A piece of memory that is in use as long as any array over it is there."""

    def __init__(self, piece: Bytes, free: list[Bytes]) -> None:
        self._piece, self._free = piece, free
        self.__array_interface__ = piece.__array_interface__

    def __del__(self) -> None:
        if len(self._free) < _KEPT:
            self._free.append(self._piece)


class SpareMemory:
    """Memory for arrays, from what was lent before and has come back."""

    def __init__(self) -> None:
        self._free: list[Bytes] = []

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return another one, which has none yet."""
        return type(self)()

    def empty[T: np.generic](self, n: int, kind: type[T]) -> npt.NDArray[T]:
        """Return an array of `n` entries whose values are arbitrary; its memory comes back when it and its views go."""
        size = n * np.dtype(kind).itemsize
        fits = [place for place, piece in enumerate(self._free) if size <= len(piece) <= 2 * size + 4096]
        if fits:
            piece = self._free.pop(min(fits, key=lambda place: len(self._free[place])))
        else:
            self._free[:] = [piece for piece in self._free if len(piece) > size]  # follows grow: they were too short
            piece = np.empty(size + size // _ROOM, np.uint8)
        return np.asarray(_Lent(piece, self._free))[:size].view(kind)


def zeroed_columns(
    kinds: Mapping[str, type[np.generic]], n: int, widths: Mapping[str, int]
) -> dict[str, npt.NDArray[Any]]:
    """Return columns of 0, by name.

    Short ones lie in one piece of memory, which is large sooner: systems have large ones in large pages, and pages that
    are used for the first time are what new rows take longest for. Long ones can be let go one by one.

    Args:
        kinds: What each column holds.
        n: Rows.
        widths: Those columns that are tables themselves, and of how many columns; their shape is (n, width).
    """
    if n > _LONG:
        return {name: np.zeros((n, widths[name]) if name in widths else n, kind) for name, kind in kinds.items()}
    entries = {name: n * widths.get(name, 1) * np.dtype(kind).itemsize for name, kind in kinds.items()}
    lengths = [-(-length // _ALIGNED) * _ALIGNED for length in entries.values()]
    piece, starts = np.zeros(sum(lengths), np.uint8), accumulate(lengths, initial=0)
    columns = {
        name: piece[start : start + length].view(kinds[name])
        for (name, length), start in zip(entries.items(), starts, strict=False)
    }
    return columns | {name: columns[name].reshape(n, width) for name, width in widths.items()}
