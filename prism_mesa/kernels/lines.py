"""Arrays that several threads write to, each to its own, apart from each other in the processor's caches."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

_LINE: Final = 128
"""Bytes that processors fetch together: a line of their caches, and the one beside it."""


def own_lines[T: np.generic](shape: int | tuple[int, ...], kind: type[T]) -> npt.NDArray[T]:
    """Return an array of zeros that shares no line of the caches with other memory.

    A processor that writes to a line takes it from the others. Small arrays lie close together, so threads that write
    to one each would wait for each other: walks of two threads then take a fifth more time of the processors.
    """
    size = int(np.prod(shape)) * np.dtype(kind).itemsize
    memory = np.zeros(size + 2 * _LINE, np.uint8)
    first = -memory.ctypes.data % _LINE
    found: npt.NDArray[Any] = memory[first : first + size].view(kind).reshape(shape)
    return found
