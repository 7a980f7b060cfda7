"""What lies in a folder of results: runs, studies, calibrations, validations, and how each stands.

Of each folder little is read, and little is loaded for it: there may be many.
"""

import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from pydantic_core import from_json

from prism_mesa.errors import DataError, printable, shortened
from prism_mesa.llm.sqlite_file import FAULTS, ReadOnlyFile
from prism_mesa.runs.process.lock import LOCK, is_locked, last_holder
from prism_mesa.runs.process.state import STATUSES, state_of

type Kind = Literal["platform", "nations", "survey", "interview", "study", "calibration", "validation", "unknown"]
_KINDS: Final[dict[object, Kind]] = {
    "social": "platform",
    "economy": "nations",
    "survey": "survey",
    "interview": "interview",
}
_RUN: Final = "manifest.json"
_STUDY: Final = "study.json"
_OF_STUDIES: Final[dict[str, Kind]] = {
    "calibration.json": "calibration",
    "validation.json": "validation",
    _STUDY: "study",
}
"""The file that says what a folder of many runs is; the first that is there."""
_RESULT: Final[dict[Kind, str]] = {"calibration": "fitted.yaml", "validation": "validation.json"}
"""What is written last."""
_MOST_BYTES: Final = 64 * 2**20
_LONGEST: Final = 200
_WAIT_S: Final = 1.0


@dataclass(frozen=True)
class Listed:
    """A run, or a folder of many, and how it stands.

    Attributes:
        run_dir: Its folder.
        kind: What it is; `unknown` if it does not say.
        config: The name of its configuration, or of the study.
        seed: None of a folder of many runs.
        status: Of a run `done`, `failed`, `interrupted`, `running` or `died`; of many runs `done`, `failed`, `running`
            or `incomplete`; `damaged` if it cannot be read.
        state: The status with the round (`died in round 7 of 56`) or the number of runs (`incomplete, 3 of 10 runs`).
        round: The round that a run which is running or died is or was in, from 0, as far as is known.
        rounds: The rounds, or quarters, that it was to have.
        started: When (UTC), as it says itself; else when the folder was changed.
        age_s: Seconds since then, at least 0.
        size_bytes: Of all its files.
        error: Why it failed, or what is damaged; else empty.
    """

    run_dir: str
    kind: Kind
    config: str
    seed: int | None
    status: str
    state: str
    round: int | None
    rounds: int | None
    started: str
    age_s: float
    size_bytes: int
    error: str


def listed(out: str | os.PathLike[str]) -> list[Listed]:
    """Return what lies in a folder, newest first; of a study what lies in its folder of runs, of a run that run.

    Folders that hold none of it are left out.

    Raises:
        DataError: If there is no such folder, or it cannot be read.
    """
    folder, now = Path(out), datetime.now(UTC).timestamp()
    try:
        if any((folder / name).is_file() for name in _OF_STUDIES):
            folder = folder / "runs"
            found = _inside(folder, now) if folder.is_dir() else []
        else:
            run = _read_folder(os.fspath(folder), now) if (folder / _RUN).is_file() else None
            found = _inside(folder, now) if run is None else [run]
    except OSError as error:
        raise DataError(f"{out}: cannot be listed: {error.strerror or error}") from None
    return sorted(found, key=lambda one: (one.started, one.run_dir), reverse=True)


def _inside(folder: Path, now: float) -> list[Listed]:
    with os.scandir(folder) as entries:
        return [found for entry in entries if entry.is_dir() and (found := _read_folder(entry.path, now)) is not None]


def _read_folder(path: str, now: float) -> Listed | None:
    """Return what lies in a folder; None if that is none of these."""
    try:
        with os.scandir(path) as entries:
            inside = list(entries)
    except OSError as error:
        return _listed(path, now, {}, "unknown", _damaged(f"cannot be read: {error.strerror}"), 0)
    names = {entry.name for entry in inside}
    size = sum(map(_size, inside))
    if _RUN in names:
        return _run(path, now, size)
    for name, kind in _OF_STUDIES.items():
        if name in names:
            return _many(path, now, size, kind, _STUDY if kind == "validation" else name, names)
    if LOCK in names and last_holder(Path(path)) is not None:
        status = "running" if is_locked(Path(path)) else "died"
        return _listed(path, now, {}, "unknown", {"status": status, "state": f"{status}, before its first round"}, size)
    return None


def _size(entry: "os.DirEntry[str]") -> int:
    """Return the bytes of a file, or of all files of a folder; no link is followed."""
    try:
        if entry.is_dir(follow_symlinks=False):
            with os.scandir(entry.path) as entries:
                return sum(map(_size, entries))
        return entry.stat(follow_symlinks=False).st_size
    except OSError:  # gone meanwhile
        return 0


type _Values = dict[str, Any]


def _run(path: str, now: float, size: int) -> Listed:
    try:
        values = _read(os.path.join(path, _RUN))
    except ValueError as error:
        return _listed(path, now, {}, "unknown", _damaged(f"{_RUN}: {error}"), size)
    config, kind = values.get("config"), _KINDS.get(str(values.get("system", "social")), "unknown")
    config = config if isinstance(config, dict) else {}
    status, rounds = values.get("status"), _whole(config.get("rounds"))
    if status not in STATUSES:
        return _listed(path, now, values, kind, _damaged(f"{_RUN}: holds no status of a run"), size)
    state = state_of(Path(path), status, rounds)
    state_values: _Values = {"status": state.status, "state": str(state), "round": state.round, "rounds": rounds}
    state_values |= {"config": _text(config.get("name")), "seed": _whole(values.get("seed"))}
    return _listed(path, now, values, kind, state_values | {"error": _text(values.get("error"))}, size)


def _many(path: str, now: float, size: int, kind: Kind, manifest: str, names: set[str]) -> Listed:
    """Return what is known of a folder of many runs."""
    try:
        values = _read(os.path.join(path, manifest))
        done, skipped, failed = _endings(path, sorted(names))
    except ValueError as error:
        return _listed(path, now, {}, kind, _damaged(str(error)), size)
    planned, many = _whole(values.get("runs")), Path(path)
    is_whole = _RESULT[kind] in names if kind in _RESULT else planned is not None and done + skipped + failed >= planned
    if any(is_locked(many, name) for name in names if name.startswith(LOCK) and name != f"{LOCK}-collect"):
        status = "running"
    elif not is_whole:
        status = "incomplete"
    else:
        status = "failed" if failed else "done"
    of = "" if planned is None else f" of {planned}"
    others = "".join(f", {n} {status}" for n, status in ((skipped, "skipped"), (failed, "failed")) if n)
    state = status if status == "done" and not skipped else f"{status}, {done}{of} runs done{others}"
    state_values = {"status": status, "state": state, "config": _text(values.get("name")) or many.name}
    made = values.get("made")
    return _listed(path, now, made if isinstance(made, dict) else {}, kind, state_values, size)


def _endings(path: str, names: list[str]) -> tuple[int, int, int]:
    """Count the runs that are done, skipped and failed, over all journals of a study's folder."""
    endings: dict[str, str] = {}
    for name in names:
        if name.startswith("journal") and name.endswith(".sqlite"):
            for run, ending in _rows(Path(path, name)):
                if endings.get(run) != "done":
                    endings[run] = ending
    counts = Counter(endings.values())
    return counts["done"], counts["skipped"], len(endings) - counts["done"] - counts["skipped"]


def _rows(journal: Path) -> list[tuple[str, str]]:
    """Return the runs of a journal with their endings; nothing is written, and no link is followed."""
    if any(journal.with_name(f"{journal.name}{log}").is_symlink() for log in ("", "-wal", "-shm", "-journal")):
        return []
    try:
        with closing(ReadOnlyFile(journal, _WAIT_S)) as db:
            require_tables(db.fetch)
            return [(str(run), str(ending)) for run, ending in db.fetch("select run, ending from runs")]
    except FAULTS as error:
        raise ValueError(f"{journal.name}: cannot be read: {error}") from None


def require_tables(fetch: Callable[[str], Iterable[Any]]) -> None:
    """Check that `runs` and `rows` are tables: a view of that name may be a query that never ends.

    `fetch` returns the rows of a query.

    Raises:
        sqlite3.DatabaseError: If not.
    """
    fetch("pragma trusted_schema = off")
    for (name,) in fetch("select name from sqlite_master where name in ('runs', 'rows') and type != 'table'"):
        raise sqlite3.DatabaseError(f"{name} is no table")


def _listed(path: str, now: float, values: _Values, kind: Kind, state_values: _Values, size: int) -> Listed:
    at = _time(values.get("started"))
    if at is None:
        try:
            at = os.stat(path).st_mtime
        except OSError:
            at = now
    began = datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
    own: _Values = {"config": "", "seed": None, "round": None, "rounds": None, "error": ""} | state_values
    return Listed(run_dir=path, kind=kind, started=began, age_s=max(0.0, now - at), size_bytes=size, **own)


def _damaged(why: str) -> _Values:
    return {"status": "damaged", "state": "damaged", "error": _text(why)}


def _read(file: str) -> _Values:
    """Return the values of a JSON file."""
    try:
        with open(file, "rb") as opened:
            raw = opened.read(_MOST_BYTES + 1)
        if len(raw) > _MOST_BYTES:
            raise ValueError(f"has more than {_MOST_BYTES // 2**20} MB")
        values = from_json(raw)  # in half the time of json.loads
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ValueError(f"cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"cannot be read: it holds a {type(values).__name__}, not keys and values")
    return values


def _time(given: object) -> float | None:
    """Return a time of day as seconds of the epoch; None if it is none that a folder could be from."""
    try:
        at = datetime.fromisoformat(given) if isinstance(given, str) else None
        seconds = None if at is None else at.replace(tzinfo=at.tzinfo or UTC).timestamp()
    except (ValueError, OverflowError, OSError):
        return None
    return seconds if seconds is not None and 0 <= seconds < _LATEST else None


_LATEST: Final = 2.0**35  # seconds of the epoch, a thousand years from now


def _text(value: object) -> str:
    return shortened(printable(value), _LONGEST) if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None
