"""The folder of a study: what lies in it, whose it is, and who may write to it now."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import yaml

from prism_mesa.errors import DataError, said_openly, shortened
from prism_mesa.runs.folder import make_folder
from prism_mesa.runs.machine import provenance
from prism_mesa.studies.design.study_design import StudyDesign
from prism_mesa.studies.journal import Journals

MANIFEST: Final = "study.json"
LEDGER: Final = "answers.sqlite"
_LARGEST: Final = 10_000_000


@dataclass(frozen=True)
class Shard:
    """A part of a study's runs: every n-th, from the k-th on; k from 1."""

    k: int = 1
    n: int = 1

    @property
    def whole(self) -> bool:
        """Whether it is all of them."""
        return self.n == 1

    def has(self, place: int) -> bool:
        """Return whether the run at a place, from 0, is in it."""
        return place % self.n == self.k - 1


WHOLE: Final = Shard()


@dataclass(frozen=True)
class StudyFolder:
    """A study's folder.

    Attributes:
        path: The folder.
    """

    path: Path

    @property
    def runs(self) -> Path:
        """Where runs are kept that keep their tables."""
        return self.path / "runs"

    @property
    def ledger(self) -> Path:
        """The answers of an LLM that all runs share."""
        return self.path / LEDGER

    @property
    def base(self) -> Path:
        """The configuration that all runs start from, with every key."""
        return self.path / "base.yaml"

    def table(self, name: str) -> Path:
        """Return where a collected table is."""
        return self.path / f"{name}.parquet"

    def journal(self, shard: Shard) -> Path:
        """Return the journal of a driver."""
        return self.path / ("journal.sqlite" if shard.whole else f"journal-{shard.k}-of-{shard.n}.sqlite")

    def journals(self) -> Journals:
        """Return all journals."""
        return Journals(sorted(self.path.glob("journal*.sqlite")))

    @contextmanager
    def locked(self, shard: Shard) -> Iterator[None]:
        """Hold the folder while runs are made; drivers of different shards may hold it together.

        Raises:
            DataError: If another driver holds it. A driver that died does not.
        """
        with (self.path / ".lock").open("a") as whole, (self.path / f".lock-{shard.k}-of-{shard.n}").open("a") as own:
            _hold(whole, self.path, shared=not shard.whole)
            _hold(own, self.path, shared=False)
            yield

    def describe(self, design: StudyDesign, text: str) -> None:
        """Write down what the study is; `text` is the study file."""
        before = _manifest(self.path)
        values = {
            "kind": "study",
            "name": design.name,
            "question": design.params.question,
            "runs": design.n_runs,
            "made": provenance() if before is None else before.get("made"),
        }
        base = yaml.safe_dump(design.base.model_dump(mode="json"), sort_keys=False, allow_unicode=True)
        study = text or yaml.safe_dump(design.params.model_dump(mode="json", exclude_unset=True), sort_keys=False)
        for name, content in (
            (MANIFEST, json.dumps(values, indent=2) + "\n"),
            ("study.yaml", study),
            ("base.yaml", base),
        ):
            write_text(self.path / name, said_openly(content))


def write_text(file: Path, text: str) -> None:
    """Write a file in one piece."""
    part = file.with_name(f".{file.name}")
    part.write_text(text, encoding="utf-8")
    part.replace(file)


def open_folder(design: StudyDesign, out: str | Path) -> StudyFolder:
    """Return the folder of a study, ``out/<name>``, which may not be there yet.

    Raises:
        DataError: If something else is there, or another study.
    """
    path = Path(out) / design.name
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise DataError(f"{path}: is no folder; give the study another name, or another --out")
    before = _manifest(path)
    if before is None:
        if path.is_dir() and any(not inside.name.startswith(".lock") for inside in path.iterdir()):
            raise DataError(f"{path}: holds no study but something else; give the study another name, or another --out")
        return StudyFolder(path)
    if before.get("question") != design.params.question and not _shares_runs(design, StudyFolder(path)):
        asked = shortened(str(before.get("question")), 120)
        raise DataError(
            f"{path}: is the folder of another study ({asked!r}); give this one another name, or another --out"
        )
    return StudyFolder(path)


def make_study_folder(folder: StudyFolder) -> None:
    """Make the folder, if it is missing.

    Raises:
        DataError: If that cannot be done.
    """
    make_folder(folder.path)


def _shares_runs(design: StudyDesign, folder: StudyFolder) -> bool:
    """Return whether the folder has a run of one of the study's conditions, by whatever code; or none at all."""
    ours = {(condition.identity.config, condition.identity.data) for condition in design.conditions}
    with folder.journals() as journals:
        none = True
        for entry in journals.entries():
            none = False
            if (entry.identity.config, entry.identity.data) in ours:
                return True
    return none


def _manifest(path: Path) -> Mapping[str, Any] | None:
    """Return what the folder says of itself, or None if nothing.

    Raises:
        DataError: If that cannot be read.
    """
    file = path / MANIFEST
    if not file.exists():
        return None
    try:
        values = json.loads(file.read_text("utf-8")) if file.stat().st_size < _LARGEST else None
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{file}: cannot be read: {str(error).splitlines()[0]}") from None
    if not isinstance(values, dict) or values.get("kind") != "study":
        raise DataError(f"{file}: is not what a study writes; give the study another name, or another --out")
    return values


def _hold(file: IO[str], path: Path, *, shared: bool) -> None:
    with suppress(ImportError):  # Windows has no such locks
        import fcntl

        try:
            fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            raise DataError(
                f"{path}: another process runs this study now; wait for it, or give each a --shard K/N"
            ) from None
        if not shared:
            file.truncate(0)
            file.write(f"{os.getpid()}\n")
            file.flush()
