"""Tools for large arrays: blocks of rows, threads, packed rows, and memory of the C library."""

import ctypes
import mmap
import sys
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache, partial
from itertools import accumulate
from typing import Any, Final

import numpy as np
import numpy.typing as npt

BLOCK_ROWS: Final = 1 << 14
"""Rows in a block; results do not depend on it."""
_MMAP_THRESHOLD: Final = -3
"""The option M_MMAP_THRESHOLD of glibc's malloc.h."""


def blocks(n: int, size: int = BLOCK_ROWS) -> Iterator[slice]:
    """Yield consecutive slices that cover rows 0 .. n-1."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def fill_in_blocks[T: np.generic](
    out: npt.NDArray[T], rows: npt.NDArray[np.integer[Any]], compute: Callable[[npt.NDArray[np.integer[Any]]], Any]
) -> npt.NDArray[T]:
    """Fill `out` with ``compute(rows)``, block by block, and return it."""
    for part in blocks(len(rows)):
        out[part] = compute(rows[part])
    return out


def map_in_threads[A, B](work: Callable[[A], B], parts: Sequence[A], threads: int) -> list[B]:
    """Return ``work(part)`` for each part, in order, computed by several threads."""
    return run_in_threads([partial(work, part) for part in parts], threads)


def run_in_threads(steps: Sequence[Callable[[], Any]], threads: int) -> list[Any]:
    """Run independent steps in several threads, and return their results. When a step fails, no further step starts.

    The calling thread begins with the last step. Put steps that make arrays last, because the C library reuses only the
    memory of the calling thread (this saves 80 ms in a commit of a million agents).
    """
    if threads == 1 or len(steps) < 2:
        return [step() for step in steps]
    steps_left, results = deque(enumerate(steps)), dict[int, Any]()
    last_step, n_threads = [steps_left.pop()], min(threads, len(steps)) - 1

    def work(take: Callable[[], tuple[int, Callable[[], Any]]]) -> None:
        while True:
            try:
                index, step = take()
            except IndexError:  # all steps are taken
                return
            try:
                results[index] = step()
            except BaseException:
                steps_left.clear()
                raise

    with ThreadPoolExecutor(n_threads) as pool:
        futures = [pool.submit(work, steps_left.popleft) for _ in range(n_threads)]
        work(lambda: last_step.pop() if last_step else steps_left.pop())
        for other in futures:
            other.result()
    return [results[index] for index in range(len(steps))]


def trim_heap() -> None:
    """Let glibc return freed memory to the system.

    By default, glibc keeps blocks of up to 32 MB: a fifth of all memory after some rounds with a million agents.
    """
    trim = _c_function("malloc_trim")
    if trim is not None:
        trim(0)


def map_large_blocks() -> None:
    """Let glibc allocate blocks of 64 KiB or more outside its heap, for the whole process.

    Otherwise freed memory stays between live blocks in a process that copies a platform in each round. Call this early.
    Rounds with very many agents take a little longer.
    """
    set_option = _c_function("mallopt")
    if set_option is not None:
        set_option(_MMAP_THRESHOLD, 1 << 16)


@cache
def _c_function(name: str) -> Any:
    return getattr(ctypes.CDLL(None), name, None) if sys.platform == "linux" else None


_CACHE_LINE: Final = 64
"""Bytes of a cache line of the processor; each column begins at a new line."""

_MIN_MAPPED: Final = 1 << 22
"""Bytes from which large pages are worth a mapping; NumPy asks for them from here on."""

_MAX_SHARED_ROWS: Final = 1 << 20
"""Number of rows above which each column has its own memory."""


def mapped_zeros[T: np.generic](n: int, kind: type[T]) -> npt.NDArray[T]:
    """Return `n` zeros for which the system finds memory as they are written, and takes it back when they are freed.

    NumPy's zeros may lie in memory that the C library has used before. It then clears this memory at once, and may keep
    it later on.
    """
    n_bytes = n * np.dtype(kind).itemsize
    if n_bytes < _MIN_MAPPED:
        return np.zeros(n, kind)
    memory = mmap.mmap(-1, n_bytes, access=mmap.ACCESS_COPY)
    if sys.platform == "linux":
        with suppress(OSError):  # a kernel without large pages
            memory.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(memory, kind)


def release_memory(mapped: npt.NDArray[Any]) -> None:
    """Let the system take back the memory of `mapped_zeros`; they are zeros again. Shorter arrays keep theirs."""
    memory: Any = mapped
    while isinstance(memory, np.ndarray):
        memory = memory.base
    mapping = getattr(memory, "obj", None)
    if isinstance(mapping, mmap.mmap) and sys.platform == "linux":
        mapping.madvise(mmap.MADV_DONTNEED)


def zeroed_columns(
    types: Mapping[str, type[np.generic]], n: int, widths: Mapping[str, int]
) -> dict[str, npt.NDArray[Any]]:
    """Return columns of `n` zeros by name; columns in `widths` have the shape (n, width).

    Short columns share one allocation. This makes their first use faster, because the system gives large allocations
    large pages. Long columns are separate, so that they can be freed one by one.
    """
    if n > _MAX_SHARED_ROWS:
        columns = {name: mapped_zeros(n * widths.get(name, 1), kind) for name, kind in types.items()}
        return columns | {name: columns[name].reshape(n, width) for name, width in widths.items()}
    entries = {name: n * widths.get(name, 1) * np.dtype(kind).itemsize for name, kind in types.items()}
    lengths = [-(-length // _CACHE_LINE) * _CACHE_LINE for length in entries.values()]
    memory, starts = np.zeros(sum(lengths), np.uint8), accumulate(lengths, initial=0)
    columns = {
        name: memory[start : start + length].view(types[name])
        for (name, length), start in zip(entries.items(), starts, strict=False)
    }
    return columns | {name: columns[name].reshape(n, width) for name, width in widths.items()}


def packed_rows[T: np.generic](table: npt.NDArray[T], lengths: npt.NDArray[np.integer[Any]]) -> npt.NDArray[T]:
    """Return the first ``lengths[i]`` entries of each row i, concatenated."""
    packed, stop = np.empty(int(lengths.sum(dtype=np.int64)), table.dtype), 0
    for part in blocks(len(table)):
        entries = table[part][np.arange(table.shape[1]) < lengths[part, np.newaxis]]
        packed[stop : stop + len(entries)] = entries
        stop += len(entries)
    return packed


def unpack_rows[T: np.generic](packed: npt.NDArray[T], lengths: npt.NDArray[np.integer], table: npt.NDArray[T]) -> None:
    """Write the result of `packed_rows` back into a table; rows that do not fit are truncated."""
    start, width = 0, table.shape[1]
    for part in blocks(len(table)):
        counts = lengths[part].astype(np.int64)
        column = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        entries = packed[start : start + len(column)]
        start += len(entries)
        table[part][np.arange(width) < counts[:, np.newaxis]] = entries[column < width]
