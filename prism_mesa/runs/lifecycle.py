"""What every run goes through, whatever is run: folder, manifest, clocks, and an end that is written down."""

import os
import platform
import subprocess
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from prism_mesa.errors import PrismError, PrismWarning, RunError, counted, one_line, shortened
from prism_mesa.runs.folder import RunFolder
from prism_mesa.runs.run_files import read_manifest, read_table

_PACKAGES = (
    "prism-mesa",
    "mesa",
    "numpy",
    "pandas",
    "pyarrow",
    "numba",
    "scikit-learn",
    "ollama",
    "xllamacpp",
    "openai",
    "pydantic",
)


@dataclass(frozen=True, repr=False)
class RunResult:
    """A run and its folder; whatever takes the folder of a run takes a result too (it is an `os.PathLike`).

    Attributes:
        run_dir: Its folder.
        status: `done`, `failed` or `interrupted`; of a run that was opened also `running`.
        summary: What it comes to; empty while it is running. ``prism run --json`` and ``prism economy --json`` print it
            with the clocks of the whole command.
        pictures: Those that were drawn into its folder.
    """

    run_dir: Path
    status: str
    summary: dict[str, Any]
    pictures: tuple[Path, ...] = ()

    def table(self, name: str) -> pd.DataFrame:
        """Return a table of the run: one of `run_files.TABLES`, or of `run_files.ECONOMY_TABLES` for nations.

        Raises:
            DataError: If there is no such table, or it cannot be read.
        """
        return read_table(self.run_dir, name)

    @property
    def manifest(self) -> dict[str, Any]:
        """What stands in manifest.json: configuration, seed, versions, who decided, the summary."""
        return read_manifest(self.run_dir)

    def __fspath__(self) -> str:
        return str(self.run_dir)

    @one_line
    def __repr__(self) -> str:
        told, nations = self.summary, self.summary.get("nations")
        if isinstance(nations, list):
            counts = {"nation": len(nations), "quarter": told.get("rounds")}
        else:
            counts = {"agent": told.get("agents"), "round": told.get("rounds")}
        said = [counted(n, what) for what, n in counts.items() if isinstance(n, int)]
        said += [f"seed {told['seed']}"] if "seed" in told else []
        return f"<RunResult {self.status}: {', '.join([*said, str(self.run_dir)])}>"


class RunBrokenError(RunError):
    """A run that could not go on.

    Attributes:
        result: What was kept of it; None if its last tables could not be written.
    """

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


class RunInterruptedError(KeyboardInterrupt):
    """A run that Ctrl-C ended; `result` is as in `RunBrokenError`."""

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(shortened(message))
        self.result = result


class RunTimer:
    """The clocks of a run, from when it is made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.time(), time.process_time()
        self.rounds: list[float] = []
        """CPU seconds of each completed round, without what went into records."""

    @contextmanager
    def round(self, folder: RunFolder) -> Iterator[None]:
        """Count the block as a round, without what goes into the folder in it."""
        at = time.process_time() - folder.cpu_s
        yield
        self.rounds.append(time.process_time() - folder.cpu_s - at)

    def read(self) -> dict[str, float]:
        """Return CPU and wall seconds so far, and CPU seconds of a round: the median of those after the first.

        They are of the run: its model, its rounds and its tables. Imports, and what goes on beside it, are in
        `whole_process`.
        """
        return {
            "cpu_s": time.process_time() - self._cpu,
            "wall_s": time.time() - self._wall,
            "round_cpu_s": median(self.rounds[1:] or self.rounds or [0.0]),
        }


@contextmanager
def as_before() -> Iterator[None]:
    """Say nothing of what a run has said already, while the block repeats it or a variant of it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrismWarning)
        yield


def run_to_completion(
    folder: RunFolder,
    manifest: Mapping[str, Any],
    work: Callable[[], str],
    finish: Callable[[dict[str, Any]], dict[str, Any]],
    where: Callable[[], str],
) -> RunResult:
    """Return the result of a run whose end, good or bad, stands in its manifest.

    Args:
        folder: The run's folder.
        manifest: What is known before it begins; status running.
        work: Runs it; returns why the run counts as failed although it came to its end, or an empty string.
        finish: Writes the last tables and the manifest it is given, and returns the summary.
        where: Says how far the run has come, for errors.

    Raises:
        RunBrokenError: If the run cannot go on; its folder says `failed`, and keeps what was recorded.
        RunInterruptedError: The same for KeyboardInterrupt, but that the folder says `interrupted`.
    """
    folder.write_manifest(manifest)
    try:
        error = work()
        status = {"status": "failed", "error": error} if error else {"status": "done"}
        summary = finish({**manifest, **status})
    except BaseException as fault:
        raise _broken_off(folder, manifest, finish, where(), fault) from fault
    return RunResult(folder.path, str(status["status"]), summary)


def _broken_off(
    folder: RunFolder,
    manifest: Mapping[str, Any],
    finish: Callable[[dict[str, Any]], dict[str, Any]],
    where: str,
    fault: BaseException,
) -> RunBrokenError | RunInterruptedError:
    """Write down how a run ended before its time, and return what is to be raised."""
    interrupted = isinstance(fault, KeyboardInterrupt)
    text = "interrupted" if interrupted else str(fault)
    text = text if interrupted or isinstance(fault, PrismError) else f"{type(fault).__name__}: {text}"
    text = shortened(f"{where}: {text}")
    status = "interrupted" if interrupted else "failed"
    ended = {**manifest, "status": status, "error": text}
    result = None
    try:
        folder.write_manifest(ended)
        result = RunResult(folder.path, status, finish(ended))
    except Exception as second:  # whatever broke the run may also stand in the way of its records
        text += f"; its last tables could not be written ({type(second).__name__}: {second})"
    kept = f"{folder.path}: {text} (what was recorded is kept there)"
    return RunInterruptedError(kept, result) if interrupted else RunBrokenError(kept, result)


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
        "packages": {name: _version(name) for name in _PACKAGES},
        "python": platform.python_version(),
        "machine": platform.platform(),
        "git": _git_revision(),
    }


def wall_clock() -> str:
    """Return the time of day, UTC; for manifests only."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _git_revision() -> str | None:
    """Return the revision of the checkout that PRISM runs from (``-dirty`` if changed); None without git."""
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
        found = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return found.stdout.strip() or None
