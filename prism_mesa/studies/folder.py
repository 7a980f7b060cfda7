"""The folder of a study: its files, its owner, and the locks of its drivers."""

import json
import os
import secrets
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, Final

import yaml

from prism_mesa.errors import DataError, RunError, redact_credentials, shorten
from prism_mesa.params import Params
from prism_mesa.runs.config import Config
from prism_mesa.runs.process.lock import try_lock
from prism_mesa.runs.process.machine import provenance
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.studies.design.study_design import StudyDesign
from prism_mesa.studies.journal import Journals

MANIFEST: Final = "study.json"
LEDGER: Final = "answers.sqlite"
_MAX_BYTES: Final = 100_000_000
_STUDY_FILES: Final = (
    *(".lock*", "journal*.sqlite*", f"{LEDGER}*", "study.json", "study.yaml", "base.yaml", "*.parquet", "report*"),
    *("calibration.json", "calibration.yaml", "trials.json", "fitted.yaml", "runs", "figures"),
)
"""Patterns of the files that a study or a calibration writes."""
_BUSY: Final = "another process is running this study: wait for it, or run shards (--shard K/N)"
_NO_LINKS: Final = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True)
class Shard:
    """Part `k` (from 1) of `n` parts of a study's runs.

    With at least `n` seeds, a part has all runs of its seeds, so that its loss affects all conditions alike.
    """

    k: int = 1
    n: int = 1

    @property
    def whole(self) -> bool:
        """Whether the shard has all runs."""
        return self.n == 1

    def contains(self, index: int, design: StudyDesign) -> bool:
        """Return whether the shard has the run at an index of `StudyDesign.runs_by_seed`."""
        n_conditions = len(design.conditions)
        seed = index // n_conditions
        shift = seed if n_conditions % self.n == 0 else 0  # else a part has the same conditions for all seeds
        number = seed if len(design.seeds) >= self.n else index + shift
        return number % self.n == self.k - 1


WHOLE: Final = Shard()


@dataclass(frozen=True)
class StudyFolder:
    """A study's folder."""

    path: Path

    @property
    def runs(self) -> Path:
        """The folder of kept runs."""
        return self.path / "runs"

    @property
    def ledger(self) -> Path:
        """The ledger of LLM answers that all runs share."""
        return self.path / LEDGER

    @property
    def base(self) -> Path:
        """The file with all keys of the configuration that all runs start from."""
        return self.path / "base.yaml"

    def table(self, name: str) -> Path:
        """Return the path of a collected table."""
        return self.path / f"{name}.parquet"

    def journal(self, shard: Shard) -> Path:
        """Return the path of a driver's journal."""
        return self.path / ("journal.sqlite" if shard.whole else f"journal-{shard.k}-of-{shard.n}.sqlite")

    def journals(self) -> Journals:
        """Return all journals."""
        return Journals(sorted(self.path.glob("journal*.sqlite")), self.runs)

    def check(self) -> None:
        """Raise DataError if the folder, or a file that a study writes into it, is a link."""
        if self.path.is_symlink():
            raise DataError(f"{self.path} is a link: name the folder itself in --out")
        for file in sorted(self.path.iterdir()) if self.path.is_dir() else ():
            if file.is_symlink() and any(fnmatch(file.name, pattern) for pattern in _STUDY_FILES):
                raise DataError(f"{file} is a link: a study writes this file; replace the link")

    @contextmanager
    def locked(self, shard: Shard, busy: str = _BUSY) -> Iterator[None]:
        """Create and lock the folder; shards share the lock. If another driver has it, a DataError says `busy`."""
        make_folder(self.path)
        self.check()
        with (
            _lock(self.path / ".lock", shared=not shard.whole, busy=busy),
            _lock(self.path / f".lock-{shard.k}-of-{shard.n}", busy=busy),
        ):
            yield

    @contextmanager
    def lock_tables(self) -> Iterator[None]:
        """Lock the collected tables; wait for the lock, because the last process to collect must see all results."""
        self.check()
        with _lock(self.path / ".lock-collect", blocking=True):
            yield

    def existing_manifest(self, manifest: str, kind: str) -> Mapping[str, Any] | None:
        """Return the folder's manifest, or None if the folder is new; raise DataError for another kind of folder."""
        rename = f"give the {kind} another name, or another --out"
        if self.path.exists() and not self.path.is_dir():
            raise DataError(f"{self.path} is not a folder; {rename}")
        self.check()
        values = read_json(self.path / manifest)
        if values is None and self.path.is_dir() and any(not f.name.startswith(".lock") for f in self.path.iterdir()):
            raise DataError(f"{self.path} is not the folder of a {kind}; {rename}")
        if values is not None and values.get("kind") != kind:
            raise DataError(f"{self.path / manifest}: is not the manifest of a {kind}; {rename}")
        return values

    def write_files(self, manifest: str, facts: Mapping[str, Any], text: str, params: Params, base: Config) -> None:
        """Write the manifest, the file of the study or calibration, and ``base.yaml``, without passwords.

        `text` is the content of the file; if empty, `params` are written. An earlier manifest's versions (`made`) stay.
        """
        earlier = read_json(self.path / manifest)
        versions = provenance() if earlier is None else earlier.get("made")
        text = text or yaml.safe_dump(params.model_dump(mode="json", exclude_unset=True), sort_keys=False)
        for name, content in (
            (manifest, json.dumps({**facts, "made": versions}, indent=2) + "\n"),
            (manifest.replace(".json", ".yaml"), text),
            ("base.yaml", yaml.safe_dump(base.model_dump(mode="json"), sort_keys=False, allow_unicode=True)),
        ):
            write_text(self.path / name, redact_credentials(content))


def write_study_files(design: StudyDesign, folder: StudyFolder, text: str) -> None:
    """Write a study's manifest and files into its folder; `text` is the content of the study file."""
    facts = {
        "kind": "study",
        "name": design.name,
        "question": design.params.question,
        "runs": design.n_runs,
        "file": str(Path(design.where).absolute()),
    }
    folder.write_files(MANIFEST, facts, text, design.params, design.base)


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield a new file that replaces `file` unless the block raises; raise RunError if it cannot be written.

    The new file has a unique name, so several processes may write the same `file`: the last process wins.
    """
    new_file = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        os.close(os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        yield new_file
        new_file.replace(file)
    except OSError as error:
        raise RunError(f"{file} cannot be written: {error.strerror or error}") from None
    finally:
        new_file.unlink(missing_ok=True)


def write_text(file: Path, text: str) -> None:
    """Write a file atomically."""
    with replacing(file) as new_file:
        new_file.write_text(text, encoding="utf-8")


def open_folder(design: StudyDesign, out: str | Path) -> StudyFolder:
    """Return the folder of a study, ``out/<name>``; raise DataError if the folder holds something else."""
    folder = StudyFolder(Path(out) / design.name)
    earlier = folder.existing_manifest(MANIFEST, "study")
    if earlier is None or earlier.get("question") == design.params.question or _shares_runs(design, folder):
        return folder
    question = shorten(str(earlier.get("question")), 120)
    raise DataError(
        f"{folder.path} is the folder of another study ({question!r}); give this one another name, or another --out"
    )


def _shares_runs(design: StudyDesign, folder: StudyFolder) -> bool:
    """Return whether the folder has no runs, or a run of one of the study's conditions; code versions are ignored."""
    study_identities = {(condition.identity.config, condition.identity.data) for condition in design.conditions}
    with folder.journals() as journals:
        folder_identities = {(entry.identity.config, entry.identity.data) for entry in journals.entries()}
    return not folder_identities or not folder_identities.isdisjoint(study_identities)


def read_json(file: Path) -> Mapping[str, Any] | None:
    """Return the object in a JSON file, or None if the file is missing; raise DataError if it cannot be read."""
    if not file.exists():
        return None
    try:
        values = json.loads(file.read_text("utf-8")) if file.stat().st_size < _MAX_BYTES else None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file} cannot be read: {str(error).splitlines()[0]}") from None
    if not isinstance(values, dict):
        raise DataError(f"{file} cannot be read: must hold keys and values")
    return values


@contextmanager
def _lock(file: Path, *, shared: bool = False, blocking: bool = False, busy: str = _BUSY) -> Iterator[None]:
    """Lock a file during the block; nothing is written into it."""
    try:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | _NO_LINKS, 0o666)
    except OSError as error:
        raise DataError(f"{file} cannot be opened: {error.strerror}") from None
    try:
        if blocking:
            with suppress(ImportError):  # Windows lacks fcntl
                import fcntl

                fcntl.flock(descriptor, fcntl.LOCK_EX)
        else:
            locked = try_lock(descriptor, shared=shared)
            if locked is False:
                raise DataError(f"{file.parent}: {busy}")
            if locked is None and sys.platform != "win32":
                raise DataError(f"{file.parent} cannot be locked: the file system has no locks")
        yield
    finally:
        os.close(descriptor)
