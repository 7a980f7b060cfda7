"""Sharing work between threads: parts of an array, each worked on by itself. What comes out hangs on no thread."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor


def in_threads[A, B](work: Callable[[A], B], parts: Sequence[A], threads: int) -> list[B]:
    """Return what `work` makes of each part, in their order; kernels let several threads run at a time."""
    if threads == 1 or len(parts) < 2:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(work, parts))
