"""Starting and ending the process of a run."""

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from tempfile import mkstemp
from typing import Any, BinaryIO, Final

from prism_mesa.studies.engines.child import begin
from prism_mesa.studies.engines.job import Job

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
