"""Compile kernels once, and keep them on disk for later processes.

Numba's own cache does not notice when a function in another file changes, so the name of the cache folder contains a
digest of all kernels and Numba's version: an edit starts a new folder. The location of the kernels does not matter;
equal kernels in another environment or clone are not compiled again.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, cast

import numba
from numba.core.caching import FunctionCache, UserProvidedCacheLocator


def _digest() -> str:
    digest = blake2b(numba.__version__.encode(), digest_size=8)
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _cache_folder() -> str:
    """Return the folder of compiled kernels: in `NUMBA_CACHE_DIR`, else the user's cache.

    An empty text means that the folder is not writable, and each process compiles anew.
    """
    root = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(root or Path.home() / ".cache").absolute() / "prism-mesa" / f"kernels-{_digest()}"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no writable place, or no home directory
        return ""
    return str(folder) if os.access(folder, os.W_OK) else ""


FOLDER: Final = _cache_folder()
"""Where compiled kernels are kept; empty where they cannot be."""


def n_kept(folder: str = FOLDER) -> int:
    """Return how many compiled kernels a folder holds; with none, the first round compiles all it needs."""
    return sum(1 for _ in Path(folder).rglob("*.nbc")) if folder else 0


class Locator(UserProvidedCacheLocator):
    """Locate cached kernels by their path in this package; Numba uses the absolute path and the age of the file."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """Return the locator of a function; functions of other packages use Numba's."""
        ours = Path(py_file).is_relative_to(Path(__file__).parent)
        place: Any = super() if ours else UserProvidedCacheLocator
        return place.from_function(py_func, py_file)

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Return the folder of a file within the cache."""
        return "-".join(["kernels", *Path(py_file).parent.relative_to(Path(__file__).parent).parts])

    def get_source_stamp(self) -> str:
        """Return a constant: the cache folder already changes with the source."""
        return ""


class _LockedCache(FunctionCache):
    """Let one process at a time save a kernel: two that save it for different types at once could swap them."""

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save what was compiled for the types `sig`, as Numba does."""
        Path(self.cache_path).mkdir(parents=True, exist_ok=True)
        with Path(self.cache_path, ".lock").open("w") as lock:
            with suppress(ImportError):  # Windows
                import fcntl

                fcntl.flock(lock, fcntl.LOCK_EX)
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]


def _njit(function: Any, **options: Any) -> Any:
    config: Any = numba.config
    before = config.CACHE_DIR, getattr(config, "CACHE_LOCATOR_CLASSES", "")
    config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = FOLDER, f"{__name__}.{Locator.__name__}"
    try:
        dispatcher = numba.njit(function, nogil=True, error_model="numpy", **options)
        if options.get("cache"):
            dispatcher._cache = _LockedCache(function)  # type: ignore[no-untyped-call]
        return dispatcher
    finally:
        config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = before


def kernel[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function on its first call. It releases the GIL, so threads can share the work.

    Division by zero gives inf or nan as in NumPy, and sums are evaluated in the written order.
    """
    return cast(Callable[P, R], _njit(function, cache=bool(FOLDER)))


def lean_kernel[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that allocates no arrays: it receives everything that it writes to.

    Numba then skips reference counting, so passing many arrays to a `part_of_kernels` is free.
    """
    return cast(Callable[P, R], _njit(function, cache=bool(FOLDER), _nrt=False))


def step_of_kernels[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Compile a large step of a `lean_kernel` as a separate function; it allocates no arrays either.

    It has all registers of the processor to itself, but passing its arrays takes some 50 cycles.
    """
    return cast(Callable[P, R], _njit(function, _nrt=False))


def part_of_kernels[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Inline a small function, which allocates no arrays, wherever a kernel calls it."""
    return cast(Callable[P, R], _njit(function, _nrt=False, forceinline=True))


def early_part_of_kernels[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Inline a function like `part_of_kernels`, but before compilation.

    With very many arrays as arguments, the kernel then compiles in half the time.
    """
    return cast(Callable[P, R], _njit(function, _nrt=False, inline="always"))
