"""Large arrays in parts: blocks of rows, threads, packed rows; and memory of the C library."""

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
    """Fill `out` with ``made(rows)``, called with a block of rows at a time, and return it."""
    for part in blocks(len(rows)):
        out[part] = made(rows[part])
    return out


def in_threads[A, B](work: Callable[[A], B], parts: Sequence[A], threads: int) -> list[B]:
    """Return ``work(part)`` for each part, in order; threads share the parts."""
    return side_by_side([partial(work, part) for part in parts], threads)


def side_by_side(steps: Sequence[Callable[[], Any]], threads: int) -> list[Any]:
    """Return the results of independent steps, which threads share. When a step fails, no further step starts.

    The calling thread starts with the last step, so put steps that make arrays last: the C library reuses only the
    memory of the calling thread (80 ms of a commit of a million agents).
    """
    if threads == 1 or len(steps) < 2:
        return [step() for step in steps]
    waiting, results = deque(enumerate(steps)), dict[int, Any]()
    last, n_others = [waiting.pop()], min(threads, len(steps)) - 1

    def work(take: Callable[[], tuple[int, Callable[[], Any]]]) -> None:
        while True:
            try:
                index, step = take()
            except IndexError:  # all steps are taken
                return
            try:
                results[index] = step()
            except BaseException:
                waiting.clear()
                raise

    with ThreadPoolExecutor(n_others) as pool:
        others = [pool.submit(work, waiting.popleft) for _ in range(n_others)]
        work(lambda: last.pop() if last else waiting.pop())
        for other in others:
            other.result()
    return [results[index] for index in range(len(steps))]


def trim_heap() -> None:
    """Let glibc return freed memory to the system.

    By itself it keeps blocks of up to 32 MB, which are a fifth of all memory after some rounds of a million agents.
    """
    trim = _c_function("malloc_trim")
    if trim is not None:
        trim(0)


def map_large_blocks() -> None:
    """Let glibc keep blocks from 64 KiB on apart from its heap, for the whole process.

    Otherwise freed memory stays between live blocks when a process copies a platform in each round. Call it early;
    rounds of very many agents take a little longer.
    """
    set_option = _c_function("mallopt")
    if set_option is not None:
        set_option(_MMAP_THRESHOLD, 1 << 16)


@cache
def _c_function(name: str) -> Any:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


_ALIGNED: Final = 64
"""Bytes of a line of the processor's caches: each column begins with one."""

_LONG: Final = 1 << 20
"""Rows above which each column has its own memory."""


def zeroed_columns(
    kinds: Mapping[str, type[np.generic]], n: int, widths: Mapping[str, int]
) -> dict[str, npt.NDArray[Any]]:
    """Return columns of `n` zeros by name; those in `widths` have the shape (n, width).

    Short columns share one piece of memory, which is faster to use for the first time, since systems give large pieces
    large pages. Long columns can be freed one by one.
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
    """Return the first ``lengths[i]`` entries of each row i, concatenated."""
    packed, to = np.empty(int(lengths.sum(dtype=np.int64)), table.dtype), 0
    for part in blocks(len(table)):
        entries = table[part][np.arange(table.shape[1]) < lengths[part, np.newaxis]]
        packed[to : to + len(entries)] = entries
        to += len(entries)
    return packed


def unpack_rows[T: np.generic](
    packed: npt.NDArray[T], lengths: npt.NDArray[np.integer[Any]], table: npt.NDArray[T]
) -> None:
    """Write the result of `packed_rows` into the rows of a table, and cut rows that do not fit."""
    begin, width = 0, table.shape[1]
    for part in blocks(len(table)):
        counts = lengths[part].astype(np.int64)
        index = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        entries = packed[begin : begin + len(index)]
        begin += len(entries)
        table[part][np.arange(width) < counts[:, np.newaxis]] = entries[index < width]
