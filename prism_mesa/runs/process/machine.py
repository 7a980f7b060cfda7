"""Versions, clocks and memory of a run."""

import os
import platform
import re
import subprocess
import sys
import time
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

_PACKAGES = tuple("prism-mesa mesa numpy pandas pyarrow numba scikit-learn httpx xllamacpp pydantic".split())
_IMPORT_TIME = time.time()
_STAT = Path("/proc/self/stat")
_STATUS = Path("/proc/self/status")
_START_FIELD = 19  # index, after the process's name, of its start in ticks since the machine booted


def process_clocks() -> dict[str, float]:
    """Return CPU and wall seconds since this process began, or wall seconds since the import of this module."""
    wall_s = time.time() - _IMPORT_TIME
    if _STAT.is_file() and hasattr(time, "CLOCK_BOOTTIME"):
        start_s = int(_STAT.read_text().rpartition(")")[2].split()[_START_FIELD]) / os.sysconf("SC_CLK_TCK")
        wall_s = time.clock_gettime(time.CLOCK_BOOTTIME) - start_s
    return {"cpu_s": time.process_time(), "wall_s": wall_s}


def provenance() -> dict[str, Any]:
    """Return the part of a manifest that all runs share: start, versions and machine."""
    return {
        "status": "running",
        "started": wall_clock(),
        "working_directory": str(Path.cwd()),
        "packages": package_versions(),
        "python": platform.python_version(),
        "machine": platform.platform(),
        "git": _git_revision(),
    }


def package_versions() -> dict[str, str | None]:
    """Return the versions of the packages that a run depends on; None for a package that is not installed."""
    return {name: installed_version(name) for name in _PACKAGES}


def wall_clock() -> str:
    """Return the current date and time (UTC) for a manifest."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def installed_version(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def _git_revision() -> str | None:
    """Return the revision of PRISM's checkout when it was imported (``-dirty`` if changed); None without git."""
    git = ["git", "-C", str(Path(__file__).parent)]
    command = [*git, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603 - fixed
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip() or None


def memory_bytes() -> int:
    """Return the memory of this machine in bytes; 8 GB if unknown."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 * 10**9


def peak_memory_mb() -> float | None:
    """Return this process's peak memory in MB of 2**20 bytes; None if unknown."""
    if sys.platform == "win32":
        return None
    import resource

    peak = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text()) if _STATUS.is_file() else None
    if peak:  # on Linux, getrusage includes the parent process
        return int(peak[1]) / 2**10
    peak_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak_rss / (2**20 if sys.platform == "darwin" else 2**10)
