"""List the runs, studies, calibrations and validations in a folder with their status."""

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

from prism_mesa.errors import DataError, printable, shorten
from prism_mesa.llm.sqlite_file import FAULTS, ReadOnlyFile
from prism_mesa.runs.process.lock import LOCK, is_locked, last_holder
from prism_mesa.runs.process.state import STATUSES, read_state

type Kind = Literal["platform", "nations", "survey", "interview", "study", "calibration", "validation", "unknown"]
_RUN_MANIFEST: Final = "manifest.json"
_STUDY_MANIFEST: Final = "study.json"
_STUDY_KINDS: Final[dict[str, Kind]] = {
    "calibration.json": "calibration",
    "validation.json": "validation",
    _STUDY_MANIFEST: "study",
}
"""The kinds of folders with many runs, by a file that identifies them; the first match counts."""
_FINAL_FILES: Final[dict[Kind, str]] = {"calibration": "fitted.yaml", "validation": "validation.json"}
"""The last file that is written, by kind of folder."""
_MAX_BYTES: Final = 64 * 2**20
_MAX_CHARS: Final = 200
_WAIT_S: Final = 1.0


@dataclass(frozen=True)
class ListedFolder:
    """The status of a run, or of a folder of many runs.

    Attributes:
        config: Name of its configuration or study.
        seed: None for a folder of many runs.
        status: For a run `done`, `failed`, `interrupted`, `running` or `died`; for many runs `done`, `failed`,
            `running` or `incomplete`; `damaged` if it cannot be read.
        state: The status with the round (`died in round 7 of 56`) or the number of runs (`incomplete, 3 of 10 runs`).
        round: The last known round, from 0, of a run that is running or died.
        rounds: The planned rounds, or quarters.
        started: Start time (UTC); if not recorded, the time of the folder's last change.
        age_s: Seconds since `started`, at least 0.
        size_bytes: The size of all files.
        error: The reason of a failure, or the damage; else empty.
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


def list_folders(out: str | os.PathLike[str]) -> list[ListedFolder]:
    """Return the runs and studies in a folder, newest first; if the folder is a study, its runs; if a run, that run."""
    folder, now = Path(out), datetime.now(UTC)
    try:
        if any((folder / name).is_file() for name in _STUDY_KINDS):
            paths = _folders_in(folder / "runs") if (folder / "runs").is_dir() else []
        else:
            paths = [os.fspath(folder)] if (folder / _RUN_MANIFEST).is_file() else _folders_in(folder)
    except OSError as error:
        raise DataError(f"{out}: cannot be listed: {error.strerror or error}") from None
    items = [item for path in paths if (item := _read_folder(path, now)) is not None]
    return sorted(items, key=lambda item: (item.started, item.run_dir), reverse=True)


def _folders_in(folder: Path) -> list[str]:
    with os.scandir(folder) as entries:
        return [entry.path for entry in entries if entry.is_dir()]


def _read_folder(path: str, now: datetime) -> ListedFolder | None:
    """Return the status of a folder; None if it holds neither a run nor a study."""
    try:
        with os.scandir(path) as items:
            entries = list(items)
    except OSError as error:
        return _listed_folder(path, now, {}, "unknown", 0, _damaged_state(f"cannot be read: {error.strerror}"))
    names = {entry.name for entry in entries}
    size = sum(map(_size_in_bytes, entries))
    study = next((name for name in _STUDY_KINDS if name in names), None)
    kind: Kind = "unknown" if study is None else _STUDY_KINDS[study]
    try:
        if _RUN_MANIFEST in names:
            values = _read_json(path, _RUN_MANIFEST)
            kinds: dict[str, Kind] = {"social": "platform", "economy": "nations"}
            kinds |= {"survey": "survey", "interview": "interview"}
            kind = kinds.get(str(values.get("system", "social")), "unknown")
            return _listed_folder(path, now, values, kind, size, _run_state(Path(path), values))
        if study is not None:
            values = _read_json(path, _STUDY_MANIFEST if kind == "validation" else study)
            versions = values.get("made")
            state = _study_state(Path(path), values, kind, names)
            return _listed_folder(path, now, versions if isinstance(versions, dict) else {}, kind, size, state)
    except ValueError as error:
        return _listed_folder(path, now, {}, kind, size, _damaged_state(str(error)))
    if LOCK in names and last_holder(Path(path)) is not None:
        status = "running" if is_locked(Path(path)) else "died"
        state = {"status": status, "state": f"{status}, before its first round"}
        return _listed_folder(path, now, {}, kind, size, state)
    return None


def _size_in_bytes(entry: "os.DirEntry[str]") -> int:
    """Return the size of a file, or of all files in a folder, in bytes; links are not followed."""
    try:
        if entry.is_dir(follow_symlinks=False):
            with os.scandir(entry.path) as entries:
                return sum(map(_size_in_bytes, entries))
        return entry.stat(follow_symlinks=False).st_size
    except OSError:  # the file was deleted in the meantime
        return 0


type _Values = dict[str, Any]


def _run_state(run: Path, values: _Values) -> _Values:
    config, status = values.get("config"), values.get("status")
    if status not in STATUSES:
        raise ValueError(f"{_RUN_MANIFEST}: status: not allowed")
    config = config if isinstance(config, dict) else {}
    rounds = _as_integer(config.get("rounds"))
    state = read_state(run, status, rounds)
    return {
        "status": state.status,
        "state": str(state),
        "round": state.round,
        "rounds": rounds,
        "config": _printable_text(config.get("name")),
        "seed": _as_integer(values.get("seed")),
        "error": _printable_text(values.get("error")),
    }


def _study_state(folder: Path, values: _Values, kind: Kind, names: set[str]) -> _Values:
    done, skipped, failed = _count_endings(folder, names)
    planned = _as_integer(values.get("runs"))
    n_ended = done + skipped + failed
    has_ended = _FINAL_FILES[kind] in names if kind in _FINAL_FILES else planned is not None and n_ended >= planned
    if any(is_locked(folder, name) for name in names if name.startswith(LOCK) and name != f"{LOCK}-collect"):
        status = "running"
    else:
        status = "incomplete" if not has_ended else "failed" if failed else "done"
    total = "" if planned is None else f" of {planned}"
    other_endings = "".join(f", {n} {ending}" for n, ending in ((skipped, "skipped"), (failed, "failed")) if n)
    state = status if status == "done" and not skipped else f"{status}, {done}{total} runs done{other_endings}"
    return {"status": status, "state": state, "config": _printable_text(values.get("name")) or folder.name}


def _count_endings(folder: Path, names: set[str]) -> tuple[int, int, int]:
    endings: dict[str, str] = {}
    for name in sorted(names):
        journal = folder / name
        if not (name.startswith("journal") and name.endswith(".sqlite")) or journal.is_symlink():
            continue
        try:
            with closing(ReadOnlyFile(journal, _WAIT_S)) as db:
                require_tables(db.fetch)
                rows = db.fetch("select run, ending from runs")
        except FAULTS as error:
            raise ValueError(f"{name}: cannot be read: {error}") from None
        for run, ending in rows:
            if endings.get(str(run)) != "done":
                endings[str(run)] = str(ending)
    counts = Counter(endings.values())
    return counts["done"], counts["skipped"], len(endings) - counts["done"] - counts["skipped"]


def require_tables(fetch: Callable[[str], Iterable[Any]]) -> None:
    """Raise sqlite3.DatabaseError if `runs` or `rows` is a view: the query of a view may never end."""
    fetch("pragma trusted_schema = off")
    for (name,) in fetch("select name from sqlite_master where name in ('runs', 'rows') and type != 'table'"):
        raise sqlite3.DatabaseError(f"{name} is not a table")


def _listed_folder(path: str, now: datetime, values: _Values, kind: Kind, size: int, state: _Values) -> ListedFolder:
    started = _parse_time(values.get("started"))
    if started is None:
        try:
            started = datetime.fromtimestamp(os.stat(path).st_mtime, UTC)
        except OSError:
            started = now
    defaults: _Values = {"config": "", "seed": None, "round": None, "rounds": None, "error": ""}
    age = max(0.0, (now - started).total_seconds())
    text = started.isoformat(timespec="seconds")
    return ListedFolder(run_dir=path, kind=kind, started=text, age_s=age, size_bytes=size, **defaults | state)


def _damaged_state(reason: str) -> _Values:
    return {"status": "damaged", "state": "damaged", "error": _printable_text(reason)}


def _read_json(folder: str, name: str) -> _Values:
    try:
        with open(os.path.join(folder, name), "rb") as file:
            values = from_json(file.read(_MAX_BYTES))  # twice as fast as json.loads
    except (OSError, ValueError) as error:
        raise ValueError(f"{name}: cannot be read: {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"{name}: cannot be read: must hold keys and values")
    return values


def _parse_time(value: object) -> datetime | None:
    try:
        time = datetime.fromisoformat(value) if isinstance(value, str) else None
        return None if time is None else time.replace(tzinfo=time.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _printable_text(value: object) -> str:
    return shorten(printable(value), _MAX_CHARS) if isinstance(value, str) else ""


def _as_integer(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else None
