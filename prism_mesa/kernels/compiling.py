"""Compile kernels once, and cache them on disk for later processes.

Numba's own cache does not notice when a function in another file changes, so the name of the cache folder contains a
digest of all kernels and Numba's version: an edit starts a new folder. The location of the sources does not matter, so
another environment or clone with the same kernels uses the same folder. Only one process at a time compiles a kernel.
Other processes that need it wait, and then read it from disk.
"""

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import IO, Annotated, Any, Final, TypeAliasType, cast, get_args, get_origin, get_type_hints

import numba
import numpy as np
import numpy.typing as npt
from numba.core.caching import FunctionCache, UserProvidedCacheLocator


def _digest() -> str:
    digest = blake2b(numba.__version__.encode(), digest_size=8)
    for file in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _cache_folder() -> str:
    """Return the folder of compiled kernels, in `NUMBA_CACHE_DIR` or the user's cache.

    If no such folder is writable, it is an empty string, and each process compiles its kernels.
    """
    root = os.environ.get("NUMBA_CACHE_DIR") or os.environ.get("XDG_CACHE_HOME")
    try:
        folder = Path(root or Path.home() / ".cache").absolute() / "prism-mesa" / f"kernels-{_digest()}"
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no writable place, or no home directory
        return ""
    return str(folder) if os.access(folder, os.W_OK) else ""


FOLDER: Final = _cache_folder()
"""The folder of compiled kernels; empty if there is no writable one."""


def count_compiled(folder: str = FOLDER) -> int:
    """Return the number of compiled kernels in a folder."""
    return sum(1 for _ in Path(folder).rglob("*.nbc")) if folder else 0


class Locator(UserProvidedCacheLocator):
    """Locate cached kernels by their path in this package, not by absolute path and file age as Numba does."""

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> Any:
        """Return the locator of a function; functions of other packages get Numba's locator."""
        is_own = Path(py_file).is_relative_to(Path(__file__).parent)
        locator: Any = super() if is_own else UserProvidedCacheLocator
        return locator.from_function(py_func, py_file)

    @classmethod
    def get_suitable_cache_subpath(cls, py_file: str) -> str:
        """Return the folder of a file within the cache."""
        return "-".join(["kernels", *Path(py_file).parent.relative_to(Path(__file__).parent).parts])

    def get_source_stamp(self) -> str:
        """Return a constant: the cache folder already changes with the source."""
        return ""


type Table[T: np.generic] = np.ndarray[tuple[int, int], np.dtype[T]]
"""A two-dimensional array. As an argument of a kernel, an `NDArray` is one-dimensional."""

LARGEST: Final = "walking.walk:walk", "feeds.ranking:rank"
"""The kernels that take two thirds of the compile time. Their annotations give the types of all arguments."""

_PROCESSES: Final[list[subprocess.Popen[bytes]]] = []  # the references avoid ResourceWarnings
_COMPILING: Final[list[str]] = []


def _show(*names: str) -> None:
    """Show the kernels that are being compiled, if standard error is a terminal."""
    _COMPILING[:] = names
    if sys.stderr.isatty():
        text = f"compiling once after an installation, for about a minute: {names[-1]}" if names else ""
        print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)


class _LockedCache(FunctionCache):
    """Let only one process compile a kernel. With Numba alone, several could, and mix up what they save."""

    def __init__(self, function: Any) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        self.name = function.__qualname__
        self._file = Path(self.cache_path, f"{function.__module__}.{self.name}.lock")
        self._lock: IO[str] | None = None

    def lock(self, *, wait: bool = True) -> bool:
        """Lock the kernel until it is saved; return False if another process holds the lock."""
        with suppress(ImportError, OSError):  # Windows, or a file system without locks
            import fcntl

            self._file.parent.mkdir(parents=True, exist_ok=True)
            lock = self._file.open("w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
            except BlockingIOError:
                lock.close()
                return False
            self._lock = lock
        return True

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the cached code for the types `sig`; if there is none, lock the kernel and return None."""
        compiled = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
        if compiled is None:
            _show(*_COMPILING, self.name)
            if self._lock is None and self.lock():
                compiled = super().load_overload(sig, target_context)  # type: ignore[no-untyped-call]
            if compiled is not None:
                self.unlock()
        return compiled

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save the compiled code for the types `sig`, and unlock the kernel."""
        super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        self.unlock()

    def unlock(self) -> None:
        """Let other processes read or compile the kernel."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        _show(*_COMPILING[:-1])


@cache
def compile_ahead() -> None:
    """Compile the `LARGEST` kernels in other processes, unless kernels are cached; later calls do nothing."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1
    if not FOLDER and sys.stderr.isatty():
        print("compiling for about a minute, in each process, because no cache folder is writable ...", file=sys.stderr)
    if FOLDER and not count_compiled():
        for name in LARGEST[: cores - 1]:
            command = [sys.executable, "-P", "-c", f"import {__name__} as c; c.compile_kernel({name!r})"]
            with suppress(OSError):  # this process then compiles the kernel when it needs it
                devnull = subprocess.DEVNULL
                _PROCESSES.append(subprocess.Popen(command, stdin=devnull, stdout=devnull, stderr=devnull))  # noqa: S603 - fixed


def compile_kernel(name: str) -> None:
    """Compile a kernel for the types in its annotations, unless another process is compiling it."""
    module, function = name.split(":")
    dispatcher = getattr(importlib.import_module(f"{__package__}.{module}"), function)
    if dispatcher._cache.lock(wait=False):
        dispatcher.compile(argument_types(dispatcher.py_func))


def argument_types(function: Callable[..., Any]) -> tuple[Any, ...]:
    """Return the Numba types of a function's annotated arguments."""
    hints = get_type_hints(function, include_extras=True)
    examples = [_example(hint) for name, hint in hints.items() if name != "return"]
    return tuple(map(numba.typeof, examples))


def _example(hint: Any) -> Any:
    """Return an example of an annotated type; arrays of records name their dtype: ``Annotated[NDArray, dtype]``."""
    kind, arguments = get_origin(hint), get_args(hint)
    if kind is Annotated:
        return np.empty(_example(arguments[0]).shape, arguments[1])
    if kind in (npt.NDArray, Table):
        return np.empty((1, 1) if kind is Table else 1, arguments[0])
    if isinstance(hint, TypeAliasType):
        return _example(hint.__value__)
    if issubclass(hint, tuple):
        return hint(*map(_example, get_type_hints(hint, include_extras=True).values()))
    return hint(0)


def _njit(function: Any, **options: Any) -> Any:
    config: Any = numba.config
    before = config.CACHE_DIR, getattr(config, "CACHE_LOCATOR_CLASSES", "")
    config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = FOLDER, f"{__name__}.{Locator.__name__}"
    try:
        dispatcher = numba.njit(function, nogil=True, error_model="numpy", **options)
        if options.get("cache"):
            dispatcher._cache = _LockedCache(function)
        return dispatcher
    finally:
        config.CACHE_DIR, config.CACHE_LOCATOR_CLASSES = before


def kernel[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Compile a function on its first call. It releases the GIL, so threads can run it in parallel.

    Division by zero gives inf or nan as in NumPy, and sums are evaluated from left to right.
    """
    return cast(Callable[P, R], _njit(function, cache=bool(FOLDER)))


def lean_kernel[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Compile a kernel that allocates no arrays: it writes to its arguments only.

    Numba then skips reference counting, so passing many arrays to an `inline_kernel` is free.
    """
    return cast(Callable[P, R], _njit(function, cache=bool(FOLDER), _nrt=False))


def kernel_step[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Compile a large step of a `lean_kernel` as a separate function, which allocates no arrays either.

    The step can use all registers of the processor, but passing its arrays takes about 50 cycles.
    """
    return cast(Callable[P, R], _njit(function, _nrt=False))


def inline_kernel[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Inline a small function wherever a kernel calls it; it allocates no arrays."""
    return cast(Callable[P, R], _njit(function, _nrt=False, forceinline=True))


def early_inline_kernel[**P, R](function: Callable[P, R]) -> Callable[P, R]:
    """Inline a function like `inline_kernel`, but before compilation.

    If the function takes very many arrays, the kernel then compiles in half the time.
    """
    return cast(Callable[P, R], _njit(function, _nrt=False, inline="always"))
