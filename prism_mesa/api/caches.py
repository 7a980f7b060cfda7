"""Find and remove PRISM's caches on this machine."""

import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OLD_DAYS: Final = 7
"""Days without use after which a cache can be removed."""
_KERNEL_FOLDER: Final = re.compile(r"kernels-[0-9a-f]{16}")
_TEMPORARY_FOLDER: Final = re.compile(r"prism-(?:ledger|page|replay|interview)-\w{8}\.temporary")
"""Folders of temporary files that remain after a process was killed."""
_VECTOR_FILE: Final = re.compile(r"\.?[\w-]+-[0-9a-f]{32}\.npy")


@dataclass(frozen=True)
class Cache:
    """A cached file or folder of PRISM on this machine.

    Attributes:
        what: Its kind: `kernels`, `older kernels`, `embeddings`, `front end` or `left behind`.
        path: Its path.
        size_bytes: The total size of its files.
        unused_days: Days since it was last read or written.
        removable: Whether it can be removed: it is old, and PRISM can recreate it.
    """

    what: str
    path: Path
    size_bytes: int
    unused_days: float
    removable: bool


def front_end_cache() -> Path:
    """Return the folder in which Solara looks for front ends, without importing Solara (which takes a second)."""
    return Path(os.environ.get("SOLARA_ASSETS_PROXY_CACHE_DIR") or Path(sys.prefix, "share", "solara", "cdn"))


def cache_folders() -> list[Path]:
    """Return the folders that hold PRISM's caches."""
    parents = [Path(os.environ[name]) for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME") if os.environ.get(name)]
    if not parents:
        with suppress(RuntimeError):  # no home
            parents = [Path.home() / ".cache"]
    return list(dict.fromkeys(parent / "prism-mesa" for parent in parents))


def find_caches(kernels: str) -> list[Cache]:
    """Return all caches; `kernels` is the folder of this version's kernels, or empty."""
    caches = []
    for folder in cache_folders():
        for path in _user_entries(folder):
            if _KERNEL_FOLDER.fullmatch(path.name) and path.is_dir():
                is_current = str(path) == kernels
                caches.append(_describe("kernels" if is_current else "older kernels", path, in_use=is_current))
        vectors = [path for path in _user_entries(folder / "embeddings") if _VECTOR_FILE.fullmatch(path.name)]
        caches += [_describe("embeddings", path) for path in vectors if path.is_file()]
    if front_end_cache().is_dir():
        caches.append(_describe("front end", front_end_cache(), in_use=True))
    left = [path for path in _user_entries(Path(tempfile.gettempdir())) if _TEMPORARY_FOLDER.fullmatch(path.name)]
    return caches + [_describe("left behind", path) for path in left if path.is_dir()]


def remove(cache: Cache) -> int:
    """Remove an old cache, and return the number of freed bytes; 0 if it is in use or cannot be removed."""
    current = _describe(cache.what, cache.path)
    if not (cache.removable and current.removable) or cache.path.is_symlink():
        return 0
    try:
        if cache.path.is_dir():
            shutil.rmtree(cache.path)
        else:
            cache.path.unlink()
    except OSError:
        return 0
    return current.size_bytes


def _user_entries(folder: Path) -> Iterator[Path]:
    """Yield this user's entries of a folder, without links."""
    with suppress(OSError):
        for path in sorted(folder.iterdir()):
            with suppress(OSError):  # deleted meanwhile
                is_mine = not hasattr(os, "getuid") or path.lstat().st_uid == os.getuid()
                if is_mine and not path.is_symlink():
                    yield path


def _describe(what: str, path: Path, *, in_use: bool = False) -> Cache:
    size, last_use = _size_and_last_use(path)
    unused = max(0.0, time.time() - last_use) / 86_400
    return Cache(what, path, size, unused, removable=not in_use and unused > OLD_DAYS)


def _size_and_last_use(path: Path) -> tuple[int, float]:
    try:
        info = path.lstat()
        if stat.S_ISREG(info.st_mode):
            return info.st_size, max(info.st_mtime, info.st_atime)
        parts = list(map(_size_and_last_use, path.iterdir())) if stat.S_ISDIR(info.st_mode) else []
    except OSError:  # deleted meanwhile or unreadable, so it counts as in use
        return 0, time.time()
    return sum(size for size, _ in parts), max([info.st_mtime, *(last_use for _, last_use in parts)])
