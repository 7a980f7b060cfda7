"""What PRISM keeps on this machine outside of results: where, how much, and taking old things of it away."""

import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

OLD_DAYS: Final = 7
"""Days without use after which what is kept counts as old."""
_KERNELS: Final = re.compile(r"kernels-[0-9a-f]{16}")
_LEFT_BEHIND: Final = re.compile(r"prism-(?:ledger|page|replay|interview)-\w{8}\.temporary")
"""Folders for temporary files that a process left behind which was killed; nobody calls a folder of results so."""
_VECTORS: Final = re.compile(r"\.?[\w-]+-[0-9a-f]{32}\.npy")


@dataclass(frozen=True)
class Kept:
    """A file or folder that PRISM keeps on this machine.

    Attributes:
        what: `kernels`, `older kernels`, `embeddings`, `front end` or `left behind`.
        path: Where it is.
        size_bytes: Of all its files.
        unused_days: Days since something in it was last read or written.
        removable: Whether it is old, and is made again where it is needed.
    """

    what: str
    path: Path
    size_bytes: int
    unused_days: float
    removable: bool


def front_end_place() -> Path:
    """Return where Solara looks for front ends, without loading it, which takes a second."""
    given = os.environ.get("SOLARA_ASSETS_PROXY_CACHE_DIR")
    return Path(given) if given else Path(sys.prefix, "share", "solara", "cdn")


def cache_folders() -> list[Path]:
    """Return the folders of caches that are PRISM's own."""
    try:
        home = Path.home() / ".cache"
    except RuntimeError:  # nobody's home
        home = Path()
    given = [os.environ.get("NUMBA_CACHE_DIR"), os.environ.get("XDG_CACHE_HOME")]
    places = [Path(one) for one in given if one] or ([home] if home.is_absolute() else [])
    return list(dict.fromkeys(place / "prism-mesa" for place in places))


def kept_here(kernels: str) -> list[Kept]:
    """Return what is kept; `kernels` is the folder of the kernels of this version, empty if they are not kept."""
    now, found = time.time(), []
    for folder in cache_folders():
        for path in _inside(folder):
            if _KERNELS.fullmatch(path.name) and path.is_dir():
                ours = str(path) == kernels
                found.append(_kept("kernels" if ours else "older kernels", path, now, never=ours))
        for path in _inside(folder / "embeddings"):
            if _VECTORS.fullmatch(path.name) and path.is_file():
                found.append(_kept("embeddings", path, now))
    if front_end_place().is_dir():
        found.append(_kept("front end", front_end_place(), now, never=True))
    temporary = Path(tempfile.gettempdir())
    for path in _inside(temporary):
        if _LEFT_BEHIND.fullmatch(path.name) and path.is_dir():
            found.append(_kept("left behind", path, now))
    return found


def remove(kept: Kept) -> int:
    """Take away what is old, and return how many bytes that freed; 0 if it is used again, or cannot be taken away."""
    again = _kept(kept.what, kept.path, time.time())
    if not (kept.removable and again.removable) or kept.path.is_symlink():
        return 0
    try:
        if kept.path.is_dir():
            shutil.rmtree(kept.path)
        else:
            kept.path.unlink()
    except OSError:
        return 0
    return again.size_bytes


def _inside(folder: Path) -> Iterator[Path]:
    """Yield what of this user's lies in a folder; links are left out."""
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        try:
            ours = not hasattr(os, "getuid") or entry.stat(follow_symlinks=False).st_uid == os.getuid()
        except OSError:  # gone meanwhile
            continue
        if ours and not entry.is_symlink():
            yield Path(entry.path)


def _kept(what: str, path: Path, now: float, *, never: bool = False) -> Kept:
    size, used = _size_and_use(path)
    unused = max(0.0, now - used) / 86_400
    return Kept(what, path, size, unused, removable=not never and unused > OLD_DAYS)


def _size_and_use(path: Path) -> tuple[int, float]:
    """Return the bytes of a file, or of all files of a folder, and when one of them was last read or written."""
    try:
        own = path.lstat()
        size, used = (own.st_size if stat.S_ISREG(own.st_mode) else 0), own.st_mtime
        if stat.S_ISREG(own.st_mode):
            return size, max(used, own.st_atime)
        if stat.S_ISDIR(own.st_mode):
            with os.scandir(path) as entries:
                for entry in entries:
                    one, at = _size_and_use(Path(entry.path))
                    size, used = size + one, max(used, at)
    except OSError:  # gone meanwhile, or not to be read: then it is in use as far as is known
        return 0, time.time()
    return size, used
