"""What every run goes through, whatever is run: folder, manifest, clocks, and an end that is written down."""

import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any

import pandas as pd

from prism_mesa.errors import PrismError, RunError
from prism_mesa.experiments.store import RunFolder, read_table

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


@dataclass(frozen=True)
class RunResult:
    """A run that has ended; `summary` is what ``prism run --json`` and ``prism economy --json`` print."""

    run_dir: Path
    status: str
    summary: dict[str, Any]

    def table(self, name: str) -> pd.DataFrame:
        """Return a table of the run: one of `store.TABLES`, or of `store.ECONOMY_TABLES` for nations."""
        return read_table(self.run_dir, name)


class Watch:
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
        """Return CPU and wall seconds so far, and CPU seconds of a round: the median of those after the first."""
        return {
            "cpu_s": time.process_time() - self._cpu,
            "wall_s": time.time() - self._wall,
            "round_cpu_s": median(self.rounds[1:] or self.rounds or [0.0]),
        }


def carried_out(
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
        RunError: If the run cannot go on; its folder says so, and keeps what was recorded. The same holds for
            KeyboardInterrupt.
    """
    folder.write_manifest(manifest)
    try:
        error = work()
        status = {"status": "failed", "error": error} if error else {"status": "done"}
        summary = finish({**manifest, **status})
    except BaseException as fault:
        interrupted = isinstance(fault, KeyboardInterrupt)
        text = "interrupted" if interrupted else str(fault)
        text = text if interrupted or isinstance(fault, PrismError) else f"{type(fault).__name__}: {text}"
        text = f"{where()}: {text}"
        failed = {**manifest, "status": "failed", "error": text}
        try:
            folder.write_manifest(failed)
            finish(failed)
        except Exception as second:  # whatever broke the run may also stand in the way of its records
            text += f"; its last tables could not be written ({type(second).__name__}: {second})"
        kept = f"{folder.path}: {text} (what was recorded is kept there)"
        raise (KeyboardInterrupt(kept) if interrupted else RunError(kept)) from fault
    return RunResult(folder.path, str(status["status"]), summary)


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
