"""Execute a run in its own process, and end the process if it exceeds its limits."""

import multiprocessing
import os
import re
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from importlib.machinery import ModuleSpec
from math import inf
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import mkstemp
from typing import Any, BinaryIO, Final

from prism_mesa.errors import PrismWarning, printable, shorten
from prism_mesa.studies.engines.child import run_child
from prism_mesa.studies.engines.job import Ending, Job, Outcome

_MAX_OUTPUT_BYTES: Final = 20_000
_EXIT_TIMEOUT_S: Final = 10.0
_PRELOAD: Final = "prism_mesa.studies.engines.preload"
_process_lock: Final = threading.Lock()
"""Guards process starts and reads of exit codes, which are not thread-safe in multiprocessing."""


@dataclass(frozen=True, eq=False)
class RunProcess:
    """The process of a run; except on Windows, it leads a process group.

    Attributes:
        results: The connection that receives the outcome of the run.
        output: The file that receives the printed output.
    """

    process: BaseProcess
    results: "Connection[Any, Any]"
    output: BinaryIO

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.process.pid or 0

    def wait_for_exit_code(self) -> int | None:
        """Wait for the process to end, and return its exit code (negative for a signal); None if it still runs."""
        wait([self.process.sentinel], _EXIT_TIMEOUT_S)
        return self._exit_code()

    def _exit_code(self) -> int | None:
        with _process_lock:
            self.process.join(0)
            return self.process.exitcode

    def last_lines(self) -> str:
        """Return the last lines of the output, or Python's crash report."""
        self.output.seek(max(0, self.output.seek(0, os.SEEK_END) - _MAX_OUTPUT_BYTES))
        text = self.output.read().decode("utf-8", errors="replace")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        fatal = next((i for i, line in enumerate(lines) if line.startswith("Fatal Python error:")), None)
        if fatal is None:
            return " / ".join(lines[-2:])
        location = next((line for line in lines[fatal:] if line.startswith("File ")), "")
        return " ".join((lines[fatal], location)).strip()

    def kill(self) -> None:
        """Kill the process and all its children."""
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        if self._exit_code() is None:  # the process may not lead a group yet
            with suppress(ProcessLookupError, PermissionError):
                self.process.kill()

    def end(self) -> None:
        """Kill the process, wait for its end, and close the files; may be called twice."""
        self.kill()
        self.wait_for_exit_code()
        self.results.close()
        self.output.close()
        Path(self.output.name).unlink(missing_ok=True)  # if the process ended before it unlinked the file


def start_process(job: Job) -> RunProcess:
    """Start the process of a run: a fork of a process with all imports, or a new interpreter on Windows."""
    current = multiprocessing.current_process()
    if current.daemon:  # a Dask worker; daemonic processes may have no children
        current.daemon = False
    context: Any = _process_context()
    receiver, sender = context.Pipe(duplex=False)
    descriptor, file = mkstemp(prefix="prism-run-", suffix=".txt")
    os.close(descriptor)
    output = open(file, "rb")  # noqa: SIM115 - RunProcess.end closes it
    arguments = job, sender, file, dict(os.environ)
    process = context.Process(target=run_child, args=arguments, name=f"run {job.run}", daemon=True)
    try:
        with _process_lock, without_main_import():
            process.start()
    except BaseException:
        receiver.close()
        output.close()
        Path(file).unlink(missing_ok=True)
        raise
    finally:
        sender.close()
    return RunProcess(process, receiver, output)


def _process_context() -> multiprocessing.context.BaseContext:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([_PRELOAD])
    return context


@contextmanager
def without_main_import() -> Iterator[None]:
    """Keep processes that start in the block from importing the user's script, so that it needs no main guard.

    multiprocessing does not import a main module that was started as ``python -m package``.
    """
    main = sys.modules["__main__"]
    spec = main.__spec__
    main.__spec__ = ModuleSpec("prism_mesa.__main__", None)
    try:
        yield
    finally:
        main.__spec__ = spec


_running_processes: Final[set[RunProcess]] = set()
_running_lock: Final = threading.Lock()


def run_supervised(job: Job) -> Outcome:
    """Run a job in its own process, and return its outcome, even if the process crashes, hangs or is killed."""
    try:
        process = start_process(job)
    except (OSError, EOFError) as error:
        reason = f"its process could not be started: {type(error).__name__}: {error}"
        return Outcome(job.run, "killed", printable(reason))
    with _running_lock:
        _running_processes.add(process)
    started = time.monotonic()
    try:
        outcome = _Watcher(job, process, started).outcome()
    finally:
        with _running_lock:
            _running_processes.discard(process)
        process.end()
    outcome.facts["wall_s"] = time.monotonic() - started
    return outcome


def kill_runs() -> None:
    """Kill all runs that this process has started."""
    with _running_lock:
        running = list(_running_processes)
    for process in running:
        process.kill()


@dataclass
class _Watcher:
    """Watches the process of a run; `started_at` is a time of `time.monotonic`, `facts` has memory and CPU time."""

    job: Job
    run: RunProcess
    started_at: float
    facts: dict[str, Any] = field(default_factory=dict)

    def outcome(self) -> Outcome:
        """Wait for the outcome; kill the run if it exceeds its limits."""
        seconds, memory_gb = self.job.limits.seconds, self.job.limits.memory_gb
        handles: list[Any] = [self.run.results, self.run.process.sentinel]
        if memory_gb is not None and not HAS_PROC:
            _warn_that_memory_is_not_watched()
        interval = 0.25 if memory_gb is None else 0.1
        deadline = inf if seconds is None else self.started_at + seconds
        self._measure_usage()
        while not wait(handles, min(interval, max(0.0, deadline - time.monotonic()))):
            self._measure_usage()
            if time.monotonic() > deadline:
                return self._stop("timeout", f"took more than limits.seconds = {seconds:g}")
            if memory_gb is not None and (memory_gb_used := memory_bytes(self.run.pid) / 1e9) > memory_gb:
                return self._stop("memory", f"took {memory_gb_used:.2f} GB, more than limits.memory_gb = {memory_gb:g}")
        with suppress(EOFError, OSError):
            outcome: Outcome = self.run.results.recv()
            return outcome
        return self._lost_outcome()

    def _measure_usage(self) -> None:
        usage = {"peak_memory_mb": peak_mb(self.run.pid), "cpu_s": cpu_s(self.run.pid)}
        self.facts |= {name: value for name, value in usage.items() if value}

    def _stop(self, ending: Ending, reason: str) -> Outcome:
        self.run.end()
        return Outcome(self.job.run, ending, reason, facts={**self.facts, "signal": "SIGKILL"})

    def _lost_outcome(self) -> Outcome:
        """Return the outcome of a run whose process ended without sending an outcome."""
        code = self.run.wait_for_exit_code()
        name = signal.Signals(-code).name if code is not None and code < 0 else None
        reason = f"its process was killed by {name}" if name else f"its process ended with exit code {code}"
        output = self.run.last_lines()
        reason = shorten(printable(f"{reason}; its last output: {output}" if output else reason))
        return Outcome(self.job.run, "killed", reason, facts={**self.facts, "signal": name})


@cache
def _warn_that_memory_is_not_watched() -> None:
    warnings.warn("limits.memory_gb: has no effect here: memory is watched on Linux only", PrismWarning, stacklevel=2)


_PROC: Final = Path("/proc")
HAS_PROC: Final = (_PROC / "self" / "statm").is_file()
_PAGE: Final = os.sysconf("SC_PAGE_SIZE") if HAS_PROC else 0
_TICKS: Final = os.sysconf("SC_CLK_TCK") if HAS_PROC else 1
_USER, _SYSTEM = 11, 12  # indices of the fields after the process's name


def memory_bytes(pid: int) -> int:
    """Return the RAM of a process and its descendants, in bytes; shared memory counts for each process."""
    total = 0
    for process in (pid, *descendants(pid)):
        with suppress(OSError, ValueError, IndexError):  # the process may have ended
            total += int((_PROC / str(process) / "statm").read_text().split()[1]) * _PAGE
    return total


def descendants(pid: int) -> list[int]:
    """Return the ids of a process's children, their children, and so on."""
    pids: list[int] = []
    with suppress(OSError, ValueError):
        for file in (_PROC / str(pid) / "task").glob("*/children"):
            for child in map(int, file.read_text().split()):
                pids += [child, *descendants(child)]
    return pids


def peak_mb(pid: int) -> float | None:
    """Return the peak RAM of a process, in MB of 2**20 bytes; None if it has ended or /proc is missing."""
    with suppress(OSError):
        peak = re.search(r"VmHWM:\s+(\d+) kB", (_PROC / str(pid) / "status").read_text())
        return int(peak[1]) / 2**10 if peak else None
    return None


def cpu_s(pid: int) -> float | None:
    """Return the CPU seconds of a process, without its children; None if it has ended or /proc is missing."""
    with suppress(OSError, ValueError, IndexError):
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS
    return None
