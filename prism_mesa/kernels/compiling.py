"""How kernels are compiled: once, then kept on disk for the next process.

Numba's own cache does not notice when a function in another file changes, so the folder of the cache is named by
a digest of all kernels and of Numba's version: an edit leaves the old folder behind and starts a new one. Where the
kernels lie does not matter: equal ones in another environment or clone are not compiled again.
"""

import os
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, cast

import numba
from numba.core.caching import UserProvidedCacheLocator


def _digest() -> str:
    digest = blake2b(numba.__version__.encode(), digest_size=8)
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _cache_folder() -> str:
    """Return where compiled kernels are kept: in `NUMBA_CACHE_DIR`, else the user's cache.

    An empty text, where that cannot be written to, means that they are compiled anew in each process.
    """
    root = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(root or Path.home() / ".cache").absolute() / "prism-mesa" / f"kernels-{_digest()}"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no place, or nobody's home
        return ""
    return str(folder) if os.access(folder, os.W_OK) else ""


FOLDER: Final = _cache_folder()
"""Where compiled kernels are kept; empty where they cannot be."""


def n_kept(folder: str = FOLDER) -> int:
    """Return how many compiled kernels a folder keeps; if there are none, the first round compiles all it needs."""
    return sum(1 for _ in Path(folder).rglob("*.nbc")) if folder else 0


class Locator(UserProvidedCacheLocator):
    """Keep kernels by where they are in this package; Numba goes by where they are on the machine, and by their age."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """Return what says where a function is kept; one of another package is kept as Numba does."""
        ours = Path(py_file).is_relative_to(Path(__file__).parent)
        place: Any = super() if ours else UserProvidedCacheLocator
        return place.from_function(py_func, py_file)

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Return the folder of a file within the cache."""
        return "-".join(["kernels", *Path(py_file).parent.relative_to(Path(__file__).parent).parts])

    def get_source_stamp(self) -> str:
        """Return what changes with the source: nothing, since the folder of the cache does."""
        return ""


def _njit(function: Any, **options: Any) -> Any:
    config: Any = numba.config
    before = config.CACHE_DIR, getattr(config, "CACHE_LOCATOR_CLASSES", "")
    config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = FOLDER, f"{__name__}.{Locator.__name__}"
    try:
        return numba.njit(function, nogil=True, error_model="numpy", **options)
    finally:
        config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = before


def kernel[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function when it is first called. It runs without Python's lock, so threads may share the work.

    Division by zero gives inf or nan as in NumPy, and additions are done in the order in which they are written.
    """
    return cast(Callable[P, R], _njit(function, cache=bool(FOLDER)))


def lean_kernel[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that makes no arrays: it is given all that it writes to.

    Numba then does not count who holds which array, so handing many of them to `part_of_kernels` costs nothing.
    """
    return cast(Callable[P, R], _njit(function, cache=bool(FOLDER), _nrt=False))


def step_of_kernels[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Compile a large step of a `lean_kernel`; it makes no arrays either.

    On its own it has the processor's registers to itself, but handing over its arrays takes some 50 cycles.
    """
    return cast(Callable[P, R], _njit(function, _nrt=False))


def part_of_kernels[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Write a small function, which makes no arrays, out wherever a kernel calls it."""
    return cast(Callable[P, R], _njit(function, _nrt=False, forceinline=True))


def early_part_of_kernels[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Write a function out as `part_of_kernels` does, but before anything is compiled.

    Where very many arrays are handed over, the kernel is then compiled in half the time.
    """
    return cast(Callable[P, R], _njit(function, _nrt=False, inline="always"))
