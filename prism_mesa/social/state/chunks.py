"""Large arrays in parts: a block of rows at a time, parts shared between threads, and the freed heap trimmed."""

import ctypes
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

BLOCK: Final = 1 << 14
"""Rows in a block. No row's value depends on it."""
_MMAP_THRESHOLD: Final = -3
"""The option M_MMAP_THRESHOLD of glibc's malloc.h."""


def blocks(n: int, size: int = BLOCK) -> Iterator[slice]:
    """Yield slices that cover rows 0 .. n-1 in turn."""
    for first in range(0, n, size):
        yield slice(first, min(first + size, n))


def fill_in_blocks[T: np.generic](
    out: npt.NDArray[T], rows: npt.NDArray[np.integer[Any]], made: Callable[[npt.NDArray[np.integer[Any]]], Any]
) -> npt.NDArray[T]:
    """Return `out` with ``made(rows)`` in it, which is called with a block of rows at a time."""
    for part in blocks(len(rows)):
        out[part] = made(rows[part])
    return out


def in_threads[A, B](work: Callable[[A], B], parts: Sequence[A], threads: int) -> list[B]:
    """Return what `work` makes of each part, in their order; kernels let several threads run at a time."""
    return side_by_side([partial(work, part) for part in parts], threads)


def side_by_side(steps: Sequence[Callable[[], Any]], threads: int) -> list[Any]:
    """Return what steps return of which none needs another one.

    The calling thread does the last step and then those before it, the others begin with the first: let the last ones
    be those that make arrays. Its memory is used again, while the C library asks for that of other threads anew each
    time (80 ms of a commit of a million agents). When a step fails no other one is begun.
    """
    if threads == 1 or len(steps) < 2:
        return [step() for step in steps]
    waiting, found = deque(enumerate(steps)), dict[int, Any]()
    own, n_others = [waiting.pop()], min(threads, len(steps)) - 1  # its own before there is anybody else to take it

    def work(take: Callable[[], tuple[int, Callable[[], Any]]]) -> None:
        while True:
            try:
                place, step = take()
            except IndexError:  # there is none left
                return
            try:
                found[place] = step()
            except BaseException:
                waiting.clear()
                raise

    with ThreadPoolExecutor(n_others) as pool:
        others = [pool.submit(work, waiting.popleft) for _ in range(n_others)]
        work(lambda: own.pop() if own else waiting.pop())
        for other in others:
            other.result()
    return [found[place] for place in range(len(steps))]


def trim_heap() -> None:
    """Let the C library return what freed arrays have left in its heap, where it can (glibc); else do nothing.

    By itself it keeps blocks of up to 32 MB for reuse, which after some rounds of a million agents is a fifth of all.
    """
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


def map_large_blocks() -> None:
    """Let the C library map blocks from 64 KiB on apart from its heap, where it can (glibc), for the whole process.

    By itself it maps ever larger ones only. A process that copies a platform in each round then keeps what it has
    freed between blocks that stay, and writes zeros to room for posts that there are not yet. To be called early: room
    that is free in the heap by then is used all the same. Rounds of very many agents take a little longer.
    """
    set_option = _of_c_library("mallopt")
    if set_option is not None:
        set_option(_MMAP_THRESHOLD, 1 << 16)


@cache
def _malloc_trim() -> Any:
    return _of_c_library("malloc_trim")


def _of_c_library(name: str) -> Any:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


_ALIGNED: Final = 64
"""Bytes of a line of the processor's caches: each column begins with one."""

_LONG: Final = 1 << 20
"""Rows above which each column has its own memory."""


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


def packed_rows[T: np.generic](table: npt.NDArray[T], lengths: npt.NDArray[np.integer[Any]]) -> npt.NDArray[T]:
    """Return the first ``lengths[i]`` entries of each row i, one row behind the other."""
    packed, to = np.empty(int(lengths.sum(dtype=np.int64)), table.dtype), 0
    for part in blocks(len(table)):
        entries = table[part][np.arange(table.shape[1]) < lengths[part, np.newaxis]]
        packed[to : to + len(entries)] = entries
        to += len(entries)
    return packed


def unpack_rows[T: np.generic](
    packed: npt.NDArray[T], lengths: npt.NDArray[np.integer[Any]], table: npt.NDArray[T]
) -> None:
    """Write what `packed_rows` returned into the rows of a table; longer rows lose their ends."""
    begin, width = 0, table.shape[1]
    for part in blocks(len(table)):
        counts = lengths[part].astype(np.int64)
        place = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        entries = packed[begin : begin + len(place)]
        begin += len(entries)
        table[part][np.arange(width) < counts[:, np.newaxis]] = entries[place < width]
