"""A folder in which a hostile file is read, while everything outside of it is watched."""

import os
import re
import shutil
import socket
import sys
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

from prism_mesa.errors import BadInputError, PrismWarning
from prism_mesa.kernels.compiling import FOLDER

LONGEST_LINE = 600
"""Characters of a message."""

_WRITES = re.compile(r"[wax+]")
_CHANGES = {f"os.{name}" for name in "mkdir remove rmdir rename symlink link chmod truncate utime".split()}
_NEVER = {"os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "webbrowser.open"}


@dataclass(frozen=True)
class Reading:
    """The outcome of reading a file: whether it was accepted, and a defect in words, if any."""

    accepted: bool
    defect: str = ""


class Jail:
    """The only folder that a reader may write to, and without a network.

    An audit hook reports each file that Python opens to write; writes by C libraries show in the folder `around`.
    """

    _watched: "Jail | None" = None
    _hooked = False

    def __init__(self, around: Path) -> None:
        self.path, self._around = around / "jail" / "run", around
        self.path.mkdir(parents=True)
        (around / "secret.csv").write_text("src,dst\n1,2\n")
        self._allowed = tuple(str(Path(folder).resolve()) for folder in (self.path, "/dev/null", "/dev/shm"))
        self._seen: list[str] = []
        self._before = self._stands()
        if not Jail._hooked:
            sys.addaudithook(Jail._told)
            Jail._hooked = True

    def read(self, kind, raw: bytes) -> Reading:
        """Put a file into the empty jail and read it there, in that working directory."""
        for held in self.path.iterdir():
            (shutil.rmtree if held.is_dir() and not held.is_symlink() else os.unlink)(held)
        file = self.path / kind.file
        file.write_bytes(raw)
        here, connect = os.getcwd(), socket.socket.connect
        os.chdir(self.path)
        socket.socket.connect = _refused
        Jail._watched, self._seen = self, []
        try:
            reading = self._read(kind, file)
        finally:
            Jail._watched = None
            socket.socket.connect = connect
            os.chdir(here)
        outside = [*self._seen, *sorted(self._stands() ^ self._before)]
        return Reading(reading.accepted, reading.defect or (f"outside: {', '.join(outside[:3])}" if outside else ""))

    def _read(self, kind, file: Path) -> Reading:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", PrismWarning)
            try:
                kind.read(file)
            except BadInputError as error:
                message = str(error)
                is_line = len(message.splitlines()) == 1 and len(message) <= LONGEST_LINE
                return Reading(False, "" if is_line else f"more than a line: {message[:300]!r}")
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                where = "; ".join(
                    f"{Path(frame.filename).name}:{frame.lineno} {frame.name}"
                    for frame in traceback.extract_tb(error.__traceback__)
                    if "prism_mesa" in frame.filename
                )
                return Reading(False, f"{type(error).__name__}: {str(error)[:200]!r} ({where[-400:]})")
        return Reading(True)

    def _stands(self) -> set[str]:
        """Return what lies around the jail."""
        return {
            f"{file} {file.lstat().st_size}"
            for file in self._around.rglob("*")
            if not file.is_relative_to(self.path) and file.is_file()
        }

    @staticmethod
    def _told(event: str, arguments: tuple) -> None:
        jail = Jail._watched
        if jail is None:
            return
        if event in _NEVER:
            jail._seen.append(f"{event} {arguments[:1]!r:.80}")
        elif event == "open":
            path, mode, flags = arguments
            writes = _WRITES.search(mode) if isinstance(mode, str) else flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if writes and not isinstance(path, int):
                jail._note(event, path)
        elif event in _CHANGES:
            jail._note(event, arguments[1] if event in ("os.rename", "os.symlink", "os.link") else arguments[0])

    def _note(self, event: str, path: object) -> None:
        where = os.path.realpath(os.fsdecode(path))
        if not where.startswith(self._allowed) and not _is_cache(where):
            self._seen.append(f"{event} {where}")


def _is_cache(where: str) -> bool:
    """Return whether a file is what Python and numba keep of code."""
    return "__pycache__" in where or "/.cache/" in where or (bool(FOLDER) and where.startswith(FOLDER))


def _refused(self, address: object) -> None:
    raise ConnectionRefusedError(111, "nobody is there: a fuzzed file is read")
