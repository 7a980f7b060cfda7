"""What the benchmarks share: times of one thing measured many times, memory, targets, and a line about the machine."""

import os
import platform
import resource
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Final

ROOT: Final = Path(__file__).parents[1]

# the stand-in for an Ollama server lies beside the tests; child processes look for it too
TESTS: Final = str(ROOT / "tests")
sys.path.append(TESTS)
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), TESTS]))


def cpu_s(work: Callable[[], object]) -> float:
    """Return the CPU seconds (all threads of this process, user and system) that `work` takes."""
    before = process_time()
    work()
    return process_time() - before


def wall_s(work: Callable[[], object]) -> float:
    """Return the seconds on the wall that `work` takes: what more threads can shorten."""
    before = perf_counter()
    work()
    return perf_counter() - before


@dataclass
class Times:
    """Seconds of one thing.

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

    def __str__(self) -> str:
        return f"{self.median:.4g} ({self.minimum:.4g})"


def rounds_of() -> Times:
    """Return room for the times of rounds, of which the first does not count."""
    return Times(warm_up=1)


def rss_bytes() -> int:
    """Return the memory of this process that is in RAM now."""
    return _status("VmRSS")


def peak_bytes() -> int:
    """Return the most memory in RAM since `forget_peak`, or since the process began where that is not possible."""
    return _status("VmHWM") or resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def forget_peak() -> None:
    """Let `peak_bytes` begin anew, where Linux allows it (proc(5), clear_refs)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError as error:
        say(f"the peak of memory is that of the whole process: {error}")


def _status(field_name: str) -> int:
    file = Path("/proc/self/status")
    lines = file.read_text().splitlines() if file.exists() else []
    found = [int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{field_name}:")]
    return found[0] if found else 0


def environment(checkout: Path) -> dict[str, str]:
    """Return the environment of a process whose `prism_mesa` is that of a checkout."""
    return os.environ | {"PYTHONPATH": str(checkout)}


def say(what: str) -> None:
    """Tell how far the run is, beside what it prints."""
    print(what, file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Target:
    """What was hoped for, and what came of it.

    Attributes:
        met: None where it was not measured, as at other sizes than the target's.
    """

    what: str
    measured: str = "not measured"
    met: bool | None = None


def at_most(what: str, most: float, found: float | None, unit: str = "", more: str = "") -> Target:
    """Return the target that `found` (None: not measured) is at most `most`."""
    if found is None:
        return Target(f"{what}: at most {most:g}{unit}")
    return Target(f"{what}: at most {most:g}{unit}", f"{found:.3g}{unit}{more}", found <= most)


def at_least(what: str, least: float, found: float | None, unit: str = "", more: str = "") -> Target:
    """Return the target that `found` (None: not measured) is at least `least`."""
    if found is None:
        return Target(f"{what}: at least {least:g}{unit}")
    return Target(f"{what}: at least {least:g}{unit}", f"{found:.3g}{unit}{more}", found >= least)


def print_targets(targets: Sequence[Target]) -> None:
    """Print one row per target, as Markdown."""
    print("\n| target | measured | |\n|---|--:|---|")
    for target in targets:
        print(f"| {target.what} | {target.measured} | {'' if target.met is None else verdict(target.met)} |")


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
