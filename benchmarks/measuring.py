"""What the benchmarks share: CPU times of one thing measured many times, and a line about the machine."""

import os
import platform
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import process_time


def cpu_s(work: Callable[[], object]) -> float:
    """Return the CPU seconds (all threads of this process, user and system) that `work` takes."""
    before = process_time()
    work()
    return process_time() - before


@dataclass
class Times:
    """CPU seconds of one thing.

    The median says what to expect; the minimum, as other processes can only add, what the code itself takes.

    Attributes:
        warm_up: How many of the first do not count.
    """

    warm_up: int = 0
    all: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Middle of those that count."""
        return median(self.all[self.warm_up :])

    @property
    def minimum(self) -> float:
        """Smallest of those that count."""
        return min(self.all[self.warm_up :])


def machine(*packages: str) -> str:
    """Return one line: date, processor, cores, load before us, and versions of Python and of `packages`."""
    named = ", ".join(f"{package} {version(package)}" for package in packages)
    return (
        f"{datetime.now().astimezone():%Y-%m-%d %H:%M %Z}; {_processor()}, {os.cpu_count()} cores, "
        f"{platform.system()}; load {os.getloadavg()[0]:.2f}; Python {platform.python_version()}, {named}"
    )


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    facts = dict(line.split(":", 1) for line in lines if ":" in line)
    found = {key.strip(): value.strip() for key, value in facts.items()}
    if "model name" not in found:
        return platform.processor() or platform.machine()
    return f"{found['model name']} (model {found.get('model', '?')}, {found.get('cpu MHz', '?')} MHz)"


def verdict(met: bool) -> str:
    """Return how a target's line ends."""
    return "met" if met else "NOT MET"
