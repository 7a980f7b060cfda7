"""Memory of arrays that nobody needs any more, for the next ones: fresh memory is dear where arrays are large."""

from typing import Any, Final, Self

import numpy as np
import numpy.typing as npt

_KEPT: Final = 8
"""Pieces of memory that are kept at most."""
_ROOM: Final = 16
"""A new piece has one part in so many beyond what is asked for."""

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
