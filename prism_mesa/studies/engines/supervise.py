"""A run in a process of its own: started, watched, and ended if it takes more than it may."""

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
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import mkstemp
from typing import Any, BinaryIO, Final

from prism_mesa.errors import PrismWarning, printable, shortened
from prism_mesa.studies.engines.child import begin
from prism_mesa.studies.engines.job import Ending, Job, Outcome

_LAST_BYTES: Final = 20_000
_END_S: Final = 10.0
_PRELOAD: Final = "prism_mesa.studies.engines.preload"
_one_at_a_time: Final = threading.Lock()
"""Held by whoever starts a process or asks for its exit code: multiprocessing does neither in several threads."""


@dataclass(frozen=True, eq=False)
class RunProcess:
    """The process of a run.

    Attributes:
        process: The process; it leads a group, where there are groups.
        printed: The file that gets what it prints.
    """

    process: BaseProcess
    outcome: "Connection[Any, Any]"
    printed: BinaryIO

    @property
    def pid(self) -> int:
        """Its number."""
        return self.process.pid or 0

    def wait_for_exit_code(self) -> int | None:
        """Return the exit code of a process that is ending, that of a signal below 0; None if it does not end."""
        wait([self.process.sentinel], _END_S)
        return self._exit_code()

    def _exit_code(self) -> int | None:
        with _one_at_a_time:
            self.process.join(0)
            return self.process.exitcode

    def last_lines(self) -> str:
        """Return the end of what it printed; where Python told why it crashed, that."""
        self.printed.seek(max(0, self.printed.seek(0, os.SEEK_END) - _LAST_BYTES))
        said = self.printed.read().decode("utf-8", errors="replace")
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        fatal = next((i for i, line in enumerate(lines) if line.startswith("Fatal Python error:")), None)
        if fatal is None:
            return " / ".join(lines[-2:])
        at = next((line for line in lines[fatal:] if line.startswith("File ")), "")
        return " ".join((lines[fatal], at)).strip()

    def kill(self) -> None:
        """End it and all that it has started, at once."""
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        if self._exit_code() is None:  # it may have no group yet
            with suppress(ProcessLookupError, PermissionError):
                self.process.kill()

    def end(self) -> None:
        """End it, wait until it has, and let go of what belongs to it; doing it twice does no harm."""
        self.kill()
        self.wait_for_exit_code()
        self.outcome.close()
        self.printed.close()
        Path(self.printed.name).unlink(missing_ok=True)  # one that ended at once has left it


def start(job: Job) -> RunProcess:
    """Start the process of a run: forked from one that has imported everything, which is started when first needed.

    Where there is no such thing (Windows), each imports everything itself.

    Raises:
        OSError, EOFError: If no process can be started.
    """
    me = multiprocessing.current_process()
    if me.daemon:  # as those of Dask's workers are, which may then have no children
        me.daemon = False
    context: Any = _context()
    receiver, sender = context.Pipe(duplex=False)
    number, file = mkstemp(prefix="prism-run-", suffix=".txt")
    os.close(number)
    printed = open(file, "rb")  # noqa: SIM115 - it is open for as long as the process is watched
    process = context.Process(
        target=begin, args=(job, sender, file, dict(os.environ)), name=f"run {job.run}", daemon=True
    )
    try:
        with _one_at_a_time, main_left_alone():
            process.start()
    except BaseException:
        receiver.close()
        printed.close()
        Path(file).unlink(missing_ok=True)
        raise
    finally:
        sender.close()
    return RunProcess(process, receiver, printed)


def _context() -> multiprocessing.context.BaseContext:
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([_PRELOAD])
    return context


@contextmanager
def main_left_alone() -> Iterator[None]:
    """Have no process that is started in the block import the user's script again, which need not be guarded then.

    multiprocessing leaves out a main module that was started as ``python -m package``: its name says so.
    """
    main = sys.modules["__main__"]
    spec = main.__spec__
    main.__spec__ = ModuleSpec("prism_mesa.__main__", None)
    try:
        yield
    finally:
        main.__spec__ = spec


_LOOK_S: Final = 0.25
_LOOK_AT_MEMORY_S: Final = 0.1

_running: Final[set[RunProcess]] = set()
_lock: Final = threading.Lock()


def run_supervised(job: Job) -> Outcome:
    """Run a job in a process of its own, and return what became of it, whatever that is.

    Its process may crash, hang, or be killed: that is its outcome, and nobody else's affair.
    """
    try:
        running = start(job)
    except (OSError, EOFError) as error:
        reason = f"its process could not be started: {type(error).__name__}: {error}"
        return Outcome(job.run, "killed", printable(reason))
    with _lock:
        _running.add(running)
    at = time.monotonic()
    try:
        outcome = _Watch(job, running, at).outcome()
    finally:
        with _lock:
            _running.discard(running)
        running.end()
    outcome.facts["wall_s"] = time.monotonic() - at
    return outcome


def kill_runs() -> None:
    """End all runs of this process at once; their outcome is that they were killed."""
    with _lock:
        running = list(_running)
    for process in running:
        process.kill()


@dataclass
class _Watch:
    """What is seen of a running process from outside.

    Attributes:
        began: When it was started (`time.monotonic`).
        seen: What it has taken, as facts of its outcome.
    """

    job: Job
    running: RunProcess
    began: float
    seen: dict[str, Any] = field(default_factory=dict)

    def outcome(self) -> Outcome:
        """Wait for the outcome; end the run if it takes more than it may."""
        limits = self.job.limits
        ends: list[Any] = [self.running.outcome, self.running.process.sentinel]
        memory = None if limits.memory_gb is None else limits.memory_gb * 1e9
        if memory is not None and not IS_TOLD:
            _warn_of_memory()
        self._look()
        while not wait(ends, self._pause(watches_memory=memory is not None)):
            self._look()
            if limits.seconds is not None and time.monotonic() - self.began > limits.seconds:
                return self._ended("timeout", f"took more than limits.seconds = {limits.seconds:g}")
            if memory is not None and (taken := memory_bytes(self.running.pid)) > memory:
                reason = f"took {taken / 1e9:.2f} GB, more than limits.memory_gb = {limits.memory_gb:g}"
                return self._ended("memory", reason)
        with suppress(EOFError, OSError):
            outcome: Outcome = self.running.outcome.recv()
            return outcome
        return self._gone()

    def _pause(self, *, watches_memory: bool) -> float:
        """Return for how many seconds nobody needs to look."""
        pause = _LOOK_AT_MEMORY_S if watches_memory else _LOOK_S
        if self.job.limits.seconds is None:
            return pause
        return min(pause, max(0.0, self.began + self.job.limits.seconds - time.monotonic()))

    def _look(self) -> None:
        taken = {"peak_memory_mb": peak_mb(self.running.pid), "cpu_s": cpu_s(self.running.pid)}
        self.seen |= {name: value for name, value in taken.items() if value}

    def _ended(self, ending: Ending, reason: str) -> Outcome:
        """End the run, and return the outcome that says why."""
        self.running.end()
        return Outcome(self.job.run, ending, reason, facts={**self.seen, "signal": "SIGKILL"})

    def _gone(self) -> Outcome:
        """Return the outcome of a run whose process is gone without a word."""
        code = self.running.wait_for_exit_code()
        name = signal.Signals(-code).name if code is not None and code < 0 else None
        reason = f"its process was killed by {name}" if name else f"its process ended with exit code {code}"
        last = self.running.last_lines()
        reason = shortened(printable(f"{reason}; last it said: {last}" if last else reason))
        return Outcome(self.job.run, "killed", reason, facts={**self.seen, "signal": name})


@cache
def _warn_of_memory() -> None:
    warnings.warn("limits.memory_gb: has no effect here: memory is watched on Linux only", PrismWarning, stacklevel=2)


_PROC: Final = Path("/proc")
IS_TOLD: Final = (_PROC / "self" / "statm").is_file()  # whether the system tells
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
        fields = (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
        return (int(fields[_USER]) + int(fields[_SYSTEM])) / _TICKS
    return None
