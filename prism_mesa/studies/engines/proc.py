"""What Linux tells of a process and its descendants: memory and time. Elsewhere nothing is known."""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")
IS_TOLD: Final = (_PROC / "self" / "statm").is_file()
"""Whether the system tells."""
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if IS_TOLD else 0
_TICKS: Final = os.sysconf("SC_CLK_TCK") if IS_TOLD else 1
_PEAK: Final = re.compile(r"VmHWM:\s+(\d+) kB")
_USER, _SYSTEM = 11, 12  # of the fields after the process's name


def memory_bytes(pid: int) -> int:
    """Return the RAM of a process and its descendants, in bytes; what they share counts once for each."""
    return sum(_own_bytes(one) for one in (pid, *descendants(pid)))


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that they have."""
    found: list[int] = []
    with suppress(OSError, ValueError):  # it may end while it is looked at
        for file in (_PROC / str(pid) / "task").glob("*/children"):
            for child in map(int, file.read_text().split()):
                found += [child, *descendants(child)]
    return found


def _own_bytes(pid: int) -> int:
    with suppress(OSError, ValueError, IndexError):
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE
    return 0


def peak_mb(pid: int) -> float | None:
    """Return the most RAM that a process has held, in MB of 2**20 bytes; None if it is gone, or nothing is told."""
    with suppress(OSError):
        found = _PEAK.search((_PROC / str(pid) / "status").read_text())
        return int(found[1]) / 2**10 if found else None
    return None


def cpu_s(pid: int) -> float | None:
    """Return the CPU seconds of a process so far, without its children's; None as for `peak_mb`."""
    with suppress(OSError, ValueError, IndexError):
        told = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return (int(told[_USER]) + int(told[_SYSTEM])) / _TICKS
    return None
