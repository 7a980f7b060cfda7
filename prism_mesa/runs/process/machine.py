"""From what a run was made, and what it took of the machine: versions, clocks, memory."""

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

_PACKAGES = (
    "prism-mesa",
    "mesa",
    "numpy",
    "pandas",
    "pyarrow",
    "numba",
    "scikit-learn",
    "httpx",
    "xllamacpp",
    "pydantic",
)


_IMPORTED = time.time()
_STAT = Path("/proc/self/stat")
_STARTED = 19  # of the fields after the process's name: when it began, in ticks since the machine did


def whole_process() -> dict[str, float]:
    """Return CPU and wall seconds since this process began, imports and the compiling of kernels included."""
    return {"cpu_s": time.process_time(), "wall_s": _age_s()}


def _age_s() -> float:
    """Return seconds since this process began; where the system does not tell, since this module was imported."""
    if not (_STAT.is_file() and hasattr(time, "CLOCK_BOOTTIME")):
        return time.time() - _IMPORTED
    began = int(_STAT.read_text().rpartition(")")[2].split()[_STARTED]) / os.sysconf("SC_CLK_TCK")
    return time.clock_gettime(time.CLOCK_BOOTTIME) - began


def provenance() -> dict[str, Any]:
    """Return when and from what a run was started: the part of a manifest that all runs share."""
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
    """Return the versions of the packages that a run depends on; None of one that is not installed."""
    return {name: _version(name) for name in _PACKAGES}


def wall_clock() -> str:
    """Return the time of day, UTC; for manifests only."""
    return datetime.now(UTC).isoformat(timespec="seconds")


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


@cache
def _git_revision() -> str | None:
    """Return the revision of the checkout that PRISM runs from (``-dirty`` if changed); None without git.

    It is that of when this process asked first: what is changed later is not what has been imported.
    """
    command = [
        "git",
        "-C",
        str(Path(__file__).parent),
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)  # noqa: S603 - fixed
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None


def memory_bytes() -> int:
    """Return the memory of this machine; where the system does not tell, 8 GB."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 8 * 10**9


def peak_memory_mb() -> float | None:
    """Return the most memory that this process has held since it began, in MB of 2**20 bytes; None where not told."""
    if sys.platform == "win32":
        return None
    import resource

    own = re.search(r"VmHWM:\s+(\d+) kB", _STATUS.read_text()) if _STATUS.is_file() else None
    if own:  # Linux counts the process that started this one into what getrusage tells
        return int(own[1]) / 2**10
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


_STATUS = Path("/proc/self/status")
