"""The folder of a study: its files, which study it belongs to, and the lock of its drivers."""

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

from prism_mesa.errors import DataError, RunError, redact_credentials, shortened
from prism_mesa.params import Params
from prism_mesa.runs.config import Config
from prism_mesa.runs.process.lock import try_lock
from prism_mesa.runs.process.machine import provenance
from prism_mesa.runs.records.folder import make_folder
from prism_mesa.studies.design.study_design import StudyDesign
from prism_mesa.studies.journal import Journals

MANIFEST: Final = "study.json"
LEDGER: Final = "answers.sqlite"
_LARGEST: Final = 100_000_000
_WRITTEN: Final = (
    *(".lock*", "journal*.sqlite*", f"{LEDGER}*", "study.json", "study.yaml", "base.yaml", "*.parquet", "report*"),
    *("calibration.json", "calibration.yaml", "trials.json", "fitted.yaml", "runs", "figures"),
)
"""Patterns of what a study or a calibration writes into its folder."""
_BUSY: Final = "another process runs this study now; wait for it, or give each a --shard K/N"
_NO_LINKS: Final = getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True)
class Shard:
    """The k-th of n parts of a study's runs, k from 1.

    With at least n seeds each part gets whole seeds, so that a lost part costs all conditions the same seeds.
    """

    k: int = 1
    n: int = 1

    @property
    def whole(self) -> bool:
        """Whether it holds all runs."""
        return self.n == 1

    def has(self, place: int, design: StudyDesign) -> bool:
        """Return whether it holds the run at a place of `StudyDesign.runs_by_seed`, from 0."""
        n_conditions = len(design.conditions)
        seed = place // n_conditions
        shift = (
            seed if n_conditions % self.n == 0 else 0
        )  # otherwise each part would have the same conditions of all seeds
        number = seed if len(design.seeds) >= self.n else place + shift
        return number % self.n == self.k - 1


WHOLE: Final = Shard()


@dataclass(frozen=True)
class StudyFolder:
    """A study's folder."""

    path: Path

    @property
    def runs(self) -> Path:
        """The folder of the runs that keep their tables."""
        return self.path / "runs"

    @property
    def ledger(self) -> Path:
        """The LLM answers that all runs share."""
        return self.path / LEDGER

    @property
    def base(self) -> Path:
        """The configuration that all runs start from, with every key."""
        return self.path / "base.yaml"

    def table(self, name: str) -> Path:
        """Return the path of a collected table."""
        return self.path / f"{name}.parquet"

    def journal(self, shard: Shard) -> Path:
        """Return the journal of a driver."""
        return self.path / ("journal.sqlite" if shard.whole else f"journal-{shard.k}-of-{shard.n}.sqlite")

    def journals(self) -> Journals:
        """Return all journals."""
        return Journals(sorted(self.path.glob("journal*.sqlite")), self.runs)

    def check(self) -> None:
        """Check that nothing is written through a link: the folder may be somebody else's.

        Raises:
            DataError: If the folder, or one of its files that a study writes, is a link.
        """
        if self.path.is_symlink():
            raise DataError(f"{self.path}: is a link: a study's folder is written, so name the folder itself in --out")
        for inside in sorted(self.path.iterdir()) if self.path.is_dir() else ():
            if inside.is_symlink() and any(fnmatch(inside.name, pattern) for pattern in _WRITTEN):
                raise DataError(f"{inside}: is a link: a study writes there, so put the file or folder itself there")

    @contextmanager
    def locked(self, shard: Shard, busy: str = _BUSY) -> Iterator[None]:
        """Make the folder if it is missing, and lock it; drivers of different shards can lock it together.

        Args:
            shard: The runs to make.
            busy: What an error says if another driver has locked it.

        Raises:
            DataError: If another driver has locked it, or it cannot be locked.
        """
        make_folder(self.path)
        self.check()
        with (
            _lock(self.path / ".lock", shared=not shard.whole, busy=busy),
            _lock(self.path / f".lock-{shard.k}-of-{shard.n}", busy=busy),
        ):
            yield

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Wait until no other process collects results, and lock that: else the last to write may know least."""
        self.check()
        with _lock(self.path / ".lock-collect", waits=True):
            yield

    def opened(self, manifest: str, kind: str) -> Mapping[str, Any] | None:
        """Return the folder's manifest; None if the folder is new.

        Raises:
            DataError: If the folder holds something else, or links where files are written, or its manifest is damaged.
        """
        rename = f"give the {kind} another name, or another --out"
        if self.path.exists() and not self.path.is_dir():
            raise DataError(f"{self.path}: is no folder; {rename}")
        self.check()
        values = read_json(self.path / manifest)
        if values is None and self.path.is_dir() and any(not f.name.startswith(".lock") for f in self.path.iterdir()):
            raise DataError(f"{self.path}: holds no {kind} but something else; {rename}")
        if values is not None and values.get("kind") != kind:
            raise DataError(f"{self.path / manifest}: is not what a {kind} writes; {rename}")
        return values

    def describe(self, manifest: str, facts: Mapping[str, Any], text: str, params: Params, base: Config) -> None:
        """Write the manifest, the study (or calibration) file, and ``base.yaml``, without passwords.

        The manifest keeps the versions (`made`) of the first time. Without a `text` the file is made from `params`.
        """
        before = read_json(self.path / manifest)
        made = provenance() if before is None else before.get("made")
        written = text or yaml.safe_dump(params.model_dump(mode="json", exclude_unset=True), sort_keys=False)
        for name, content in (
            (manifest, json.dumps({**facts, "made": made}, indent=2) + "\n"),
            (manifest.replace(".json", ".yaml"), written),
            ("base.yaml", yaml.safe_dump(base.model_dump(mode="json"), sort_keys=False, allow_unicode=True)),
        ):
            write_text(self.path / name, redact_credentials(content))


def describe_study(design: StudyDesign, folder: StudyFolder, text: str) -> None:
    """Write the study's description into its folder; `text` is the study file."""
    facts = {
        "kind": "study",
        "name": design.name,
        "question": design.params.question,
        "runs": design.n_runs,
        "file": str(Path(design.where).absolute()),
    }
    folder.describe(MANIFEST, facts, text, design.params, design.base)


@contextmanager
def replacing(file: Path) -> Iterator[Path]:
    """Yield a new, empty file beside `file`, which replaces it when the block ends without an error.

    Its name is unique, so several processes may write the same file: the last one wins.

    Raises:
        RunError: If it cannot be written, as on a disk that is full.
    """
    part = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        yield part
        part.replace(file)
    except OSError as error:
        raise RunError(f"{file}: cannot be written: {error.strerror or error}") from None
    finally:
        part.unlink(missing_ok=True)


def write_text(file: Path, text: str) -> None:
    """Write a file atomically."""
    with replacing(file) as part:
        part.write_text(text, encoding="utf-8")


def open_folder(design: StudyDesign, out: str | Path) -> StudyFolder:
    """Return the folder of a study, ``out/<name>``, which need not exist yet.

    Raises:
        DataError: If it holds something else, another study, or links where a study writes.
    """
    folder = StudyFolder(Path(out) / design.name)
    before = folder.opened(MANIFEST, "study")
    if before is None or before.get("question") == design.params.question or _shares_runs(design, folder):
        return folder
    question = shortened(str(before.get("question")), 120)
    raise DataError(
        f"{folder.path}: is the folder of another study ({question!r}); give this one another name, or another --out"
    )


def _shares_runs(design: StudyDesign, folder: StudyFolder) -> bool:
    """Return whether the folder has a run of one of the study's conditions, by any code, or no runs at all."""
    ours = {(condition.identity.config, condition.identity.data) for condition in design.conditions}
    with folder.journals() as journals:
        theirs = {(entry.identity.config, entry.identity.data) for entry in journals.entries()}
    return not theirs or not theirs.isdisjoint(ours)


def read_json(file: Path) -> Mapping[str, Any] | None:
    """Return the values of a JSON file; None if there is no such file.

    Raises:
        DataError: If it cannot be read, or does not hold keys and values.
    """
    if not file.exists():
        return None
    try:
        values = json.loads(file.read_text("utf-8")) if file.stat().st_size < _LARGEST else None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from None
    if not isinstance(values, dict):
        raise DataError(f"{file}: cannot be read: it does not hold keys and values")
    return values


@contextmanager
def _lock(file: Path, *, shared: bool = False, waits: bool = False, busy: str = _BUSY) -> Iterator[None]:
    """Lock a file while the block runs; nothing is written into it."""
    try:
        number = os.open(file, os.O_RDWR | os.O_CREAT | _NO_LINKS, 0o666)
    except OSError as error:
        raise DataError(f"{file}: cannot be opened: {error.strerror}") from None
    try:
        if waits:
            with suppress(ImportError):  # Windows has no such locks
                import fcntl

                fcntl.flock(number, fcntl.LOCK_EX)
        else:
            locked = try_lock(number, shared=shared)
            if locked is False:
                raise DataError(f"{file.parent}: {busy}")
            if locked is None and sys.platform != "win32":
                raise DataError(f"{file.parent}: cannot be locked: this file system has no locks")
        yield
    finally:
        os.close(number)
